/*
 * fault_layer.c - the layer that the OpenCL loader loads: a wrapper for each
 * call of fault_calls.h, which asks fault_rules.c what is to become of it and
 * passes it on to the target.
 *
 * An event that is to end in error is the real event of the real command (or
 * of another in its place), so that it ends when its turn has come and no
 * driver ever sees a failure; what the program is told about it is replaced.
 */
#include "fault_layer.h"

#include <stdlib.h>
#include <string.h>

#define LAYER_NAME "clbytes fault layer"

cl_icd_dispatch fault__target;

/* --- Calls that are no commands ------------------------------------------ */

#define WRAP_PLAIN(name, params, args)                                         \
  static cl_int CL_API_CALL wrap_##name params {                               \
    cl_int fault = fault__enter(FAULT_CALL_##name);                            \
                                                                               \
    return fault != CL_SUCCESS ? fault : fault__target.name args;              \
  }
FAULT_PLAIN_CALLS(WRAP_PLAIN)

#define WRAP_RETAIN(name, kind, type)                                          \
  static cl_int CL_API_CALL wrap_##name(type object) {                         \
    cl_int error = fault__enter(FAULT_CALL_##name);                            \
                                                                               \
    if (error == CL_SUCCESS)                                                   \
      error = fault__target.name(object);                                      \
    if (error == CL_SUCCESS)                                                   \
      fault__retained(kind, object);                                           \
    return error;                                                              \
  }
FAULT_RETAIN_CALLS(WRAP_RETAIN)

/* Counted before the driver is called: afterwards the address may be another
 * object's. */
#define WRAP_RELEASE(name, kind, type, invalid)                                \
  static cl_int CL_API_CALL wrap_##name(type object) {                         \
    cl_int fault = fault__enter(FAULT_CALL_##name);                            \
    cl_int error = invalid;                                                    \
                                                                               \
    if (fault__released(kind, object))                                         \
      error = fault__target.name(object);                                      \
    return fault != CL_SUCCESS ? fault : error;                                \
  }
FAULT_RELEASE_CALLS(WRAP_RELEASE)

#define WRAP_MAKE(name, kind, type, params, args, refusal)                     \
  static type CL_API_CALL wrap_##name params {                                 \
    cl_int fault = fault__enter(FAULT_CALL_##name);                            \
    type object = NULL;                                                        \
                                                                               \
    if (fault == CL_SUCCESS)                                                   \
      fault = refusal;                                                         \
    if (fault == CL_SUCCESS)                                                   \
      object = fault__target.name args;                                        \
    else if (error != NULL)                                                    \
      *error = fault;                                                          \
    if (object != NULL)                                                        \
      fault__made(kind, object);                                               \
    return object;                                                             \
  }
FAULT_MAKE_CALLS(WRAP_MAKE)

static cl_int CL_API_CALL wrap_clGetDeviceInfo(cl_device_id device,
                                               cl_device_info name,
                                               INFO_PARAMS) {
  cl_int error = fault__enter(FAULT_CALL_clGetDeviceInfo);

  if (error != CL_SUCCESS || fault__answer(name, INFO_ARGS, &error))
    return error;
  return fault__target.clGetDeviceInfo(device, name, INFO_ARGS);
}

/* --- Events -------------------------------------------------------------- */

static cl_int CL_API_CALL wrap_clWaitForEvents(cl_uint num,
                                               const cl_event *list) {
  cl_int error = fault__enter(FAULT_CALL_clWaitForEvents);

  if (error == CL_SUCCESS)
    error = fault__target.clWaitForEvents(num, list);
  if (error == CL_SUCCESS && fault__any_doomed(num, list))
    error = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  return error;
}

static cl_int CL_API_CALL wrap_clGetEventInfo(cl_event event,
                                              cl_event_info name, INFO_PARAMS) {
  cl_int error = fault__enter(FAULT_CALL_clGetEventInfo);
  cl_command_type type;
  cl_int doom, status;

  if (error == CL_SUCCESS)
    error = fault__target.clGetEventInfo(event, name, INFO_ARGS);
  if (error != CL_SUCCESS || value == NULL)
    return error;
  doom = fault__doomed(event, &type);
  if (doom == CL_SUCCESS)
    return error;
  if (name == CL_EVENT_COMMAND_TYPE) {
    memcpy(value, &type, sizeof type);
  } else if (name == CL_EVENT_COMMAND_EXECUTION_STATUS) {
    memcpy(&status, value, sizeof status);
    if (status == CL_COMPLETE)
      memcpy(value, &doom, sizeof doom);
  }
  return error;
}

typedef void(CL_CALLBACK *event_callback)(cl_event, cl_int, void *);

/* The program's callback for a doomed event. */
struct doomed_callback {
  event_callback call;
  void *user;
  cl_int doom;
};

static void CL_CALLBACK doomed_call(cl_event event, cl_int status, void *user) {
  struct doomed_callback callback;

  memcpy(&callback, user, sizeof callback);
  free(user);
  if (status == CL_COMPLETE)
    status = callback.doom;
  callback.call(event, status, callback.user);
}

static cl_int CL_API_CALL wrap_clSetEventCallback(cl_event event, cl_int status,
                                                  event_callback call,
                                                  void *user) {
  cl_int error = fault__enter(FAULT_CALL_clSetEventCallback);
  struct doomed_callback *callback;
  cl_command_type type;
  cl_int doom;

  if (error != CL_SUCCESS)
    return error;
  doom = fault__doomed(event, &type);
  if (doom == CL_SUCCESS || status != CL_COMPLETE || call == NULL)
    return fault__target.clSetEventCallback(event, status, call, user);
  callback = malloc(sizeof *callback);
  if (callback == NULL)
    return CL_OUT_OF_HOST_MEMORY;
  *callback = (struct doomed_callback){ call, user, doom };
  error = fault__target.clSetEventCallback(event, status, doomed_call,
                                           callback);
  if (error != CL_SUCCESS)
    free(callback);
  return error;
}

/* --- Commands ------------------------------------------------------------ */

enum { SKIPPED, RUNS };

/* A command on its way through a wrapper. */
struct command {
  struct fault_verdict verdict;
  cl_command_type type;
  cl_event gate;  /* NULL: not held */
  cl_event *list; /* the program's list and the gate; NULL: the program's */
};

static void command_clean(struct command *command) {
  free(command->list);
  if (command->gate != NULL)
    fault__target.clReleaseEvent(command->gate);
}

/*
 * Makes the command wait for a gate.  A marker or barrier with no list waits
 * for all commands before it, and would not if it were given one: a marker
 * that waits for the gate goes before it.
 */
static cl_int command_hold(struct command *command, cl_command_queue queue,
                           cl_uint *num, const cl_event **list) {
  cl_int error = fault__gate_make(queue, command->verdict.hold_ns,
                                  &command->gate);

  if (error != CL_SUCCESS)
    return error;
  if (*num == 0 && (command->type == CL_COMMAND_MARKER ||
                    command->type == CL_COMMAND_BARRIER))
    return fault__target.clEnqueueMarkerWithWaitList(queue, 1, &command->gate,
                                                     NULL);
  command->list = calloc((size_t)*num + 1, sizeof *command->list);
  if (command->list == NULL)
    return CL_OUT_OF_HOST_MEMORY;
  if (*num > 0)
    memcpy(command->list, *list, *num * sizeof *command->list);
  command->list[(*num)++] = command->gate;
  *list = command->list;
  return CL_SUCCESS;
}

/* Judges a command and prepares it; num and list become what is to be passed
 * on.  An error is the call's. */
static cl_int command_begin(struct command *command, enum fault_call call,
                            cl_command_type type, cl_command_queue queue,
                            cl_uint *num, const cl_event **list) {
  cl_int error;

  memset(command, 0, sizeof *command);
  command->type = type;
  fault__judge(call, &command->verdict);
  if (command->verdict.error != CL_SUCCESS)
    return command->verdict.error;
  if (fault__any_doomed(*num, *list))
    command->verdict.doom = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
  if (!command->verdict.held)
    return CL_SUCCESS;
  error = command_hold(command, queue, num, list);
  if (error != CL_SUCCESS)
    command_clean(command);
  return error;
}

static void CL_CALLBACK scratch_release(cl_event event, cl_int status,
                                        void *scratch) {
  (void)event;
  (void)status;
  fault__target.clReleaseMemObject(scratch);
}

/* Enqueues a command that takes a skipped one's place in the queue: a fill of
 * a few bytes of our own.  A marker would not do on a queue that is out of
 * order: PoCL 3.1 lets it wait for more than its list. */
static cl_int enqueue_scratch(cl_command_queue queue, cl_uint num,
                              const cl_event *list, cl_event *out) {
  static const cl_uint pattern = 0;
  cl_context context;
  cl_mem scratch;
  cl_int error;

  error = fault__target.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT,
                                              sizeof context, &context, NULL);
  if (error != CL_SUCCESS)
    return error;
  scratch = fault__target.clCreateBuffer(context, CL_MEM_READ_WRITE,
                                         sizeof pattern, NULL, &error);
  if (error != CL_SUCCESS)
    return error;
  error = fault__target.clEnqueueFillBuffer(queue, scratch, &pattern,
                                            sizeof pattern, 0, sizeof pattern,
                                            num, list, out);
  if (error != CL_SUCCESS)
    fault__target.clReleaseMemObject(scratch);
  else
    error = fault__target.clSetEventCallback(*out, CL_COMPLETE, scratch_release,
                                             scratch);
  return error;
}

/* Does in place of a command what nobody sees, and waits for it if the command
 * is blocking. */
static cl_int stand_in(cl_command_queue queue, cl_bool block, cl_uint num,
                       const cl_event *list, cl_event *event) {
  cl_event ours = NULL;
  cl_int error = enqueue_scratch(queue, num, list, &ours);

  if (error == CL_SUCCESS && block)
    error = fault__target.clWaitForEvents(1, &ours);
  if (error == CL_SUCCESS && event != NULL)
    *event = ours;
  else if (ours != NULL)
    fault__target.clReleaseEvent(ours);
  return error;
}

/* What the program learns of a command that the driver has accepted or not. */
static cl_int command_end(struct command *command, cl_int error, cl_bool block,
                          cl_event *event) {
  cl_int doom = command->verdict.doom;

  command_clean(command);
  if (error != CL_SUCCESS)
    return error;
  if (doom != CL_SUCCESS && block && !command->verdict.hidden) {
    if (event != NULL)
      fault__target.clReleaseEvent(*event);
    return doom;
  }
  if (event != NULL) {
    fault__made(FAULT_EVENT, *event);
    if (doom != CL_SUCCESS)
      fault__doom(*event, doom, command->type);
  }
  return CL_SUCCESS;
}

/* Bytes of a rectangle; one of no sense is the driver's to refuse. */
static size_t fault__volume(const size_t *region) {
  return region == NULL ? 0 : region[0] * region[1] * region[2];
}

#define WRAP_COMMAND(name, params, args, block, mode, type, move, bytes, mem,  \
                     second)                                                   \
  static cl_int CL_API_CALL wrap_##name params {                               \
    struct command command;                                                    \
    cl_int error = command_begin(&command, FAULT_CALL_##name, type, queue,     \
                                 &num, &list);                                 \
                                                                               \
    if (error != CL_SUCCESS)                                                   \
      return error;                                                            \
    if (command.verdict.doom != CL_SUCCESS && mode == SKIPPED)                 \
      error = stand_in(queue, block, num, list, event);                        \
    else                                                                       \
      error = fault__target.name args;                                         \
    if (error == CL_SUCCESS && command.verdict.doom == CL_SUCCESS)             \
      fault__moved(move, bytes, mem, second);                                  \
    return command_end(&command, error, block, event);                         \
  }
FAULT_COMMAND_CALLS(WRAP_COMMAND)

static void *CL_API_CALL wrap_clEnqueueMapBuffer(cl_command_queue queue,
                                                 cl_mem mem, cl_bool block,
                                                 cl_map_flags flags,
                                                 size_t offset, size_t size,
                                                 WAIT_PARAMS,
                                                 cl_int *error_ret) {
  struct command command;
  void *pointer = NULL;
  cl_int error = command_begin(&command, FAULT_CALL_clEnqueueMapBuffer,
                               CL_COMMAND_MAP_BUFFER, queue, &num, &list);

  if (error == CL_SUCCESS) {
    command.verdict.hidden = 0; /* there is no pointer that could be given */
    if (command.verdict.doom != CL_SUCCESS) {
      error = stand_in(queue, block, num, list, event);
      pointer = (void *)(UINTPTR_MAX - 4095); /* no program's memory */
    } else {
      pointer = fault__target.clEnqueueMapBuffer(
        queue, mem, block, flags, offset, size, num, list, event, &error);
      if (error == CL_SUCCESS) {
        fault__moved(FAULT_MAP, size, mem, NULL);
        fault__mapped(pointer);
      }
    }
    error = command_end(&command, error, block, event);
  }
  if (error_ret != NULL)
    *error_ret = error;
  return error == CL_SUCCESS ? pointer : NULL;
}

/* An unmap that is to fail is carried out, as a release is. */
static cl_int CL_API_CALL wrap_clEnqueueUnmapMemObject(cl_command_queue queue,
                                                       cl_mem mem,
                                                       void *pointer,
                                                       WAIT_PARAMS) {
  struct command command;
  cl_int error = command_begin(&command, FAULT_CALL_clEnqueueUnmapMemObject,
                               CL_COMMAND_UNMAP_MEM_OBJECT, queue, &num, &list);

  if (error != CL_SUCCESS) {
    if (fault__released(FAULT_MAPPING, pointer))
      fault__target.clEnqueueUnmapMemObject(queue, mem, pointer, num, list,
                                            NULL);
    return error;
  }
  error = CL_INVALID_VALUE;
  if (fault__released(FAULT_MAPPING, pointer))
    error = fault__target.clEnqueueUnmapMemObject(queue, mem, pointer, num,
                                                  list, event);
  return command_end(&command, error, CL_FALSE, event);
}

/* --- What the test calls ------------------------------------------------- */

static void reset(void) {
  fault__rules_reset();
  fault__gates_open();
  fault__objects_reset();
}

static const fault_api api = {
  FAULT_API_VERSION,
  reset,
  fault__rules_arm,
  fault__rules_struck,
  fault__rules_last,
  fault__rules_disarm,
  fault__rules_calls,
  fault__gates_held,
  fault__gates_open,
  fault__refuse_pinned,
  fault__limit_allocation,
  fault__device_info,
  fault__objects_live,
  fault__objects_references,
  fault__objects_over_releases,
  fault__objects_moved
};

const fault_api *fault_layer_api(void);

const fault_api *fault_layer_api(void) {
  return &api;
}

/* --- What the loader calls ----------------------------------------------- */

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info name,
                                               INFO_PARAMS) {
  static const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  const void *answer;
  size_t length;

  switch (name) {
  case CL_LAYER_API_VERSION:
    answer = &version;
    length = sizeof version;
    break;
#ifdef CL_LAYER_NAME
  case CL_LAYER_NAME:
    answer = LAYER_NAME;
    length = sizeof LAYER_NAME;
    break;
#endif
  default:
    return CL_INVALID_VALUE;
  }
  if (value != NULL && size < length)
    return CL_INVALID_VALUE;
  if (value != NULL)
    memcpy(value, answer, length);
  if (size_ret != NULL)
    *size_ret = length;
  return CL_SUCCESS;
}

/* Calls without a wrapper go straight to the target. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint num_entries,
                                            const cl_icd_dispatch *target,
                                            cl_uint *num_entries_ret,
                                            const cl_icd_dispatch **layer_ret) {
  static cl_icd_dispatch wrappers;
  size_t known = sizeof wrappers / sizeof(void *);

  if (target == NULL || num_entries_ret == NULL || layer_ret == NULL)
    return CL_INVALID_VALUE;
  if (known > num_entries)
    known = num_entries;
  memcpy(&fault__target, target, known * sizeof(void *));
  wrappers = fault__target;
#define SET_WRAPPER(name, ...)                                                 \
  if (fault__target.name != NULL)                                              \
    wrappers.name = wrap_##name;
  FAULT_ALL_CALLS(SET_WRAPPER)
#undef SET_WRAPPER
  *num_entries_ret = (cl_uint)known;
  *layer_ret = &wrappers;
  return CL_SUCCESS;
}

/* The next version of the layer interface, which newer loaders of Khronos
 * insist on; headers that know it declare these too. */
CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(
    cl_uint num_entries, const cl_icd_dispatch *target,
    cl_uint *num_entries_ret, const cl_icd_dispatch **layer_ret,
    const cl_ulong *properties);
CL_API_ENTRY cl_int CL_API_CALL clDeinitLayer(void);

CL_API_ENTRY cl_int CL_API_CALL clInitLayerWithProperties(
    cl_uint num_entries, const cl_icd_dispatch *target,
    cl_uint *num_entries_ret, const cl_icd_dispatch **layer_ret,
    const cl_ulong *properties) {
  (void)properties; /* they say how the layer is ended: nothing is to do */
  return clInitLayer(num_entries, target, num_entries_ret, layer_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clDeinitLayer(void) {
  return CL_SUCCESS;
}

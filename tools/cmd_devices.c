/* clbytes devices: every platform and device, what each can do, and the plans
 * that the library makes for it. */
#include "config.h"

#include "device_choice.h"
#include "escape.h"
#include "json.h"
#include "report.h"
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLAN_TEXT = 160 };

/* The layouts that are asked about: a matrix of SIDE x SIDE floats. */
enum { SIDE = 1024, ELEMENT = 4, PITCH = SIDE * ELEMENT };

static const struct {
  const char *name; /* for people */
  const char *key;  /* for JSON */
  size_t shape[2];
  ptrdiff_t strides[2];
} samples[] = {
    {"contiguous", "contiguous", {SIDE, SIDE}, {PITCH, ELEMENT}},
    {"padded rows", "padded_rows", {SIDE, SIDE - 7}, {PITCH, ELEMENT}},
    {"transposed", "transposed", {SIDE, SIDE}, {ELEMENT, PITCH}},
};
enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* What a device says of itself; all sizes in bytes. */
struct facts {
  char *driver;
  cl_ulong memory;
  cl_ulong largest;
  cl_uint alignment_bits;
  cl_bool unified;
  cl_bool compiler;
  char plans[SAMPLES][PLAN_TEXT];
  char why[TOOL_WHY]; /* what made it unusable */
  int usable;         /* TOOL_OK: plans are there; else an exit code */
};

/* The plan for a sample of the session's device. */
static clb_status ask_plan(struct tool_session *session, cl_mem buffer,
                           size_t sample, char text[PLAN_TEXT])
{
  clb_layout layout = {2, samples[sample].shape, samples[sample].strides,
                       ELEMENT, 0};
  clb_bytes *bytes = NULL;
  clb_status status;

  status = clb_bytes_from_buffer(session->context, buffer, &layout, &bytes);
  if (status == CLB_OK)
    status = clb_bytes_plan(bytes, text, PLAN_TEXT);
  clb_bytes_release(bytes);
  return status;
}

static void ask_plans(const struct tool_device *device,
                      const struct tool_options *options, struct facts *facts)
{
  struct tool_session session;
  clb_status status = CLB_OK;
  cl_mem buffer;
  cl_int error;

  facts->usable = tool_session_open(device, options, facts->why, &session);
  if (facts->usable != TOOL_OK)
    return;
  buffer = clCreateBuffer(session.cl, CL_MEM_READ_WRITE, SIDE * PITCH, NULL,
                          &error);
  if (buffer == NULL) {
    snprintf(facts->why, TOOL_WHY, "cannot make a buffer: %s",
             tool_cl_error_name(error));
    facts->usable = TOOL_FAILED;
  } else {
    for (size_t i = 0; status == CLB_OK && i < SAMPLES; i++)
      status = ask_plan(&session, buffer, i, facts->plans[i]);
    clReleaseMemObject(buffer);
  }
  if (status != CLB_OK) {
    snprintf(facts->why, TOOL_WHY, "%s", clb_error_message());
    facts->usable = TOOL_FAILED;
  }
  tool_session_close(&session);
}

/* False without memory. */
static bool ask_facts(const struct tool_device *device,
                      const struct tool_options *options, struct facts *facts)
{
  *facts = (struct facts){.driver = NULL};
  facts->driver = tool_device_string(device->id, CL_DRIVER_VERSION);
  if (facts->driver == NULL)
    return false;
  clGetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong),
                  &facts->memory, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong),
                  &facts->largest, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint),
                  &facts->alignment_bits, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(cl_bool),
                  &facts->unified, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_COMPILER_AVAILABLE, sizeof(cl_bool),
                  &facts->compiler, NULL);
  ask_plans(device, options, facts);
  return true;
}

static void print_field(const char *name, const char *value)
{
  printf("    %-21s ", name);
  tool_escape_string(stdout, value);
  putchar('\n');
}

static void print_device(const struct tool_device_list *list, size_t index,
                         const struct facts *facts)
{
  char text[TOOL_SIZE_TEXT];

  printf("  device %zu: ", index);
  tool_escape_string(stdout, list->devices[index].name);
  putchar('\n');
  print_field("driver", facts->driver);
  print_field("memory", tool_size_text(facts->memory, text));
  print_field("largest allocation", tool_size_text(facts->largest, text));
  snprintf(text, sizeof(text), "%u bytes", (unsigned)facts->alignment_bits / 8);
  print_field("sub-buffer alignment", text);
  print_field("shares host memory", facts->unified ? "yes" : "no");
  print_field("compiler", facts->compiler ? "yes" : "no");
  if (facts->usable != TOOL_OK)
    print_field("cannot be used", facts->why);
  for (size_t i = 0; facts->usable == TOOL_OK && i < SAMPLES; i++)
    print_field(samples[i].name, facts->plans[i]);
}

static void print_device_json(struct tool_json *json,
                              const struct tool_device_list *list,
                              size_t index, const struct facts *facts)
{
  tool_json_map(json);
  tool_json_string(json, "index");
  tool_json_size(json, index);
  tool_json_string(json, "platform");
  tool_json_string(json, list->devices[index].platform_name);
  tool_json_string(json, "name");
  tool_json_string(json, list->devices[index].name);
  tool_json_string(json, "driver");
  tool_json_string(json, facts->driver);
  tool_json_string(json, "memory");
  tool_json_size(json, facts->memory);
  tool_json_string(json, "largest_allocation");
  tool_json_size(json, facts->largest);
  tool_json_string(json, "sub_buffer_alignment");
  tool_json_size(json, facts->alignment_bits / 8);
  tool_json_string(json, "shares_host_memory");
  tool_json_bool(json, facts->unified);
  tool_json_string(json, "compiler");
  tool_json_bool(json, facts->compiler);
  tool_json_string(json, "error");
  if (facts->usable == TOOL_OK)
    tool_json_null(json);
  else
    tool_json_string(json, facts->why);
  tool_json_string(json, "plans");
  if (facts->usable == TOOL_OK) {
    tool_json_map(json);
    for (size_t i = 0; i < SAMPLES; i++) {
      tool_json_string(json, samples[i].key);
      tool_json_string(json, facts->plans[i]);
    }
    tool_json_end_map(json);
  } else {
    tool_json_null(json);
  }
  tool_json_end_map(json);
}

static void print_platform(const struct tool_platform *platform)
{
  printf("platform: ");
  tool_escape_string(stdout, platform->name);
  printf(" (");
  tool_escape_string(stdout, platform->version);
  printf(")\n");
  if (platform->status == CL_DEVICE_NOT_FOUND ||
      (platform->status == CL_SUCCESS && platform->device_count == 0))
    printf("  no device\n");
  else if (platform->status != CL_SUCCESS)
    printf("  cannot list devices: %s\n",
           tool_cl_error_name(platform->status));
}

/* Prints one platform's devices, in words or, where json is not NULL, there;
 * counts in usable those that can be used, and keeps in result the exit code
 * of one that cannot.  False without memory. */
static bool print_devices(const struct tool_device_list *list,
                          const struct tool_platform *platform,
                          const struct tool_options *options,
                          struct tool_json *json, size_t *usable, int *result)
{
  for (size_t i = 0; i < platform->device_count; i++) {
    size_t index = platform->first_device + i;
    struct facts facts;

    if (!ask_facts(&list->devices[index], options, &facts))
      return false;
    if (json != NULL)
      print_device_json(json, list, index, &facts);
    else
      print_device(list, index, &facts);
    free(facts.driver);
    if (facts.usable == TOOL_OK)
      ++*usable;
    else
      *result = facts.usable;
  }
  return true;
}

int tool_cmd_devices(const struct tool_options *options, char **operands)
{
  struct tool_device_list list;
  struct tool_json json;
  size_t usable = 0;
  int unusable = TOOL_FAILED;
  int result = tool_device_list_make(&list);

  (void)operands;
  if (result != TOOL_OK)
    return result;
  if (options->json) {
    tool_json_start(&json);
    tool_json_map(&json);
    tool_json_string(&json, "devices");
    tool_json_array(&json);
  }
  for (size_t i = 0; i < list.platform_count && result == TOOL_OK; i++) {
    if (!options->json)
      print_platform(&list.platforms[i]);
    if (!print_devices(&list, &list.platforms[i], options,
                       options->json ? &json : NULL, &usable, &unusable)) {
      tool_error("out of memory");
      result = TOOL_FAILED;
    }
  }
  if (options->json) {
    int written;

    tool_json_end_array(&json);
    tool_json_end_map(&json);
    written = tool_json_finish(&json);
    result = result == TOOL_OK ? written : result;
  }
  if (result == TOOL_OK && usable == 0) {
    tool_error("no device can be used");
    result = unusable;
  }
  tool_device_list_free(&list);
  return result;
}

/* The OpenCL devices of this machine, which one the user means, and the
 * library's context on it.  Tells nothing of a device but its names: what it
 * can do is cmd_devices.c's. */
#include "config.h"

#include "device_choice.h"

#include "report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a loader says when it finds no platform (cl_khr_icd). */
enum { PLATFORM_NOT_FOUND = -1001 };

/* CL_PLATFORM_ICD_SUFFIX_KHR of the same extension: "POCL", "NV", ... */
enum { PLATFORM_ICD_SUFFIX = 0x0920 };

static char *copy_trimmed(const char *text)
{
  size_t length;
  char *copy;

  while (isspace((unsigned char)*text))
    text++;
  length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1]))
    length--;
  copy = malloc(length + 1);
  if (copy != NULL) {
    memcpy(copy, text, length);
    copy[length] = '\0';
  }
  return copy;
}

/* The text in the size bytes of a query that ended with status. */
static char *take_text(cl_int status, char *text, size_t size)
{
  char *copy;

  if (text == NULL)
    return NULL;
  text[size] = '\0';
  copy = copy_trimmed(status == CL_SUCCESS ? text : "?");
  free(text);
  return copy;
}

static char *platform_string(cl_platform_id platform, cl_platform_info what)
{
  size_t size = 0;
  char *text;
  cl_int status = clGetPlatformInfo(platform, what, 0, NULL, &size);

  if (status != CL_SUCCESS)
    size = 0;
  text = malloc(size + 1);
  if (text != NULL && size > 0)
    status = clGetPlatformInfo(platform, what, size, text, NULL);
  return take_text(status, text, size);
}

char *tool_device_string(cl_device_id device, cl_device_info what)
{
  size_t size = 0;
  char *text;
  cl_int status = clGetDeviceInfo(device, what, 0, NULL, &size);

  if (status != CL_SUCCESS)
    size = 0;
  text = malloc(size + 1);
  if (text != NULL && size > 0)
    status = clGetDeviceInfo(device, what, size, text, NULL);
  return take_text(status, text, size);
}

/* Appends the devices of the platform to the list; false without memory. */
static bool add_devices(struct tool_device_list *list,
                        struct tool_platform *platform)
{
  cl_device_id *ids = NULL;
  struct tool_device *grown;
  cl_uint count = 0;
  bool done = false;

  platform->first_device = list->device_count;
  platform->status =
      clGetDeviceIDs(platform->id, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
  if (platform->status != CL_SUCCESS || count == 0)
    return true;
  ids = calloc(count, sizeof(*ids));
  grown = realloc(list->devices,
                  (list->device_count + count) * sizeof(*list->devices));
  if (grown != NULL)
    list->devices = grown;
  if (ids == NULL || grown == NULL)
    goto out;
  platform->status =
      clGetDeviceIDs(platform->id, CL_DEVICE_TYPE_ALL, count, ids, NULL);
  for (cl_uint i = 0; platform->status == CL_SUCCESS && i < count; i++) {
    struct tool_device *device = &list->devices[list->device_count];

    device->platform = platform->id;
    device->platform_index = (size_t)(platform - list->platforms);
    device->platform_name = platform->name;
    device->id = ids[i];
    device->type = 0;
    clGetDeviceInfo(ids[i], CL_DEVICE_TYPE, sizeof(device->type),
                    &device->type, NULL);
    device->name = tool_device_string(ids[i], CL_DEVICE_NAME);
    if (device->name == NULL)
      goto out;
    list->device_count++;
    platform->device_count++;
  }
  done = true;
out:
  free(ids);
  return done;
}

static int add_platforms(struct tool_device_list *list,
                         const cl_platform_id *ids, cl_uint count)
{
  list->platforms = calloc(count, sizeof(*list->platforms));
  if (list->platforms == NULL)
    goto no_memory;
  for (cl_uint i = 0; i < count; i++) {
    struct tool_platform *platform = &list->platforms[i];

    list->platform_count++;
    platform->id = ids[i];
    platform->name = platform_string(ids[i], CL_PLATFORM_NAME);
    platform->version = platform_string(ids[i], CL_PLATFORM_VERSION);
    platform->vendor = platform_string(ids[i], CL_PLATFORM_VENDOR);
    platform->suffix = platform_string(ids[i], PLATFORM_ICD_SUFFIX);
    if (platform->name == NULL || platform->version == NULL ||
        platform->vendor == NULL || platform->suffix == NULL ||
        !add_devices(list, platform))
      goto no_memory;
  }
  return TOOL_OK;
no_memory:
  tool_error("out of memory");
  return TOOL_FAILED;
}

int tool_device_list_make(struct tool_device_list *out)
{
  struct tool_device_list list = {NULL, 0, NULL, 0};
  cl_platform_id *ids = NULL;
  cl_uint count = 0;
  cl_int status = clGetPlatformIDs(0, NULL, &count);
  int result = TOOL_FAILED;

  if (status == PLATFORM_NOT_FOUND || (status == CL_SUCCESS && count == 0)) {
    tool_error("there is no OpenCL platform: is a driver (an .icd file in "
               "/etc/OpenCL/vendors) installed?");
    return TOOL_FAILED;
  }
  if (status == CL_SUCCESS) {
    ids = calloc(count, sizeof(cl_platform_id));
    if (ids == NULL) {
      tool_error("out of memory");
      return TOOL_FAILED;
    }
    status = clGetPlatformIDs(count, ids, NULL);
  }
  if (status != CL_SUCCESS)
    tool_error("cannot list OpenCL platforms: %s", tool_cl_error_name(status));
  else
    result = add_platforms(&list, ids, count);
  free(ids);
  if (result == TOOL_OK)
    *out = list;
  else
    tool_device_list_free(&list);
  return result;
}

void tool_device_list_free(struct tool_device_list *list)
{
  for (size_t i = 0; i < list->device_count; i++)
    free(list->devices[i].name);
  for (size_t i = 0; i < list->platform_count; i++) {
    free(list->platforms[i].name);
    free(list->platforms[i].version);
    free(list->platforms[i].vendor);
    free(list->platforms[i].suffix);
  }
  free(list->devices);
  free(list->platforms);
  *list = (struct tool_device_list){NULL, 0, NULL, 0};
}

/* Whether part occurs in text, in either case of ASCII letters. */
static bool contains(const char *text, const char *part)
{
  for (; *text != '\0'; text++) {
    size_t i = 0;

    while (part[i] != '\0' && tolower((unsigned char)text[i]) ==
                                  tolower((unsigned char)part[i]))
      i++;
    if (part[i] == '\0')
      return true;
  }
  return false;
}

static int choose_default(const struct tool_device_list *list,
                          const struct tool_device **out)
{
  *out = &list->devices[0];
  for (size_t i = 0; i < list->device_count; i++)
    if (list->devices[i].type &
        (CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR)) {
      *out = &list->devices[i];
      break;
    }
  return TOOL_OK;
}

static int choose_index(const struct tool_device_list *list,
                        const char *wanted, const struct tool_device **out)
{
  const char *digits = wanted + strspn(wanted, "0");

  /* Longer than any index: strtoull need not be asked. */
  if (strlen(digits) > 9 ||
      strtoull(wanted, NULL, 10) >= list->device_count) {
    tool_error("there is no device %s: the last one is %zu", wanted,
               list->device_count - 1);
    return TOOL_FAILED;
  }
  *out = &list->devices[strtoull(wanted, NULL, 10)];
  return TOOL_OK;
}

/* Whether part is in a name that people know the device by, or, where by_maker,
 * in what else its platform tells of itself. */
static bool matches(const struct tool_device_list *list, size_t index,
                    const char *part, bool by_maker)
{
  const struct tool_device *device = &list->devices[index];
  const struct tool_platform *platform =
      &list->platforms[device->platform_index];

  if (by_maker)
    return contains(platform->vendor, part) ||
           contains(platform->version, part) ||
           contains(platform->suffix, part);
  return contains(device->name, part) || contains(platform->name, part);
}

static size_t count_matches(const struct tool_device_list *list,
                            const char *part, bool by_maker,
                            const struct tool_device **last)
{
  size_t count = 0;

  for (size_t i = 0; i < list->device_count; i++)
    if (matches(list, i, part, by_maker)) {
      *last = &list->devices[i];
      count++;
    }
  return count;
}

static int choose_name(const struct tool_device_list *list, const char *wanted,
                       const struct tool_device **out)
{
  const struct tool_device *found = NULL;
  bool by_maker = false;
  size_t count = count_matches(list, wanted, by_maker, &found);

  if (count == 0) {
    by_maker = true;
    count = count_matches(list, wanted, by_maker, &found);
  }
  if (count == 1) {
    *out = found;
    return TOOL_OK;
  }
  tool_error(count == 0 ? "no device matches '%s'; there are:"
                        : "'%s' matches more than one device:",
             wanted);
  for (size_t i = 0; i < list->device_count; i++)
    if (count == 0 || matches(list, i, wanted, by_maker))
      tool_error("  %zu  %s (%s)", i, list->devices[i].name,
                 list->devices[i].platform_name);
  return TOOL_FAILED;
}

int tool_device_choose(const struct tool_device_list *list, const char *wanted,
                       const struct tool_device **out)
{
  if (list->device_count == 0) {
    tool_error("no OpenCL platform has a device");
    return TOOL_FAILED;
  }
  if (wanted == NULL)
    return choose_default(list, out);
  if (wanted[strspn(wanted, "0123456789")] == '\0')
    return choose_index(list, wanted, out);
  return choose_name(list, wanted, out);
}

int tool_session_open(const struct tool_device *device,
                      const struct tool_options *options, char why[TOOL_WHY],
                      struct tool_session *out)
{
  cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
  clb_context_options settings = CLB_CONTEXT_OPTIONS_INIT;
  struct tool_session session = {NULL, NULL, NULL};
  const char *what = "cannot make an OpenCL context";
  cl_int error;

  session.cl = clCreateContext(properties, 1, &device->id, NULL, NULL, &error);
  if (session.cl != NULL) {
    what = "cannot make a command queue";
    session.queue = clCreateCommandQueue(session.cl, device->id, 0, &error);
  }
  if (session.queue == NULL) {
    snprintf(why, TOOL_WHY, "%s: %s", what, tool_cl_error_name(error));
    goto out;
  }
  settings.staging_limit = options->staging;
  settings.chunk_size = options->chunk;
  settings.plans = options->plans;
  if (clb_context_create(session.queue, &settings, &session.context) !=
      CLB_OK) {
    snprintf(why, TOOL_WHY, "%s", clb_error_message());
    goto out;
  }
  *out = session;
  return TOOL_OK;
out:
  tool_session_close(&session);
  return TOOL_FAILED;
}

void tool_session_close(struct tool_session *session)
{
  clb_context_release(session->context);
  if (session->queue != NULL)
    clReleaseCommandQueue(session->queue);
  if (session->cl != NULL)
    clReleaseContext(session->cl);
  *session = (struct tool_session){NULL, NULL, NULL};
}

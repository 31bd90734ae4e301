/* clbytes copy: a safetensors file into a device's buffers, and from there
 * into another file.  Owns the model on the device. */
#include "config.h"

#include "device_choice.h"
#include "escape.h"
#include "host_memory.h"
#include "interrupt.h"
#include "json.h"
#include "progress.h"
#include "report.h"
#include "target.h"
#include "tool.h"

#include <clbytes/safetensors.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes uploaded between two looks at progress and signals: few enough that a
 * slow device answers a signal within a second, many enough that the gap
 * between two uploads does not count. */
enum { UPLOAD_PIECE = 256 << 20 };

/* A phase of the copy, for the figures at the end. */
struct phase {
  uint64_t nanoseconds;
  struct tool_growth growth;
  uint64_t grown; /* host memory, bytes */
  bool grown_known;
};

struct copy {
  const struct tool_options *options;
  const struct tool_device *device;
  struct tool_session session;
  clb_safetensors *file;
  size_t count;        /* tensors */
  uint64_t bytes;      /* of all tensors */
  clb_tensor *tensors; /* as they are on the device */
  cl_mem *buffers;     /* NULL where a tensor is empty */
  clb_pair *metadata;
  size_t metadata_count;
  struct tool_progress progress;
  struct phase upload, save;
};

static void phase_start(struct phase *phase)
{
  tool_growth_start(&phase->growth);
  phase->nanoseconds = tool_now();
}

static void phase_end(struct phase *phase)
{
  phase->nanoseconds = tool_now() - phase->nanoseconds;
  phase->grown_known = tool_growth_bytes(&phase->growth, &phase->grown);
}

static int no_memory(void)
{
  tool_error("out of memory");
  return TOOL_FAILED;
}

static int cancelled(struct copy *copy)
{
  tool_progress_end(&copy->progress);
  tool_error("cancelled");
  return TOOL_SIGNALLED + tool_interrupt_seen();
}

/* Reads the header of the input into arrays of the copy's own. */
static int open_input(struct copy *copy, const char *path)
{
  if (clb_safetensors_open(path, &copy->file) != CLB_OK) {
    tool_library_error(path);
    return TOOL_FAILED;
  }
  copy->count = clb_safetensors_count(copy->file);
  copy->metadata_count = clb_safetensors_metadata_count(copy->file);
  copy->tensors = calloc(copy->count + 1, sizeof(*copy->tensors));
  copy->buffers = calloc(copy->count + 1, sizeof(*copy->buffers));
  copy->metadata = calloc(copy->metadata_count + 1, sizeof(*copy->metadata));
  if (copy->tensors == NULL || copy->buffers == NULL || copy->metadata == NULL)
    return no_memory();
  for (size_t i = 0; i < copy->metadata_count; i++)
    if (clb_safetensors_metadata_at(copy->file, i, &copy->metadata[i]) !=
        CLB_OK) {
      tool_library_error(path);
      return TOOL_FAILED;
    }
  for (size_t i = 0; i < copy->count; i++) {
    if (clb_safetensors_tensor(copy->file, i, &copy->tensors[i]) != CLB_OK) {
      tool_library_error(path);
      return TOOL_FAILED;
    }
    /* Until it is uploaded a tensor is the file's; an empty one stays so. */
    clb_bytes_retain(copy->tensors[i].bytes);
    copy->bytes += clb_bytes_length(copy->tensors[i].bytes);
  }
  return TOOL_OK;
}

/* A model that cannot fit is refused before anything is moved. */
static int check_size(const struct copy *copy)
{
  const struct tool_device *device = copy->device;
  cl_ulong memory = 0;
  cl_ulong largest = 0;

  clGetDeviceInfo(device->id, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory),
                  &memory, NULL);
  clGetDeviceInfo(device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(largest),
                  &largest, NULL);
  for (size_t i = 0; i < copy->count; i++) {
    size_t length = clb_bytes_length(copy->tensors[i].bytes);

    if (length > largest) {
      tool_error("tensor '%s' has %zu bytes, but the largest buffer of %s has "
                 "%" PRIu64,
                 copy->tensors[i].name, length, device->name,
                 (uint64_t)largest);
      return TOOL_FAILED;
    }
  }
  if (copy->bytes > memory) {
    tool_error("the model has %" PRIu64 " bytes, but %s has %" PRIu64
               " bytes of memory",
               copy->bytes, device->name, (uint64_t)memory);
    return TOOL_FAILED;
  }
  return TOOL_OK;
}

static int upload_failed(struct copy *copy, size_t index)
{
  cl_int error = clb_error_cl();

  tool_progress_end(&copy->progress);
  tool_error("cannot upload '%s': %s", copy->tensors[index].name,
             clb_error_message());
  if (error == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
      error == CL_OUT_OF_RESOURCES)
    tool_error("%s may have too little free memory for the model's %" PRIu64
               " bytes",
               copy->device->name, copy->bytes);
  return TOOL_FAILED;
}

/* Fills the buffer of a tensor, piece by piece; done counts the bytes of the
 * whole upload. */
static int fill_buffer(struct copy *copy, size_t index, uint64_t *done)
{
  clb_bytes *bytes = copy->tensors[index].bytes;
  size_t length = clb_bytes_length(bytes);

  for (size_t at = 0; at < length;) {
    size_t piece = length - at < UPLOAD_PIECE ? length - at : UPLOAD_PIECE;
    clb_layout layout = {1, &piece, NULL, 1, at};
    clb_bytes *view = NULL;
    clb_status status = clb_bytes_view(bytes, at, at + piece, &view);

    if (status == CLB_OK)
      status = clb_bytes_upload(view, copy->session.context,
                                copy->buffers[index], &layout);
    clb_bytes_release(view);
    if (status != CLB_OK)
      return upload_failed(copy, index);
    if (tool_interrupt_seen())
      return cancelled(copy);
    at += piece;
    *done += piece;
    tool_progress_update(&copy->progress, *done);
  }
  return TOOL_OK;
}

/* Puts one tensor into a buffer, and the buffer's handle in the place of the
 * file's. */
static int upload_tensor(struct copy *copy, size_t index, uint64_t *done)
{
  clb_tensor *tensor = &copy->tensors[index];
  size_t length = clb_bytes_length(tensor->bytes);
  clb_bytes *uploaded;
  cl_int error;
  int result;

  copy->buffers[index] = clCreateBuffer(copy->session.cl, CL_MEM_READ_WRITE,
                                        length, NULL, &error);
  if (copy->buffers[index] == NULL) {
    tool_progress_end(&copy->progress);
    tool_error("cannot make a buffer of %zu bytes for '%s' on %s: %s", length,
               tensor->name, copy->device->name, tool_cl_error_name(error));
    return TOOL_FAILED;
  }
  result = fill_buffer(copy, index, done);
  if (result != TOOL_OK)
    return result;
  if (clb_bytes_from_buffer(copy->session.context, copy->buffers[index], NULL,
                            &uploaded) != CLB_OK)
    return upload_failed(copy, index);
  clb_bytes_release(tensor->bytes);
  tensor->bytes = uploaded;
  return TOOL_OK;
}

static int upload(struct copy *copy)
{
  uint64_t done = 0;
  int result = TOOL_OK;

  tool_progress_start(&copy->progress, "upload", copy->bytes,
                      copy->options->quiet);
  phase_start(&copy->upload);
  for (size_t i = 0; result == TOOL_OK && i < copy->count; i++)
    if (clb_bytes_length(copy->tensors[i].bytes) > 0)
      result = upload_tensor(copy, i, &done);
  phase_end(&copy->upload);
  tool_progress_end(&copy->progress);
  return result;
}

static int save_progress(uint64_t done, uint64_t total, void *user)
{
  struct copy *copy = user;

  (void)total;
  tool_progress_update(&copy->progress, done);
  return tool_interrupt_seen();
}

static int save(struct copy *copy, const char *path)
{
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  clb_status status;

  options.metadata = copy->metadata;
  options.metadata_count = copy->metadata_count;
  options.durable = copy->options->durable;
  options.max_shard_size = copy->options->shard;
  options.progress = save_progress;
  options.user = copy;
  tool_progress_start(&copy->progress, "save", copy->bytes,
                      copy->options->quiet);
  phase_start(&copy->save);
  status = clb_safetensors_save(path, copy->tensors, copy->count, &options);
  phase_end(&copy->save);
  tool_progress_end(&copy->progress);
  if (status == CLB_CANCELLED)
    return cancelled(copy);
  if (status != CLB_OK) {
    tool_library_error(path);
    return TOOL_FAILED;
  }
  return TOOL_OK;
}

static void print_phase(const struct copy *copy, const char *name,
                        const struct phase *phase)
{
  char text[TOOL_SIZE_TEXT];

  printf("%-14s %.3f s, %.2f GB/s, host memory grown by %s\n", name,
         (double)phase->nanoseconds / 1e9,
         tool_rate(copy->bytes, phase->nanoseconds),
         phase->grown_known ? tool_size_text(phase->grown, text) : "-");
}

static void print_figures(const struct copy *copy, const clb_stats *stats)
{
  char text[TOOL_SIZE_TEXT];

  printf("%-14s ", "device");
  tool_escape_string(stdout, copy->device->name);
  printf(" (");
  tool_escape_string(stdout, copy->device->platform_name);
  printf(")\n%-14s %zu\n", "tensors", copy->count);
  printf("%-14s %" PRIu64 " (%s)\n", "bytes", copy->bytes,
         tool_size_text(copy->bytes, text));
  print_phase(copy, "upload", &copy->upload);
  print_phase(copy, "save", &copy->save);
  if (stats->staging_peak == 0)
    printf("%-14s none needed: the memory was mapped in place\n",
           "staging peak");
  else
    printf("%-14s %" PRIu64 " (%s)\n", "staging peak", stats->staging_peak,
           tool_size_text(stats->staging_peak, text));
}

static void print_phase_json(struct tool_json *json, const struct copy *copy,
                             const struct phase *phase)
{
  tool_json_map(json);
  tool_json_string(json, "seconds");
  tool_json_double(json, (double)phase->nanoseconds / 1e9);
  tool_json_string(json, "gigabytes_per_second");
  tool_json_double(json, tool_rate(copy->bytes, phase->nanoseconds));
  tool_json_string(json, "host_memory_grown");
  if (phase->grown_known)
    tool_json_size(json, phase->grown);
  else
    tool_json_null(json);
  tool_json_end_map(json);
}

static int print_figures_json(const struct copy *copy, const clb_stats *stats)
{
  struct tool_json json;

  tool_json_start(&json);
  tool_json_map(&json);
  tool_json_string(&json, "device");
  tool_json_string(&json, copy->device->name);
  tool_json_string(&json, "platform");
  tool_json_string(&json, copy->device->platform_name);
  tool_json_string(&json, "tensors");
  tool_json_size(&json, copy->count);
  tool_json_string(&json, "bytes");
  tool_json_size(&json, copy->bytes);
  tool_json_string(&json, "upload");
  print_phase_json(&json, copy, &copy->upload);
  tool_json_string(&json, "save");
  print_phase_json(&json, copy, &copy->save);
  tool_json_string(&json, "staging_peak");
  tool_json_size(&json, stats->staging_peak);
  tool_json_end_map(&json);
  return tool_json_finish(&json);
}

static int print_result(const struct copy *copy)
{
  clb_stats stats;

  clb_context_stats(copy->session.context, &stats, sizeof(stats));
  if (copy->options->json)
    return print_figures_json(copy, &stats);
  print_figures(copy, &stats);
  return TOOL_OK;
}

static void close_copy(struct copy *copy)
{
  for (size_t i = 0; copy->tensors != NULL && i < copy->count; i++)
    clb_bytes_release(copy->tensors[i].bytes);
  for (size_t i = 0; copy->buffers != NULL && i < copy->count; i++)
    if (copy->buffers[i] != NULL)
      clReleaseMemObject(copy->buffers[i]);
  free(copy->metadata);
  free(copy->buffers);
  free(copy->tensors);
  clb_safetensors_close(copy->file);
  tool_session_close(&copy->session);
}

int tool_cmd_copy(const struct tool_options *options, char **operands)
{
  struct tool_device_list list = {NULL, 0, NULL, 0};
  struct copy copy = {.options = options};
  char why[TOOL_WHY];
  int result = open_input(&copy, operands[0]);

  /* A target that cannot be written is refused before anything is moved. */
  if (result == TOOL_OK)
    result = tool_target_check(operands[1]);
  if (result == TOOL_OK)
    result = tool_device_list_make(&list);
  if (result == TOOL_OK)
    result = tool_device_choose(&list, options->device, &copy.device);
  if (result == TOOL_OK)
    result = check_size(&copy);
  if (result == TOOL_OK)
    result = tool_target_check_room(operands[1], copy.bytes);
  if (result == TOOL_OK) {
    result = tool_session_open(copy.device, options, why, &copy.session);
    if (result != TOOL_OK)
      tool_error("%s: %s", copy.device->name, why);
  }
  if (result == TOOL_OK) {
    tool_interrupt_watch();
    result = upload(&copy);
  }
  if (result == TOOL_OK)
    result = save(&copy, operands[1]);
  if (result == TOOL_OK)
    result = print_result(&copy);
  close_copy(&copy);
  tool_device_list_free(&list);
  return result;
}

/*
 * See compose.h.  Knows the public headers alone.
 */
#include "config.h"

#include "compose.h"

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* --- Parts ---------------------------------------------------------------- */

struct part *parts_add(struct parts *parts, const char *name,
                       const char *dtype, clb_bytes *bytes,
                       const void *logical, size_t length)
{
  struct part *part;

  if (parts->count == parts->room) {
    parts->room = 2 * parts->room + 16;
    parts->all = realloc(parts->all, parts->room * sizeof *parts->all);
    ck_assert_ptr_nonnull(parts->all);
  }
  part = &parts->all[parts->count++];
  memset(part, 0, sizeof *part);
  snprintf(part->name, sizeof part->name, "%s", name);
  part->tensor.dtype = dtype;
  part->tensor.bytes = bytes;
  part->logical = fixture_malloc(length);
  if (length > 0)
    memcpy(part->logical, logical, length);
  part->length = length;
  return part;
}

struct part *parts_add_device(struct parts *parts, const char *name,
                              const char *dtype, cl_mem buffer,
                              const unsigned char *contents,
                              const clb_layout *layout)
{
  unsigned char *logical = walk(layout, contents);
  struct part *part =
    parts_add(parts, name, dtype, fixture_handle(buffer, layout), logical,
              walk_length(layout));

  free(logical);
  return part;
}

void parts_free(struct parts *parts)
{
  for (size_t i = 0; i < parts->count; i++) {
    clb_bytes_release(parts->all[i].tensor.bytes);
    free(parts->all[i].logical);
  }
  free(parts->all);
  memset(parts, 0, sizeof *parts);
}

clb_tensor *parts_tensors(const struct parts *parts)
{
  clb_tensor *tensors = fixture_malloc((parts->count + 1) * sizeof *tensors);

  for (size_t i = 0; i < parts->count; i++) {
    tensors[i] = parts->all[i].tensor;
    tensors[i].name = parts->all[i].name;
  }
  return tensors;
}

/* --- The file ------------------------------------------------------------- */

static int rank(const char *dtype)
{
  static const char *const order[] = {
    "U64", "I64", "F64", "C64", "F32", "U32", "I32", "BF16", "F16", "U16",
    "I16", "F8_E5M2FNUZ", "F8_E4M3FNUZ", "F8_E8M0", "F8_E4M3", "F8_E5M2",
    "I8", "U8", "F6_E3M2", "F6_E2M3", "F4", "BOOL"};

  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    if (strcmp(order[i], dtype) == 0)
      return (int)i;
  ck_abort_msg("no rank of %s", dtype);
  return -1;
}

static int compare(const void *a, const void *b)
{
  const struct part *x = *(struct part *const *)a;
  const struct part *y = *(struct part *const *)b;
  int order = rank(x->tensor.dtype) - rank(y->tensor.dtype);

  return order != 0 ? order : strcmp(x->name, y->name);
}

static struct part **in_order(const struct parts *parts)
{
  struct part **sorted = fixture_malloc((parts->count + 1) * sizeof *sorted);

  for (size_t i = 0; i < parts->count; i++)
    sorted[i] = &parts->all[i];
  qsort(sorted, parts->count, sizeof *sorted, compare);
  return sorted;
}

static void add_shape(struct text *header, const struct part *part)
{
  clb_layout layout;
  size_t ndim = part->tensor.ndim;
  const size_t *shape = part->tensor.shape;

  if (shape == NULL) {
    ck_ok(clb_bytes_layout(part->tensor.bytes, &layout));
    ndim = layout.ndim;
    shape = layout.shape;
  }
  for (size_t d = 0; d < ndim; d++)
    text_format(header, "%s%zu", d == 0 ? "" : ",", shape[d]);
}

struct text parts_file(const struct parts *parts)
{
  struct part **sorted = in_order(parts);
  struct text header = {0}, data = {0}, file;

  text_add(&header, "{");
  for (size_t i = 0; i < parts->count; i++) {
    text_format(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                i == 0 ? "" : ",", sorted[i]->name, sorted[i]->tensor.dtype);
    add_shape(&header, sorted[i]);
    text_format(&header, "],\"data_offsets\":[%zu,%zu]}", data.length,
                data.length + sorted[i]->length);
    text_bytes(&data, sorted[i]->logical, sorted[i]->length);
  }
  text_add(&header, "}");
  text_bytes(&header, "", 1);
  file = st_file((const char *)header.data, data.data, data.length);
  free(sorted);
  free(header.data);
  free(data.data);
  return file;
}

uint64_t parts_offset(const struct parts *parts, size_t index)
{
  struct part **sorted = in_order(parts);
  struct text file = parts_file(parts);
  uint64_t offset = 8;

  for (int i = 0; i < 8; i++)
    offset += (uint64_t)file.data[i] << (8 * i);
  for (size_t i = 0; sorted[i] != &parts->all[index]; i++)
    offset += sorted[i]->length;
  free(sorted);
  free(file.data);
  return offset;
}

/* --- Ways ----------------------------------------------------------------- */

int takes_direct(const char *folder)
{
  int works = 0;
#ifdef O_DIRECT
  char path[4096];
  void *page;
  int file;

  snprintf(path, sizeof path, "%s/.direct", folder);
  file = open(path, O_RDWR | O_CREAT | O_DIRECT, 0600);
  if (file >= 0 && posix_memalign(&page, 4096, 4096) == 0) {
    memset(page, 0, 4096);
    works = pwrite(file, page, 4096, 0) == 4096;
    free(page);
  }
  if (file >= 0)
    close(file);
  unlink(path);
#else
  (void)folder;
#endif
  return works;
}

static char memory[64];

const char *memory_folder(void)
{
  if (memory[0] == '\0') {
    snprintf(memory, sizeof memory, "/dev/shm/clbytes-test-XXXXXX");
    if (mkdtemp(memory) == NULL)
      memory[0] = '\0';
  }
  return memory[0] != '\0' ? memory : NULL;
}

void remove_memory_folder(void)
{
  if (memory[0] != '\0')
    ck_assert_int_eq(rmdir(memory), 0);
  memory[0] = '\0';
}

int parts_save(const struct parts *parts, const char *folder, clb_file_io io,
               int durable)
{
  static char input[200];
  static const char *const names[] = {"auto", "buffered", "direct", "mapped"};
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  const char *before = fixture_input;
  struct text file = parts_file(parts);
  clb_tensor *tensors = parts_tensors(parts);
  size_t entries = files_in(folder);
  char path[4096];
  clb_status status;

  snprintf(input, sizeof input, "%s, %s%s in %.50s", before, names[io],
           durable ? ", durable" : "", folder);
  fixture_input = input;
  snprintf(path, sizeof path, "%s/out", folder);
  options.io = io;
  options.durable = durable;
  status = clb_safetensors_save(path, tensors, parts->count, &options);
  if (status != CLB_UNSUPPORTED || io != CLB_FILE_DIRECT ||
      takes_direct(folder)) {
    ck_status(status, CLB_OK);
    ck_file(path, file.data, file.length);
    ck_assert_int_eq(unlink(path), 0);
  }
  ck_assert_uint_eq(files_in(folder), entries);
  free(file.data);
  free(tensors);
  fixture_input = before;
  return status == CLB_OK;
}

void parts_save_all(const struct parts *parts)
{
  const char *folders[2] = {".", memory_folder()};

  for (int f = 0; f < 2 && folders[f] != NULL; f++)
    for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED; io++)
      for (int durable = 0; durable < 2; durable++)
        parts_save(parts, folders[f], (clb_file_io)io, durable);
  remove_memory_folder();
}

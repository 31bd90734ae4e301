/* Sizes and layouts, from the command line and the device. */
#include "config.h"

#include "choice.h"

#include "../tools/parse_size.h"
#include "../tools/report.h"

#include <fnmatch.h>
#include <stdint.h>
#include <string.h>

static const size_t default_max = (size_t)256 << 20;

/* Smaller ones than max that are measured if nobody says which. */
static const size_t default_sizes[] = {4096, 64 << 10, 1 << 20, 16 << 20};

/* A layout reaches at most about so many times its bytes, but for the tall
 * ones, which have a most. */
enum { REACH = 3 };

enum { WORD = 64 };

/* --- What the user says --------------------------------------------------- */

/* The next word of a list with commas, in word; NULL at its end, or where it is
 * too long, which leaves word empty. */
static const char *next_word(const char *list, char word[WORD])
{
  size_t length = strcspn(list, ",");

  word[0] = '\0';
  if (length >= WORD)
    return NULL;
  memcpy(word, list, length);
  word[length] = '\0';
  return list[length] == ',' ? list + length + 1 : NULL;
}

static void add_size(struct bench_choice *choice, size_t size)
{
  size_t at = choice->size_count;

  for (size_t i = 0; i < choice->size_count; i++)
    if (choice->sizes[i] == size)
      return;
  for (; at > 0 && choice->sizes[at - 1] > size; at--)
    choice->sizes[at] = choice->sizes[at - 1];
  choice->sizes[at] = size;
  choice->size_count++;
}

static bool parse_sizes(struct bench_choice *choice, const char *list,
                        size_t max)
{
  while (list != NULL) {
    char word[WORD];
    const char *wrong;
    size_t size = 0;

    list = next_word(list, word);
    wrong = tool_parse_size(word, &size);
    if (wrong == NULL && max != 0 && size > max)
      wrong = "is more than --max";
    if (wrong == NULL && choice->size_count == BENCH_MOST_SIZES)
      wrong = "is one size too many";
    if (wrong != NULL) {
      tool_error("--sizes: '%s' %s", word, wrong);
      return false;
    }
    add_size(choice, size);
  }
  return true;
}

static bool parse_layouts(struct bench_choice *choice, const char *list)
{
  while (list != NULL) {
    char word[WORD];
    bool found = false;

    list = next_word(list, word);
    for (size_t i = 0; i < bench_layout_count(); i++)
      if (fnmatch(word, bench_layout_name(i), 0) == 0)
        found = choice->layouts[i] = true;
    if (!found) {
      tool_error("--layouts: there is no layout '%s'", word);
      return false;
    }
  }
  return true;
}

bool bench_choice_parse(struct bench_choice *choice,
                        const struct tool_options *options)
{
  *choice = (struct bench_choice){.size_count = 0};
  return parse_layouts(choice,
                       options->layouts != NULL ? options->layouts : "*") &&
         parse_sizes(choice, options->sizes, options->max);
}

/* --- What the device holds ------------------------------------------------ */

/* Where memory is shared the host needs some for what it is compared with. */
static size_t limit_of(const struct bench *bench)
{
  cl_ulong largest = 0;
  cl_ulong memory = 0;
  cl_bool shared = CL_FALSE;
  cl_device_id device = bench->device->id;

  clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(largest),
                  &largest, NULL);
  clGetDeviceInfo(device, CL_DEVICE_GLOBAL_MEM_SIZE, sizeof(memory), &memory,
                  NULL);
  clGetDeviceInfo(device, CL_DEVICE_HOST_UNIFIED_MEMORY, sizeof(shared),
                  &shared, NULL);
  memory /= shared || (bench->device->type & CL_DEVICE_TYPE_CPU) ? 4 : 2;
  if (largest > memory)
    largest = memory;
  return largest > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)largest;
}

/* The default of --max: a power of two of which every layout fits. */
static size_t max_for(size_t limit)
{
  size_t max = default_max;

  while (max > limit / REACH && max > default_sizes[0])
    max /= 2;
  return max;
}

static void default_to(struct bench_choice *choice, size_t max)
{
  size_t count = sizeof(default_sizes) / sizeof(*default_sizes);

  for (size_t i = 0; i < count; i++)
    if (default_sizes[i] < max)
      add_size(choice, default_sizes[i]);
  add_size(choice, max);
}

/* Whether the same layout was smaller than the size before, too: it has a most,
 * which is measured once. */
static bool is_repeated(const struct bench_choice *choice, size_t size,
                        size_t index, size_t bytes)
{
  struct bench_layout before;

  return size > 0 &&
         bench_layout_make(index, choice->sizes[size - 1], &before) &&
         bench_layout_bytes(&before) == bytes;
}

static void leave_out(size_t index, size_t bytes, size_t reach, size_t limit)
{
  char text[3][TOOL_SIZE_TEXT];

  tool_error("left out: %s of %s reaches %s, but a buffer may have %s",
             bench_layout_name(index), tool_size_text(bytes, text[0]),
             tool_size_text(reach, text[1]), tool_size_text(limit, text[2]));
}

bool bench_choice_has(const struct bench_choice *choice, size_t size,
                      size_t index, struct bench_layout *out)
{
  return choice->layouts[index] &&
         bench_layout_make(index, choice->sizes[size], out) &&
         !is_repeated(choice, size, index, bench_layout_bytes(out)) &&
         bench_layout_reach(out) <= choice->limit &&
         bench_layout_bytes(out) <= choice->limit;
}

/* Counts one layout of one size, or says that it does not fit. */
static void fit(struct bench_choice *choice, size_t size, size_t index)
{
  struct bench_layout layout;
  size_t bytes, reach;

  if (!choice->layouts[index] ||
      !bench_layout_make(index, choice->sizes[size], &layout))
    return;
  bytes = bench_layout_bytes(&layout);
  reach = bench_layout_reach(&layout);
  if (reach > choice->limit || bytes > choice->limit) {
    leave_out(index, bytes, reach > bytes ? reach : bytes, choice->limit);
    return;
  }
  if (bytes > choice->bytes)
    choice->bytes = bytes;
  if (reach > choice->reach)
    choice->reach = reach;
  choice->rows += bench_choice_has(choice, size, index, &layout);
}

bool bench_choice_fit(struct bench_choice *choice,
                      const struct tool_options *options,
                      const struct bench *bench)
{
  choice->limit = limit_of(bench);
  if (choice->size_count == 0)
    default_to(choice,
               options->max != 0 ? options->max : max_for(choice->limit));
  for (size_t size = 0; size < choice->size_count; size++)
    for (size_t i = 0; i < bench_layout_count(); i++)
      fit(choice, size, i);
  if (choice->rows == 0)
    tool_error("no layout of these sizes fits the device");
  return choice->rows > 0;
}

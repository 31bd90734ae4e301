/* What the benchmarks share.  Knows nothing of what they measure. */
#include "config.h"

#include "measure.h"

#include "../tools/escape.h"
#include "../tools/parse_size.h"
#include "../tools/report.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Options -------------------------------------------------------------- */

enum { MOST_OPTIONS = 8 };

static void print_help(const char *program, const char *operands,
                       const struct bench_option *options, size_t count)
{
  printf("usage: %s [OPTION]...%s%s\n", program, *operands ? " " : "",
         operands);
  for (size_t i = 0; i < count; i++)
    printf("  --%s%s  %s\n", options[i].name,
           options[i].flag != NULL   ? ""
           : options[i].size != NULL ? "=SIZE"
                                     : "=TEXT",
           options[i].what);
}

static size_t count_words(const char *text)
{
  size_t words = 0;

  for (size_t i = 0; text[i] != '\0'; i++)
    words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
  return words;
}

static bool take_option(const struct bench_option *option, const char *value)
{
  const char *wrong;

  if (option->flag != NULL) {
    *option->flag = true;
  } else if (option->text != NULL) {
    *option->text = value;
  } else {
    wrong = tool_parse_size(value, option->size);
    if (wrong != NULL) {
      tool_error("--%s: '%s' %s", option->name, value, wrong);
      return false;
    }
  }
  return true;
}

int bench_parse(int argc, char **argv, const char *operands,
                const struct bench_option *options, size_t count)
{
  struct option table[MOST_OPTIONS + 2] = {{"help", no_argument, NULL, 'h'}};
  int index = 0;
  int found;

  for (size_t i = 0; i < count && i < MOST_OPTIONS; i++)
    table[i + 1] = (struct option){
        options[i].name,
        options[i].flag != NULL ? no_argument : required_argument, NULL, 0};
  while ((found = getopt_long(argc, argv, "h", table, &index)) != -1) {
    if (found == 'h') {
      print_help(argv[0], operands, options, count);
      exit(TOOL_OK);
    }
    if (found == '?' || !take_option(&options[index - 1], optarg))
      exit(TOOL_USAGE);
  }
  if ((size_t)(argc - optind) != count_words(operands)) {
    tool_error("usage: %s [OPTION]... %s", argv[0], operands);
    exit(TOOL_USAGE);
  }
  return optind;
}

/* --- The device ----------------------------------------------------------- */

bool bench_cl_ok(cl_int error, const char *call)
{
  if (error == CL_SUCCESS)
    return true;
  tool_error("%s: %s", call, tool_cl_error_name(error));
  return false;
}

bool bench_ok(clb_status status, const char *what)
{
  if (status == CLB_OK)
    return true;
  tool_error("%s: %s: %s", what, clb_status_name(status), clb_error_message());
  return false;
}

bool bench_open(struct bench *bench, const struct tool_options *options)
{
  char why[TOOL_WHY];

  *bench = (struct bench){.device = NULL};
  if (tool_device_list_make(&bench->list) != TOOL_OK ||
      tool_device_choose(&bench->list, options->device, &bench->device) !=
          TOOL_OK)
    return false;
  if (tool_session_open(bench->device, options, why, &bench->session) !=
      TOOL_OK) {
    tool_error("%s: %s", bench->device->name, why);
    return false;
  }
  return true;
}

void bench_print_device(const struct bench *bench)
{
  char *driver = tool_device_string(bench->device->id, CL_DRIVER_VERSION);

  tool_escape_string(stdout, bench->device->name);
  printf(", ");
  tool_escape_string(stdout, bench->device->platform_name);
  printf(", driver ");
  tool_escape_string(stdout, driver != NULL ? driver : "?");
  printf("\n\n");
  free(driver);
}

bool bench_start(struct bench *bench, const char *wanted)
{
  struct tool_options options = {.device = wanted};

  if (!bench_open(bench, &options))
    return false;
  bench_print_device(bench);
  return true;
}

void bench_stop(struct bench *bench)
{
  tool_session_close(&bench->session);
  tool_device_list_free(&bench->list);
}

bool bench_pinned_make(const struct bench *bench, size_t length,
                       struct bench_pinned *out)
{
  struct bench_pinned pinned = {NULL, NULL};
  cl_int error;

  pinned.buffer = clCreateBuffer(bench->session.cl,
                                 CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
                                 length, NULL, &error);
  if (!bench_cl_ok(error, "clCreateBuffer of pinned memory"))
    return false;
  pinned.data = clEnqueueMapBuffer(bench->session.queue, pinned.buffer, CL_TRUE,
                                   CL_MAP_READ | CL_MAP_WRITE, 0, length, 0,
                                   NULL, NULL, &error);
  if (!bench_cl_ok(error, "clEnqueueMapBuffer of pinned memory")) {
    clReleaseMemObject(pinned.buffer);
    return false;
  }
  memset(pinned.data, 0, length);
  *out = pinned;
  return true;
}

void bench_pinned_free(const struct bench *bench, struct bench_pinned *pinned)
{
  if (pinned->buffer == NULL)
    return;
  clEnqueueUnmapMemObject(bench->session.queue, pinned->buffer, pinned->data, 0,
                          NULL, NULL);
  clFinish(bench->session.queue);
  clReleaseMemObject(pinned->buffer);
  *pinned = (struct bench_pinned){NULL, NULL};
}

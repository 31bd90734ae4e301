/* What is said to bench/numpy_rows.py, and what it answers. */
#include "config.h"

#include "numpy.h"

#include "bench/numpy_script.h"

#include <string.h>

/* A line of the child's; one that ended, or says anything else, is stopped. */
static bool answer(struct bench_numpy *numpy, const char *format, void *value)
{
  char line[64];

  fflush(numpy->child.to);
  if (fgets(line, sizeof(line), numpy->child.from) != NULL &&
      sscanf(line, format, value) == 1)
    return true;
  bench_numpy_stop(numpy);
  return false;
}

void bench_numpy_start(struct bench_numpy *numpy)
{
  char program[] = "python3";
  char option[] = "-c";
  char script[] = NUMPY_SCRIPT;
  char *argv[] = {program, option, script, NULL};
  char version[64];

  if (bench_child_start(argv, -1, true, &numpy->child))
    answer(numpy, "numpy %63s", version);
  else
    numpy->child = (struct bench_child){0, NULL, NULL};
}

void bench_numpy_stop(struct bench_numpy *numpy)
{
  if (numpy->child.id != 0)
    bench_child_end(&numpy->child);
}

bool bench_numpy_layout(struct bench_numpy *numpy,
                        const struct bench_layout *layout)
{
  FILE *to = numpy->child.to;
  char word[64];

  if (numpy->child.id == 0)
    return false;
  fprintf(to, "layout %zu %zu %zu %zu", bench_layout_reach(layout),
          layout->element, layout->offset, layout->ndim);
  for (size_t i = 0; i < layout->ndim; i++)
    fprintf(to, " %zu", layout->shape[i]);
  for (size_t i = 0; i < layout->ndim; i++)
    fprintf(to, " %td", layout->strides[i]);
  fputc('\n', to);
  return answer(numpy, "%63s", word) && strcmp(word, "ok") == 0;
}

bool bench_numpy_run(void *user, size_t times, double *seconds)
{
  struct bench_numpy *numpy = user;

  if (numpy->child.id == 0)
    return false;
  fprintf(numpy->child.to, "time %zu\n", times);
  return answer(numpy, "%lf", seconds);
}

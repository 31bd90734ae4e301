/* A plot of the largest size of each layout, by gnuplot. */
#include "config.h"

#include "child.h"
#include "results.h"

#include "../tools/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct {
  enum bench_way way;
  const char *name;
} bars[] = {
    {BENCH_LINK, "link"},
    {BENCH_RECT, "rect"},
    {BENCH_PAGEABLE, "pageable"},
    {BENCH_NUMPY, "numpy"},
};
enum { BARS = sizeof(bars) / sizeof(*bars) };

/* gnuplot's terminal for a file of that name; NULL: none. */
static const char *terminal_for(const char *path)
{
  const char *end = strrchr(path, '.');

  if (end != NULL && strcasecmp(end, ".svg") == 0)
    return "svg size 1200,600 dynamic background 'white'";
  if (end != NULL && strcasecmp(end, ".png") == 0)
    return "png size 1200,600";
  return NULL;
}

static bool start_gnuplot(int output, const char *option,
                          struct bench_child *child)
{
  char program[] = "gnuplot";
  char argument[16];
  char *argv[] = {program, option != NULL ? argument : NULL, NULL};

  if (option != NULL)
    snprintf(argument, sizeof(argument), "%s", option);
  return bench_child_start(argv, output, false, child);
}

bool bench_plot_possible(const char *path)
{
  struct bench_child child;
  char line[64];

  if (terminal_for(path) == NULL) {
    tool_error("--plot: '%s' ends in neither .svg nor .png", path);
    return false;
  }
  if (start_gnuplot(-1, "--version", &child)) {
    while (fgets(line, sizeof(line), child.from) != NULL)
      ;
    if (bench_child_end(&child))
      return true;
  }
  tool_error("--plot: there is no gnuplot that runs");
  return false;
}

/* --- What is said to it --------------------------------------------------- */

static void print_data(FILE *to, const struct bench_results *results)
{
  fprintf(to, "$data << END\nlayout ours");
  for (size_t i = 0; i < BARS; i++)
    fprintf(to, " %s", bars[i].name);
  fputc('\n', to);
  for (size_t r = 0; r < results->row_count; r++) {
    const struct bench_row *row = &results->rows[r];
    char size[TOOL_SIZE_TEXT];

    if (!bench_is_largest(results, r))
      continue;
    fprintf(to, "\"%s, %s\" %.4g", row->layout,
            tool_size_text(row->bytes, size), row->rate[row->ours].median);
    for (size_t i = 0; i < BARS; i++)
      if (row->rounds[bars[i].way] > 0)
        fprintf(to, " %.4g", row->rate[bars[i].way].median);
      else
        fprintf(to, " -");
    fputc('\n', to);
  }
  fprintf(to, "END\n");
}

/* A name as it can stand between quotes. */
static void print_name(FILE *to, const char *name)
{
  for (; *name != '\0'; name++)
    fputc(*name == '\'' || *name == '"' || *name == '\\' ||
                  (unsigned char)*name < ' '
              ? ' '
              : *name,
          to);
}

static void print_script(FILE *to, const struct bench_results *results,
                         const char *path)
{
  fprintf(to, "set terminal %s\nset title '", terminal_for(path));
  print_name(to, results->device);
  fprintf(to, ", ");
  print_name(to, results->platform);
  fprintf(to,
          "' noenhanced\n"
          "set ylabel 'GB/s'\n"
          "set logscale y\n"
          "set grid ytics\n"
          "set style data histogram\n"
          "set style histogram clustered gap 1\n"
          "set style fill solid 0.8 noborder\n"
          "set datafile missing '-'\n"
          "set xtics rotate by 45 right noenhanced\n"
          "set key outside top horizontal\n");
  print_data(to, results);
  fprintf(to, "plot for [i = 2:%d] $data using i:xtic(1) "
              "title columnheader(i)\n",
          BARS + 2);
}

bool bench_plot(const struct bench_results *results, const char *path)
{
  int output = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  struct bench_child child;
  bool done;

  if (output < 0) {
    tool_error("%s: %s", path, strerror(errno));
    return false;
  }
  done = start_gnuplot(output, NULL, &child);
  if (done) {
    print_script(child.to, results, path);
    done = bench_child_end(&child);
  }
  if (close(output) != 0)
    done = false;
  if (!done)
    tool_error("%s: gnuplot did not draw it", path);
  return done;
}

/* Tables for people, which Markdown reads too. */
#include "config.h"

#include "results.h"

#include "../tools/report.h"

#include <stdio.h>

enum { CELL = 16 };

/* Three digits that say something. */
static const char *number(double value, char text[CELL])
{
  snprintf(text, CELL, "%.*f", bench_digits(value), value);
  return text;
}

static const char *spread(const struct bench_spread *is, double scale,
                          char text[BENCH_CELL])
{
  char cell[3][CELL];

  snprintf(text, BENCH_CELL, "%s (%s to %s)",
           number(is->median * scale, cell[0]),
           number(is->least * scale, cell[1]),
           number(is->most * scale, cell[2]));
  return text;
}

static struct bench_spread rate_of(const struct bench_spread *seconds,
                                   size_t bytes)
{
  double scale = (double)bytes / 1e9;

  return (struct bench_spread){scale / seconds->median, scale / seconds->most,
                               scale / seconds->least};
}

/* --- Rows ----------------------------------------------------------------- */

static const struct {
  enum bench_way way;
  const char *name;
  bool compared;
} columns[] = {
    {BENCH_LINK, "link", true},         {BENCH_RECT, "rect", true},
    {BENCH_NUMPY, "numpy", true},       {BENCH_PAGEABLE, "pageable", false},
    {BENCH_MEMCPY, "memcpy", false},    {BENCH_ROWS, "by row", false},
    {BENCH_COPY, "copy_into", false},
};
enum { COLUMNS = sizeof(columns) / sizeof(*columns) };

void bench_table_begin_rows(size_t rounds)
{
  printf("GB/s, the median of %zu rounds (least to most); x: how many times as "
         "fast\n\n| %-18s | %9s | %-22s |",
         rounds, "layout", "size", "ours");
  for (size_t i = 0; i < COLUMNS; i++) {
    printf(" %9s |", columns[i].name);
    if (columns[i].compared)
      printf(" %5s |", "x");
  }
  printf(" %-5s | plan\n| --- | --- | --- |", "data");
  for (size_t i = 0; i < COLUMNS; i++)
    printf(columns[i].compared ? " --- | --- |" : " --- |");
  printf(" --- | ---\n");
}

static void print_way(const struct bench_row *row, enum bench_way way,
                      bool compared)
{
  bool there = row->rounds[way] > 0;
  char text[CELL];

  printf(" %9s |", there ? number(row->rate[way].median, text) : "-");
  if (compared)
    printf(" %5s |", there ? number(row->faster[way].median, text) : "-");
}

void bench_table_row(const struct bench_row *row)
{
  char size[TOOL_SIZE_TEXT];
  char text[BENCH_CELL];

  printf("| %-18s | %9s | %-22s |", row->layout,
         tool_size_text(row->bytes, size),
         spread(&row->rate[row->ours], 1, text));
  for (size_t i = 0; i < COLUMNS; i++)
    print_way(row, columns[i].way, columns[i].compared);
  printf(" %-5s | %s\n", row->data_ok ? "ok" : "WRONG", row->plan);
  fflush(stdout);
}

/* --- Beside them ---------------------------------------------------------- */

void bench_table_begin_small(void)
{
  printf("\n| %-31s | %9s | %-22s | %-22s | %5s | %-5s | beside\n"
         "| --- | --- | --- | --- | --- | --- | ---\n",
         "small and other", "size", "ours, us", "raw, us", "ratio", "data");
}

void bench_table_small(const struct bench_pair *pair)
{
  bool raw = pair->raw_what != NULL;
  char size[TOOL_SIZE_TEXT];
  char text[2][BENCH_CELL];
  char ratio[CELL];

  printf("| %-31s | %9s | %-22s | %-22s | %5s | %-5s | %s\n", pair->what,
         tool_size_text(pair->bytes, size), spread(&pair->ours, 1e6, text[0]),
         raw ? spread(&pair->raw, 1e6, text[1]) : "-",
         raw ? number(pair->ratio.median, ratio) : "-",
         pair->data_ok ? "ok" : "WRONG", raw ? pair->raw_what : "-");
  fflush(stdout);
}

void bench_table_begin_uploads(void)
{
  printf("\n| %-18s | %9s | %-22s | %-22s | %5s | data\n"
         "| --- | --- | --- | --- | --- | ---\n",
         "upload to", "size", "ours, GB/s", "raw write, GB/s", "x");
}

void bench_table_upload(const struct bench_pair *pair)
{
  struct bench_spread ours = rate_of(&pair->ours, pair->bytes);
  struct bench_spread raw = rate_of(&pair->raw, pair->bytes);
  char size[TOOL_SIZE_TEXT];
  char text[2][BENCH_CELL];
  char ratio[CELL];

  printf("| %-18s | %9s | %-22s | %-22s | %5s | %s\n", pair->what,
         tool_size_text(pair->bytes, size), spread(&ours, 1, text[0]),
         spread(&raw, 1, text[1]), number(1 / pair->ratio.median, ratio),
         pair->data_ok ? "ok" : "WRONG");
  fflush(stdout);
}

void bench_table_linear(const struct bench_linear *linear)
{
  printf("\n| %-18s | GB/s\n| --- | ---\n", "contiguous");
  for (size_t i = 0; i < BENCH_LINEAR; i++) {
    struct bench_spread rate = rate_of(&linear->seconds[i], linear->bytes[i]);
    char size[TOOL_SIZE_TEXT];
    char text[BENCH_CELL];

    printf("| %-18s | %s\n", tool_size_text(linear->bytes[i], size),
           spread(&rate, 1, text));
  }
  printf("\nThe dearest byte costs %.1f%% more than the cheapest.\n",
         linear->apart * 100);
}

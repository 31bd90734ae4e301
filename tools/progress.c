/* How far a long piece of work is, on stderr.  Owns the look of it alone. */
#include "config.h"

#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BAR = 30, REDRAW = 100 * 1000 * 1000 /* ns */ };

/* Work that takes less says no line. */
enum { SHORT = 1000 * 1000 * 1000 /* ns */ };

uint64_t tool_now(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double tool_rate(uint64_t bytes, uint64_t nanoseconds)
{
  return nanoseconds == 0 ? 0 : (double)bytes / (double)nanoseconds;
}

static double fraction(const struct tool_progress *progress, uint64_t done)
{
  return progress->total == 0 ? 1 : (double)done / (double)progress->total;
}

void tool_progress_start(struct tool_progress *progress, const char *label,
                         uint64_t total, bool quiet)
{
  progress->label = label;
  progress->total = total;
  progress->shown = 0;
  progress->start = tool_now();
  progress->quiet = quiet;
  progress->terminal = isatty(STDERR_FILENO) == 1;
  progress->drawn = false;
}

static void draw_bar(struct tool_progress *progress, uint64_t done,
                     uint64_t now)
{
  double part = fraction(progress, done);
  char bar[BAR + 1];

  for (int i = 0; i < BAR; i++)
    bar[i] = i < (int)(part * BAR) ? '#' : '.';
  bar[BAR] = '\0';
  fprintf(stderr, "\r%-7s [%s] %3d%% %6.2f GB/s", progress->label, bar,
          (int)(part * 100), tool_rate(done, now - progress->start));
  fflush(stderr);
  progress->drawn = true;
}

void tool_progress_update(struct tool_progress *progress, uint64_t done)
{
  uint64_t now;
  uint64_t tenth;

  if (progress->quiet)
    return;
  now = tool_now();
  if (progress->terminal) {
    if (done < progress->total && now - progress->shown < REDRAW)
      return;
    progress->shown = now;
    draw_bar(progress, done, now);
    return;
  }
  if (now - progress->start < SHORT)
    return;
  tenth = (uint64_t)(fraction(progress, done) * 10);
  if (tenth > progress->shown) {
    progress->shown = tenth;
    fprintf(stderr, "%s %d%% %.2f GB/s\n", progress->label, (int)tenth * 10,
            tool_rate(done, now - progress->start));
  }
}

void tool_progress_end(struct tool_progress *progress)
{
  if (!progress->drawn)
    return;
  /* ECMA-48 "erase in line": every terminal of today knows it. */
  fputs("\r\033[K", stderr);
  fflush(stderr);
  progress->drawn = false;
}

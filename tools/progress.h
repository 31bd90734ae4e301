/* How far a long piece of work is, on stderr: a bar on a terminal, a line a
 * tenth elsewhere from the first second on, nothing if it was told to be
 * quiet. */
#ifndef TOOL_PROGRESS_H
#define TOOL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tool_progress {
  const char *label; /* static text */
  uint64_t total;    /* bytes */
  uint64_t shown;    /* what was last said: a time in ns, or a tenth */
  uint64_t start;    /* ns */
  bool quiet;
  bool terminal;
  bool drawn; /* a bar stands on the terminal's line */
};

/* Nanoseconds of a clock that only goes forward. */
uint64_t tool_now(void);

/* bytes a nanosecond are GB/s; 0 if no time passed. */
double tool_rate(uint64_t bytes, uint64_t nanoseconds);

void tool_progress_start(struct tool_progress *progress, const char *label,
                         uint64_t total, bool quiet);
void tool_progress_update(struct tool_progress *progress, uint64_t done);

/* Takes the bar away, so that what is printed next has a line of its own. */
void tool_progress_end(struct tool_progress *progress);

#endif

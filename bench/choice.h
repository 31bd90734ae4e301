/*
 * Which layouts of which sizes are measured: what the user chose, within what
 * the device holds.
 */
#ifndef BENCH_CHOICE_H
#define BENCH_CHOICE_H

#include "layouts.h"
#include "measure.h"

enum { BENCH_MOST_SIZES = 32, BENCH_MOST_LAYOUTS = 64 };

struct bench_choice {
  size_t sizes[BENCH_MOST_SIZES]; /* ascending, each once */
  size_t size_count;
  bool layouts[BENCH_MOST_LAYOUTS]; /* by index */
  size_t limit; /* most bytes of a buffer on the device */
  /* What they come to: */
  size_t bytes; /* of the largest */
  size_t reach;
  size_t rows;
};

/* What the options say; false where they are wrong, which is said.  Sizes that
 * they do not say are chosen for the device by bench_choice_fit(). */
bool bench_choice_parse(struct bench_choice *choice,
                        const struct tool_options *options);

/* Fits it to the device; says what is left out.  False if nothing remains. */
bool bench_choice_fit(struct bench_choice *choice,
                      const struct tool_options *options,
                      const struct bench *bench);

/* Whether a layout of a size is measured, and what it is. */
bool bench_choice_has(const struct bench_choice *choice, size_t size,
                      size_t index, struct bench_layout *out);

#endif

/*
 * Contents that depend on place and seed, in buffers and host memory, and a
 * check of what came out of a layout of them, element by element.
 */
#ifndef BENCH_CONTENTS_H
#define BENCH_CONTENTS_H

#include "layouts.h"
#include "measure.h"

#include <stdint.h>

/* A handle on the layout in a buffer; says what failed. */
bool bench_handle(const struct bench *bench, cl_mem buffer,
                  const struct bench_layout *layout, clb_bytes **out);

/* What a buffer of this seed has from an offset on, a multiple of 4. */
void bench_fill_memory(void *data, size_t offset, size_t bytes, uint32_t seed);

/* A buffer of the device with such contents; says what failed. */
bool bench_filled_buffer(const struct bench *bench, size_t bytes,
                         uint32_t seed, cl_mem *out);

/* A walk over the logical bytes that should come; starts as zeros but for
 * layout and seed. */
struct bench_walk {
  const struct bench_layout *layout;
  uint32_t seed;
  size_t at;                /* bytes seen, all of them right */
  size_t index[BENCH_RANK]; /* of the element that comes next */
  size_t within;            /* bytes of it that were seen */
};

/* A clb_sink of a struct bench_walk: stops at the first wrong byte. */
int bench_walk_on(const void *data, size_t length, void *user);

/* Whether length bytes are what a layout of that seed gives: the first wrong
 * byte is said, with what was looked at. */
bool bench_check_memory(const char *what, const struct bench_layout *layout,
                        uint32_t seed, const void *data, size_t length);
bool bench_check_stream(const char *what, const struct bench_layout *layout,
                        uint32_t seed, clb_bytes *handle);

#endif

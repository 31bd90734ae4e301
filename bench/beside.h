/*
 * What is measured beside the layouts: small reads, fresh results, mappings,
 * pinned destinations, uploads, and whether cost is linear in bytes.
 */
#ifndef BENCH_BESIDE_H
#define BENCH_BESIDE_H

#include "transfer.h"

/* One thing in the library's way and in OpenCL's. */
struct bench_pair {
  const char *what;
  const char *raw_what; /* NULL: there is nothing to compare it with */
  size_t bytes;
  struct bench_spread ours, raw, ratio; /* seconds; ours over raw */
  bool data_ok;
};

/* Takes a pair that was measured; false: no more of them. */
typedef bool (*bench_take_pair)(const struct bench_pair *pair, void *user);

enum { BENCH_SMALL = 4096 }; /* bytes of a small read */

/*
 * Small reads, and reads of bytes bytes: into a fresh result, into memory of
 * clb_host_alloc(), by a mapping where the device maps.
 * False where one could not be measured, which has been said, or take said so.
 */
bool bench_small_measure(struct bench_transfer *transfer, size_t bytes,
                         size_t rounds, bench_take_pair take, void *user);

/* Uploads pinned memory into the layout, beside a plain write of as many bytes.
 * Changes the buffer: seed, never the same again, is what it has then. */
bool bench_upload_measure(struct bench_transfer *transfer, const char *name,
                          const struct bench_layout *layout, uint32_t seed,
                          size_t rounds, struct bench_pair *out);

enum { BENCH_LINEAR = 5 };

/* Contiguous, of a sixteenth of bytes up to bytes. */
struct bench_linear {
  size_t bytes[BENCH_LINEAR];
  struct bench_spread seconds[BENCH_LINEAR];
  double apart; /* the dearest byte over the cheapest, less 1 */
};

bool bench_linear_measure(struct bench_transfer *transfer, size_t bytes,
                          size_t rounds, struct bench_linear *out);

#endif

/*
 * model_run.h - one sequence of operations: what is alive in it, what was done
 * in it, and what has to hold after each of them.
 */
#ifndef CLBYTES_TESTS_MODEL_RUN_H
#define CLBYTES_TESTS_MODEL_RUN_H

#include "model.h"

#include <sched.h>

enum { RUN_LIVE = 12, RUN_BUFFERS = 3, RUN_STORES = 128, RUN_CONTEXTS = 4 };

struct run {
  uint64_t state; /* of the random numbers */
  clb_context *contexts[RUN_CONTEXTS]; /* with different plans */
  bool contexts_map[RUN_CONTEXTS];
  clb_context *context; /* of this sequence */
  bool maps;
  bool threads; /* does the driver bear them? */
  size_t align; /* of sub-buffers */

  struct model_handle live[RUN_LIVE];
  size_t count;
  struct model_store *stores[RUN_STORES]; /* the program's buffers first */
  size_t store_count;
  int serial; /* number of the last handle made */
  int picked; /* of the last one used */
  bool listed; /* a handle of this sequence waits for a list alone */
  bool reads_known;
  uint64_t reads; /* that stats should count */
};

extern struct run run;

/* Set up and ended once. */
void run_open(void);
void run_close(void);

/* A sequence's buffers and context; its end releases what is alive, in random
 * order, and looks that nothing stays behind. */
void run_begin(uint64_t seed);
void run_end(void);

/* What has to hold between any two operations. */
void run_check(void);

size_t run_below(size_t limit);
bool run_chance(size_t in); /* one in so many */

/* Notes an operation, for the report of a failure, and prints them.  They are
 * kept where a crash does not lose them. */
void run_trace_open(void);
void run_trace(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
void run_trace_print(void);

void run_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)))
__attribute__((noreturn));

/* The last operation's status; the second also allows another one, and says
 * which it was. */
void run_expect(clb_status status, clb_status expected);
bool run_expect_or(clb_status status, clb_status expected, clb_status other);

/* Waits for what threads and drivers let go of a moment late. */
#define RUN_SOON(condition)                                                   \
  do {                                                                        \
    double end_ = 0;                                                          \
    while (!(condition)) {                                                    \
      if (end_ == 0)                                                          \
        end_ = fixture_seconds() + 20;                                        \
      else if (fixture_seconds() > end_)                                      \
        run_wrong("after 20 s not yet %s", #condition);                       \
      sched_yield();                                                          \
    }                                                                         \
  } while (0)

/* The same bytes as a handle's. */
void run_same(const void *got, const unsigned char *expected, size_t length,
              const char *what);

struct model_store *run_store(int kind, const unsigned char *data,
                              size_t size);

/* Room for a new handle; the number of the next one; and it lives. */
bool run_room(size_t handles);
struct model_handle *run_put(const struct model_handle *made,
                             clb_bytes *bytes);
void run_release(size_t index);

/* A random handle, often the one of the operation before; there is one. */
struct model_handle *run_pick(void);

/* Prefetches: waits for a handle's, which has ended then. */
void run_settle(struct model_handle *h);
void run_landed(struct model_handle *h);

/* Adds to what stats should count. */
void run_reads(unsigned accesses);
void run_reads_unknown(void);

/* --- Operations (model_make.c, _derive.c, _ops.c, _device.c) ------------- */

void make_on_buffer(void);
void make_on_file(void);
void make_on_host(void);

void op_view(void);
void op_slice(void);
void op_reshape(void);
void op_clone(void);
void op_split(void);
void op_refused(void);

void op_read(void);
void op_write(void);
void op_copy_into(void);
void op_copy_into_layout(void);
void op_stream(void);
void op_equal(void);
void op_evict(void);
void op_detach(void);
void op_ask(void);
void op_label(void);
void op_retain(void);
void op_release(void);

void op_snapshot(void);
void op_prefetch(void);
void op_wait(void);
void op_buffer(void);
void op_upload(void);
void op_raw_write(void);

/* The file that make_on_file() reads; of the program that runs the test, which
 * lives on where that dies. */
void make_file_open(void);
void make_file_close(void);

#endif

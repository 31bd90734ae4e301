/*
 * What the Check programs share: a device found without starting a driver in
 * the parent, a context made and given back around every test, buffers of
 * known random bytes, and an oracle that walks a layout element by element.
 * Knows the public header alone.
 *
 *     START_TEST(read_gives_the_buffers_bytes)
 *     {
 *       ...fx.queue, fx.context...
 *     }
 *     END_TEST
 *
 *     int main(void)
 *     {
 *       Suite *suite = suite_create("read");
 *       TCase *all = fixture_case(suite, "all", 20);
 *
 *       tcase_add_test(all, read_gives_the_buffers_bytes);
 *       return fixture_main(suite, FIXTURE_DEVICE);
 *     }
 *
 * Environment: CLBYTES_TEST_PLATFORM, CLBYTES_TEST_REQUIRE; see
 * fixture_main().
 */
#ifndef CLBYTES_TESTS_FIXTURE_H
#define CLBYTES_TESTS_FIXTURE_H

#include <clbytes.h>

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- The device and the context ------------------------------------------ */

/* Made by fixture_setup() for one test; the queue is in-order. */
struct fixture {
  cl_platform_id platform;
  cl_device_id device;
  cl_context cl;
  cl_command_queue queue;
  clb_context *context; /* with the default options */
};

extern struct fixture fx;

/* For tcase_add_checked_fixture(); the _cl pair makes all but fx.context. */
void fixture_setup(void);
void fixture_teardown(void);
void fixture_setup_cl(void);
void fixture_teardown_cl(void);

/* Gives fx.context back and makes it anew with these options. */
void fixture_options(const clb_context_options *options);

/* One more queue on the device; the caller's.  NULL: the device has none of
 * these properties. */
cl_command_queue fixture_queue(cl_command_queue_properties properties);

/* Is part a part of the platform's name? */
int fixture_is(const char *part);

/* Can the device compile kernels? */
int fixture_compiles(void);

/* Bytes of CL_DEVICE_MEM_BASE_ADDR_ALIGN. */
size_t fixture_sub_buffer_align(void);

/* Is the program built so that its memory figures mean something? */
int fixture_measures_memory(void);

/* Leaves the test, with the reason on stderr. */
#define FIXTURE_SKIP(...)                                                      \
  do {                                                                         \
    fprintf(stderr, "skip: %s: ", __func__);                                   \
    fprintf(stderr, __VA_ARGS__);                                              \
    fputc('\n', stderr);                                                       \
    return;                                                                    \
  } while (0)

/* Oclgrind crashes with two threads in it, and its clFlush blocks behind an
 * event that is not set. */
#define FIXTURE_NEEDS_THREADS()                                                \
  do {                                                                         \
    if (fixture_is("Oclgrind"))                                                \
      FIXTURE_SKIP("two threads in OpenCL crash this driver");                 \
  } while (0)
#define FIXTURE_NEEDS_UNSET_EVENTS()                                           \
  do {                                                                         \
    if (fixture_is("Oclgrind"))                                                \
      FIXTURE_SKIP("a flush behind an unset event blocks in this driver");     \
  } while (0)

/* --- Running ------------------------------------------------------------- */

enum { FIXTURE_HOST, FIXTURE_DEVICE };

/* A case of the suite with the checked fixture above; seconds a test. */
TCase *fixture_case(Suite *suite, const char *name, double seconds);
/* The same without fx.context. */
TCase *fixture_case_cl(Suite *suite, const char *name, double seconds);

/*
 * Runs the suite; what main() returns.  For FIXTURE_DEVICE a platform whose
 * name contains CLBYTES_TEST_PLATFORM ("Portable Computing Language" if unset)
 * is looked for first, in a child, so that no driver starts in the parent of
 * the tests; without one: 77, or 1 if CLBYTES_TEST_REQUIRE is 1.
 */
int fixture_main(Suite *suite, int needs);

/* For programs without Check: the same probe, 0 if there is a device, else
 * what main() returns. */
int fixture_probe(void);

/* A number of the environment, or otherwise. */
uint64_t fixture_number(const char *name, uint64_t otherwise);

/* --- Assertions ---------------------------------------------------------- */

/* Which of a test's many inputs is tried, for the messages below; a driver
 * may take half a second to start, so that one test tries several. */
extern const char *fixture_input;

#define ck_status(expression, expected)                                        \
  do {                                                                         \
    clb_status ck_got_ = (expression);                                         \
    ck_assert_msg(ck_got_ == (expected), "%s: %s is %s, not %s: %s",           \
                  fixture_input, #expression, clb_status_name(ck_got_),        \
                  #expected, clb_error_message());                             \
  } while (0)
/* CLB_OK */
#define ck_ok(expression) ck_status(expression, CLB_OK)

/* Unlike Check's own, which tell the parent of each success, too: millions of
 * those would fill its memory. */
#define ck_cl(expression)                                                      \
  do {                                                                         \
    cl_int ck_code_ = (expression);                                            \
    if (ck_code_ != CL_SUCCESS)                                                \
      ck_abort_msg("%s is %d", #expression, (int)ck_code_);                    \
  } while (0)

/* The same bytes; says where they differ first. */
#define ck_bytes(got, expected, length)                                        \
  do {                                                                         \
    size_t ck_length_ = (length);                                              \
    size_t ck_at_ = fixture_difference((got), (expected), ck_length_);         \
    ck_assert_msg(ck_at_ == ck_length_, "%s: %s differs from %s at byte %zu "  \
                  "of %zu", fixture_input, #got, #expected, ck_at_,            \
                  ck_length_);                                                 \
  } while (0)

/* Does this thread's message contain part? */
#define ck_message(part)                                                       \
  ck_assert_msg(strstr(clb_error_message(), (part)) != NULL,                   \
                "no \"%s\" in the message: %s", (part), clb_error_message())

/* Index of the first byte that differs; length if none does. */
size_t fixture_difference(const void *a, const void *b, size_t length);

/* Index of the first byte that is not value; length if none is. */
size_t fixture_other(const void *data, unsigned char value, size_t length);

/* A buffer has so many references, once what is in flight has ended and
 * fx.context has looked. */
#define ck_refs(buffer, count)                                                 \
  do {                                                                         \
    WAIT_UNTIL((clb_context_trim(fx.context),                                  \
                fixture_buffer_refs(buffer) == (count)));                      \
    ck_assert_uint_eq(fixture_buffer_refs(buffer), (count));                   \
  } while (0)

/* --- Bytes and buffers --------------------------------------------------- */

/* Random numbers, the same for the same seed everywhere. */
uint64_t fixture_random(uint64_t *state);
/* A number below limit, or 0. */
size_t fixture_below(uint64_t *state, size_t limit);
/* Known random bytes, malloc'ed; at least one byte is allocated. */
unsigned char *fixture_bytes(size_t length, uint64_t seed);
/* malloc() that is checked. */
void *fixture_malloc(size_t length);

/* A buffer of fx.cl with this data in it, or undefined contents for NULL. */
cl_mem fixture_buffer(cl_mem_flags flags, const void *data, size_t size);
/* The buffer's bytes, whatever its flags, after what is on fx.queue. */
void fixture_fetch(cl_mem buffer, void *data, size_t size);
/* Writes all of data into the buffer, whatever its flags, and waits. */
void fixture_store(cl_mem buffer, const void *data, size_t size);

/* Fills the first size bytes, in the widest pattern that goes: drivers take a
 * call a pattern.  Waits for nothing. */
void fixture_fill(cl_command_queue queue, cl_mem buffer, unsigned char value,
                  size_t size, cl_uint num_events, const cl_event *wait_list,
                  cl_event *event);

cl_uint fixture_buffer_refs(cl_mem buffer);
cl_uint fixture_event_refs(cl_event event);
cl_uint fixture_queue_refs(cl_command_queue queue);

/* The context's counters. */
clb_stats fixture_stats(void);

/* A handle of fx.context on the buffer; the caller's. */
clb_bytes *fixture_handle(cl_mem buffer, const clb_layout *layout);

/* Arrays in place: clb_layout l = {2, SHAPE(4, 3), STRIDES(32, 4), 4, 0}; */
#define SHAPE(...) ((const size_t[]){__VA_ARGS__})
#define STRIDES(...) ((const ptrdiff_t[]){__VA_ARGS__})

/* All of a handle by one way of access equals this. */
void expect_read(clb_bytes *bytes, const void *expected, size_t length);
void expect_stream(clb_bytes *bytes, const void *expected, size_t length);
void expect_copy_into(clb_bytes *bytes, const void *expected, size_t length);

/* Does fx.context, or this one, map without moving bytes, so that CLB_MAP
 * works there?  Each context tries for itself. */
int fixture_maps(void);
int fixture_context_maps(clb_context *context);

/* Waits up to a second for a condition that a driver brings about late. */
#define WAIT_UNTIL(condition)                                                  \
  do {                                                                         \
    double ck_end_ = fixture_seconds() + 1;                                    \
    while (!(condition) && fixture_seconds() < ck_end_)                        \
      fixture_sleep(0.001);                                                    \
  } while (0)

/* --- The oracle ---------------------------------------------------------- */

/* Logical bytes of a layout; no overflow is looked for. */
size_t walk_length(const clb_layout *layout);
/* The logical bytes, element by element out of the buffer's; malloc'ed. */
unsigned char *walk(const clb_layout *layout, const unsigned char *buffer);
/* The other way: logical bytes into a buffer's. */
void walk_back(const clb_layout *layout, unsigned char *buffer,
               const unsigned char *logical);

/* What a stream gave: a sink that puts pieces together.  Give one to
 * clb_bytes_stream() as user, zeroed, and free data. */
struct gathered {
  unsigned char *data;
  size_t length;
  size_t pieces;
  size_t longest; /* piece */
};
int gather_sink(const void *data, size_t length, void *user);

/* --- Measuring ----------------------------------------------------------- */

size_t fixture_rss(void); /* resident bytes now; 0 where it cannot be told */
size_t fixture_hwm(void); /* resident bytes at most */
double fixture_seconds(void); /* monotonic */
void fixture_sleep(double seconds);
size_t fixture_descriptors(void); /* open ones; 0 where it cannot be told */

/* How much memory grows while something is repeated: equally often in each of
 * a few windows, after one to warm up.  A leak shows in every window, while
 * what a driver or an allocator keeps comes in leaps: the least growth counts.
 *     struct growth growth = {.times = 1000};
 *     while (growing(&growth))
 *       ...one round: growth.round, from 1 on...
 *     ck_flat(&growth, bytes); */
#define GROWTH_WINDOWS 4 /* with the first: five times as many rounds */
struct growth {
  uint64_t times; /* rounds of a window; set by the test */
  uint64_t round;
  size_t before;  /* resident bytes at the window's start */
  size_t grown[GROWTH_WINDOWS];
};
int growing(struct growth *growth);
size_t growth_least(const struct growth *growth);
#define ck_flat(growth, most)                                                  \
  do {                                                                         \
    size_t ck_least_ = growth_least(growth);                                   \
    if (fixture_measures_memory())                                             \
      ck_assert_msg(ck_least_ <= (size_t)(most),                               \
                    "%zu bytes more in every %llu rounds, at most %zu "        \
                    "allowed",                                                 \
                    ck_least_, (unsigned long long)(growth)->times,            \
                    (size_t)(most));                                           \
  } while (0)

#endif

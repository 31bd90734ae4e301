/*
 * Figures that take time or memory, for "make check-big": prints each, and
 * fails past its limit.
 */
#include "config.h"

#include "fixture.h"

/* --- Live handles -------------------------------------------------------- */

START_TEST(a_million_handles_are_small_and_quick)
{
  const size_t count = 1000000;
  clb_layout layout = {4, SHAPE(2, 3, 4, 5), STRIDES(1000, 300, 60, 8), 4, 16};
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, 4096);
  clb_bytes **handles = fixture_malloc(count * sizeof *handles);
  double start, made, released;
  size_t before, grown;

  memset(handles, 1, count * sizeof *handles); /* resident before it counts */
  clb_bytes_release(fixture_handle(buffer, &layout));
  before = fixture_rss();
  start = fixture_seconds();
  for (size_t i = 0; i < count; i++)
    ck_ok(clb_bytes_from_buffer(fx.context, buffer, &layout, &handles[i]));
  made = fixture_seconds();
  grown = fixture_rss() - before;
  ck_assert_uint_eq(fixture_buffer_refs(buffer), count + 1);
  released = fixture_seconds();
  for (size_t i = 0; i < count; i++)
    clb_bytes_release(handles[i]);
  released = fixture_seconds() - released;
  made -= start;
  printf("%zu live handles of rank 4: %.1f bytes each; %.2f s to make, "
         "%.2f s to release\n", count, (double)grown / (double)count, made,
         released);
  ck_assert_uint_eq(fixture_buffer_refs(buffer), 1);
  if (fixture_measures_memory()) {
    ck_assert_uint_le(grown, 256 * count);
    ck_assert_double_lt(made + released, 2);
  }
  free(handles);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

/* --- Mappings ------------------------------------------------------------ */

static int compare_doubles(const void *a, const void *b)
{
  const double *x = a, *y = b;

  return (*x > *y) - (*x < *y);
}

enum { TRIES = 201 };

/* Median seconds of a handle's first CLB_MAP read. */
static double median_map(cl_mem buffer)
{
  double times[TRIES];

  for (int i = 0; i < TRIES; i++) {
    clb_bytes *bytes = fixture_handle(buffer, NULL);
    const void *data;
    double start = fixture_seconds();

    ck_ok(clb_bytes_read(bytes, CLB_MAP, &data));
    times[i] = fixture_seconds() - start;
    clb_bytes_release(bytes);
  }
  qsort(times, TRIES, sizeof *times, compare_doubles);
  return times[TRIES / 2];
}

START_TEST(a_mapping_takes_no_longer_for_more_bytes)
{
  const size_t size = (size_t)256 << 20;
  cl_mem large, small;
  cl_uchar value = 1;
  double large_median, small_median;

  if (!fixture_maps())
    FIXTURE_SKIP("mapping moves bytes on this device");
  large = fixture_buffer(CL_MEM_READ_WRITE, NULL, size);
  small = fixture_buffer(CL_MEM_READ_WRITE, NULL, 4096);
  fixture_fill(fx.queue, large, value, size, 0, NULL, NULL);
  fixture_fill(fx.queue, small, value, 4096, 0, NULL, NULL);
  ck_cl(clFinish(fx.queue));
  median_map(small);
  small_median = median_map(small);
  large_median = median_map(large);
  printf("CLB_MAP: 256 MiB %.1f us, 4 KiB %.1f us (medians of %d)\n",
         large_median * 1e6, small_median * 1e6, TRIES);
  ck_assert_double_le(large_median, 2 * small_median);
  ck_cl(clReleaseMemObject(large));
  ck_cl(clReleaseMemObject(small));
}
END_TEST

/* --- Streams ------------------------------------------------------------- */

static int take_sink(const void *data, size_t length, void *user)
{
  const unsigned char *bytes = data;
  uint64_t *sum = user;

  *sum += bytes[0] + (uint64_t)bytes[length - 1];
  return 0;
}

/* More bytes than 32 bits count, through handles of a buffer that fits. */
START_TEST(a_broadcast_of_5_gib_streams_in_the_rings_memory)
{
#if SIZE_MAX > UINT32_MAX
  const size_t size = 1 << 20;
  clb_layout layout = {2, SHAPE(5120, size), STRIDES(0, 1), 1, 0};
  unsigned char *data = fixture_bytes(size, 1);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, data, size);
  clb_bytes *bytes = fixture_handle(buffer, &layout);
  size_t length = clb_bytes_length(bytes), before;
  uint64_t sum = 0;
  double start;

  ck_assert_uint_eq(length, size * 5120);
  ck_ok(clb_bytes_stream(bytes, 0, 32 << 20, take_sink, &sum));
  before = fixture_rss();
  start = fixture_seconds();
  ck_ok(clb_bytes_stream(bytes, 0, length, take_sink, &sum));
  printf("streamed %.1f GiB: %.2f GB/s, host memory grown by %.1f MiB\n",
         (double)length / (1 << 30),
         (double)length / (fixture_seconds() - start) / 1e9,
         ((double)fixture_hwm() - (double)before) / (1 << 20));
  if (fixture_measures_memory())
    ck_assert_uint_lt(fixture_rss(), before + (64 << 20));
  ck_assert_uint_eq(fixture_stats().host_peak, 0);
  clb_bytes_release(bytes);
  ck_cl(clReleaseMemObject(buffer));
  free(data);
#endif
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("big");
  TCase *all = fixture_case(suite, "device", 600);

  tcase_add_test(all, a_million_handles_are_small_and_quick);
  tcase_add_test(all, a_mapping_takes_no_longer_for_more_bytes);
  tcase_add_test(all, a_broadcast_of_5_gib_streams_in_the_rings_memory);
  return fixture_main(suite, FIXTURE_DEVICE);
}

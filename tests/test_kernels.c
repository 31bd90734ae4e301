/*
 * The pack kernels from inside: compilers that fail, builds aside, forms of
 * both widths; and what a link is measured to be.
 */
#include "config.h"

#include "kernels.h"

#include "fault_fixture.h"

static clb_context *make_context(unsigned plans, size_t chunk_size)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_context *context;

  options.plans = plans;
  options.chunk_size = chunk_size;
  ck_ok(clb_context_create(fx.queue, &options, &context));
  return context;
}

/* Every other element of a buffer, read from its end: for a kernel alone, or
 * the host. */
enum { ITEMS = 5000, SIZE = ITEMS * 8 };

static const size_t items[1] = {ITEMS};
static const ptrdiff_t backwards[1] = {-8};
static const clb_layout reversed = {1, items, backwards, 4, SIZE - 8};

static clb_status read_once(clb_context *context, cl_mem buffer,
                            const clb_layout *layout)
{
  size_t length = walk_length(layout);
  unsigned char *got = fixture_malloc(length);
  clb_bytes *bytes;
  clb_status status;

  ck_ok(clb_bytes_from_buffer(context, buffer, layout, &bytes));
  status = clb_bytes_copy_into(bytes, 0, got, length);
  clb_bytes_release(bytes);
  free(got);
  return status;
}

/* --- A compiler that fails ----------------------------------------------- */

/* [_i]: what fails, at the first call or at a later one */
START_TEST(without_kernels_pack_alone_is_unsupported)
{
  static const struct {
    const char *call;
    cl_int error;
    uint64_t nth;
  } faults[] = {{"clCreateProgramWithSource", CL_OUT_OF_RESOURCES, 1},
                {"clBuildProgram", CL_BUILD_PROGRAM_FAILURE, 1},
                {"clCreateKernel", CL_OUT_OF_RESOURCES, 1},
                {"clCreateKernel", CL_OUT_OF_RESOURCES, 3},
                {"clCreateKernel", CL_OUT_OF_RESOURCES, 5}};
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  clb_context *context = make_context(CLB_PLAN_PACK, 0);

  if (fixture_compiles())
    for (int i = 0; i < 2; i++) { /* it is not tried again, nor forgotten */
      if (i == 0)
        fault_arm(faults[_i].call, faults[_i].nth, 1, FAULT_CALL_FAILS,
                  faults[_i].error);
      else
        fault->disarm();
      ck_status(read_once(context, buffer, &reversed), CLB_UNSUPPORTED);
      ck_message("pack");
      ck_message(faults[_i].call);
      ck_assert_int_eq(clb_error_cl(), faults[_i].error);
    }
  ck_assert_uint_le(fault->calls("clCreateProgramWithSource"), 1);
  clb_context_release(context);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(where_no_other_plan_does_the_compiler_is_the_cause)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  clb_context *context = make_context(CLB_PLAN_PACK | CLB_PLAN_READ, 0);

  fault_arm("clBuildProgram", 1, 1, FAULT_CALL_FAILS, CL_BUILD_PROGRAM_FAILURE);
  if (fixture_compiles()) {
    ck_status(read_once(context, buffer, &reversed), CLB_UNSUPPORTED);
    ck_message("clBuildProgram: CL_BUILD_PROGRAM_FAILURE");
  }
  clb_context_release(context);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

START_TEST(a_device_without_a_compiler_says_so)
{
  const cl_bool no = CL_FALSE;
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  clb_context *context;

  ck_assert_int_eq(
      fault->device_info(CL_DEVICE_COMPILER_AVAILABLE, &no, sizeof no), 0);
  context = make_context(CLB_PLAN_PACK, 0);
  ck_status(read_once(context, buffer, &reversed), CLB_UNSUPPORTED);
  ck_message("no kernel can be built");
  ck_assert_uint_eq(fault->calls("clBuildProgram"), 0);
  clb_context_release(context);
  context = make_context(CLB_PLAN_PACK | CLB_PLAN_GATHER, 0);
  ck_ok(read_once(context, buffer, &reversed));
  clb_context_release(context);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

/* On what looks like a graphics card a large access builds the kernel at once:
 * so many plain reads take longer. */
START_TEST(a_compiler_that_fails_leaves_the_other_plans)
{
  enum { ROWS = 262144, ROW = 64 };
  static const size_t shape[2] = {ROWS, ROW / 4};
  static const ptrdiff_t strides[2] = {2 * ROW, 4};
  const clb_layout layout = {2, shape, strides, 4, 0};
  const size_t size = (size_t)ROWS * ROW * 2;
  const cl_device_type type = CL_DEVICE_TYPE_GPU;
  const cl_bool no = CL_FALSE;
  unsigned char *contents, *expected, *got;
  clb_context *context;
  clb_stats stats;
  clb_bytes *bytes;
  cl_mem buffer;

  if (fixture_is("Oclgrind"))
    FIXTURE_SKIP("minutes");
  if (!fixture_compiles())
    FIXTURE_SKIP("no compiler");
  contents = fixture_bytes(size, 1);
  expected = walk(&layout, contents);
  got = fixture_malloc(size / 2);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, size);
  ck_assert_int_eq(fault->device_info(CL_DEVICE_TYPE, &type, sizeof type), 0);
  ck_assert_int_eq(
      fault->device_info(CL_DEVICE_HOST_UNIFIED_MEMORY, &no, sizeof no), 0);
  fault_arm("clBuildProgram", 1, 1, FAULT_CALL_FAILS, CL_BUILD_PROGRAM_FAILURE);
  context = make_context(CLB_PLAN_PACK | CLB_PLAN_READ, 0);
  ck_ok(clb_bytes_from_buffer(context, buffer, &layout, &bytes));
  ck_ok(clb_bytes_copy_into(bytes, 0, got, size / 2));
  ck_bytes(got, expected, size / 2);
  ck_assert_uint_eq(fault->calls("clBuildProgram"), 1);
  ck_assert_str_eq(clb_error_message(), "");
  clb_context_stats(context, &stats, sizeof stats);
  ck_assert_uint_eq(stats.packs, 0);
  ck_assert_uint_eq(stats.reads, 1);
  clb_bytes_release(bytes);
  clb_context_release(context);

  /* And one that does not fail packs. */
  fault->disarm();
  context = make_context(CLB_PLAN_PACK | CLB_PLAN_READ, 0);
  memset(got, 0, size / 2);
  ck_ok(clb_bytes_from_buffer(context, buffer, &layout, &bytes));
  ck_ok(clb_bytes_copy_into(bytes, 0, got, size / 2));
  ck_bytes(got, expected, size / 2);
  clb_context_stats(context, &stats, sizeof stats);
  ck_assert_uint_eq(stats.packs, 1);
  ck_assert_uint_eq(stats.link_bytes, size / 2);
  clb_bytes_release(bytes);
  clb_context_release(context);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  free(expected);
  free(got);
}
END_TEST

START_TEST(a_second_queue_that_is_refused_is_told)
{
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, NULL, SIZE);
  clb_context *context = make_context(CLB_PLAN_PACK, 4096);

  if (fixture_compiles()) {
    fault_arm("clCreateCommandQueue*", 1, 0, FAULT_CALL_FAILS,
              CL_OUT_OF_HOST_MEMORY);
    ck_status(read_once(context, buffer, &reversed), CLB_OUT_OF_MEMORY);
    ck_message("clCreateCommandQueue");
    ck_ok(read_once(context, buffer, &reversed));
  }
  clb_context_release(context);
  ck_cl(clReleaseMemObject(buffer));
}
END_TEST

/* --- Aside --------------------------------------------------------------- */

START_TEST(a_context_is_released_with_what_it_builds_aside)
{
  FIXTURE_NEEDS_THREADS();
  for (int i = 0; i < 10; i++) {
    struct fault_held before = fault_count();
    clb_context *context = make_context(CLB_PLAN_PACK, 0);

    clb__kernels_build_aside(context, CLB__GET, false);
    clb__kernels_build_aside(context, CLB__GET, false);
    clb__kernels_build_aside(context, CLB__PUT, true);
    fixture_sleep(i * 0.001);
    clb_context_release(context);
    ck_fault_held(&before, "after the release");
  }
}
END_TEST

START_TEST(what_is_built_aside_is_there_in_the_end)
{
  clb_context *context = make_context(CLB_PLAN_PACK, 0);

  FIXTURE_NEEDS_THREADS();
  clb__kernels_build_aside(context, CLB__GET, false);
  clb__kernels_build_aside(context, CLB__PUT, false);
  for (int i = 0; i < 10000; i++) { /* a second is not always enough */
    if (clb__kernels_state(context, CLB__GET, false) != CLB__UNBUILT &&
        clb__kernels_state(context, CLB__PUT, false) != CLB__UNBUILT)
      break;
    fixture_sleep(0.001);
  }
  ck_assert_int_eq(clb__kernels_state(context, CLB__GET, false),
                   fixture_compiles() ? CLB__BUILT : CLB__REFUSED);
  ck_assert_int_eq(clb__kernels_state(context, CLB__GET, true), CLB__UNBUILT);
  clb_context_release(context);
}
END_TEST

/* --- Both widths --------------------------------------------------------- */

/* Part by part through the kernel that is asked for. */
static void run_kernels(clb_context *context, const clb_layout *layout,
                        bool wide, const unsigned char *contents, size_t size)
{
  const size_t length = walk_length(layout), part = 1000 * layout->elem_size;
  unsigned char *expected = walk(layout, contents);
  unsigned char *after = fixture_malloc(size), *got = fixture_malloc(size);
  cl_mem region = fixture_buffer(CL_MEM_READ_WRITE, contents, size);
  cl_mem back = fixture_buffer(CL_MEM_READ_WRITE, NULL, size);
  cl_mem packed = fixture_buffer(CL_MEM_READ_WRITE, NULL, part + 16);
  const char *call;
  clb__form form;

  memset(after, 0xa5, size);
  fixture_store(back, after, size);
  walk_back(layout, after, expected);
  clb__form_make(&form, layout->ndim, layout->shape, layout->strides,
                 layout->elem_size, layout->offset);
  for (size_t at = 0; at < length; at += part) {
    size_t bytes = length - at < part ? length - at : part;
    clb__pack pack;

    clb__pack_make(&form, at, bytes, &pack);
    pack.wide = wide;
    ck_cl(clb__kernels_enqueue(context, context->queue, CLB__GET, &pack,
                               region, packed, 0, NULL, &call));
    ck_cl(clEnqueueReadBuffer(context->queue, packed, CL_TRUE, 0, bytes, got, 0,
                              NULL, NULL));
    ck_bytes(got, expected + at, bytes);
    ck_cl(clb__kernels_enqueue(context, context->queue, CLB__PUT, &pack, back,
                               packed, 0, NULL, &call));
    ck_cl(clFinish(context->queue));
  }
  fixture_fetch(back, got, size);
  ck_bytes(got, after, size);
  ck_cl(clReleaseMemObject(region));
  ck_cl(clReleaseMemObject(back));
  ck_cl(clReleaseMemObject(packed));
  free(expected);
  free(after);
  free(got);
}

/* [_i]: narrow, wide */
START_TEST(each_unit_has_a_kernel)
{
  static const size_t elems[] = {1, 2, 4, 8, 16};
  clb_context *context = make_context(CLB_PLAN_PACK, 0);
  clb__direction both[2] = {CLB__GET, CLB__PUT};

  for (int i = 0; i < 2 && fixture_compiles(); i++)
    ck_ok(clb__kernels_build(context, both[i], _i == 1));
  for (size_t i = 0; i < 5 && fixture_compiles(); i++) {
    const size_t e = elems[i], size = 60 * 50 * e;
    const size_t shape[2] = {50, 59};
    const ptrdiff_t across[2] = {(ptrdiff_t)e, 50 * (ptrdiff_t)e};
    const ptrdiff_t down[2] = {-(ptrdiff_t)(60 * e), (ptrdiff_t)e};
    const clb_layout transposed = {2, shape, across, e, 0};
    const clb_layout upwards = {2, shape, down, e, 49 * 60 * e};
    unsigned char *contents = fixture_bytes(size, e);

    run_kernels(context, &transposed, _i == 1, contents, size);
    run_kernels(context, &upwards, _i == 1, contents, size);
    free(contents);
  }
  clb_context_release(context);
}
END_TEST

/* --- Measuring ----------------------------------------------------------- */

/* Small blocks say nothing of a link, and others something that can be. */
START_TEST(what_is_measured_can_be)
{
  static const size_t chunks[] = {4096, 4097, 5000, 65536, 100001, 4 << 20};
  static const clb__facts guess = {.command_us = 5, .link_gbs = 50,
                                   .row_ns = 1};

  for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
    clb_context *context = make_context(0, chunks[i]);

    for (int j = 0; j < 20; j++) {
      clb__facts facts = guess;

      clb__measure(context, &facts);
      ck_assert_msg(facts.link_gbs > 0 && facts.link_gbs <= 1000,
                    "chunks of %zu: %g GB/s", chunks[i], facts.link_gbs);
      ck_assert(facts.command_us > 0 && facts.row_ns > 0);
      if (chunks[i] < 8192)
        ck_assert(memcmp(&facts, &guess, sizeof facts) == 0);
    }
    clb_context_release(context);
  }
}
END_TEST

START_TEST(a_measurement_that_fails_leaves_figures_and_message)
{
  static const clb__facts guess = {.command_us = 5, .link_gbs = 50,
                                   .row_ns = 1};
  uint64_t nth = 1;
  int rule;

  do {
    clb_context *context = make_context(0, 0);
    clb__facts facts = guess;

    rule = fault_arm(NULL, nth++, 0, FAULT_CALL_FAILS, CL_OUT_OF_RESOURCES);
    clb__measure(context, &facts);
    ck_assert(facts.link_gbs > 0 && facts.command_us > 0);
    ck_assert_str_eq(clb_error_message(), "");
    nth = fault->struck(rule) > 0 ? nth : 0;
    fault->disarm();
    clb_context_release(context);
  } while (nth > 0);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("kernels");
  TCase *all = tcase_create("all");

  tcase_set_timeout(all, 120);
  tcase_add_checked_fixture(all, fault_setup, fault_teardown);
  suite_add_tcase(suite, all);
  tcase_add_loop_test(all, without_kernels_pack_alone_is_unsupported, 0, 5);
  tcase_add_test(all, where_no_other_plan_does_the_compiler_is_the_cause);
  tcase_add_test(all, a_device_without_a_compiler_says_so);
  tcase_add_test(all, a_compiler_that_fails_leaves_the_other_plans);
  tcase_add_test(all, a_second_queue_that_is_refused_is_told);
  tcase_add_test(all, a_context_is_released_with_what_it_builds_aside);
  tcase_add_test(all, what_is_built_aside_is_there_in_the_end);
  tcase_add_loop_test(all, each_unit_has_a_kernel, 0, 2);
  tcase_add_test(all, what_is_measured_can_be);
  tcase_add_test(all, a_measurement_that_fails_leaves_figures_and_message);
  return fault_main(suite);
}

/*
 * Every OpenCL call of a save and of a load fails in turn, and every command's
 * event: a typed error or none at all, the old file or the new one, nothing
 * leaked, and the next try goes well.
 */
#include "config.h"

#include <clbytes/safetensors.h>

#include "fault_fixture.h"
#include "files.h"

enum { SIZE = 70000, TENSORS = 4, MOST_CALLS = 3000 };

/* Tensors of one buffer: packed, padded, transposed, one small. */
static const struct {
  size_t shape[2];
  ptrdiff_t strides[2];
  size_t offset;
} PLACES[TENSORS] = {
    {{1, 9000}, {0, 4}, 0},
    {{50, 30}, {160, 4}, 36000},
    {{60, 40}, {4, 240}, 44000},
    {{1, 3}, {0, 4}, 60000},
};
static const char *const names[TENSORS] = {"a", "b", "c", "d"};

static unsigned char *contents;
static cl_mem buffer;

static clb_layout layout_of(size_t i)
{
  return (clb_layout){2, PLACES[i].shape, PLACES[i].strides, 4,
                      PLACES[i].offset};
}

/* Blocks so small that there are several. */
static clb_context *make_context(unsigned plans)
{
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_context *context;

  options.plans = plans;
  options.chunk_size = 16384;
  ck_ok(clb_context_create(fx.queue, &options, &context));
  return context;
}

static void setup(void)
{
  fault_setup();
  contents = fixture_bytes(SIZE, 4);
  buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);
}

static void teardown(void)
{
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
  fault_teardown();
}

static void ck_tensors(const clb_safetensors *file)
{
  for (size_t i = 0; i < TENSORS; i++) {
    clb_layout layout = layout_of(i);
    size_t length = walk_length(&layout);
    unsigned char *expected = walk(&layout, contents);
    clb_tensor found;

    ck_ok(clb_safetensors_find(file, names[i], &found));
    expect_copy_into(found.bytes, expected, length);
    free(expected);
  }
}

static void ck_file_tensors(const char *path)
{
  clb_safetensors *file;

  ck_ok(clb_safetensors_open(path, &file));
  ck_tensors(file);
  clb_safetensors_close(file);
}

static clb_status save(clb_context *context)
{
  clb_tensor tensors[TENSORS] = {{0}};
  clb_status status = CLB_OK;

  for (size_t i = 0; i < TENSORS && status == CLB_OK; i++) {
    clb_layout layout = layout_of(i);
    tensors[i].name = names[i];
    tensors[i].dtype = "F32";
    status = clb_bytes_from_buffer(context, buffer, &layout, &tensors[i].bytes);
  }
  if (status == CLB_OK)
    status = clb_safetensors_save("out", tensors, TENSORS, NULL);
  for (size_t i = 0; i < TENSORS; i++)
    clb_bytes_release(tensors[i].bytes);
  return status;
}

static int place(clb_placement *placement, void *user)
{
  clb_layout *layout = user;

  for (size_t i = 0; i < TENSORS; i++)
    if (strcmp(placement->tensor->name, names[i]) == 0 && i != 0) {
      *layout = layout_of(i);
      placement->buffer = buffer;
      placement->layout = layout;
    }
  return 0;
}

static clb_status load(clb_context *context)
{
  clb_layout layout;
  clb_safetensors *file;
  clb_status status =
    clb_safetensors_load("in", context, place, &layout, NULL, &file);

  if (status == CLB_OK) {
    fault->disarm();
    ck_tensors(file);
    clb_safetensors_close(file);
  } else {
    ck_assert_ptr_null(file);
  }
  return status;
}

/* A try with a rule, and one without; 0: the rule has not struck. */
static int try_rule(clb_status (*act)(clb_context *), unsigned plans,
                    const fault_rule *rule)
{
  struct fault_held before = fault_count();
  clb_context *context = make_context(plans);
  clb_status status;
  char call[64], what[128];

  file_write("out", "old", 3);
  fixture_store(buffer, contents, SIZE);
  ck_assert_int_ge(fault->arm(rule), 0);
  status = act(context);
  snprintf(call, sizeof call, "%s", fault->last_struck());
  fault->disarm();
  snprintf(what, sizeof what, "plans %#x, call %llu, %s", plans,
           (unsigned long long)rule->nth, call);
  if (status != CLB_OK) {
    ck_assert_msg(call[0] != '\0', "%s: %s with no fault", what,
                  clb_error_message());
    ck_assert_msg(status == CLB_DEVICE_ERROR || status == CLB_OUT_OF_MEMORY,
                  "%s: %s", what, clb_status_name(status));
    if (act == save)
      ck_file("out", "old", 3);
    fixture_store(buffer, contents, SIZE);
    status = act(context);
    ck_assert_msg(status == CLB_OK, "%s: tried again: %s", what,
                  clb_error_message());
  }
  if (act == save)
    ck_file_tensors("out");
  ck_assert_uint_eq(files_in("."), 2);
  clb_context_release(context);
  ck_fault_held(&before, what);
  fault->reset();
  return call[0] != '\0';
}

static void sweep(clb_status (*act)(clb_context *), fault_rule rule)
{
  static const unsigned plans[] = {
      0, CLB_PLAN_READ | CLB_PLAN_RECT | CLB_PLAN_GATHER,
      CLB_PLAN_READ | CLB_PLAN_PACK | CLB_PLAN_GATHER};
  clb_context *context = make_context(0);

  ck_ok(save(context));
  ck_assert_int_eq(rename("out", "in"), 0);
  clb_context_release(context);
  for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
    for (rule.nth = 1; try_rule(act, plans[i], &rule); rule.nth++)
      ck_assert_uint_lt(rule.nth, MOST_CALLS);
    ck_assert_msg(rule.nth > 5, "plans %#x: %u calls", plans[i],
                  (unsigned)rule.nth - 1);
  }
}

static const fault_rule calls = {NULL, 1, 0, FAULT_CALL_FAILS,
                                 CL_OUT_OF_RESOURCES, 0, 0};
static const fault_rule all_calls = {NULL, 1, 1, FAULT_CALL_FAILS,
                                     CL_OUT_OF_RESOURCES, 0, 0};
static const fault_rule events = {NULL, 1, 0, FAULT_EVENT_FAILS,
                                  CL_OUT_OF_RESOURCES, 1, 0};

START_TEST(each_call_of_a_save_fails)
{
  sweep(save, calls);
}
END_TEST

START_TEST(all_calls_of_a_save_fail_from_one_on)
{
  sweep(save, all_calls);
}
END_TEST

START_TEST(each_event_of_a_save_fails)
{
  sweep(save, events);
}
END_TEST

START_TEST(each_call_of_a_load_fails)
{
  sweep(load, calls);
}
END_TEST

START_TEST(all_calls_of_a_load_fail_from_one_on)
{
  sweep(load, all_calls);
}
END_TEST

START_TEST(each_event_of_a_load_fails)
{
  sweep(load, events);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("saves and loads whose calls fail");
  TCase *all = files_case(suite, "all", 120);

  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, each_call_of_a_save_fails);
  tcase_add_test(all, all_calls_of_a_save_fail_from_one_on);
  tcase_add_test(all, each_event_of_a_save_fails);
  tcase_add_test(all, each_call_of_a_load_fails);
  tcase_add_test(all, all_calls_of_a_load_fail_from_one_on);
  tcase_add_test(all, each_event_of_a_load_fails);
  return fault_main_by(suite, files_main);
}

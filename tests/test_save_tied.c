/*
 * Handles over the same region: the file has the bytes of each, and they cross
 * the link about once.  And what a plan says of it is what the save does.
 */
#include "config.h"

#include "compose.h"

#include <sys/stat.h>

enum { SIZE = 600000, SPARE = 8192 };

START_TEST(tensors_of_one_region_are_read_once)
{
  unsigned char *contents = fixture_bytes(SIZE, 1);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);

  for (size_t count = 2; count <= 3; count++)
    for (int io = CLB_FILE_AUTO; io <= CLB_FILE_MAPPED; io++) {
      size_t length = 500001;
      clb_layout layout = {1, &length, NULL, 1, 77};
      struct parts parts = {0};
      clb_save_plan all;
      clb_tensor_plan plans[3];
      clb_tensor *tensors;
      uint64_t before;

      for (size_t i = 0; i < count; i++)
        parts_add_device(&parts, i == 0 ? "b" : i == 1 ? "a" : "c", "U8",
                         buffer, contents, &layout);
      tensors = parts_tensors(&parts);
      ck_ok(clb_safetensors_plan(NULL, tensors, count, NULL, plans, &all));
      for (size_t i = 0; i < count; i++) {
        ck_assert_uint_eq(plans[i].offset,
                          parts_offset(&parts, plans[i].index));
        ck_assert_uint_eq(plans[i].bytes, length);
        if (i > 0)
          ck_assert_uint_lt(plans[i].read, SPARE);
      }
      before = fixture_stats().bytes_read;
      parts_save(&parts, ".", (clb_file_io)io, 0);
      before = fixture_stats().bytes_read - before;
      ck_assert_uint_ge(before, length);
      ck_assert_uint_le(before, length + (count - 1) * SPARE);
      ck_assert_uint_eq(before, all.read_bytes);
      ck_assert_uint_ge(all.peak_memory, fixture_stats().staging_peak);
      free(tensors);
      parts_free(&parts);
    }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

START_TEST(tensors_whose_regions_overlap_are_whole)
{
  unsigned char *contents = fixture_bytes(SIZE, 2);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, SIZE);

  for (int turned = 0; turned < 2; turned++) {
    size_t lengths[3] = {300000, 200000, 300000};
    size_t offsets[3] = {0, 0, 100001};
    struct parts parts = {0};

    for (int i = 0; i < 3; i++) {
      int at = turned ? 2 - i : i;
      clb_layout layout = {1, &lengths[at], NULL, 1, offsets[at]};
      parts_add_device(&parts, i == 0 ? "a" : i == 1 ? "b" : "c", "U8",
                       buffer, contents, &layout);
    }
    parts_save_all(&parts);
    parts_free(&parts);
  }
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("tied tensors");
  TCase *all = files_case_device(suite, "all", 30);

  tcase_add_test(all, tensors_of_one_region_are_read_once);
  tcase_add_test(all, tensors_whose_regions_overlap_are_whole);
  return files_main(suite, FIXTURE_DEVICE);
}

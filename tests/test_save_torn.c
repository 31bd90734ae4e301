/*
 * With CLBYTES_DEBUG=torn a save that finds a tensor changed meanwhile fails
 * and names it.
 */
#include "config.h"

#include "compose.h"

static unsigned char other[300000];

static int write_meanwhile(uint64_t done, uint64_t total, void *user)
{
  (void)done;
  (void)total;
  fixture_store(user, other, sizeof other);
  return 0;
}

START_TEST(tensor_that_changes_while_it_is_saved_is_named)
{
  unsigned char *contents = fixture_bytes(sizeof other, 1);
  cl_mem buffer = fixture_buffer(CL_MEM_READ_WRITE, contents, sizeof other);
  clb_save_options options = CLB_SAVE_OPTIONS_INIT;
  clb_tensor tensor = {"changing", "U8", 0, NULL, NULL};

  ck_assert_int_eq(setenv("CLBYTES_DEBUG", "torn", 1), 0);
  fixture_options(NULL);
  tensor.bytes = fixture_handle(buffer, NULL);
  file_write("out", "old", 3);
  options.progress = write_meanwhile;
  options.user = buffer;
#ifdef HAVE_XXHASH
  ck_status(clb_safetensors_save("out", &tensor, 1, &options),
            CLB_DEVICE_ERROR);
  ck_message("changing");
#else
  ck_status(clb_safetensors_save("out", &tensor, 1, &options),
            CLB_UNSUPPORTED);
#endif
  ck_file("out", "old", 3);
  ck_assert_uint_eq(files_in("."), 1);
#ifdef HAVE_XXHASH
  ck_ok(clb_safetensors_save("out", &tensor, 1, NULL));
#endif
  clb_bytes_release(tensor.bytes);
  ck_cl(clReleaseMemObject(buffer));
  free(contents);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("torn tensors");
  TCase *all = files_case_device(suite, "all", 30);

  tcase_add_test(all, tensor_that_changes_while_it_is_saved_is_named);
  return files_main(suite, FIXTURE_DEVICE);
}

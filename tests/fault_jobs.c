/*
 * See fault_jobs.h.
 */
#include "config.h"

#include "fault_jobs.h"

#include <clbytes/safetensors.h>

#include <dirent.h>
#include <unistd.h>

static const size_t all_bytes[1] = {LENGTH};
static const size_t elements[1] = {LENGTH / 4};
static const ptrdiff_t backwards[1] = {-4};
static const size_t matrix[2] = {ROWS, ROW / 4};
static const ptrdiff_t padding[2] = {PITCH, 4};

static const size_t few[1] = {CHUNK / 2};
static const size_t some[1] = {CHUNK / 4};
static const ptrdiff_t every_other[1] = {8};

static const clb_layout small = {1, few, NULL, 1, OFFSET};
static const clb_layout contiguous = {1, all_bytes, NULL, 1, OFFSET};
static const clb_layout padded = {2, matrix, padding, 4, OFFSET};
static const clb_layout apart = {1, some, every_other, 4, OFFSET};
static const clb_layout reversed = {1, elements, backwards, 4,
                                    OFFSET + LENGTH - 4};

static cl_mem open_buffer, hidden_buffer, unread_buffer, unwritten_buffer;
static unsigned char *data;     /* what is in both */
static unsigned char *expected; /* the logical bytes of the scenario */
static size_t length;           /* of them */

#define SAVED "saved.safetensors"

static char directory[32]; /* of the program */
static char path[sizeof directory + sizeof "/" SAVED];

/* --- The accesses -------------------------------------------------------- */

/* What an output parameter has before a call. */
static char untouched;

static clb_status act_read_as(struct job *job, clb_access access) {
  const void *out = &untouched;
  clb_status status = clb_bytes_read(job->bytes, access, &out);

  if (status == CLB_OK)
    ck_bytes(out, expected, length);
  else
    ck_assert_ptr_eq(out, &untouched);
  return status;
}

static clb_status act_read(struct job *job) {
  return act_read_as(job, CLB_COPY);
}

/* Whether a device can be mapped is seen by trying: a failure may say no. */
static clb_status act_map(struct job *job) {
  clb_status status = act_read_as(job, CLB_MAP);

  return status == CLB_WOULD_COPY ? CLB_OK : status;
}

static clb_status act_stream(struct job *job) {
  struct gathered gathered = {0};
  clb_status status =
      clb_bytes_stream(job->bytes, 1, length - 1, gather_sink, &gathered);

  /* What came before a failure is right too. */
  ck_bytes(gathered.data, expected + 1, gathered.length);
  if (status == CLB_OK)
    ck_assert_uint_eq(gathered.length, length - 2);
  free(gathered.data);
  return status;
}

static clb_status act_copy_into(struct job *job) {
  unsigned char *got = fixture_malloc(length);
  clb_status status;

  memset(got, 0xa5, length);
  status = clb_bytes_copy_into(job->bytes, 3, got + 3, length - 5);
  if (status == CLB_OK)
    ck_bytes(got + 3, expected + 3, length - 5);
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(got[i], 0xa5);
  ck_assert_int_eq(got[length - 1], 0xa5);
  free(got);
  return status;
}

/* Commands write this memory themselves: it is the job's until its end. */
static clb_status act_copy_pinned(struct job *job) {
  void *out = &untouched;
  clb_status status = CLB_OK;

  if (job->pinned == NULL) {
    status = clb_host_alloc(job->context, length, &out);
    if (status == CLB_OK)
      job->pinned = out;
    else
      ck_assert_ptr_eq(out, &untouched);
  }
  if (status == CLB_OK)
    status = clb_bytes_copy_into(job->bytes, 0, job->pinned, length);
  if (status == CLB_OK)
    ck_bytes(job->pinned, expected, length);
  return status;
}

static clb_status act_snapshot(struct job *job) {
  if (!job->snapshot_taken) {
    clb_status status = clb_bytes_snapshot(job->bytes);

    if (status != CLB_OK)
      return status;
    job->snapshot_taken = 1;
  }
  return act_read(job);
}

static clb_status act_view(struct job *job) {
  clb_bytes *out = (clb_bytes *)(void *)&untouched;
  const void *bytes = &untouched;
  clb_status status = clb_bytes_view(job->bytes, 5, length - 7, &out);

  if (status != CLB_OK) {
    ck_assert_ptr_eq(out, &untouched);
    return status;
  }
  status = clb_bytes_read(out, CLB_COPY, &bytes);
  if (status == CLB_OK)
    ck_bytes(bytes, expected + 5, length - 12);
  else
    ck_assert_ptr_eq(bytes, &untouched);
  clb_bytes_release(out);
  return status;
}

static clb_status act_upload(struct job *job) {
  const clb_layout *layout = job->scenario->layout;
  clb_status status =
      clb_bytes_upload(job->bytes, job->context, job->buffer, layout);

  if (status == CLB_OK) {
    unsigned char *got = fixture_malloc(SIZE);
    unsigned char *after = fixture_malloc(SIZE);

    /* What follows is the test's own. */
    fault->disarm();
    fault->limit_allocation(0, CL_SUCCESS);
    memcpy(after, data, SIZE);
    walk_back(layout, after, expected);
    fixture_fetch(job->buffer, got, SIZE);
    ck_bytes(got, after, SIZE);
    free(got);
    free(after);
  }
  return status;
}

static void ck_saved(void) {
  unsigned char *got = fixture_malloc(length);
  FILE *file = fopen(path, "rb");

  ck_assert_ptr_nonnull(file);
  ck_assert_int_eq(fseek(file, -(long)length, SEEK_END), 0);
  ck_assert_uint_eq(fread(got, 1, length, file), length);
  fclose(file);
  ck_bytes(got, expected, length);
  free(got);
}

/* No file but the one saved. */
static void ck_directory(void) {
  DIR *listing = opendir(directory);
  struct dirent *entry;

  ck_assert_ptr_nonnull(listing);
  while ((entry = readdir(listing)) != NULL)
    ck_assert_msg(strcmp(entry->d_name, ".") == 0 ||
                      strcmp(entry->d_name, "..") == 0 ||
                      strcmp(entry->d_name, strrchr(path, '/') + 1) == 0,
                  "%s was left", entry->d_name);
  closedir(listing);
}

static clb_status act_save(struct job *job) {
  clb_tensor tensor = {"field", "U8", 1, all_bytes, job->bytes};
  clb_status status;

  unlink(path);
  status = clb_safetensors_save(path, &tensor, 1, NULL);
  ck_directory();
  if (status == CLB_OK)
    ck_saved();
  else
    ck_assert_int_ne(access(path, F_OK), 0);
  return status;
}

const struct scenario scenarios[] = {
    {"read", &contiguous, 0, act_read, 0},
    {"read, not mapped", &contiguous, NO_MAP, act_read, 0},
    {"padded read", &padded, 0, act_read, 0},
    {"padded read by rect", &padded, CLB_PLAN_RECT, act_read, 0},
    {"padded read by gather", &padded, CLB_PLAN_GATHER, act_read, 0},
    {"reversed read", &reversed, 0, act_read, 0},
    {"reversed read by gather", &reversed, NO_MAP, act_read, 0},
    {"map", &contiguous, 0, act_map, 0},
    {"stream", &contiguous, NO_MAP, act_stream, 0},
    {"padded stream", &padded, NO_MAP, act_stream, 0},
    {"stream through a mapping", &padded, 0, act_stream, 0},
    {"copy_into", &contiguous, NO_MAP, act_copy_into, 0},
    {"copy_into pinned memory", &contiguous, NO_MAP, act_copy_pinned, DIRECT},
    {"padded copy_into pinned memory", &padded, CLB_PLAN_RECT, act_copy_pinned,
     DIRECT},
    {"reversed copy_into", &reversed, NO_MAP, act_copy_into, 0},
    {"snapshot", &contiguous, NO_MAP, act_snapshot, 0},
    {"padded snapshot", &padded, 0, act_snapshot, 0},
    {"upload", &contiguous, NO_MAP, act_upload, UPLOADS},
    {"padded upload", &padded, NO_MAP, act_upload, UPLOADS},
    {"reversed upload", &reversed, NO_MAP, act_upload, UPLOADS},
    {"upload through a mapping", &padded, 0, act_upload, UPLOADS},
    {"read of one chunk", &small, NO_MAP, act_read, QUICK},
    {"read after an event", &contiguous, NO_MAP, act_read, LISTED},
    {"snapshot after an event", &padded, NO_MAP, act_snapshot, LISTED},
    {"padded view", &padded, NO_MAP, act_view, 0},
    {"read without host access", &contiguous, NO_MAP, act_read, HIDDEN},
    {"padded read without host access", &padded, 0, act_read, HIDDEN},
    {"upload without host access", &contiguous, NO_MAP, act_upload,
     UPLOADS | HIDDEN},
    {"padded upload without host access", &padded, 0, act_upload,
     UPLOADS | HIDDEN},
    {"read from an unordered queue", &padded, NO_MAP, act_read, UNORDERED},
    {"snapshot on an unordered queue", &padded, NO_MAP, act_snapshot,
     UNORDERED},
    {"packed read", &apart, CLB_PLAN_PACK, act_read, BUILT},
    {"packed stream beside the buffer", &apart, CLB_PLAN_PACK, act_stream,
     CLOSED | BUILT},
    {"packed upload beside the buffer", &apart, CLB_PLAN_PACK, act_upload,
     UPLOADS | CLOSED | BUILT},
    {"save", &padded, NO_MAP, act_save, 0}};

const int scenario_count = sizeof scenarios / sizeof scenarios[0];

/* --- A job --------------------------------------------------------------- */

static clb_status make_context(struct job *job) {
  clb_context_options options = CLB_CONTEXT_OPTIONS_INIT;
  clb_context *out = (clb_context *)(void *)&untouched;
  clb_status status;

  options.chunk_size = CHUNK;
  options.staging_limit = 4 * CHUNK;
  options.plans = job->scenario->plans;
  status = clb_context_create(job->queue, &options, &out);
  if (status == CLB_OK)
    job->context = out;
  else
    ck_assert_ptr_eq(out, &untouched);
  return status;
}

static clb_status make_handle(struct job *job) {
  const struct scenario *scenario = job->scenario;
  clb_bytes *out = (clb_bytes *)(void *)&untouched;
  clb_status status;

  if (scenario->traits & UPLOADS)
    status = clb_bytes_from_copy(expected, length, &out);
  else if (scenario->traits & LISTED)
    status = clb_bytes_from_buffer_after(job->context, job->buffer,
                                         scenario->layout, 2, job->events,
                                         &out);
  else
    status = clb_bytes_from_buffer(job->context, job->buffer,
                                   scenario->layout, &out);
  if (status == CLB_OK)
    job->bytes = out;
  else
    ck_assert_ptr_eq(out, &untouched);
  return status;
}

clb_status job_run(struct job *job) {
  clb_status status = CLB_OK;

  if (job->step == 0 && (status = make_context(job)) == CLB_OK)
    job->step++;
  if (job->step == 1 && (status = make_handle(job)) == CLB_OK)
    job->step++;
  if (job->step == 2 && (status = job->scenario->act(job)) == CLB_OK)
    job->step++;
  return status;
}

void job_release_handle(struct job *job) {
  clb_bytes_release(job->bytes);
  job->bytes = NULL;
  job->snapshot_taken = 0;
  if (job->step > 1)
    job->step = 1;
}

void job_settle(struct job *job) {
  clb_stats stats;

  job_release_handle(job);
  clb_context_trim(job->context);
  clb_context_stats(job->context, &stats, sizeof stats);
  ck_assert_uint_eq(stats.staging_bytes, 0);
  ck_assert_uint_eq(stats.host_bytes, 0);
}

void job_release(struct job *job) {
  job_release_handle(job);
  clb_host_free(job->context, job->pinned);
  job->pinned = NULL;
  clb_context_release(job->context);
  job->context = NULL;
  for (int i = 0; i < 2; i++)
    if (job->events[i] != NULL)
      clReleaseEvent(job->events[i]);
  if (job->queue != NULL)
    clReleaseCommandQueue(job->queue);
  job->events[0] = job->events[1] = NULL;
  job->queue = NULL;
}

/* --- The fixture --------------------------------------------------------- */

static void setup(void) {
  fault_setup();
  data = fixture_bytes(SIZE, 1);
  open_buffer = fixture_buffer(CL_MEM_READ_WRITE, data, SIZE);
  hidden_buffer =
      fixture_buffer(CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS, data, SIZE);
  unread_buffer = fixture_buffer(CL_MEM_WRITE_ONLY, data, SIZE);
  unwritten_buffer = fixture_buffer(CL_MEM_READ_ONLY, data, SIZE);
}

static void teardown(void) {
  unlink(path);
  ck_cl(clReleaseMemObject(open_buffer));
  ck_cl(clReleaseMemObject(hidden_buffer));
  ck_cl(clReleaseMemObject(unread_buffer));
  ck_cl(clReleaseMemObject(unwritten_buffer));
  fault_teardown();
  free(data);
  free(expected);
  expected = NULL;
}

static cl_mem buffer_of(unsigned traits) {
  if (traits & CLOSED)
    return traits & UPLOADS ? unwritten_buffer : unread_buffer;
  return traits & HIDDEN ? hidden_buffer : open_buffer;
}

void job_begin(struct job *job, const struct scenario *scenario) {
  memset(job, 0, sizeof *job);
  job->scenario = scenario;
  job->buffer = buffer_of(scenario->traits);
  fixture_store(job->buffer, data, SIZE); /* over what an upload left */
  if (scenario->traits & UNORDERED)
    job->queue = fixture_queue(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  if (job->queue == NULL) {
    job->queue = fx.queue;
    ck_cl(clRetainCommandQueue(job->queue));
  }
  for (int i = 0; i < 2 && scenario->traits & LISTED; i++) {
    ck_cl(clEnqueueMarkerWithWaitList(job->queue, 0, NULL, &job->events[i]));
    /* Commands of one flush end together on some drivers.  How the first one
     * ends may be a test's doing. */
    if (i == 0)
      clWaitForEvents(1, &job->events[i]);
  }
  free(expected);
  length = walk_length(scenario->layout);
  expected = scenario->traits & UPLOADS ? fixture_bytes(length, 2)
                                        : walk(scenario->layout, data);
  if (scenario->traits & BUILT) {
    ck_ok(job_run(job));
    job_release_handle(job);
    fixture_store(job->buffer, data, SIZE);
  }
}

int jobs_main(Suite *suite) {
  char scratch[sizeof path + sizeof "..clbytes-tmp"];
  int result;

  snprintf(directory, sizeof directory, "/tmp/clbytes-faults-XXXXXX");
  if (mkdtemp(directory) == NULL) {
    perror(directory);
    return 99;
  }
  snprintf(path, sizeof path, "%s/" SAVED, directory);
  snprintf(scratch, sizeof scratch, "%s/." SAVED ".clbytes-tmp", directory);
  result = fault_main(suite);
  /* A test that failed has no teardown. */
  unlink(path);
  unlink(scratch);
  if (rmdir(directory) != 0)
    perror(directory);
  return result;
}

TCase *jobs_case(Suite *suite, const char *name, double seconds) {
  TCase *tcase = tcase_create(name);

  tcase_set_timeout(tcase, seconds);
  tcase_add_checked_fixture(tcase, setup, teardown);
  suite_add_tcase(suite, tcase);
  return tcase;
}

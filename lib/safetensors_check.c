/*
 * safetensors_check.c - see safetensors_check.h.
 *
 * A hash is of a piece, what one span has of one parcel, so it can be compared
 * with the file and with the tensor alike.
 */
#include "config.h"

#include "safetensors_check.h"

#include "bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef HAVE_POSIX_FADVISE
#include <fcntl.h>
#endif

bool clb__check_torn_wanted(const clb__run *run) {
  size_t i;

  for (i = 0; i < run->count; i++) {
    const clb_bytes *bytes = run->spans[i].bytes;
    if (bytes != NULL && clb__bytes_on_device(bytes) &&
        bytes->source.u.device.context->torn)
      return true;
  }
  return false;
}

#ifndef HAVE_XXHASH

clb_status clb__check_make(const clb__run *run, clb__check **out) {
  (void)run;
  (void)out;
  return clb__fail(CLB_UNSUPPORTED,
                   "CLBYTES_DEBUG=torn needs xxHash, which this library was "
                   "built without");
}

void clb__check_free(clb__check *check) {
  (void)check;
}

void clb__check_add(clb__check *check, const clb__parcel *parcel) {
  (void)check;
  (void)parcel;
}

clb_status clb__check_file(clb__check *check, const clb__savefile *file) {
  (void)check;
  (void)file;
  return CLB_UNSUPPORTED;
}

clb_status clb__check_torn(clb__check *check, const clb__savefile *file) {
  (void)check;
  (void)file;
  return CLB_UNSUPPORTED;
}

#else

#include <xxhash.h>

#define BLOCK ((size_t)4 << 20) /* of a file that is read again */
#define SAMPLES 256             /* pieces that are read again from a device */

struct clb__check {
  const clb__run *run;
  pthread_mutex_t lock;
  clb__hash *hashes;
  size_t count, room;
  bool lost; /* there was no memory for one */
};

/* --- Making hashes ---------------------------------------------------------- */

clb_status clb__check_make(const clb__run *run, clb__check **out) {
  clb__check *check = calloc(1, sizeof *check);

  if (check == NULL)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for hashes");
  check->run = run;
  pthread_mutex_init(&check->lock, NULL);
  *out = check;
  return CLB_OK;
}

void clb__check_free(clb__check *check) {
  if (check == NULL)
    return;
  pthread_mutex_destroy(&check->lock);
  free(check->hashes);
  free(check);
}

static void add(clb__check *check, const clb__hash *hash) {
  pthread_mutex_lock(&check->lock);
  if (check->count == check->room) {
    size_t room = check->room == 0 ? 256 : 2 * check->room;
    clb__hash *more = realloc(check->hashes, room * sizeof *more);
    if (more != NULL) {
      check->hashes = more;
      check->room = room;
    }
  }
  if (check->count < check->room)
    check->hashes[check->count++] = *hash;
  else
    check->lost = true;
  pthread_mutex_unlock(&check->lock);
}

/* The part of another tensor that a piece is, too. */
static int add_tied(void *user, const clb__tie *tie, const unsigned char *data,
                    size_t length, uint64_t at) {
  add(user, &(clb__hash){.at = at,
                         .value = XXH3_64bits(data, length),
                         .name = tie->name,
                         .span = CLB__NO_SPAN,
                         .length = length});
  return 0;
}

void clb__check_add(clb__check *check, const clb__parcel *parcel) {
  const clb__run *run = check->run;
  size_t at = 0, i;

  for (i = parcel->span; at < parcel->length; i++) {
    const clb__span *span = &run->spans[i];
    size_t skipped = (size_t)(parcel->at + at - span->at);
    size_t left = span->end - span->start - skipped;
    size_t length = parcel->length - at < left ? parcel->length - at : left;
    add(check, &(clb__hash){.at = parcel->at + at,
                            .value = XXH3_64bits(parcel->data + at, length),
                            .name = span->name,
                            .span = i,
                            .length = length});
    at += length;
  }
  (void)clb__run_tied(run, parcel, add_tied, check);
}

static int compare_hashes(const void *a, const void *b) {
  const clb__hash *x = a, *y = b;
  return (x->at > y->at) - (x->at < y->at);
}

static clb_status sort(clb__check *check) {
  if (check->lost)
    return clb__fail(CLB_OUT_OF_MEMORY, "no memory for hashes");
  qsort(check->hashes, check->count, sizeof *check->hashes, compare_hashes);
  return CLB_OK;
}

/* --- The file --------------------------------------------------------------- */

/* A file that is read from its start, in blocks. */
typedef struct reader {
  const clb__savefile *file;
  int direct; /* descriptor, or -1 */
  unsigned char *block;
  uint64_t at;        /* of the block's first byte */
  size_t used, length; /* of the block */
} reader;

static int read_block(reader *r, int fd) {
  r->length = 0;
  while (r->length < BLOCK) {
    ssize_t n = pread(fd, r->block + r->length, BLOCK - r->length,
                      (off_t)(r->at + r->length));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return errno;
    r->length += (size_t)n;
    /* At the end of the file no whole page comes. */
    if (n == 0 || (fd == r->direct && r->length % CLB__PAGE != 0))
      break;
  }
  return 0;
}

/* The next block; 0, or errno. */
static int next_block(reader *r) {
  int err = EINVAL;

  r->at += r->length;
  r->used = 0;
  if (r->direct >= 0)
    err = read_block(r, r->direct);
  if (err == EINVAL) { /* no direct read, here or at all */
#ifdef HAVE_POSIX_FADVISE
    (void)posix_fadvise(r->file->fd, (off_t)r->at, (off_t)BLOCK,
                        POSIX_FADV_DONTNEED);
#endif
    err = read_block(r, r->file->fd);
  }
  return err;
}

static clb_status differs(const clb__hash *hash, const char *how) {
  if (hash->name == NULL)
    return clb__fail(CLB_IO_ERROR, "the header %s", how);
  return clb__fail(CLB_IO_ERROR,
                   "tensor \"%.100s\": %zu bytes at byte %" PRIu64
                   " of the file %s",
                   hash->name, hash->length, hash->at, how);
}

/* Reads what one hash is of; r is where it begins. */
static clb_status check_piece(const clb__hash *hash, reader *r,
                              XXH3_state_t *state) {
  size_t left = hash->length;

  (void)XXH3_64bits_reset(state);
  while (left > 0) {
    size_t there = r->length - r->used, take = there < left ? there : left;
    int err = take == 0 ? next_block(r) : 0;
    if (err != 0)
      return clb__fail_errno(CLB_IO_ERROR, err, "read of byte %" PRIu64, r->at);
    if (take == 0 && r->length == 0)
      return differs(hash, "are not there");
    (void)XXH3_64bits_update(state, r->block + r->used, take);
    r->used += take;
    left -= take;
  }
  return XXH3_64bits_digest(state) == hash->value
             ? CLB_OK
             : differs(hash, "read back differ from what was written");
}

static clb_status check_pieces(const clb__check *check, reader *r) {
  XXH3_state_t *state = XXH3_createState();
  clb_status status = state != NULL
                          ? CLB_OK
                          : clb__fail(CLB_OUT_OF_MEMORY, "no memory for a hash");
  size_t i;

  for (i = 0; i < check->count && status == CLB_OK; i++)
    status = check_piece(&check->hashes[i], r, state);
  (void)XXH3_freeState(state);
  return status;
}

clb_status clb__check_file(clb__check *check, const clb__savefile *file) {
  reader r = {.file = file, .direct = -1};
  clb_status status = sort(check);
  void *block = NULL;

  if (status == CLB_OK && posix_memalign(&block, CLB__PAGE, BLOCK) != 0)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu bytes", BLOCK);
  r.block = block;
  if (status == CLB_OK) {
    /* Only what is on the disk can be read from there. */
    if (fsync(file->fd) != 0)
      status = clb__fail_errno(CLB_IO_ERROR, errno, "cannot write");
    else if (clb__savefile_reopen_direct(file, &r.direct) != 0)
      r.direct = -1;
  }
  if (status == CLB_OK)
    status = check_pieces(check, &r);
  if (r.direct >= 0)
    (void)close(r.direct);
  free(block);
  return clb__fail_prefix(status, "%s", file->given);
}

/* --- The tensors ------------------------------------------------------------ */

static clb_status read_again(const clb__check *check, const clb__hash *hash,
                             unsigned char *data) {
  const clb__span *span = &check->run->spans[hash->span];
  size_t start = span->start + (size_t)(hash->at - span->at);
  clb_status status =
      clb_bytes_copy_into(span->bytes, start, data, hash->length);

  if (status == CLB_OK && XXH3_64bits(data, hash->length) != hash->value)
    status = clb__fail(CLB_DEVICE_ERROR,
                       "bytes [%zu, %zu) changed while it was saved", start,
                       start + hash->length);
  return clb__fail_prefix(status, "tensor \"%.100s\"", span->name);
}

/* What is another tensor's, too, is not where its span is. */
static bool is_own(const clb__check *check, const clb__hash *hash) {
  const clb_bytes *bytes = hash->span == CLB__NO_SPAN
                               ? NULL
                               : check->run->spans[hash->span].bytes;

  return bytes != NULL && clb__bytes_on_device(bytes) &&
         bytes->source.u.device.context->torn;
}

clb_status clb__check_torn(clb__check *check, const clb__savefile *file) {
  size_t step = check->count / SAMPLES + 1, longest = 0, i;
  clb_status status = sort(check);
  unsigned char *data = NULL;

  for (i = 0; i < check->count; i++)
    if (check->hashes[i].length > longest)
      longest = check->hashes[i].length;
  if (status == CLB_OK && longest > 0 && (data = malloc(longest)) == NULL)
    status = clb__fail(CLB_OUT_OF_MEMORY, "no memory for %zu bytes", longest);
  for (i = 0; i < check->count && status == CLB_OK; i += step)
    if (is_own(check, &check->hashes[i]))
      status = read_again(check, &check->hashes[i], data);
  free(data);
  return clb__fail_prefix(status, "%s", file->given);
}

#endif

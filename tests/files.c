/*
 * See files.h.  Like the fixture it knows the public headers alone.
 */
#include "config.h"

#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- Directories --------------------------------------------------------- */

static char base[PATH_MAX / 2]; /* of this program; every test's is inside */
static char here[PATH_MAX];

static void enter_folder(void)
{
  snprintf(here, sizeof here, "%s/XXXXXX", base);
  ck_assert_msg(mkdtemp(here) != NULL, "%s: %s", here, strerror(errno));
  ck_assert_int_eq(chmod(here, 0755), 0);
  ck_assert_int_eq(chdir(here), 0);
}

static void leave_folder(void)
{
  ck_assert_int_eq(chdir("/"), 0);
}

const char *files_here(void)
{
  return here;
}

TCase *files_case(Suite *suite, const char *name, double seconds)
{
  TCase *tcase = tcase_create(name);

  tcase_set_timeout(tcase, seconds);
  tcase_add_checked_fixture(tcase, enter_folder, leave_folder);
  suite_add_tcase(suite, tcase);
  return tcase;
}

TCase *files_case_device(Suite *suite, const char *name, double seconds)
{
  TCase *tcase = fixture_case(suite, name, seconds);

  tcase_add_checked_fixture(tcase, enter_folder, leave_folder);
  return tcase;
}

static int remove_entry(const char *path, const struct stat *status, int kind,
                        struct FTW *where)
{
  (void)status;
  (void)kind;
  (void)where;
  return remove(path);
}

int files_main(Suite *suite, int needs)
{
  const char *folder = getenv("CLBYTES_TEST_TMPDIR");
  int result;

  if (folder == NULL)
    folder = getenv("TMPDIR");
  if (snprintf(base, sizeof base, "%s/clbytes-test-XXXXXX",
               folder != NULL ? folder : "/tmp") >= (int)sizeof base ||
      mkdtemp(base) == NULL || chmod(base, 0755) != 0) {
    perror(base);
    return 99;
  }
  result = fixture_main(suite, needs);
  if (nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
    perror(base);
  return result;
}

size_t files_in(const char *folder)
{
  DIR *entries = opendir(folder);
  size_t count = 0;

  ck_assert_msg(entries != NULL, "%s: %s", folder, strerror(errno));
  while (readdir(entries) != NULL)
    count++;
  closedir(entries);
  return count - 2;
}

/* --- Whole files --------------------------------------------------------- */

void text_bytes(struct text *text, const void *data, size_t length)
{
  if (text->data == NULL || length > text->room - text->length) {
    text->room = 2 * (text->length + length) + 64;
    text->data = realloc(text->data, text->room);
    ck_assert_ptr_nonnull(text->data);
  }
  if (length > 0)
    memcpy(text->data + text->length, data, length);
  text->length += length;
}

void text_add(struct text *text, const char *string)
{
  text_bytes(text, string, strlen(string));
}

void text_format(struct text *text, const char *format, ...)
{
  char line[1024];
  va_list arguments;
  int length;

  va_start(arguments, format);
  length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  ck_assert_msg(length >= 0 && (size_t)length < sizeof line, "too long");
  text_bytes(text, line, (size_t)length);
}

void text_repeat(struct text *text, const char *string, size_t times)
{
  while (times-- > 0)
    text_add(text, string);
}

void file_write(const char *path, const void *data, size_t length)
{
  FILE *file;

  /* A file that is truncated is flushed to the disk by some systems. */
  unlink(path);
  file = fopen(path, "wb");
  ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
  ck_assert_uint_eq(fwrite(data, 1, length, file), length);
  ck_assert_int_eq(fclose(file), 0);
}

struct text file_read(const char *path)
{
  struct text text = {0};
  FILE *file = fopen(path, "rb");
  char piece[65536];
  size_t got;

  ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
  while ((got = fread(piece, 1, sizeof piece, file)) > 0)
    text_bytes(&text, piece, got);
  ck_assert_int_eq(ferror(file), 0);
  fclose(file);
  text_bytes(&text, "", 0);
  return text;
}

mode_t file_mode(const char *path)
{
  struct stat status;

  ck_assert_msg(stat(path, &status) == 0, "%s: %s", path, strerror(errno));
  return status.st_mode & 07777;
}

/* --- safetensors files --------------------------------------------------- */

struct text st_raw(const void *header, size_t header_length, const void *data,
                   size_t length)
{
  struct text text = {0};
  unsigned char size[8];

  for (int i = 0; i < 8; i++)
    size[i] = (unsigned char)((uint64_t)header_length >> 8 * i);
  text_bytes(&text, size, sizeof size);
  text_bytes(&text, header, header_length);
  text_bytes(&text, data, length);
  return text;
}

struct text st_file(const char *header, const void *data, size_t length)
{
  struct text padded = {0}, text;

  text_add(&padded, header);
  while (padded.length % 8 != 0)
    text_add(&padded, " ");
  text = st_raw(padded.data, padded.length, data, length);
  free(padded.data);
  return text;
}

void st_write(const char *path, const char *header, const void *data,
              size_t length)
{
  struct text text = st_raw(header, strlen(header), data, length);

  file_write(path, text.data, text.length);
  free(text.data);
}

/* --- Processes ----------------------------------------------------------- */

void child_ended_well(pid_t child)
{
  int status = 0;

  ck_assert_int_gt(child, 0);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "child ended with status 0x%x", (unsigned)status);
}

void become_nobody(void)
{
  if (geteuid() == 0) {
    ck_assert_int_eq(setgid(65534), 0);
    ck_assert_int_eq(setuid(65534), 0);
  }
}

int forget_peak(void)
{
  int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  int done = file >= 0 && write(file, "5", 1) == 1;

  if (file >= 0)
    close(file);
  return done;
}

/*
 * What the tests of files share: a fresh working directory for every test,
 * whole files written and read, and safetensors files put together from a
 * header and data as bytes, so that nothing of the library says what is right.
 */
#ifndef CLBYTES_TESTS_FILES_H
#define CLBYTES_TESTS_FILES_H

#include "fixture.h"

#include <sys/types.h>

/* --- Directories --------------------------------------------------------- */

/* A case whose every test starts in an empty directory of its own; it needs
 * no device. */
TCase *files_case(Suite *suite, const char *name, double seconds);
/* The same for fixture_case(). */
TCase *files_case_device(Suite *suite, const char *name, double seconds);
/* fixture_main() with what those cases need around it; the directories are in
 * that of CLBYTES_TEST_TMPDIR, else TMPDIR, else /tmp. */
int files_main(Suite *suite, int needs);

/* The current directory, where a test is at home. */
const char *files_here(void);
/* Number of entries in a directory, "." and ".." aside. */
size_t files_in(const char *folder);

/* --- Whole files --------------------------------------------------------- */

/* Bytes that grow; start from {0}, free(data). */
struct text {
  unsigned char *data;
  size_t length, room;
};
void text_bytes(struct text *text, const void *data, size_t length);
void text_add(struct text *text, const char *string);
void text_format(struct text *text, const char *format, ...)
  __attribute__((format(printf, 2, 3)));
void text_repeat(struct text *text, const char *string, size_t times);

/* A new file, also where there is one. */
void file_write(const char *path, const void *data, size_t length);
struct text file_read(const char *path);
mode_t file_mode(const char *path);

/* The file has exactly these bytes. */
#define ck_file(path, expected, expected_length)                               \
  do {                                                                         \
    struct text ck_text_ = file_read(path);                                    \
    ck_assert_msg(ck_text_.length == (expected_length),                        \
                  "%s has %zu bytes, not %zu", (path), ck_text_.length,        \
                  (size_t)(expected_length));                                  \
    ck_bytes(ck_text_.data, (expected), (expected_length));                    \
    free(ck_text_.data);                                                       \
  } while (0)

/* --- safetensors files --------------------------------------------------- */

/* An eight-byte length, the header as it is, the data. */
struct text st_raw(const void *header, size_t header_length, const void *data,
                   size_t length);
/* The same, the header padded with spaces to a multiple of eight: what a
 * writer of the format makes. */
struct text st_file(const char *header, const void *data, size_t length);
/* Writes an st_raw() file. */
void st_write(const char *path, const char *header, const void *data,
              size_t length);

/* One tensor's entry; every argument is JSON text. */
#define ST_ENTRY(dtype, shape, offsets)                                        \
  "{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}"

/* --- Processes ----------------------------------------------------------- */

/* Waits for a child and checks that it ended with 0. */
void child_ended_well(pid_t child);
/* Root becomes nobody, for what the system refuses to users alone. */
void become_nobody(void);

/* Forgets the peak of fixture_hwm(); 0 if the system cannot. */
int forget_peak(void);

#endif

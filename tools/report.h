/* What the command says when something fails, and sizes in words. */
#ifndef TOOL_REPORT_H
#define TOOL_REPORT_H

#include <clbytes.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TOOL_PRINTF(string, first)                                             \
  __attribute__((__format__(printf, string, first)))
#else
#define TOOL_PRINTF(string, first)
#endif

/* "clbytes: ..." on stderr, escaped; one line. */
void tool_error(const char *format, ...) TOOL_PRINTF(1, 2);

/* The same, for a failure of the library: "clbytes: WHAT: its message", WHAT
 * once where the message has it already. */
void tool_library_error(const char *what);

/* "CL_INVALID_DEVICE", or "OpenCL error -9999"; the next call overwrites it. */
const char *tool_cl_error_name(cl_int error);

/* Room for the text of tool_size_text(). */
enum { TOOL_SIZE_TEXT = 32 };

/* "4.0 MiB"; returns text. */
const char *tool_size_text(uint64_t bytes, char text[TOOL_SIZE_TEXT]);

#endif

/* What the command says when something fails, and sizes in words. */
#include "config.h"

#include "report.h"

#include "escape.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

void tool_error(const char *format, ...)
{
  char line[4096]; /* a longer message is cut: names may have megabytes */
  va_list arguments;

  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  fputs("clbytes: ", stderr);
  tool_escape_string(stderr, line);
  fputc('\n', stderr);
}

/* Whether a message has "WHAT: " in it, at its start or after another. */
static bool names(const char *message, const char *what)
{
  size_t length = strlen(what);
  const char *at = message;

  while ((at = strstr(at, what)) != NULL) {
    if (at[length] == ':' && (at == message || at[-1] == ' '))
      return true;
    at++;
  }
  return false;
}

void tool_library_error(const char *what)
{
  const char *message = clb_error_message();

  if (names(message, what))
    tool_error("%s", message);
  else
    tool_error("%s: %s", what, message);
}

/* What making contexts, queues and buffers, and asking devices, can end in. */
#define CL_ERROR_MAP(XX)                                                       \
  XX(CL_DEVICE_NOT_FOUND)                                                      \
  XX(CL_DEVICE_NOT_AVAILABLE)                                                  \
  XX(CL_MEM_OBJECT_ALLOCATION_FAILURE)                                         \
  XX(CL_OUT_OF_RESOURCES)                                                      \
  XX(CL_OUT_OF_HOST_MEMORY)                                                    \
  XX(CL_INVALID_VALUE)                                                         \
  XX(CL_INVALID_DEVICE_TYPE)                                                   \
  XX(CL_INVALID_PLATFORM)                                                      \
  XX(CL_INVALID_DEVICE)                                                        \
  XX(CL_INVALID_CONTEXT)                                                       \
  XX(CL_INVALID_QUEUE_PROPERTIES)                                              \
  XX(CL_INVALID_BUFFER_SIZE)                                                   \
  XX(CL_INVALID_PROPERTY)

const char *tool_cl_error_name(cl_int error)
{
  static char number[32];

  switch (error) {
#define CL_ERROR_CASE(name)                                                    \
  case name:                                                                   \
    return #name;
    CL_ERROR_MAP(CL_ERROR_CASE)
#undef CL_ERROR_CASE
  default:
    snprintf(number, sizeof(number), "OpenCL error %ld", (long)error);
    return number;
  }
}

const char *tool_size_text(uint64_t bytes, char text[TOOL_SIZE_TEXT])
{
  static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB",
                                      "EiB"};
  double size = (double)bytes / 1024;
  size_t unit = 0;

  if (bytes < 1024) {
    snprintf(text, TOOL_SIZE_TEXT, "%u bytes", (unsigned)bytes);
    return text;
  }
  for (; size >= 1024 && unit < 5; unit++)
    size /= 1024;
  snprintf(text, TOOL_SIZE_TEXT, "%.1f %s", size, units[unit]);
  return text;
}

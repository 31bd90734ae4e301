/*
 * status.c - status codes, OpenCL's names of errors, the thread's last error.
 *
 * Owns the only state that is global: one last error a thread.
 */
#include "config.h"

#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local clb__error last;

unsigned clb_version(void) {
  return CLB_VERSION_MAJOR << 16 | CLB_VERSION_MINOR << 8 | CLB_VERSION_MICRO;
}

const char *clb_status_name(clb_status status) {
  switch (status) {
#define NAME_CASE(name, text)                                                  \
  case CLB_##name:                                                             \
    return "CLB_" #name;
    CLB_STATUS_MAP(NAME_CASE)
#undef NAME_CASE
  }
  return "CLB_UNKNOWN";
}

const char *clb_error_message(void) {
  return last.message;
}

cl_int clb_error_cl(void) {
  return last.cl;
}

/* The codes of OpenCL 1.2 and later that a call of ours can return; those of
 * cl_ext.h are left out. */
#define CL_ERROR_MAP(XX)                                                       \
  XX(CL_DEVICE_NOT_FOUND, -1)                                                  \
  XX(CL_DEVICE_NOT_AVAILABLE, -2)                                              \
  XX(CL_COMPILER_NOT_AVAILABLE, -3)                                            \
  XX(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4)                                     \
  XX(CL_OUT_OF_RESOURCES, -5)                                                  \
  XX(CL_OUT_OF_HOST_MEMORY, -6)                                                \
  XX(CL_PROFILING_INFO_NOT_AVAILABLE, -7)                                      \
  XX(CL_MEM_COPY_OVERLAP, -8)                                                  \
  XX(CL_BUILD_PROGRAM_FAILURE, -11)                                            \
  XX(CL_MAP_FAILURE, -12)                                                      \
  XX(CL_MISALIGNED_SUB_BUFFER_OFFSET, -13)                                     \
  XX(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14)                        \
  XX(CL_COMPILE_PROGRAM_FAILURE, -15)                                          \
  XX(CL_LINKER_NOT_AVAILABLE, -16)                                             \
  XX(CL_LINK_PROGRAM_FAILURE, -17)                                             \
  XX(CL_INVALID_VALUE, -30)                                                    \
  XX(CL_INVALID_DEVICE_TYPE, -31)                                              \
  XX(CL_INVALID_PLATFORM, -32)                                                 \
  XX(CL_INVALID_DEVICE, -33)                                                   \
  XX(CL_INVALID_CONTEXT, -34)                                                  \
  XX(CL_INVALID_QUEUE_PROPERTIES, -35)                                         \
  XX(CL_INVALID_COMMAND_QUEUE, -36)                                            \
  XX(CL_INVALID_HOST_PTR, -37)                                                 \
  XX(CL_INVALID_MEM_OBJECT, -38)                                               \
  XX(CL_INVALID_BINARY, -42)                                                   \
  XX(CL_INVALID_BUILD_OPTIONS, -43)                                            \
  XX(CL_INVALID_PROGRAM, -44)                                                  \
  XX(CL_INVALID_PROGRAM_EXECUTABLE, -45)                                       \
  XX(CL_INVALID_KERNEL_NAME, -46)                                              \
  XX(CL_INVALID_KERNEL, -48)                                                   \
  XX(CL_INVALID_ARG_INDEX, -49)                                                \
  XX(CL_INVALID_ARG_VALUE, -50)                                                \
  XX(CL_INVALID_ARG_SIZE, -51)                                                 \
  XX(CL_INVALID_KERNEL_ARGS, -52)                                              \
  XX(CL_INVALID_WORK_DIMENSION, -53)                                           \
  XX(CL_INVALID_WORK_GROUP_SIZE, -54)                                          \
  XX(CL_INVALID_WORK_ITEM_SIZE, -55)                                           \
  XX(CL_INVALID_GLOBAL_OFFSET, -56)                                            \
  XX(CL_INVALID_EVENT_WAIT_LIST, -57)                                          \
  XX(CL_INVALID_EVENT, -58)                                                    \
  XX(CL_INVALID_OPERATION, -59)                                                \
  XX(CL_INVALID_BUFFER_SIZE, -61)                                              \
  XX(CL_INVALID_GLOBAL_WORK_SIZE, -63)                                         \
  XX(CL_INVALID_PROPERTY, -64)

const char *clb__cl_name(cl_int code) {
  switch (code) {
#define NAME_CASE(name, number)                                                \
  case number:                                                                 \
    return #name;
    CL_ERROR_MAP(NAME_CASE)
#undef NAME_CASE
  }
  return "unknown error";
}

/* Messages are built aside: an argument may be the message that is there. */
static clb_status set(clb_status status, cl_int cl, const char *message) {
  last.status = status;
  last.cl = cl;
  memmove(last.message, message, strlen(message) + 1);
  return status;
}

/* A message is one line, whatever names are in it. */
static void one_line(char *text) {
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f)
      *text = '?';
}

clb_status clb__fail(clb_status status, const char *format, ...) {
  char message[CLB__MESSAGE_SIZE];
  va_list args;

  va_start(args, format);
  (void)vsnprintf(message, sizeof message, format, args);
  va_end(args);
  one_line(message);
  return set(status, CL_SUCCESS, message);
}

clb_status clb__fail_errno(clb_status status, int err, const char *format,
                           ...) {
  char message[CLB__MESSAGE_SIZE], text[128];
  size_t used;
  va_list args;

  va_start(args, format);
  (void)vsnprintf(message, sizeof message - 64, format, args);
  va_end(args);
  used = strlen(message);
  /* AC_USE_SYSTEM_EXTENSIONS gives glibc's strerror_r; strerror_l would need a
   * locale.  Both kinds of strerror_r are served by this. */
#if defined(__GLIBC__)
  (void)snprintf(message + used, sizeof message - used, ": %s",
                 strerror_r(err, text, sizeof text));
#else
  if (strerror_r(err, text, sizeof text) != 0)
    (void)snprintf(text, sizeof text, "errno %d", err);
  (void)snprintf(message + used, sizeof message - used, ": %s", text);
#endif
  one_line(message);
  return set(status, CL_SUCCESS, message);
}

clb_status clb__fail_cl(cl_int code, const char *call) {
  char message[CLB__MESSAGE_SIZE];
  clb_status status =
      code == CL_OUT_OF_HOST_MEMORY || code == CL_MEM_OBJECT_ALLOCATION_FAILURE
          ? CLB_OUT_OF_MEMORY
          : CLB_DEVICE_ERROR;

  (void)snprintf(message, sizeof message, "%s: %s (%d)", call,
                 clb__cl_name(code), (int)code);
  return set(status, code, message);
}

clb_status clb__fail_prefix(clb_status status, const char *format, ...) {
  char message[CLB__MESSAGE_SIZE];
  size_t cause = strlen(last.message), used;
  va_list args;

  if (status == CLB_OK || status == CLB_WOULD_COPY || status == CLB_TIMEOUT ||
      status == CLB_NOT_FOUND)
    return status;
  /* The cause matters more than a long name before it, which gets what is
   * left. */
  if (cause + sizeof ": " >= sizeof message)
    return set(status, last.cl, last.message);
  va_start(args, format);
  (void)vsnprintf(message, sizeof message - cause - strlen(": "), format, args);
  va_end(args);
  used = strlen(message);
  memcpy(message + used, ": ", 2);
  memcpy(message + used + 2, last.message, cause + 1);
  one_line(message);
  return set(status, last.cl, message);
}

void clb__error_save(clb__error *to, clb_status status) {
  *to = last;
  to->status = status;
}

clb_status clb__error_restore(const clb__error *from) {
  switch (from->status) {
  case CLB_OK:
  case CLB_WOULD_COPY:
  case CLB_TIMEOUT:
  case CLB_NOT_FOUND:
    return from->status;
  default:
    return set(from->status, from->cl, from->message);
  }
}

void clb__error_keep(clb__error *to) {
  *to = last;
}

void clb__error_put_back(const clb__error *from) {
  last = *from;
}

/*
 * error.h - how a function of the library fails.
 *
 * Every failure goes through one of these, which writes the thread's last
 * error and returns the status: `return clb__fail(CLB_..., "...", ...)`.
 * Messages are one line, without a full stop, with the numbers in them.
 */
#ifndef CLB_ERROR_H
#define CLB_ERROR_H

#include <clbytes.h>

#if defined(__GNUC__)
#define CLB__PRINTF(fmt, args) __attribute__((__format__(__printf__, fmt, args)))
#else
#define CLB__PRINTF(fmt, args)
#endif

#define CLB__MESSAGE_SIZE 512

/* A failure kept apart from the thread that met it: for another thread's
 * work, and for a first cause that clean-up must not hide. */
typedef struct clb__error {
  clb_status status;
  cl_int cl;
  char message[CLB__MESSAGE_SIZE];
} clb__error;

clb_status clb__fail(clb_status status, const char *format, ...)
    CLB__PRINTF(2, 3);

/* "..., errno's text". */
clb_status clb__fail_errno(clb_status status, int err, const char *format, ...)
    CLB__PRINTF(3, 4);

/* An OpenCL call that failed: "call: symbolic error (code)".  The status is
 * CLB_OUT_OF_MEMORY where the code means that, else CLB_DEVICE_ERROR. */
clb_status clb__fail_cl(cl_int code, const char *call);

/* "..., " before the message that the thread has; the status stays. */
clb_status clb__fail_prefix(clb_status status, const char *format, ...)
    CLB__PRINTF(2, 3);

/* Statuses that leave the last error alone return without writing it. */
void clb__error_save(clb__error *to, clb_status status);
clb_status clb__error_restore(const clb__error *from);

/* The thread's last error around something that may fail without harm. */
void clb__error_keep(clb__error *to);
void clb__error_put_back(const clb__error *from);

/* "CL_OUT_OF_RESOURCES"; "unknown" for what no list has. */
const char *clb__cl_name(cl_int code);

#endif

/*
 * kernels.h - the kernels that pack and unpack, built at need.
 */
#ifndef CLB_KERNELS_H
#define CLB_KERNELS_H

#include "context.h"
#include "pack.h"

/* Whether a program for this was built, or could not be; asks no driver. */
typedef enum clb__built {
  CLB__UNBUILT,
  CLB__BUILT,
  CLB__REFUSED
} clb__built;
clb__built clb__kernels_state(clb_context *context, clb__direction direction,
                              bool wide);

/* Builds it, where that was not tried; CLB_UNSUPPORTED where the compiler
 * refuses, with the first line of what it says. */
clb_status clb__kernels_build(clb_context *context, clb__direction direction,
                              bool wide);

/* Fails as building it failed; where that did not, it is still this status. */
clb_status clb__kernels_why(clb_context *context, clb__direction direction,
                            bool wide, clb_status status);

/* Builds it on a thread of the library's, once; whoever wants it meanwhile goes
 * without. */
void clb__kernels_build_aside(clb_context *context, clb__direction direction,
                              bool wide);

/* Waits for that, where the only references left are those of such jobs; of a
 * context that is known by its address alone. */
void clb__kernels_end_aside(const clb_context *context, size_t left);

/* Time that transfers took longer since there was no kernel; makes building it
 * the cheaper the more there is. */
void clb__kernels_miss(clb_context *context, clb__direction direction,
                       bool wide, double us);
double clb__kernels_missed(clb_context *context, clb__direction direction,
                           bool wide);

/* Between a region of a buffer and packed bytes in scratch, from byte at on, a
 * multiple of 16.  The program was built.  *call: what failed, if it did. */
cl_int clb__kernels_enqueue(clb_context *context, cl_command_queue queue,
                            clb__direction direction, const clb__pack *pack,
                            cl_mem region, cl_mem scratch, size_t at,
                            cl_event *event, const char **call);

void clb__kernels_free(clb__kernels *kernels);

#endif

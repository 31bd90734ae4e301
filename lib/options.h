/*
 * options.h - options of a caller whose header may be older or newer.
 */
#ifndef CLB_OPTIONS_H
#define CLB_OPTIONS_H

#include <clbytes.h>

/*
 * Copies options that start with their struct_size to a struct of size bytes:
 * what the caller's header did not have reads as zero, what this library does
 * not know has to be zero.  init names what to start from.
 */
clb_status clb__options_read(const void *options, void *to, size_t size,
                             const char *init);

#endif

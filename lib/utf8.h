/*
 * utf8.h - whether bytes are UTF-8.
 */
#ifndef CLB_UTF8_H
#define CLB_UTF8_H

#include <stddef.h>

/* How many bytes from the start are well-formed: length if all are. */
size_t clb__utf8_span(const char *text, size_t length);

#endif

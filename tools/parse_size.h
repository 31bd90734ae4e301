/* Sizes as people write them. */
#ifndef TOOL_PARSE_SIZE_H
#define TOOL_PARSE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * "4096", "64K", "64KiB", "4MiB", "1g": K, M, G and T, with or without "iB",
 * are powers of 1024; with "B" alone they are powers of 1000, as dd has it.
 * In either case of letters.  At least 1.
 * Returns NULL and the bytes, else what is wrong with the text.
 */
const char *tool_parse_size(const char *text, size_t *out);

#endif

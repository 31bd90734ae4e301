/*
 * Text of files and drivers, made harmless for a terminal: control characters
 * (C0, DEL, C1), the marks that reorder text, and bytes that are not UTF-8
 * become \uXXXX or \xXX.  Everything else stays.
 */
#ifndef TOOL_ESCAPE_H
#define TOOL_ESCAPE_H

#include <stddef.h>
#include <stdio.h>

/* Writes length bytes of text, escaped; returns the number of characters
 * written.  out NULL: counts alone. */
size_t tool_escape(FILE *out, const char *text, size_t length);

/* A whole string. */
size_t tool_escape_string(FILE *out, const char *text);

#endif

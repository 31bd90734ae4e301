/*
 * json_text.h - what JSON text may not have, and how strings are written.
 */
#ifndef CLB_JSON_TEXT_H
#define CLB_JSON_TEXT_H

#include <stddef.h>

/* The longest that clb__json_escape() gives. */
#define CLB__JSON_ESCAPE_MAX 6

/*
 * What is wrong with a text, among what yajl lets pass: bytes that are not
 * UTF-8, escapes of lone surrogates, white space that JSON does not have.
 * NULL: nothing; else at is where.
 */
const char *clb__json_text_problem(const char *text, size_t length, size_t *at);

/*
 * Writes a byte of a string as serde_json writes it, which is what the
 * format's own writer uses: escapes where JSON asks for them, the short ones
 * where there are, hexadecimal in lower case.  Returns the length, which is 1
 * for a byte that stays as it is; no NUL.
 */
size_t clb__json_escape(unsigned char byte, char out[CLB__JSON_ESCAPE_MAX]);

#endif

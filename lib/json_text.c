/*
 * json_text.c - what JSON text may not have, and how strings are written.
 *
 * Owns the rules on characters in which yajl is not what the format's own
 * reader and writer are.
 */
#include "config.h"

#include "json_text.h"

#include "utf8.h"

#include <stdint.h>
#include <string.h>

/* The code unit of "\uXXXX" at text; UINT32_MAX if it is none. */
static uint32_t code_unit(const char *text, size_t left) {
  uint32_t unit = 0;

  if (left < 6 || text[0] != '\\' || text[1] != 'u')
    return UINT32_MAX;
  for (size_t i = 2; i < 6; i++) {
    char c = text[i];
    if (c >= '0' && c <= '9')
      unit = unit << 4 | (uint32_t)(c - '0');
    else if (c >= 'a' && c <= 'f')
      unit = unit << 4 | (uint32_t)(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F')
      unit = unit << 4 | (uint32_t)(c - 'A' + 10);
    else
      return UINT32_MAX;
  }
  return unit;
}

/* Bytes of the escape at text; 0: half of a surrogate pair.  What else is
 * wrong with an escape yajl finds. */
static size_t escape(const char *text, size_t left) {
  uint32_t unit = code_unit(text, left), second;

  if (unit == UINT32_MAX)
    return left < 2 ? left : 2;
  if (unit < 0xd800 || unit > 0xdfff)
    return 6;
  second = code_unit(text + 6, left - 6);
  return unit < 0xdc00 && second >= 0xdc00 && second <= 0xdfff ? 12 : 0;
}

const char *clb__json_text_problem(const char *text, size_t length,
                                   size_t *at) {
  size_t span = clb__utf8_span(text, length), n;

  if (span < length) {
    *at = span;
    return "not UTF-8";
  }
  for (size_t i = 0; i < length; i += n) {
    unsigned char c = (unsigned char)text[i];
    n = 1;
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      *at = i;
      return "a control character";
    }
    /* A backslash stands in strings alone, else yajl refuses it. */
    if (c == '\\' && (n = escape(text + i, length - i)) == 0) {
      *at = i;
      return "half of a surrogate pair";
    }
  }
  return NULL;
}

size_t clb__json_escape(unsigned char byte, char out[CLB__JSON_ESCAPE_MAX]) {
  static const char named[] = "\b\f\n\r\t\"\\", letters[] = "bfnrt\"\\";
  static const char digits[] = "0123456789abcdef";
  const char *found = byte == '\0' ? NULL : strchr(named, byte);

  if (found != NULL) {
    out[0] = '\\';
    out[1] = letters[found - named];
    return 2;
  }
  if (byte < 0x20) {
    memcpy(out, "\\u00", 4);
    out[4] = digits[byte >> 4];
    out[5] = digits[byte & 15];
    return 6;
  }
  out[0] = (char)byte;
  return 1;
}

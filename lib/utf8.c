/*
 * utf8.c - whether bytes are UTF-8, by the strict rule.
 *
 * yajl takes overlong forms, surrogates and code points past U+10FFFF; the
 * format's own reader refuses a file that has any.
 */
#include "config.h"

#include "utf8.h"

#include <stdbool.h>
#include <stdint.h>

static bool continues(unsigned char byte) {
  return (byte & 0xc0) == 0x80;
}

/* Bytes of the sequence at s; 0 if it is not well-formed (Unicode 15, table
 * 3-7: what the second byte may be depends on the first). */
static size_t sequence(const unsigned char *s, size_t left) {
  unsigned char low = 0x80, high = 0xbf;
  size_t n;

  if (s[0] < 0x80)
    return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4)
    return 0;
  n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  if (left < n)
    return 0;
  if (s[0] == 0xe0)
    low = 0xa0;
  else if (s[0] == 0xed)
    high = 0x9f;
  else if (s[0] == 0xf0)
    low = 0x90;
  else if (s[0] == 0xf4)
    high = 0x8f;
  if (s[1] < low || s[1] > high)
    return 0;
  for (size_t i = 2; i < n; i++)
    if (!continues(s[i]))
      return 0;
  return n;
}

size_t clb__utf8_span(const char *text, size_t length) {
  const unsigned char *s = (const unsigned char *)text;
  size_t at = 0, n;

  while (at < length && (n = sequence(s + at, length - at)) != 0)
    at += n;
  return at;
}

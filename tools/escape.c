/* Text of files and drivers, made harmless for a terminal.  Owns the decision
 * of what is harmless; knows nothing of where the text comes from. */
#include "config.h"

#include "escape.h"

#include <stdint.h>
#include <string.h>

/* Decodes the character at text; returns its length in bytes, 0 where the
 * bytes are no UTF-8 (overlong, surrogate, cut short, past U+10FFFF). */
static size_t decode(const unsigned char *text, size_t length, uint32_t *out)
{
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  unsigned char first = text[0];
  size_t count = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2
                 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  uint32_t point;

  if (count == 0 || count > length)
    return 0;
  point = count == 1 ? first : first & (0x7fu >> count);
  for (size_t i = 1; i < count; i++) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
    point = point << 6 | (text[i] & 0x3fu);
  }
  if (point < least[count] || (point >= 0xd800 && point <= 0xdfff) ||
      point > 0x10ffff)
    return 0;
  *out = point;
  return count;
}

/* A terminal acts on it, or it changes the order of what stands around it. */
static int is_hostile(uint32_t point)
{
  return point < 0x20 || (point >= 0x7f && point <= 0x9f) ||
         point == 0x61c || point == 0x200e || point == 0x200f ||
         (point >= 0x2028 && point <= 0x202e) ||
         (point >= 0x2066 && point <= 0x2069);
}

size_t tool_escape(FILE *out, const char *text, size_t length)
{
  const unsigned char *bytes = (const unsigned char *)text;
  size_t written = 0;
  size_t plain = 0; /* start of what is not written yet */
  size_t i = 0;

  while (i < length) {
    uint32_t point = 0;
    size_t count = decode(bytes + i, length - i, &point);
    char escape[sizeof("\\uXXXX")];

    if (count > 0 && !is_hostile(point)) {
      written++;
      i += count;
      continue;
    }
    if (count == 0) {
      snprintf(escape, sizeof(escape), "\\x%02x", (unsigned)bytes[i]);
      count = 1;
    } else {
      snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)point & 0xffff);
    }
    if (out != NULL) {
      fwrite(bytes + plain, 1, i - plain, out);
      fputs(escape, out);
    }
    written += strlen(escape);
    i += count;
    plain = i;
  }
  if (out != NULL)
    fwrite(bytes + plain, 1, length - plain, out);
  return written;
}

size_t tool_escape_string(FILE *out, const char *text)
{
  return tool_escape(out, text, strlen(text));
}

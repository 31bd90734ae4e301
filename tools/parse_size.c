/* Sizes as people write them: digits, then perhaps a unit. */
#include "config.h"

#include "parse_size.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

/* The factor of a unit, in *out; false if there is no such unit. */
static bool unit_factor(const char *unit, uint64_t *out)
{
  static const char letters[] = "kmgt";
  const char *letter;
  uint64_t base = 1024;
  uint64_t factor = 1;

  if (*unit == '\0' || strcasecmp(unit, "b") == 0) {
    *out = 1;
    return true;
  }
  for (letter = letters; *letter != '\0'; letter++)
    if ((*unit | 0x20) == *letter)
      break;
  if (*letter == '\0')
    return false;
  if (strcasecmp(unit + 1, "b") == 0)
    base = 1000;
  else if (unit[1] != '\0' && strcasecmp(unit + 1, "ib") != 0)
    return false;
  for (const char *step = letters; step <= letter; step++)
    factor *= base;
  *out = factor;
  return true;
}

const char *tool_parse_size(const char *text, size_t *out)
{
  const char *at = text;
  uint64_t number = 0;
  uint64_t factor;

  if (*at < '0' || *at > '9')
    return "is not a size such as 65536, 64K or 4MiB";
  for (; *at >= '0' && *at <= '9'; at++) {
    uint64_t digit = (uint64_t)(*at - '0');

    if (number > (UINT64_MAX - digit) / 10)
      return "is too large";
    number = number * 10 + digit;
  }
  if (!unit_factor(at, &factor))
    return "is not a size such as 65536, 64K or 4MiB";
  if (number > SIZE_MAX / factor)
    return "is too large";
  if (number == 0)
    return "must be at least 1";
  *out = (size_t)(number * factor);
  return NULL;
}

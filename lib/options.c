/*
 * options.c - options of a caller whose header may be older or newer.
 */
#include "config.h"

#include "options.h"

#include "error.h"

#include <string.h>

clb_status clb__options_read(const void *options, void *to, size_t size,
                             const char *init) {
  const unsigned char *bytes = options;
  size_t given, i;

  memcpy(&given, options, sizeof given);
  if (given < sizeof given)
    return clb__fail(CLB_INVALID_ARGUMENT,
                     "options: struct_size %zu is too small; start from %s",
                     given, init);
  for (i = size; i < given; i++)
    if (bytes[i] != 0)
      return clb__fail(CLB_UNSUPPORTED,
                       "options: struct_size %zu has non-zero bytes past the "
                       "%zu that this library knows",
                       given, size);
  memset(to, 0, size);
  memcpy(to, options, given < size ? given : size);
  return CLB_OK;
}

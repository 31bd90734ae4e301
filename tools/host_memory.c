/* How much host memory this process has: Linux tells in /proc/self/status,
 * elsewhere nothing is known. */
#include "config.h"

#include "host_memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A line of /proc/self/status such as "VmRSS:   1234 kB", in bytes. */
static bool status_bytes(const char *key, uint64_t *out)
{
  FILE *status = fopen("/proc/self/status", "r");
  size_t length = strlen(key);
  char line[256];
  bool found = false;

  if (status == NULL)
    return false;
  while (!found && fgets(line, sizeof(line), status) != NULL) {
    uint64_t kib;

    if (strncmp(line, key, length) == 0 && line[length] == ':' &&
        sscanf(line + length + 1, "%" SCNu64, &kib) == 1) {
      *out = kib * 1024;
      found = true;
    }
  }
  fclose(status);
  return found;
}

void tool_growth_start(struct tool_growth *growth)
{
  /* proc(5): 5 sets the peak to what is resident now.  Where that is refused
   * the earlier peak counts, and the growth is an upper bound. */
  FILE *clear = fopen("/proc/self/clear_refs", "w");

  if (clear != NULL) {
    fputs("5", clear);
    fclose(clear);
  }
  growth->known = status_bytes("VmRSS", &growth->before);
}

bool tool_growth_bytes(const struct tool_growth *growth, uint64_t *out)
{
  uint64_t peak;

  if (!growth->known || !status_bytes("VmHWM", &peak))
    return false;
  *out = peak > growth->before ? peak - growth->before : 0;
  return true;
}

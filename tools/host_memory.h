/* How much host memory this process has, where the system tells. */
#ifndef TOOL_HOST_MEMORY_H
#define TOOL_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Memory that a piece of work grew the process by. */
struct tool_growth {
  uint64_t before; /* resident at the start, bytes */
  bool known;
};

/* Starts to watch: forgets the earlier peak where the system allows it. */
void tool_growth_start(struct tool_growth *growth);

/* The peak since, less what was resident at the start; false where the system
 * does not tell. */
bool tool_growth_bytes(const struct tool_growth *growth, uint64_t *out);

#endif

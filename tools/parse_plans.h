/* The library's plans as people write them. */
#ifndef TOOL_PARSE_PLANS_H
#define TOOL_PARSE_PLANS_H

#include <stdbool.h>

/* "rect,gather": names of plans with commas between, as a set of CLB_PLAN_*.
 * False for anything else. */
bool tool_parse_plans(const char *text, unsigned *out);

#endif

/* Names of the library's plans. */
#include "config.h"

#include "parse_plans.h"

#include <clbytes.h>
#include <string.h>

static const struct {
  const char *name;
  unsigned plan;
} plans[] = {
    {"map", CLB_PLAN_MAP},   {"read", CLB_PLAN_READ},
    {"rect", CLB_PLAN_RECT}, {"pack", CLB_PLAN_PACK},
    {"gather", CLB_PLAN_GATHER},
};

/* 0: there is none of that name. */
static unsigned find_plan(const char *name, size_t length)
{
  for (size_t i = 0; i < sizeof(plans) / sizeof(*plans); i++)
    if (strlen(plans[i].name) == length &&
        memcmp(plans[i].name, name, length) == 0)
      return plans[i].plan;
  return 0;
}

bool tool_parse_plans(const char *text, unsigned *out)
{
  unsigned set = 0;

  for (;;) {
    size_t length = strcspn(text, ",");
    unsigned plan = find_plan(text, length);

    if (plan == 0)
      return false;
    set |= plan;
    if (text[length] == '\0')
      break;
    text += length + 1;
  }
  *out = set;
  return true;
}

/*
 * choose.c - from a source and a form to the plan that is about to run: asks
 * for the facts, has the link measured and a kernel built where that is worth
 * it.  Which plan is cheapest is plan.c's.
 */
#include "config.h"

#include "device_source.h"

/* Smaller accesses get on with figures that may be wrong. */
#define WORTH_MEASURING ((size_t)1 << 20)

/* A piece of a block of less than this is one command where it can be: a mapping
 * would be waited for three times. */
#define SMALL_PIECE ((size_t)256 << 10)

/* What accesses may lose in all for the want of a kernel until it is built
 * aside.  A program that reads but a little never has one built. */
#define MISSED_US 2000.0

/* A chosen plan's kernel, built; or what it would have saved, noted.  The
 * failure of a compiler is no failure of the access: it goes another way. */
static clb_status commit_to(const clb__source *source, clb__direction direction,
                            clb__plan *plan, bool *again) {
  clb_context *context = source->u.device.context;
  bool wide = clb__pack_wide(&plan->form);
  clb__error before;
  clb_status status;

  *again = false;
  if (plan->missed_us > 0) {
    clb__error_keep(&before);
    clb__kernels_miss(context, direction, wide, plan->missed_us);
    /* A processor's compiler would take the program's cores, and one driver of
     * those (Oclgrind) takes no second thread. */
    if (!context->processor &&
        clb__kernels_missed(context, direction, wide) >= MISSED_US)
      clb__kernels_build_aside(context, direction, wide);
    clb__error_put_back(&before);
  }
  if (plan->kind != CLB_PLAN_PACK || clb__form_contiguous(&plan->form) ||
      clb__kernels_state(context, direction, wide) == CLB__BUILT)
    return CLB_OK;
  clb__error_keep(&before);
  status = clb__kernels_build(context, direction, wide);
  *again = status == CLB_UNSUPPORTED &&
           (context->plans & ~(unsigned)CLB_PLAN_PACK) != 0;
  if (*again)
    clb__error_put_back(&before);
  return *again ? CLB_OK : status;
}

/* Where a kernel would have carried the layout, what its compiler said is the
 * cause. */
static clb_status why_not(const clb__source *source, clb__direction direction,
                          const clb__facts *facts, const clb__form *form) {
  return clb__source_is_device(source) && facts->plans & CLB_PLAN_PACK &&
                 clb__pack_can(form)
             ? clb__kernels_why(source->u.device.context, direction,
                                clb__pack_wide(form), CLB_UNSUPPORTED)
             : CLB_UNSUPPORTED;
}

static void prefer_commands(clb__facts *facts, const clb__form *form) {
  if (clb__form_contiguous(form) && facts->plans & ~(unsigned)CLB_PLAN_MAP)
    facts->plans &= ~(unsigned)CLB_PLAN_MAP;
  facts->quick_bytes = SMALL_PIECE;
}

clb_status clb__source_plan(const clb__source *source, clb__direction direction,
                            const clb__form *form, size_t start, size_t end,
                            unsigned flags, clb__plan *plan) {
  size_t chunk = source->ops->chunk;
  bool again = false;
  clb_status status;

  if (chunk == 0)
    chunk = source->u.device.context->chunk_size;
  if (flags & CLB__COMMIT && clb__source_is_device(source) &&
      !clb__form_contiguous(form) && end - start >= WORTH_MEASURING)
    clb__device_measure(source->u.device.context);
  do {
    clb__facts facts;
    status = source->ops->facts(source, direction, (flags & CLB__GUESS) != 0,
                                &facts);
    if (!(flags & CLB__MAY_BE_QUICK))
      facts.quick_bytes = 0;
    if (flags & CLB__INTO_BLOCK)
      prefer_commands(&facts, form);
    if (status == CLB_OK)
      status = clb__plan_choose(plan, &facts, form, start, end, chunk,
                                direction);
    if (status == CLB_UNSUPPORTED)
      return why_not(source, direction, &facts, form);
    if (status == CLB_OK && flags & CLB__COMMIT && clb__source_is_device(source))
      status = commit_to(source, direction, plan, &again);
  } while (status == CLB_OK && again);
  return status;
}

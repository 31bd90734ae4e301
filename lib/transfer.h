/*
 * transfer.h - runs a plan, chunk by chunk, overlapped.
 *
 * One path for every source, plan and destination; the port says how a move is
 * started and the plan which moves there are.
 */
#ifndef CLB_TRANSFER_H
#define CLB_TRANSFER_H

#include "crew.h"
#include "source.h"

/* Where logical bytes go: to memory, or in order to a sink. */
typedef struct clb__target {
  unsigned char *memory; /* of plan->end - plan->start bytes; NULL: sink */
  bool reachable; /* commands may write the memory themselves, if they can */
  bool fresh; /* memory that nobody has touched: its pages come by the way */
  clb_sink sink;
  void *user;
} clb__target;

/* Where logical bytes come from: memory that has them packed, or a function
 * that gives [start, start + length) into data. */
typedef struct clb__supply {
  const unsigned char *memory; /* NULL: pull */
  clb_status (*pull)(void *user, size_t start, size_t length,
                     unsigned char *data);
  void *user;
} clb__supply;

/* Through an open port, the bytes of a plan: out of the source to a target, or
 * into it from a supply.  *link: bytes that moves had. */
clb_status clb__transfer_get(clb__port *port, const clb__plan *plan,
                             const clb__target *target, uint64_t *link);
clb_status clb__transfer_put(clb__port *port, const clb__plan *plan,
                             const clb__supply *supply);

/* Where the next move goes in a block. */
static inline size_t clb__placed(const clb__plan *plan, size_t bytes) {
  /* Moves that are not picked apart follow each other without a gap: a block
   * is one run of logical bytes then. */
  return plan->kind == CLB_PLAN_GATHER ? (bytes + 63) / 64 * 64 : bytes;
}

#endif

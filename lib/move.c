/*
 * move.c - one transfer of a handle's bytes from where they are: a host copy
 * that it has a region of, else its source.
 */
#include "config.h"

#include "bytes.h"

#include <stdio.h>
#include <time.h>

double clb__seconds(void) {
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void clb__bytes_log(const clb_bytes *bytes, clb_context *context,
                    const char *what, const clb__plan *plan, double since) {
  char words[320], line[CLB__MESSAGE_SIZE];

  if (!clb__context_logs(context))
    return;
  clb__plan_text(plan, words, sizeof words);
  (void)snprintf(line, sizeof line, "%.100s%s%s%s: %zu bytes in %.3f ms",
                 bytes->label != NULL ? bytes->label : "",
                 bytes->label != NULL ? ": " : "", what, words,
                 plan->end - plan->start, (clb__seconds() - since) * 1e3);
  clb__context_log(context, line);
}

/* What the bytes of a handle are got from. */
typedef struct origin {
  clb__source source;
  const clb__region *at;
  clb__host host; /* behind source, where it is a host copy */
} origin;

static void find_origin(const clb_bytes *bytes, origin *from) {
  if (bytes->base == NULL) {
    from->source = bytes->source;
    from->at = &bytes->at;
  } else {
    from->source = clb__source_lent(&from->host, bytes->base->data);
    from->at = &bytes->base->at;
  }
}

static clb_status choose(const origin *from, size_t start, size_t end,
                         clb__plan *plan) {
  const clb__source *source = &from->source;
  size_t chunk = source->ops->chunk;
  clb__facts facts;
  clb__form form;
  clb_status status = source->ops->facts(source, CLB__GET, &facts);

  if (status != CLB_OK)
    return status;
  if (chunk == 0)
    chunk = source->u.device.context->chunk_size;
  clb__region_form(from->at, &form);
  return clb__plan_choose(plan, &facts, &form, from->at->window + start,
                          from->at->window + end, chunk, CLB__GET);
}

clb_status clb__bytes_choose(const clb_bytes *bytes, size_t start, size_t end,
                             clb__plan *plan) {
  origin from;

  find_origin(bytes, &from);
  return choose(&from, start, end, plan);
}

/* Through a port that is open or, if ordered, is about to be. */
static clb_status get(clb_bytes *bytes, const origin *from, clb__port *port,
                      size_t start, size_t end, const clb__target *target) {
  const clb__source_ops *ops = from->source.ops;
  double since = clb__seconds();
  uint64_t link = 0;
  clb__plan plan;
  clb_status status = choose(from, start, end, &plan);

  if (status == CLB_OK) {
    if (!port->ordered)
      status = ops->order(port);
    if (status == CLB_OK)
      status = ops->await(port);
  } else if (port->ordered) {
    ops->drop(port);
  }
  if (status == CLB_OK)
    status = clb__transfer_get(port, &plan, target, &link);
  if (status == CLB_OK)
    status = ops->close(port);
  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, start, end);
  if (clb__source_is_device(&from->source)) {
    clb_context *context = from->source.u.device.context;
    clb__context_count(context, plan.kind, end - start, link);
    clb__bytes_log(bytes, context, "", &plan, since);
  }
  return CLB_OK;
}

clb_status clb__bytes_get(clb_bytes *bytes, size_t start, size_t end,
                          const clb__target *target) {
  clb__port port = {.direction = CLB__GET};
  origin from;

  find_origin(bytes, &from);
  port.source = &from.source;
  return get(bytes, &from, &port, start, end, target);
}

clb_status clb__bytes_order(clb_bytes *bytes, clb__port *port) {
  clb_status status;

  *port = (clb__port){.direction = CLB__GET, .source = &bytes->source};
  if (bytes->base != NULL) /* a host copy has no order to keep */
    return CLB_OK;
  status = bytes->source.ops->order(port);
  return status == CLB_OK ? CLB_OK
                          : clb__bytes_blame(bytes, status, 0, bytes->length);
}

clb_status clb__bytes_get_ordered(clb_bytes *bytes, clb__port *port,
                                  size_t start, size_t end,
                                  const clb__target *target) {
  origin from;

  find_origin(bytes, &from);
  port->source = &from.source;
  return get(bytes, &from, port, start, end, target);
}

void clb__bytes_drop(clb_bytes *bytes, clb__port *port) {
  if (port->ordered)
    bytes->source.ops->drop(port);
}

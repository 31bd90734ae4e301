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

static clb_status choose(const clb__origin *from, size_t start, size_t end,
                         unsigned flags, clb__plan *plan) {
  return clb__source_plan(&from->source, CLB__GET, &from->form,
                          from->window + start, from->window + end, flags,
                          plan);
}

clb_status clb__bytes_choose(const clb_bytes *bytes, size_t start, size_t end,
                             unsigned flags, clb__plan *plan) {
  clb__origin from;
  clb_status status = clb__origin_of_bytes(bytes, &from);

  if (status == CLB_OK) {
    status = choose(&from, start, end, flags, plan);
    clb__origin_end(&from);
  }
  return status;
}

static clb_status prepare(clb__access *access, clb_bytes *bytes) {
  access->bytes = bytes;
  access->link = 0;
  access->since = clb__seconds();
  return clb__origin_of_bytes(bytes, &access->from);
}

clb_status clb__access_look(clb__access *access, clb_bytes *bytes) {
  clb_status status = prepare(access, bytes);

  access->port =
      (clb__port){.source = &access->from.source, .direction = CLB__GET};
  return clb__bytes_blame(bytes, status, 0, bytes->length);
}

clb_status clb__access_open(clb__access *access, size_t start, size_t end,
                            unsigned flags) {
  clb_status status =
      choose(&access->from, start, end, flags | CLB__COMMIT, &access->plan);

  if (status == CLB_OK)
    status = clb__port_open(&access->port);
  if (status != CLB_OK)
    clb__origin_end(&access->from);
  return clb__bytes_blame(access->bytes, status, start, end);
}

clb_status clb__access_begin(clb__access *access, clb_bytes *bytes,
                             size_t start, size_t end) {
  clb_status status = clb__access_look(access, bytes);

  return status == CLB_OK ? clb__access_open(access, start, end, 0) : status;
}

clb_status clb__access_part(clb__access *access, size_t start, size_t end,
                            const clb__target *target) {
  size_t window = access->from.window;
  clb__plan part = access->plan;
  uint64_t link = 0;
  clb_status status;

  part.start = window + start;
  part.end = window + end;
  status = clb__transfer_get(&access->port, &part, target, &link);
  access->link += link;
  return clb__bytes_blame(access->bytes, status, start, end);
}

/* Checks and counts. */
static clb_status finish(clb__access *access) {
  const clb__source *source = &access->from.source;
  const clb__plan *plan = &access->plan;
  size_t window = access->from.window;
  clb_status status = source->ops->close(&access->port);

  if (status == CLB_OK && clb__source_is_device(source)) {
    clb_context *context = source->u.device.context;
    clb__context_count(context, plan->kind, plan->end - plan->start,
                       access->link);
    clb__bytes_log(access->bytes, context, "", plan, access->since);
  }
  return clb__bytes_blame(access->bytes, status, plan->start - window,
                          plan->end - window);
}

clb_status clb__access_end(clb__access *access, clb_status status) {
  if (status == CLB_OK)
    status = finish(access);
  clb__origin_end(&access->from);
  return status;
}

static clb_status get_all(clb__access *access, size_t start, size_t end,
                          const clb__target *target) {
  clb_status status = clb__port_open(&access->port);

  return status == CLB_OK
             ? clb__access_part(access, start, end, target)
             : clb__bytes_blame(access->bytes, status, start, end);
}

/* By one command on the program's own queue, with no marker to wait for.  It
 * may fail for a command before it, which is nothing to this access: it is done
 * again then, the long way. */
static clb_status get_quickly(clb__access *access, size_t start, size_t end,
                              const clb__target *target) {
  clb__error before;
  clb_status status;

  clb__error_keep(&before);
  access->port.quick = true;
  status = get_all(access, start, end, target);
  if (status != CLB_DEVICE_ERROR)
    return status;
  clb__error_put_back(&before);
  access->port.quick = false;
  access->link = 0;
  return get_all(access, start, end, target);
}

clb_status clb__bytes_get(clb_bytes *bytes, size_t start, size_t end,
                          const clb__target *target) {
  unsigned flags =
      CLB__COMMIT | (target->memory != NULL ? CLB__MAY_BE_QUICK : 0u);
  clb__access access;
  clb_status status = prepare(&access, bytes);

  if (status != CLB_OK)
    return clb__bytes_blame(bytes, status, start, end);
  access.port =
      (clb__port){.source = &access.from.source, .direction = CLB__GET};
  status = choose(&access.from, start, end, flags, &access.plan);
  if (status != CLB_OK)
    status = clb__bytes_blame(bytes, status, start, end);
  else
    status = access.plan.quick ? get_quickly(&access, start, end, target)
                               : get_all(&access, start, end, target);
  return clb__access_end(&access, status);
}

/* The source that a port is of, between its two steps. */
static clb__source source_of(const clb_bytes *bytes, clb__host *host) {
  return bytes->based ? clb__source_lent(host, clb__base_of(bytes)->data)
                      : bytes->source;
}

clb_status clb__bytes_order(clb_bytes *bytes, clb__port *port) {
  clb__host host;
  clb__source source = source_of(bytes, &host);
  clb_status status;

  *port = (clb__port){
      .source = &source, .direction = CLB__GET, .watching = true};
  status = source.ops->order(port);
  port->source = NULL; /* got from in another place */
  port->ops = source.ops;
  return status;
}

bool clb__bytes_ready(const clb_bytes *bytes, const clb__port *port) {
  clb__host host;
  clb__source source = source_of(bytes, &host);
  clb__port copy = *port;

  copy.source = &source;
  return source.ops->ready(&copy);
}

void clb__bytes_drop(clb__port *port) {
  port->ops->drop(port);
}

clb_status clb__bytes_get_ordered(clb_bytes *bytes, clb__port *port,
                                  const clb__target *target) {
  clb__access access;
  clb_status status = prepare(&access, bytes);

  if (status != CLB_OK) {
    clb__bytes_drop(port);
    return clb__bytes_blame(bytes, status, 0, bytes->length);
  }
  access.port = *port;
  access.port.source = &access.from.source;
  status = choose(&access.from, 0, bytes->length, CLB__COMMIT, &access.plan);
  if (status != CLB_OK)
    access.from.source.ops->drop(&access.port);
  else
    status = access.from.source.ops->await(&access.port);
  status = clb__bytes_blame(bytes, status, 0, bytes->length);
  if (status == CLB_OK)
    status = clb__access_part(&access, 0, bytes->length, target);
  return clb__access_end(&access, status);
}

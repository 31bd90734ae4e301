/*
 * fault_layer.h - what the files of the fault layer share.
 *
 *   fault_layer.c    the wrappers, and the loader's two entries
 *   fault_rules.c    which calls fail, what is refused, what devices say
 *   fault_objects.c  references, bytes moved, events that are to fail
 *   fault_gates.c    commands that are held
 *
 * Each file but the first locks its own state, and calls nothing outside
 * itself while it does.
 */
#ifndef FAULT_LAYER_H
#define FAULT_LAYER_H

#include "fault.h"
#include "fault_calls.h"

/* The next layer's, or the loader's, entries; written once, by clInitLayer. */
extern cl_icd_dispatch fault__target;

/* --- Rules --------------------------------------------------------------- */

/* What becomes of one call. */
struct fault_verdict {
  cl_int error;     /* the call returns it; CL_SUCCESS: it is carried out */
  cl_int doom;      /* the command's event ends with it; CL_SUCCESS: with what
                       the driver says */
  int hidden;       /* a blocking command does not return doom */
  int held;         /* the command waits for a gate */
  uint64_t hold_ns; /* the gate opens after this time; 0: when it is told to */
};

/* Counts the call and judges it. */
void fault__judge(enum fault_call call, struct fault_verdict *out);

/* The same for a call that is no command: the error to return. */
cl_int fault__enter(enum fault_call call);

/* Why memory of these flags and this size is refused; CL_SUCCESS: it is not. */
cl_int fault__refused(cl_mem_flags flags, size_t size);

/* Answers a question in place of the device.  Returns 0 if it is none that is
 * answered here, else 1 with the call's result in out. */
int fault__answer(cl_device_info name, size_t room, void *value,
                  size_t *size_ret, cl_int *out);

void fault__rules_reset(void);
void fault__rules_disarm(void);
int fault__rules_arm(const fault_rule *rule);
uint64_t fault__rules_struck(int rule);
const char *fault__rules_last(void);
uint64_t fault__rules_calls(const char *call);
void fault__refuse_pinned(cl_int error);
void fault__limit_allocation(size_t most, cl_int error);
int fault__device_info(cl_device_info name, const void *value, size_t size);

/* --- Objects ------------------------------------------------------------- */

/* The driver has made an object; the program holds one reference. */
void fault__made(fault_object kind, const void *object);

/* The program holds one more.  Objects not made through this layer are not
 * counted, here and below. */
void fault__retained(fault_object kind, const void *object);

/* The program gives one back; returns 0 if it holds none. */
int fault__released(fault_object kind, const void *object);

/* A map gave this pointer; it is given back as FAULT_MAPPING. */
void fault__mapped(const void *pointer);

/* Bytes moved for a buffer; second, if any, is counted apart. */
void fault__moved(fault_move move, size_t bytes, cl_mem mem, cl_mem second);

/* From now on the event ends with status, and is of a command of that type. */
void fault__doom(cl_event event, cl_int status, cl_command_type type);

/* The status that a doomed event ends with, and its command's type; CL_SUCCESS
 * for another. */
cl_int fault__doomed(cl_event event, cl_command_type *type);

/* Whether any event of a list is doomed. */
int fault__any_doomed(cl_uint num, const cl_event *list);

void fault__objects_reset(void);
int64_t fault__objects_live(fault_object kind);
int64_t fault__objects_references(fault_object kind, const void *object);
uint64_t fault__objects_over_releases(void);
uint64_t fault__objects_moved(cl_mem mem, fault_move move);

/* --- Gates --------------------------------------------------------------- */

/*
 * Makes an event that stays incomplete until the gate opens.
 *   ns   after how long; 0: at fault__gates_open() alone
 *   out  to be released with the target's clReleaseEvent()
 */
cl_int fault__gate_make(cl_command_queue queue, uint64_t ns, cl_event *out);

unsigned fault__gates_held(void);
void fault__gates_open(void);

#endif

/*
 * fault.h - a layer between program and OpenCL that makes calls fail.
 *
 * The layer is a shared module that the OpenCL loader puts in front of every
 * driver when OPENCL_LAYERS names it.  A test steers it, in the same process
 * and while it runs, through the functions below:
 *
 *     const fault_api *fault = fault_open();      // NULL: no layer, skip
 *     fault_rule rule = {"clEnqueueReadBuffer", 2, 0, FAULT_CALL_FAILS,
 *                        CL_OUT_OF_RESOURCES, 0, 0};
 *
 *     fault->arm(&rule);                          // the second read fails
 *     ...
 *     fault->reset();
 *
 * What the layer itself calls is neither counted nor made to fail.  It holds
 * no lock while a driver or a callback runs.  All functions may be called by
 * any thread.
 */
#ifndef FAULT_H
#define FAULT_H

#include <stddef.h>
#include <stdint.h>

#include <CL/cl.h>

/* Changes whenever fault_api does: module and test are built together. */
#define FAULT_API_VERSION 1

/* The symbol of the module: const fault_api *fault_layer_api(void). */
#define FAULT_API_SYMBOL "fault_layer_api"

/* What is counted by references. */
typedef enum fault_object {
  FAULT_CONTEXT,
  FAULT_QUEUE,
  FAULT_MEM,
  FAULT_EVENT,
  FAULT_PROGRAM,
  FAULT_KERNEL,
  FAULT_MAPPING, /* by pointer; a map takes a reference, an unmap gives it */
  FAULT_OBJECTS /* how many there are */
} fault_object;

/* What is counted by bytes. */
typedef enum fault_move {
  FAULT_READ,
  FAULT_WRITE,
  FAULT_READ_RECT,
  FAULT_WRITE_RECT,
  FAULT_COPY, /* counted at both its buffers, once in the sum of all */
  FAULT_COPY_RECT,
  FAULT_FILL,
  FAULT_MAP,
  FAULT_MOVES
} fault_move;

typedef enum fault_what {
  /*
   * The call does nothing and returns error.  Releases and unmaps do their
   * work all the same: nobody could do it later.
   */
  FAULT_CALL_FAILS,
  /*
   * The command is accepted, moves nothing, and its event ends with error (a
   * negative number) when its turn has come.  So does, with
   * CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, every command that waits for
   * this event.  Markers, barriers and unmaps do their work before they fail;
   * the pointer that a failed map gives may not be touched.
   */
  FAULT_EVENT_FAILS,
  /* The command does not start before let_go(), or hold_ns have passed. */
  FAULT_HELD
} fault_what;

/* Which call, and what becomes of it. */
typedef struct fault_rule {
  const char *call;   /* "clEnqueueReadBuffer", "clCreate*"; NULL: any call.
                         FAULT_EVENT_FAILS and FAULT_HELD: commands alone */
  uint64_t nth;       /* 1: the next such call after arm() */
  int lasting;        /* 0: that call alone; 1: and all such calls after it */
  fault_what what;
  cl_int error;       /* negative */
  int hidden;         /* FAULT_EVENT_FAILS: 1: a blocking command returns
                         CL_SUCCESS, as on drivers that do not look */
  uint64_t hold_ns;   /* FAULT_HELD: 0: until let_go() */
} fault_rule;

typedef struct fault_api {
  unsigned version; /* FAULT_API_VERSION */

  /* Disarms all rules, lets held commands go, forgets facts and limits and
   * sets all counts to zero but those of references. */
  void (*reset)(void);

  /* Adds a rule and returns its number, or -1: no call that it is for, or no
   * room. */
  int (*arm)(const fault_rule *rule);
  /* How often the rule of that number has struck. */
  uint64_t (*struck)(int rule);
  /* The call that was struck last, by any rule; "" if none was. */
  const char *(*last_struck)(void);
  /* Disarms all rules; held commands stay held, counts stay. */
  void (*disarm)(void);

  /* Calls since reset(), of that name, or of all as in a rule. */
  uint64_t (*calls)(const char *call);

  /* How many commands are held now; lets them all go. */
  unsigned (*held)(void);
  void (*let_go)(void);

  /* Every clCreateBuffer() of pinned memory (CL_MEM_ALLOC_HOST_PTR) fails;
   * CL_SUCCESS: no longer. */
  void (*refuse_pinned)(cl_int error);
  /* Every clCreateBuffer() of more than most bytes fails; CL_SUCCESS: no
   * longer. */
  void (*limit_allocation)(size_t most, cl_int error);
  /* What every device answers to that question from now on; value NULL: the
   * truth again.  Returns -1 if there is no room. */
  int (*device_info)(cl_device_info name, const void *value, size_t size);

  /* References that the program holds, to all objects of a kind or to one. */
  int64_t (*live)(fault_object kind);
  int64_t (*references)(fault_object kind, const void *object);
  /* Releases of what was held no longer, and unmaps of what was mapped no
   * longer; they do not reach the driver. */
  uint64_t (*over_releases)(void);

  /* Bytes moved since reset(), by commands that were accepted and not made to
   * fail, of one buffer or (NULL) of all. */
  uint64_t (*moved)(cl_mem mem, fault_move move);
} fault_api;

/*
 * Names the layer of this build to the loader, before the first OpenCL call of
 * the process; layers that the environment names already are kept instead.
 */
void fault_use(void);

/*
 * Does the loader load the layer?  Looked for in a child, so that the driver
 * does not start here.
 */
int fault_works(void);

/*
 * The functions of the layer that the loader has loaded; NULL if it has loaded
 * none.  Makes the loader load its layers.
 */
const fault_api *fault_open(void);

#endif

/*
 * The OpenCL devices of this machine, which one the user means, and the
 * library's context on it.
 */
#ifndef TOOL_DEVICE_CHOICE_H
#define TOOL_DEVICE_CHOICE_H

#include "tool.h"

#include <clbytes.h>

struct tool_platform {
  cl_platform_id id;
  char *name;
  char *version;
  char *vendor;
  char *suffix; /* of its extensions: "POCL", "NV"; "?" where it has none */
  size_t first_device; /* index of its first device in the list */
  size_t device_count;
  cl_int status; /* of asking for its devices */
};

struct tool_device {
  cl_platform_id platform;
  size_t platform_index;
  const char *platform_name; /* the platform's own */
  cl_device_id id;
  cl_device_type type;
  char *name;
};

/* In the order of the loader; a device's index counts across platforms. */
struct tool_device_list {
  struct tool_platform *platforms;
  size_t platform_count;
  struct tool_device *devices;
  size_t device_count;
};

/* A queue of a device, and what the library made of it. */
struct tool_session {
  cl_context cl;
  cl_command_queue queue;
  clb_context *context;
};

/* Asks the loader.  Returns an exit code; says what failed.  A list without a
 * platform is a failure too. */
int tool_device_list_make(struct tool_device_list *out);
void tool_device_list_free(struct tool_device_list *list);

/* A string that a device tells, without white space at its ends, to be freed;
 * "?" where it does not tell; NULL without memory. */
char *tool_device_string(cl_device_id device, cl_device_info what);

/*
 * The device of an index, or of a part of its or its platform's name, else of
 * its platform's vendor, version or extensions' suffix; for NULL the first GPU
 * or accelerator, else the first device.  Returns an exit code;
 * says what failed.
 */
int tool_device_choose(const struct tool_device_list *list, const char *wanted,
                       const struct tool_device **out);

/* Room for what made a device unusable. */
enum { TOOL_WHY = 512 };

/* Makes a session, to be closed.  Returns an exit code, and if it is not
 * TOOL_OK what failed, in why. */
int tool_session_open(const struct tool_device *device,
                      const struct tool_options *options, char why[TOOL_WHY],
                      struct tool_session *out);
void tool_session_close(struct tool_session *session);

#endif

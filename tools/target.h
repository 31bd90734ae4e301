/* Whether a file can be written, looked at before the work that it is for. */
#ifndef TOOL_TARGET_H
#define TOOL_TARGET_H

#include <stdint.h>

/* The path must be of a regular file or of none yet, and its directory one
 * that files can be made in.  Returns an exit code; says what failed. */
int tool_target_check(const char *path);

/* The file system must have room for one more file of this many bytes, where
 * it tells.  After tool_target_check(). */
int tool_target_check_room(const char *path, uint64_t bytes);

#endif

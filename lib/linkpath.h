/*
 * linkpath.h - where a path leads.
 */
#ifndef CLB_LINKPATH_H
#define CLB_LINKPATH_H

#include <clbytes.h>

/*
 * Follows symbolic links in the last component of path until there is none;
 * what the last one names need not exist.
 *   out  to be freed with free()
 * CLB_IO_ERROR, CLB_OUT_OF_MEMORY
 */
clb_status clb__path_resolve(const char *path, char **out);

#endif

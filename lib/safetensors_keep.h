/*
 * safetensors_keep.h - an old set, kept readable while its files are replaced.
 */
#ifndef CLB_SAFETENSORS_KEEP_H
#define CLB_SAFETENSORS_KEEP_H

#include "safetensors_shards.h"
#include "savefile.h"

typedef enum clb__kept {
  CLB__NOT_NAMED, /* the old index, if any, names no file that is replaced */
  CLB__KEPT,      /* it names other names of those files now */
  CLB__NOT_KEPT   /* it has to go before the first is replaced */
} clb__kept;

/* Start from zeros. */
typedef struct clb__old_set {
  struct clb__old_file *files; /* what has the second name of each shard */
} clb__old_set;

/*
 * Looks at the old index of a set that is about to be replaced, and keeps what
 * it names.
 *   index  sealed, as are the shards
 *   old    to be freed
 */
clb__kept clb__old_set_keep(const clb__shard_set *set,
                            const clb__savefile *index, bool durable,
                            clb__old_set *old);

/* Removes the second names, of a set that is replaced by now.  Another saver
 * may have begun: its names stay. */
void clb__old_set_forget(const clb__shard_set *set, const clb__old_set *old);
void clb__old_set_free(clb__old_set *old);

#endif

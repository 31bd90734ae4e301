/*
 * clbytes/safetensors.h - safetensors files, saved straight from the device.
 *
 * A save plans the file from lengths alone, then streams each tensor from
 * where it is into the file: nothing is materialised, and the host memory
 * needed is the staging ring's, whatever the size of the model.  An open reads
 * the header alone; its tensors are lazy file handles, ready for
 * clb_bytes_upload().
 *
 *     clb_tensor tensor = {"temperature", "F32", 2, shape, field};
 *     if (clb_safetensors_save("step.safetensors", &tensor, 1, NULL) != CLB_OK)
 *       fprintf(stderr, "%s\n", clb_error_message());
 *
 * The format is that of the safetensors library, 0.8: eight bytes of header
 * length, little-endian; a JSON header padded with spaces to a multiple of
 * eight; the tensors' bytes, packed, row-major, without holes.  The rules for
 * every function in <clbytes.h> hold here too.
 */
#ifndef CLBYTES_SAFETENSORS_H
#define CLBYTES_SAFETENSORS_H

#include <clbytes.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A tensor of a file.  Written by the caller for a save; written by the
 * library, and owned by the clb_safetensors, when a file is opened.
 */
typedef struct clb_tensor {
  const char *name;    /* UTF-8; unique in the file; not "__metadata__" */
  const char *dtype;   /* the format's own name: "F32", "BF16", "I64", ... */
  size_t ndim;         /* dimensions of shape */
  const size_t *shape; /* extents, in elements of dtype; for a save NULL: the
                          handle's own logical shape; not NULL, and ndim 0, for
                          a single element whatever the handle's shape */
  clb_bytes *bytes;    /* contents, in row-major order; little-endian */
} clb_tensor;

/* A pair of the file's metadata; UTF-8. */
typedef struct clb_pair {
  const char *key;
  const char *value;
} clb_pair;

/*
 * Told how far a save is, in tensor bytes, after each piece and at least at
 * the end; runs on the saving thread.  Nonzero: cancel.
 */
typedef int (*clb_progress)(uint64_t done, uint64_t total, void *user);

/*
 * How a file is written or read.  0 chooses by the file system and by what is
 * wanted; another that the file system refuses is CLB_UNSUPPORTED.
 */
typedef enum clb_file_io {
  CLB_FILE_AUTO = 0,
  CLB_FILE_BUFFERED, /* through the page cache */
  CLB_FILE_DIRECT,   /* past it (O_DIRECT) */
  CLB_FILE_MAPPED    /* saves alone: copied into a shared mapping by several
                        threads; for file systems in memory */
} clb_file_io;

/* Start from CLB_SAVE_OPTIONS_INIT.  Written by the caller, read during the
 * call. */
typedef struct clb_save_options {
  size_t struct_size;       /* sizeof(clb_save_options) of the caller's header;
                               as in clb_context_options */
  const clb_pair *metadata; /* metadata_count pairs; keys differ */
  size_t metadata_count;
  int durable;              /* non-zero: data and directory entry are on the
                               disk when it returns (fsync) */
  clb_progress progress;    /* NULL: none */
  void *user;               /* given to progress as it is */
  uint64_t max_shard_size;  /* most bytes of tensors in a file: what does not
                               fit in one is saved as a set; 0: one file */
  clb_file_io io;
  int verify;               /* non-zero: before the file takes its name it is
                               read again, past the page cache where that can
                               be, and compared with hashes (XXH3) that were
                               made on its way there */
} clb_save_options;
#define CLB_SAVE_OPTIONS_INIT                                                  \
  { sizeof(clb_save_options), 0, 0, 0, 0, 0, 0, CLB_FILE_AUTO, 0 }

/*
 * With max_shard_size, a save of more than one file can hold is a set, as
 * huggingface_hub writes them: for the path "dir/model.safetensors" the shards
 * "dir/model-00001-of-00003.safetensors" and so on, and the index
 * "dir/model.safetensors.index.json", which clb_safetensors_open() opens.  No
 * file is written as path itself then.  Tensors go into a shard in the order
 * given until the next would pass the size; one that is larger alone has a
 * shard of its own.  Each shard is as a save of its tensors would be, with all
 * of the metadata.  Where one file suffices it is written as path, without an
 * index.  What other saves left is left alone: a file of path's own name
 * beside a set, shards of another count, an index beside a single file.
 *
 * Every shard is written beside its name, with room for all on the disk first;
 * when all are whole they are renamed, then the index: an index never names a
 * file that is not whole, nor files of two saves.  Whatever fails or is killed,
 * the index that is there opens the old set or the new one.  Where shards
 * replace those that the old index names, the old files get second names, such
 * as "dir/.model-00001-of-00003.safetensors.clbytes-old", and the old index is
 * made to name those, before the first rename; they are removed at the end, or,
 * after a failure or a kill in between, by the next save of as many shards.
 * Where there are no second names (a file system without hard links, a path
 * that is a symbolic link) the old index is removed before the first rename
 * instead, and until the new one is there the set has none.  Saves of one path
 * wait for each other.  A save holds two descriptors for each shard.
 */

/*
 * Saves count tensors as path.  Tensors are laid down by their dtype, the
 * widest first, then by name, as the format's own writer does.  Each is read
 * only when its turn comes.
 *
 * The file is written beside path under the name ".NAME.clbytes-tmp", locked,
 * and renamed: whatever fails, the old file or the new one is there, whole.
 * A failed save removes its scratch file; one that a killed process left is
 * removed by the next save of path.  A path that is a symbolic link stays one,
 * and its target is replaced.  The file has the mode of the one it replaces,
 * else 0666 less the umask.  Saving onto the file that the tensors are read
 * from works.
 *   tensors  count of them; may be NULL if count is 0
 *   options  NULL: the defaults
 * CLB_INVALID_ARGUMENT  before anything is written: a name that is NULL, given
 *                       twice, "__metadata__" or not UTF-8; metadata likewise;
 *                       an unknown dtype; a shape and dtype that differ from
 *                       the handle's length; path is no regular file
 * CLB_UNSUPPORTED       an option that this library does not know; a device
 *                       or host that is not little-endian
 * CLB_IO_ERROR          the file cannot be written; the message has the path.
 *                       (Where syncing the directory after the rename fails,
 *                       the new file is in place, and may not last a crash.)
 * CLB_CANCELLED         progress stopped it
 * CLB_OUT_OF_MEMORY, and whatever reading a tensor returns; the message has
 *                       the tensor's name
 * Blocks; also while another thread or process saves the same path, so progress
 * and sinks must not save it.
 */
clb_status clb_safetensors_save(const char *path, const clb_tensor *tensors,
                                size_t count, const clb_save_options *options);

/*
 * The same bytes to a sink, for a socket, a pipe, a compressor; durable and
 * max_shard_size say nothing here.  A sink that stops is CLB_CANCELLED.
 */
clb_status clb_safetensors_write(clb_sink sink, void *user,
                                 const clb_tensor *tensors, size_t count,
                                 const clb_save_options *options);

/* What a save would do with one tensor.  Written by the library. */
typedef struct clb_tensor_plan {
  size_t index;     /* of the tensor in the caller's array */
  size_t file;      /* which file of the set, from 0 on; 0 where it is one */
  uint64_t offset;  /* bytes from that file's start to the tensor's first */
  uint64_t bytes;   /* of the tensor, in the file */
  uint64_t read;    /* bytes read for it: of a tensor over the same region as
                       one before it in the same file less than two pages, since
                       it gets that one's bytes */
  char plan[120];   /* how, in words: as clb_bytes_plan(); cut where it is
                       longer */
} clb_tensor_plan;

/* What a save would do in all.  Written by the library. */
typedef struct clb_save_plan {
  size_t files;       /* an index not counted */
  uint64_t file_bytes;   /* of all files, headers and an index too */
  uint64_t tensor_bytes; /* in them */
  uint64_t read_bytes;   /* of tensors, from where they are */
  uint64_t peak_memory;  /* most bytes of host memory that the save holds at
                            once, pinned blocks too; for each tensor a few
                            hundred more */
} clb_save_plan;

/*
 * Says what clb_safetensors_save() would do with the same arguments: checks
 * what it checks, and enqueues, reads and writes nothing.  What only an access
 * finds out of a device (whether mapping moves nothing, how fast the link is)
 * is taken for what such devices mostly do, until one has been made.
 *   path     NULL: names and the path itself are not looked at
 *   tensors  may be NULL if count is 0
 *   options  NULL: the defaults
 *   plans    count of them, written in the order of the files; NULL: none
 *   out      may be NULL
 * CLB_INVALID_ARGUMENT, CLB_UNSUPPORTED, CLB_OUT_OF_MEMORY  as the save
 * CLB_DEVICE_ERROR  a device cannot be asked what it is
 * Any thread.  Never blocks.
 */
clb_status clb_safetensors_plan(const char *path, const clb_tensor *tensors,
                                size_t count, const clb_save_options *options,
                                clb_tensor_plan *plans, clb_save_plan *out);

/* An open file: its header, and its tensors as lazy handles. */
typedef struct clb_safetensors clb_safetensors;

/*
 * Opens a file, reading its header alone.  The header may have 100,000,000
 * bytes, a tensor 64 dimensions; time and memory are linear in the header, the
 * memory at most 16 times its length and 16 MiB, for hostile files too.
 * Unknown keys in a tensor's entry are ignored.
 *
 * A path that ends in ".index.json" is the index of a set, and the set is
 * opened as one: its "weight_map" says which tensor is in which file, beside
 * the index.  Tensors are in the order of their files' names, then of their
 * data; metadata is that of all files, each key once, with its value in the
 * first file that has it.  The index may have 100,000,000 bytes too; time and
 * memory are linear in the index and the headers.  Names of files that lead
 * elsewhere are refused ("/", ".."); what the index says beside the map is
 * ignored.  The set holds a descriptor for each file.
 *   out  to be closed
 * CLB_INVALID_ARGUMENT  not a regular file
 * CLB_IO_ERROR          it cannot be opened or read
 * CLB_FORMAT_ERROR      it is not a safetensors file, or not an index; a file
 *                       of the set is not, or its tensors are not those that
 *                       the index says.  The message says what is wrong and
 *                       where
 * CLB_UNSUPPORTED       the host is not little-endian
 * CLB_OUT_OF_RANGE      a tensor larger than SIZE_MAX
 * CLB_OUT_OF_MEMORY
 * Blocks while it reads.
 */
clb_status clb_safetensors_open(const char *path, clb_safetensors **out);

/* Number of tensors; 0 for NULL.  Never blocks. */
size_t clb_safetensors_count(const clb_safetensors *file);

/*
 * The tensor of an index, in the order of the tensors' data in the file; of a
 * set, in that of clb_safetensors_open().
 *   out  its members live until clb_safetensors_close(); to keep the bytes
 *        longer, clb_bytes_retain() them
 * CLB_OUT_OF_RANGE  index is not below the count
 * Never blocks.
 */
clb_status clb_safetensors_tensor(const clb_safetensors *file, size_t index,
                                  clb_tensor *out);

/*
 * The tensor of a name; out as above.
 * CLB_NOT_FOUND  there is none
 * Never blocks.
 */
clb_status clb_safetensors_find(const clb_safetensors *file, const char *name,
                                clb_tensor *out);

/* Number of metadata pairs; 0 for NULL.  Never blocks. */
size_t clb_safetensors_metadata_count(const clb_safetensors *file);

/*
 * The metadata pair of an index, in the order of the file; its strings live
 * until clb_safetensors_close().
 * CLB_OUT_OF_RANGE  index is not below the count
 * Never blocks.
 */
clb_status clb_safetensors_metadata_at(const clb_safetensors *file,
                                       size_t index, clb_pair *out);

/* Closes the file and releases its handles.  NULL is fine.  Alone. */
void clb_safetensors_close(clb_safetensors *file);

/*
 * Where a tensor of a file goes.  The library sets tensor and zeroes the rest;
 * the program's clb_place_tensor sets what it wants otherwise.  Arrays live
 * until the function returns: the library copies them.
 */
typedef struct clb_placement {
  const clb_tensor *tensor; /* as in the file; its handle is the file's */
  int skip;                 /* non-zero: it is not loaded, and not in out */
  /* A part of it, as clb_bytes_slice(): an element each dimension; NULL: all.
   * Only the bytes of the part are read. */
  const size_t *start, *count;
  const ptrdiff_t *step;
  cl_mem buffer;            /* of the context; NULL: the library makes one, of
                               the packed part's bytes.  The library takes a
                               reference of its own */
  const clb_layout *layout; /* where in the buffer; NULL: packed, from byte 0 */
} clb_placement;

/* Called once for each tensor, in the order of the file, before the first is
 * read, on the calling thread.  Nonzero: stop, CLB_CANCELLED. */
typedef int (*clb_place_tensor)(clb_placement *placement, void *user);

/* Start from CLB_LOAD_OPTIONS_INIT.  Written by the caller, read during the
 * call. */
typedef struct clb_load_options {
  size_t struct_size;       /* as in clb_save_options */
  const char *const *names; /* the tensors that are wanted; NULL: all */
  size_t name_count;
  const char *prefix;       /* of names that are wanted; NULL: any */
  clb_file_io io;           /* CLB_FILE_AUTO or _BUFFERED: through the page
                               cache */
  clb_progress progress;    /* told of bytes that are on the device, after each
                               tensor */
  void *user;               /* given to progress as it is */
} clb_load_options;
#define CLB_LOAD_OPTIONS_INIT                                                  \
  { sizeof(clb_load_options), 0, 0, 0, CLB_FILE_AUTO, 0, 0 }

/*
 * Loads a file, or a set by its index, into buffers of a context, a tensor
 * after the other: file to pinned blocks to device, overlapped, in tens of MiB
 * of host memory, whatever the layouts.  Contents are visible to commands that
 * are enqueued after it returned.
 *   place    NULL: every wanted tensor into a buffer of its own
 *   user     given to place as it is
 *   options  NULL: the defaults
 *   out      to be closed: the tensors that were loaded, by the functions
 *            below; their handles are on the device and hold the buffers
 *            (clb_bytes_buffer()), also after the close if they are retained.
 *            Their layouts are those they were placed with
 * CLB_INVALID_ARGUMENT  also: a layout whose bytes differ from the tensor's, a
 *                       buffer of another context, a slice that does not fit
 * CLB_NOT_FOUND         a name of names is not in the file (the message has it)
 * CLB_CANCELLED         place or progress stopped it
 * CLB_UNSUPPORTED       also: another io; a part of a tensor whose elements are
 *                       no whole bytes
 * and whatever clb_safetensors_open() and clb_bytes_upload() return.  *out is
 * NULL after a failure, and the contents of the buffers that place gave are
 * undefined.  All of the arguments and placements are checked before the first
 * byte is read.
 * Any thread; blocks until the bytes are on the device.
 */
clb_status clb_safetensors_load(const char *path, clb_context *context,
                                clb_place_tensor place, void *user,
                                const clb_load_options *options,
                                clb_safetensors **out);

#ifdef __cplusplus
}
#endif

#endif

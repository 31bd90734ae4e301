/*
 * clbytes.h - bytes that may still be on an OpenCL device.
 *
 * Your tensors live in OpenCL buffers; their bytes have to reach a file, a
 * socket or a pointer.  A clb_bytes is a handle on such a run of bytes: making
 * one is cheap, keeps the cl_mem alive by retain/release and copies nothing.
 * The bytes come to the host the first time somebody looks, once, whatever the
 * number of threads; or they are streamed through a small ring of pinned
 * memory and never held at all.
 *
 *     clb_context *context = NULL;
 *     clb_bytes *field = NULL;
 *     size_t shape[2] = {1080, 1917};
 *     ptrdiff_t strides[2] = {7936, 4};              // bytes: rows are padded
 *     clb_layout layout = {2, shape, strides, 4, 0};
 *     const void *data;
 *
 *     if (clb_context_create(queue, NULL, &context) != CLB_OK ||
 *         clb_bytes_from_buffer(context, buffer, &layout, &field) != CLB_OK ||
 *         clb_bytes_read(field, CLB_COPY, &data) != CLB_OK)
 *       fprintf(stderr, "%s\n", clb_error_message());
 *     else
 *       fwrite(data, 1, clb_bytes_length(field), stdout);  // 1080 * 1917 * 4
 *     clb_bytes_release(field);
 *     clb_context_release(context);
 *
 * (examples/read_field.c is this program, whole.)
 *
 * Words
 *   handle         a clb_bytes; reference counted
 *   layout         how a tensor lies in a buffer: shape, byte strides,
 *                  element size, byte offset
 *   logical bytes  the tensor's elements in row-major order, packed: what a
 *                  reader sees; product(shape) * elem_size of them
 *   materialise    bring the logical bytes to the host and keep them
 *   stream         pass the logical bytes on chunk by chunk, keeping none
 *   staging        pinned host blocks, made once and reused
 *   plan           how a layout is moved on a device: see CLB_PLAN_MAP
 *   source         where contents come from: a device buffer, a file region,
 *                  host memory
 *
 * Rules for every function
 *   Status   CLB_OK is 0.  Whatever fails leaves its output parameters and its
 *            handle as they were, and the thread's clb_error_message() says
 *            what happened.  A NULL handle, context or required pointer is
 *            CLB_INVALID_ARGUMENT, in every function that returns a status;
 *            that is not repeated below.  Beyond that only what OpenCL itself
 *            refuses is refused: any other pointer that does not lead to what
 *            the prototype says is undefined behaviour.
 *   Release  NULL is fine in every release.
 *   Threads  Any thread may call any function on any object, two threads on
 *            the same object too.  The exceptions say "alone": they need the
 *            handle to oneself.  A child after fork() may not call.
 *   Sizes    are in bytes unless a comment says elements.
 *   Environment  CLBYTES_DEBUG, a list of words with commas between, is read
 *            when a context is made; the word "log" sends the context's log to
 *            stderr; with "torn" a save fails that finds a tensor of the
 *            context changed since it was read, which costs a look at some
 *            parts of each.  Nothing else is read, and nothing aborts or prints.
 */
#ifndef CLBYTES_H
#define CLBYTES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __APPLE__
#include <OpenCL/cl.h>
#else
#include <CL/cl.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- Version and status -------------------------------------------------- */

/* The version these headers belong to; clb_version() tells the library's. */
#define CLB_VERSION_MAJOR 0
#define CLB_VERSION_MINOR 1
#define CLB_VERSION_MICRO 0

/*
 * Version of the library that runs: major << 16 | minor << 8 | micro.
 * Never blocks.
 */
unsigned clb_version(void);

/*
 * Every status, with its text.  The numbers stay what they are: new ones are
 * added at the end.
 */
#define CLB_STATUS_MAP(XX)                                                     \
  XX(OK, "success")                                                            \
  XX(WOULD_COPY, "the contents cannot be had without a copy")                  \
  XX(INVALID_ARGUMENT, "an argument is not allowed")                           \
  XX(INVALID_LAYOUT, "the layout is not valid or leaves its buffer")           \
  XX(OUT_OF_RANGE, "the range is outside the contents")                        \
  XX(UNSUPPORTED, "not possible for this object")                              \
  XX(OUT_OF_MEMORY, "out of memory or past a limit")                           \
  XX(DEVICE_ERROR, "an OpenCL call or command failed")                         \
  XX(IO_ERROR, "a file could not be read or written")                          \
  XX(FORMAT_ERROR, "the file is not in the format")                            \
  XX(CANCELLED, "stopped by the caller")                                       \
  XX(TIMEOUT, "the time limit passed")                                         \
  XX(NOT_FOUND, "no such name")

typedef enum clb_status {
#define CLB__STATUS_ENUM(name, text) CLB_##name,
  CLB_STATUS_MAP(CLB__STATUS_ENUM)
#undef CLB__STATUS_ENUM
  CLB__STATUS_LAST = CLB_NOT_FOUND /* C++98 takes no comma before the brace */
} clb_status;

/* "CLB_OK", "CLB_WOULD_COPY", ...; "CLB_UNKNOWN" for any other number.  The
 * string is static.  Never blocks. */
const char *clb_status_name(clb_status status);

/*
 * This thread's last failure in one line: what, which label or range, which
 * OpenCL call with its symbolic error, or the text of errno.  "" before the
 * first.  Valid until this thread's next failure; CLB_OK, CLB_WOULD_COPY,
 * CLB_TIMEOUT and CLB_NOT_FOUND leave it.  Never blocks.
 */
const char *clb_error_message(void);

/* OpenCL's code of this thread's last failure, CL_SUCCESS if it had none. */
cl_int clb_error_cl(void);

/* --- Context ------------------------------------------------------------- */

/*
 * A context stands for one command queue of the program: it knows the device,
 * owns the staging ring and the library's own queues, and counts.  Reference
 * counted; handles made from it keep it alive.
 */
typedef struct clb_context clb_context;
typedef struct clb_bytes clb_bytes;

/*
 * The ways to move a layout, a bit set for clb_context_options.plans.
 *   MAP     map the region where mapping moves no bytes, and read it in place
 *   READ    plain reads, one for each contiguous run
 *   RECT    rectangular reads of up to three dimensions
 *   PACK    a kernel packs the region on the device, and plain reads move it;
 *           up to seven dimensions once neighbours are merged
 *   GATHER  whole spans are read and picked apart on the host; with RECT also
 *           allowed, what is read may be a rectangle of the span
 * READ and RECT alone carry no zero or negative stride.  Uploads use the same
 * set: MAP writes in place, READ stands for plain writes, RECT for rectangular
 * ones, GATHER for arranging on the host what one write carries, PACK for a
 * kernel that scatters it.  No small access waits for a compiler: the
 * kernel is built by a thread of the library's once accesses have lost a few
 * milliseconds for the want of it, and until then other plans go; only one so
 * large that waiting costs less than doing without has it built at once.
 */
enum {
  CLB_PLAN_MAP = 1,
  CLB_PLAN_READ = 2,
  CLB_PLAN_RECT = 4,
  CLB_PLAN_PACK = 8,
  CLB_PLAN_GATHER = 16
};

/*
 * What moving bytes costs, for choosing between plans: figures of this device
 * in place of the library's.  Start from CLB_COSTS_INIT; 0 leaves one to the
 * library, which has fixed ones, and measures the first three, once a context,
 * where the device has a memory of its own.
 */
typedef struct clb_costs {
  size_t struct_size; /* as in clb_context_options */
  double command_us;  /* one command, all told, in microseconds */
  double link_gbs;    /* contiguous bytes over the link, in 10^9 bytes/s */
  double row_ns;      /* one row of a rect, beside its bytes, in nanoseconds */
  double pick_ns;     /* one run picked apart on the host, beside its bytes */
  double pick_gbs;    /* bytes picked apart on the host */
  double pack_gbs;    /* bytes packed by a kernel */
} clb_costs;
#define CLB_COSTS_INIT { sizeof(clb_costs), 0, 0, 0, 0, 0, 0 }

/*
 * Start from CLB_CONTEXT_OPTIONS_INIT and set what you need.  The caller
 * writes all members; they are read in clb_context_create() alone.  A zero
 * means: chosen for the device, unless the member says otherwise.
 */
typedef struct clb_context_options {
  size_t struct_size;    /* sizeof(clb_context_options) of the caller's header;
                            members beyond it read as zero, non-zero bytes that
                            this library does not know are CLB_UNSUPPORTED */
  size_t chunk_size;     /* bytes of one staging block; at least 4096; chosen:
                            4 MiB, or 16 where the device has a memory of
                            its own, or a quarter of staging_limit if less */
  size_t staging_limit;  /* most pinned bytes held at once; at least one chunk;
                            chosen: eight chunks */
  size_t host_limit;     /* most bytes that materialised device handles may
                            hold; 0: no limit */
  unsigned copy_threads; /* host threads that move bytes out of staging, the
                            caller's among them; 1: the caller's alone; chosen:
                            as many as the machine has cores, at most 16.  The
                            library's are shared by all contexts */
  unsigned plans;        /* bit set of CLB_PLAN_*; 0: all.  For tests, tuning
                            and broken drivers */
  void (*log)(const char *line, void *user); /* one line a transfer: plan,
                            bytes, time; called on the transferring thread with
                            no lock held; it must not call the library */
  void *log_user;        /* given to log as it is */
  const clb_costs *costs; /* NULL: all of them the library's */
} clb_context_options;
#define CLB_CONTEXT_OPTIONS_INIT                                               \
  { sizeof(clb_context_options), 0, 0, 0, 0, 0, 0, 0, 0 }

/*
 * Makes a context for a queue.  The queue, in-order or out-of-order, is
 * retained; reads see what was enqueued on it (see clb_bytes_read).
 *   queue    the program's queue
 *   options  NULL: the defaults
 *   out      the context, to be released
 * CLB_INVALID_ARGUMENT  no command queue; a struct_size of 0, a chunk_size
 *                       below 4096, a staging_limit below one chunk, a cost
 *                       that is negative or not finite
 * CLB_UNSUPPORTED       an option or plan that this library does not know
 * CLB_DEVICE_ERROR      OpenCL refused something
 * CLB_OUT_OF_MEMORY
 * Does not wait for the queue.
 */
clb_status clb_context_create(cl_command_queue queue,
                              const clb_context_options *options,
                              clb_context **out);

/* One more reference; returns its argument.  NULL gives NULL. */
clb_context *clb_context_retain(clb_context *context);

/*
 * One reference less.  The last one, the handles' included, waits for
 * transfers that are still in flight, and for a kernel that is being built, and
 * gives everything back.
 */
void clb_context_release(clb_context *context);

/* Gives idle staging blocks and scratch buffers back.  Does not wait for
 * transfers that are running.  NULL is fine. */
void clb_context_trim(clb_context *context);

/* Written by the library; read through clb_context_stats(). */
typedef struct clb_stats {
  uint64_t reads;           /* accesses that the device served */
  uint64_t bytes_read;      /* their payload: logical bytes */
  uint64_t link_bytes;      /* what crossed the link for it; a transfer through
                               a mapping counts what it read of the mapping, a
                               CLB_MAP access counts 0 */
  uint64_t maps, rects, packs, gathers; /* accesses by plan; the rest of reads
                               were plain reads */
  uint64_t staging_bytes;   /* pinned now */
  uint64_t staging_peak;    /* pinned at most */
  uint64_t pageable_blocks; /* how often a block could not be pinned, none was
                               free, or a chunk is too small for a save's, and
                               pageable memory was used */
  uint64_t host_bytes;      /* held by materialised device handles now; storage
                               that handles share counts once */
  uint64_t host_peak;       /* held at most */
} clb_stats;

/*
 * Copies the counters.
 *   out_size  sizeof(clb_stats) of the caller's header; bytes beyond what this
 *             library knows are zeroed
 * A NULL context gives zeros.  Never blocks for long.
 */
void clb_context_stats(const clb_context *context, clb_stats *out,
                       size_t out_size);

/*
 * Pinned memory of the caller's, for destinations that transfers reach fastest.
 * It counts in no limit, and keeps the context alive until it is freed.
 *   length  0 is allowed
 *   out     aligned for any type; to be given to clb_host_free()
 * CLB_OUT_OF_MEMORY  the driver has no such memory
 * CLB_DEVICE_ERROR   mapping it failed
 * Blocks until the memory is there.
 */
clb_status clb_host_alloc(clb_context *context, size_t length, void **out);

/* Frees what clb_host_alloc() gave, of the same context.  NULL is fine.  Does
 * not block. */
void clb_host_free(clb_context *context, void *data);

/* --- Layouts ------------------------------------------------------------- */

/*
 * How a tensor lies in a buffer.  The byte at offset + sum(i[d] * strides[d])
 * is the first of element (i[0], i[1], ...).  Written by the caller and copied
 * by whatever takes it.
 *
 * Strides are in bytes, so a row pitch need not be a multiple of the element.
 * Zero (broadcast) and negative (reversed) strides are allowed, and so are
 * elements that share bytes.  The stride of a dimension of extent 1 says
 * nothing.  Rank 0 is one element.  An extent of 0 makes the tensor empty; an
 * empty tensor reaches nothing, whatever its strides and offset.
 */
typedef struct clb_layout {
  size_t ndim;              /* dimensions; at most 64 */
  const size_t *shape;      /* ndim extents, in elements; NULL if ndim is 0 */
  const ptrdiff_t *strides; /* ndim strides, in bytes; NULL: packed row-major */
  size_t elem_size;         /* bytes of an element; at least 1 */
  size_t offset;            /* bytes from the buffer's start to element
                               (0, ..., 0) */
} clb_layout;

/* --- Making and releasing handles ---------------------------------------- */

/*
 * A handle on a tensor in a buffer.  Enqueues nothing, reads nothing.
 *   buffer  a buffer or sub-buffer of the context's OpenCL context; its root
 *           is retained.  (The memory of a CL_MEM_USE_HOST_PTR buffer must
 *           live until OpenCL's destructor callback, as always.)
 *   layout  NULL: the whole buffer, as bytes; offsets are relative to the
 *           buffer given
 *   out     the handle, to be released
 * CLB_INVALID_ARGUMENT  no buffer of that context; layout without shape
 * CLB_INVALID_LAYOUT    elem_size 0, more than 64 dimensions, a size that
 *                       overflows, or a reach outside the buffer; the message
 *                       has the numbers
 * CLB_UNSUPPORTED       elements of several bytes on a device whose byte order
 *                       is not the host's
 * CLB_DEVICE_ERROR      an OpenCL query failed
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_from_buffer(clb_context *context, cl_mem buffer,
                                 const clb_layout *layout, clb_bytes **out);

/*
 * The same, for contents that a list of events stands for, whatever queue they
 * are of.  Reads wait for the list alone: an empty list is waited for not at
 * all.  The events are retained until they are seen complete, and views of the
 * handle inherit them.  If one of them fails, every read is CLB_DEVICE_ERROR,
 * at once.
 * CLB_INVALID_ARGUMENT  also: something that is not an event, or one of another
 *                       OpenCL context; a count without a list
 */
clb_status clb_bytes_from_buffer_after(clb_context *context, cl_mem buffer,
                                       const clb_layout *layout,
                                       cl_uint num_events,
                                       const cl_event *wait_list,
                                       clb_bytes **out);

/*
 * A handle on length bytes of a file, from offset on.  The file is opened now
 * and kept open (O_CLOEXEC) until the last handle on it is released; replaced
 * by rename, it still gives the old contents; changed in place (size or
 * modification time), reads are CLB_IO_ERROR.  It is read, never mapped.
 * CLB_INVALID_ARGUMENT  not a regular file
 * CLB_IO_ERROR          it cannot be opened
 * CLB_OUT_OF_RANGE      the region is not inside the file, or larger than
 *                       SIZE_MAX
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_from_file(const char *path, uint64_t offset,
                               uint64_t length, clb_bytes **out);

/*
 * A handle on the caller's own memory, which is not copied.
 *   data     length bytes that live, unchanged, until release is called; may
 *            be NULL if length is 0
 *   release  called once, when nothing uses data any more, on whichever thread
 *            gave up the last use, with no lock held; NULL: nothing is called.
 *            Not called if this function fails
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_from_host(void *data, size_t length,
                               void (*release)(void *data, void *user),
                               void *user, clb_bytes **out);

/*
 * A handle on a copy of length bytes, made now.  data may be NULL if length
 * is 0.
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_from_copy(const void *data, size_t length,
                               clb_bytes **out);

/* One more reference; returns its argument.  NULL gives NULL. */
clb_bytes *clb_bytes_retain(clb_bytes *bytes);

/*
 * One reference less; the last ends the pointers that reads of this handle
 * gave.  Never waits, for what is in flight is finished by the context; only
 * where it is also the context's last reference, as in clb_context_release().
 */
void clb_bytes_release(clb_bytes *bytes);

/*
 * Names the handle in error messages and the log; views made later inherit the
 * name.  The string is copied; NULL takes the name away.
 * CLB_OUT_OF_MEMORY
 * Alone.
 */
clb_status clb_bytes_set_label(clb_bytes *bytes, const char *label);

/* --- Asking: these never copy or block ----------------------------------- */

typedef enum clb_place {
  CLB_PLACE_DEVICE, /* still on the device */
  CLB_PLACE_FILE,   /* still in the file */
  CLB_PLACE_PINNED, /* in pinned memory of the library */
  CLB_PLACE_MAPPED, /* the device's own memory, mapped: CLB_MAP */
  CLB_PLACE_HEAP,   /* in memory of the library */
  CLB_PLACE_FOREIGN /* in the caller's memory: clb_bytes_from_host */
} clb_place;

/* Logical bytes; 0 for NULL. */
size_t clb_bytes_length(const clb_bytes *bytes);

/* Where the contents are: what the last successful read gave, before one
 * where they wait.  CLB_PLACE_HEAP for NULL. */
clb_place clb_bytes_place(const clb_bytes *bytes);

/* Alignment, a power of two in bytes, of the pointer that the last read gave;
 * before a read, what CLB_COPY's will have at least.  1 for NULL. */
size_t clb_bytes_alignment(const clb_bytes *bytes);

/*
 * The logical shape, packed: strides NULL, offset 0.  A view of a byte range
 * has one dimension, of bytes.
 *   out  shape is borrowed from the handle, and lives as long
 */
clb_status clb_bytes_layout(const clb_bytes *bytes, clb_layout *out);

/*
 * The plan in words that a read would take now, such as
 * "rect 1080 x 7668 of pitch 7936, 2 chunks"; "on the host" where nothing has
 * to be brought, "nothing" for length 0.  For a range of bytes that starts or
 * ends within a row the extents are those of the rows that it lies in.
 *   text, size  where to; cut to size - 1 characters and ended with NUL
 * CLB_INVALID_ARGUMENT  size 0
 * CLB_UNSUPPORTED       the context's plans carry no such layout
 * CLB_DEVICE_ERROR, CLB_OUT_OF_MEMORY  asking the device failed, the first
 *                       time a device is asked
 */
clb_status clb_bytes_plan(clb_bytes *bytes, char *text, size_t size);

/* --- Looking ------------------------------------------------------------- */

/*
 * What a read of a device handle sees: every command whose enqueue call on the
 * context's queue returned before the access (a handle from
 * clb_bytes_from_buffer_after: the events of its list, and nothing else).
 * Commands of other queues are not waited for.  From an access until it
 * returns, no command that writes the region may run.
 *
 * How it waits (OpenCL 1.2, 5.9 and 5.13): a marker on the program's queue, a
 * flush and a wait of the host; then the library's own queue, with no wait
 * list.  An earlier command of the queue that failed counts as ended.
 */

typedef enum clb_access {
  CLB_COPY,    /* a stable copy in the library's memory, made at the first
                  call; a host source gives the caller's own */
  CLB_NO_COPY, /* what is on the host already, else CLB_WOULD_COPY */
  CLB_MAP      /* the device's own memory, where mapping moves no bytes and the
                  handle is contiguous, else CLB_WOULD_COPY.  The pointer
                  aliases the buffer: nothing may write there until the handle
                  is released.  On file and host sources: CLB_NO_COPY */
} clb_access;

/*
 * A pointer to the logical bytes.  CLB_COPY and CLB_NO_COPY give one pointer,
 * the same every time, CLB_MAP of a device handle another; each is valid until
 * the handle is evicted, written to, detached or released for the last time.
 * It is never NULL, not even for length 0.  Of threads that arrive together one
 * transfers and the others sleep; a failed access leaves the handle as it was,
 * and each waiter makes its own try.
 *   data  the pointer; read-only
 * CLB_WOULD_COPY     see clb_access; nothing was done
 * CLB_UNSUPPORTED    the context's plans cannot carry the layout
 * CLB_OUT_OF_MEMORY  no host memory, or it would pass host_limit
 * CLB_DEVICE_ERROR   an event of the list, an OpenCL call or a command failed
 * CLB_IO_ERROR       the file cannot be read, or was changed or truncated
 * Blocks, except for CLB_NO_COPY.
 */
clb_status clb_bytes_read(clb_bytes *bytes, clb_access access,
                          const void **data);

/*
 * A pointer to the logical bytes for writing: this handle's own, separated
 * first where views or clones share it (the caller's memory, for a host source
 * that no other handle is on).  What is written shows in this handle alone; to
 * a device it goes by clb_bytes_upload().  After a write the host copy is the
 * only truth: evict, snapshot and buffer are CLB_UNSUPPORTED, and CLB_MAP is
 * CLB_NO_COPY.  After taking a view or a clone, call it again before writing
 * on.  It ends the pointers that reads gave.
 *   access  CLB_COPY; CLB_NO_COPY: CLB_WOULD_COPY if the bytes are not on the
 *           host, or are shared
 * CLB_INVALID_ARGUMENT  access CLB_MAP
 * and those of clb_bytes_read().  Blocks.
 * Alone.
 */
clb_status clb_bytes_write(clb_bytes *bytes, clb_access access, void **data);

/*
 * Copies logical bytes [start, start + length) to dst, exactly that range.
 * Uses the host copy if there is one, else reads the device or file, each
 * time; keeps nothing.
 *   dst  length bytes of the caller's; may be NULL if length is 0.  After a
 *        failure its contents are undefined.  Transfers go straight into memory
 *        from clb_host_alloc(): where the driver then does not even say whether
 *        a command has ended, it may still be written after a CLB_DEVICE_ERROR
 * CLB_OUT_OF_RANGE  the range is not inside the contents
 * and those of clb_bytes_read() but CLB_WOULD_COPY.  Blocks.
 */
clb_status clb_bytes_copy_into(clb_bytes *bytes, size_t start, void *dst,
                               size_t length);

/*
 * Copies all logical bytes into memory in a layout of its own; bytes between
 * the elements are not touched.
 *   dst, dst_size  the memory; layout's reach must lie inside
 *   layout         NULL: packed, of exactly dst_size bytes.  As in
 *                  clb_bytes_upload(), its elements may not share bytes
 * CLB_INVALID_ARGUMENT  the lengths differ
 * CLB_INVALID_LAYOUT    as in clb_bytes_from_buffer(), or it overlaps itself
 * and those of clb_bytes_read() but CLB_WOULD_COPY.  Blocks.
 */
clb_status clb_bytes_copy_into_layout(clb_bytes *bytes, void *dst,
                                      size_t dst_size,
                                      const clb_layout *layout);

/*
 * Takes length bytes (at least 1) that are valid during the call.
 * Nonzero: stop.
 */
typedef int (*clb_sink)(const void *data, size_t length, void *user);

/*
 * Passes logical bytes [start, end) to sink, in order, in pieces of at most
 * the context's chunk_size (1 MiB for file and host sources), and keeps none.
 * The next pieces are on their way while the sink works.  The sink runs on the
 * calling thread with no lock held and may call anything in the library.
 * CLB_CANCELLED     the sink stopped; nothing more was passed
 * CLB_OUT_OF_RANGE  start > end, or end past the contents
 * and those of clb_bytes_read() but CLB_WOULD_COPY.  Blocks.
 */
clb_status clb_bytes_stream(clb_bytes *bytes, size_t start, size_t end,
                            clb_sink sink, void *user);

/*
 * Starts materialising, on a thread of the library's, and returns at once.  The
 * first access is claimed and ordered when it returns: reads wait for it and
 * enqueue nothing, and a command that waits for its event may write the region.
 * A handle whose last reference is released meanwhile is not read.
 *   done  NULL, or where a user event goes that ends when the bytes are on the
 *         host (negative: it failed); to be released by the caller.  May stand
 *         in the wait list of a command of the same OpenCL context.
 * CLB_UNSUPPORTED    done for a handle that is not on a device
 * CLB_OUT_OF_MEMORY  no memory, or no thread could be started
 * CLB_DEVICE_ERROR   an event of the list or an OpenCL call failed
 * What fails later is told by clb_bytes_wait().  Does not block.
 */
clb_status clb_bytes_prefetch(clb_bytes *bytes, cl_event *done);

/*
 * Waits for the access to the handle that is under way, if there is one.
 *   timeout_ns  nanoseconds; 0: only looks; UINT64_MAX: for ever
 * CLB_OK       nothing is under way, and the last prefetch did not fail
 * CLB_TIMEOUT  it goes on
 * and, after a prefetch that failed, its status, until a read, write, detach or
 * prefetch has brought the bytes: copy_into and stream keep nothing, and leave
 * it.
 * Blocks, no longer than the time given.
 */
clb_status clb_bytes_wait(clb_bytes *bytes, uint64_t timeout_ns);

/*
 * Lets go of the handle's hold on a host copy, and ends its mapping: lazy
 * again.  Storage that others share stays for them.  The caller's memory, and a
 * copy made by clb_bytes_from_copy(), are where the contents are: they stay.
 * CLB_UNSUPPORTED  the handle was written to: its copy is the only one
 * Waits for a prefetch that is under way.
 * Alone.
 */
clb_status clb_bytes_evict(clb_bytes *bytes);

/*
 * From now on the device contents of the handle, and of views made of it later,
 * are the present ones: a copy on the device, ordered on the context's queue,
 * so that commands enqueued later are not seen.  On an in-order queue, for a
 * handle without a wait list, it returns at once; a list is waited for first;
 * an out-of-order queue gets a barrier before and after.  What a read brought
 * to the host before stays, and later reads go on giving it.  An access that
 * began before it returned, a prefetch too, goes on reading the buffer.  File
 * and host sources: does nothing.  If the copy itself failed, reads are
 * CLB_DEVICE_ERROR.
 * CLB_UNSUPPORTED    the handle was written to
 * CLB_OUT_OF_MEMORY  no memory on the device, or none on the host
 * CLB_DEVICE_ERROR   an event of the list or an OpenCL call failed
 * Blocks for a list alone.
 */
clb_status clb_bytes_snapshot(clb_bytes *bytes);

/* --- Views --------------------------------------------------------------- */

/*
 * A handle of its own on logical bytes [start, end), of any layout, any
 * alignment, empty too.  It has what the parent has at this moment: its host
 * copy, shared, else its source.  Nothing that happens to one later shows in
 * the other.  Never brings anything to the host.
 *   out  the view, to be released
 * CLB_OUT_OF_RANGE  start > end, or end past the contents
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_view(clb_bytes *bytes, size_t start, size_t end,
                          clb_bytes **out);

/*
 * A handle of its own on elements start, start + step, ... of each dimension,
 * with the dimensions kept.
 *   start  the first element taken, for each dimension; NULL: 0
 *   count  elements taken; NULL: all that fit in the step's direction
 *   step   elements from one to the next, negative: backwards, never 0;
 *          NULL: 1
 * (arrays of as many as clb_bytes_layout() says.)
 * CLB_INVALID_ARGUMENT  a step of 0
 * CLB_OUT_OF_RANGE      an element outside its dimension; the message has the
 *                       numbers
 * CLB_UNSUPPORTED       a byte range of a strided handle
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_slice(clb_bytes *bytes, const size_t *start,
                           const size_t *count, const ptrdiff_t *step,
                           clb_bytes **out);

/*
 * A handle of its own on the same logical bytes in another shape, where strides
 * can say it (numpy's rule for a reshape without a copy), in every state.
 *   shape      ndim extents; NULL if ndim is 0
 *   elem_size  bytes; may differ from the handle's
 * CLB_INVALID_ARGUMENT  the shape has another number of bytes
 * CLB_INVALID_LAYOUT    elem_size 0, more than 64 dimensions, an overflow
 * CLB_UNSUPPORTED       strides cannot say it, or a byte range of a strided
 *                       handle
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_reshape(clb_bytes *bytes, size_t ndim, const size_t *shape,
                             size_t elem_size, clb_bytes **out);

/*
 * An independent handle on the same contents, with the same shape, label and
 * host copy; a write to either separates them.
 * CLB_OUT_OF_MEMORY
 */
clb_status clb_bytes_clone(clb_bytes *bytes, clb_bytes **out);

typedef enum clb_split {
  CLB_SPLIT_SHARED, /* two views */
  CLB_SPLIT_OWNED   /* two handles whose contents are on the host, in storage
                       of their own */
} clb_split;

/*
 * The logical bytes before at and those from at on, as two handles; bytes
 * itself stays as it is.
 * CLB_INVALID_ARGUMENT  no such split
 * CLB_OUT_OF_RANGE      at past the contents
 * CLB_OUT_OF_MEMORY; CLB_SPLIT_OWNED: and those of clb_bytes_copy_into().
 * Blocks for CLB_SPLIT_OWNED.
 */
clb_status clb_bytes_split(clb_bytes *bytes, size_t at, clb_split how,
                           clb_bytes **left, clb_bytes **right);

/* --- Taking out ---------------------------------------------------------- */

/*
 * Hands the host copy over, bringing it first: the storage itself where this
 * handle alone holds it, else a copy.  The handle is lazy again where it was;
 * one that was written to, or is on host memory, keeps its contents.
 *   data    clb_bytes_length() bytes, aligned to 64; clb_free() them
 *   length  how many
 * The statuses of clb_bytes_read() but CLB_WOULD_COPY.  Blocks.
 * Alone.
 */
clb_status clb_bytes_detach(clb_bytes *bytes, void **data, size_t *length);

/* Frees what clb_bytes_detach() gave.  NULL is fine. */
void clb_free(void *data);

/*
 * Whether two handles have the same logical bytes, whatever their shapes.
 * Streams, keeps nothing, and stops at the first difference.
 *   equal  1 or 0
 * The statuses of clb_bytes_read() but CLB_WOULD_COPY.  Blocks.
 */
clb_status clb_bytes_equal(clb_bytes *a, clb_bytes *b, int *equal);

/*
 * What a kernel can use: a sub-buffer of exactly the contents where the device
 * allows one there (CL_DEVICE_MEM_BASE_ADDR_ALIGN), made once a handle, else
 * the root buffer and an offset.  Commands on it are ordered by the program;
 * contents of a snapshot are there once its copy has ended, as on the context's
 * queue.
 *   buffer  retained for the caller, who releases it
 *   offset  bytes from its start to the contents
 * CLB_UNSUPPORTED   not on a device, not contiguous, or written to
 * CLB_DEVICE_ERROR  an OpenCL call failed
 * Does not block.
 */
clb_status clb_bytes_buffer(clb_bytes *bytes, cl_mem *buffer, size_t *offset);

/* --- The other way ------------------------------------------------------- */

/*
 * Writes the logical bytes of a handle into a buffer.  Every command whose
 * enqueue call on the context's queue returned before has ended first; the
 * bytes are visible to every command enqueued after the call returns.  Until
 * then no other command may read or write the region.  Bytes between the
 * elements are not touched.
 *   context  of the destination
 *   dst      a buffer or sub-buffer of the context's OpenCL context; it may be
 *            the one that the handle reads, overlapping too
 *   layout   NULL: the whole of dst, as bytes.  Its dimensions of extent above
 *            1, sorted by |stride|, must each have a stride of at least the
 *            reach of those before, so that no byte is written twice
 * CLB_INVALID_ARGUMENT  the lengths differ; dst is no buffer of the context
 * CLB_INVALID_LAYOUT    as in clb_bytes_from_buffer(), or it overlaps itself
 * and those of clb_bytes_read() but CLB_WOULD_COPY; after these the contents
 * of the region are undefined.  Blocks.
 */
clb_status clb_bytes_upload(clb_bytes *bytes, clb_context *context, cl_mem dst,
                            const clb_layout *layout);

#ifdef __cplusplus
}
#endif

#endif

/*
 * fault_calls.h - every OpenCL call that the fault layer wraps, by what its
 * wrapper has to do.  To wrap one more, add its line to the list of its kind.
 * The name of the call comes first in each line.
 */
#ifndef FAULT_CALLS_H
#define FAULT_CALLS_H

#include <CL/cl_layer.h>

/* The end of every command's parameters; wrappers know them by these names. */
#define WAIT_PARAMS cl_uint num, const cl_event *list, cl_event *event
#define WAIT_ARGS num, list, event
#define INFO_PARAMS size_t size, void *value, size_t *size_ret
#define INFO_ARGS size, value, size_ret

/* Calls that return a status: name, parameters, arguments. */
#define FAULT_PLAIN_CALLS(X)                                                   \
  X(clGetPlatformInfo, (cl_platform_id platform, cl_platform_info name,        \
    INFO_PARAMS), (platform, name, INFO_ARGS))                                 \
  X(clGetDeviceIDs, (cl_platform_id platform, cl_device_type type,             \
    cl_uint room, cl_device_id *devices, cl_uint *count),                      \
    (platform, type, room, devices, count))                                    \
  X(clRetainDevice, (cl_device_id device), (device))                           \
  X(clReleaseDevice, (cl_device_id device), (device))                          \
  X(clGetContextInfo, (cl_context context, cl_context_info name, INFO_PARAMS), \
    (context, name, INFO_ARGS))                                                \
  X(clGetCommandQueueInfo, (cl_command_queue queue,                            \
    cl_command_queue_info name, INFO_PARAMS), (queue, name, INFO_ARGS))        \
  X(clGetMemObjectInfo, (cl_mem mem, cl_mem_info name, INFO_PARAMS),           \
    (mem, name, INFO_ARGS))                                                    \
  X(clSetMemObjectDestructorCallback, (cl_mem mem,                             \
    void(CL_CALLBACK *call)(cl_mem, void *), void *user), (mem, call, user))   \
  X(clBuildProgram, (cl_program program, cl_uint count,                        \
    const cl_device_id *devices, const char *options,                          \
    void(CL_CALLBACK *call)(cl_program, void *), void *user),                  \
    (program, count, devices, options, call, user))                            \
  X(clGetProgramInfo, (cl_program program, cl_program_info name, INFO_PARAMS), \
    (program, name, INFO_ARGS))                                                \
  X(clGetProgramBuildInfo, (cl_program program, cl_device_id device,           \
    cl_program_build_info name, INFO_PARAMS),                                  \
    (program, device, name, INFO_ARGS))                                        \
  X(clSetKernelArg, (cl_kernel kernel, cl_uint index, size_t size,             \
    const void *value), (kernel, index, size, value))                          \
  X(clGetKernelInfo, (cl_kernel kernel, cl_kernel_info name, INFO_PARAMS),     \
    (kernel, name, INFO_ARGS))                                                 \
  X(clGetKernelWorkGroupInfo, (cl_kernel kernel, cl_device_id device,          \
    cl_kernel_work_group_info name, INFO_PARAMS),                              \
    (kernel, device, name, INFO_ARGS))                                         \
  X(clGetEventProfilingInfo, (cl_event of, cl_profiling_info name,             \
    INFO_PARAMS), (of, name, INFO_ARGS))                                       \
  X(clSetUserEventStatus, (cl_event of, cl_int status), (of, status))          \
  X(clFlush, (cl_command_queue queue), (queue))                                \
  X(clFinish, (cl_command_queue queue), (queue))

/* Calls that give references out and take them back: name, kind, type. */
#define FAULT_RETAIN_CALLS(X)                                                  \
  X(clRetainContext, FAULT_CONTEXT, cl_context)                                \
  X(clRetainCommandQueue, FAULT_QUEUE, cl_command_queue)                       \
  X(clRetainMemObject, FAULT_MEM, cl_mem)                                      \
  X(clRetainEvent, FAULT_EVENT, cl_event)                                      \
  X(clRetainProgram, FAULT_PROGRAM, cl_program)                                \
  X(clRetainKernel, FAULT_KERNEL, cl_kernel)

/* ..., and what an over-release returns. */
#define FAULT_RELEASE_CALLS(X)                                                 \
  X(clReleaseContext, FAULT_CONTEXT, cl_context, CL_INVALID_CONTEXT)           \
  X(clReleaseCommandQueue, FAULT_QUEUE, cl_command_queue,                      \
    CL_INVALID_COMMAND_QUEUE)                                                  \
  X(clReleaseMemObject, FAULT_MEM, cl_mem, CL_INVALID_MEM_OBJECT)              \
  X(clReleaseEvent, FAULT_EVENT, cl_event, CL_INVALID_EVENT)                   \
  X(clReleaseProgram, FAULT_PROGRAM, cl_program, CL_INVALID_PROGRAM)           \
  X(clReleaseKernel, FAULT_KERNEL, cl_kernel, CL_INVALID_KERNEL)

/* Calls that make an object: name, kind, type, parameters, arguments, and a
 * reason of its own to fail. */
#define FAULT_MAKE_CALLS(X)                                                    \
  X(clCreateContext, FAULT_CONTEXT, cl_context,                                \
    (const cl_context_properties *properties, cl_uint count,                   \
     const cl_device_id *devices,                                              \
     void(CL_CALLBACK *call)(const char *, const void *, size_t, void *),      \
     void *user, cl_int *error),                                               \
    (properties, count, devices, call, user, error), CL_SUCCESS)               \
  X(clCreateContextFromType, FAULT_CONTEXT, cl_context,                        \
    (const cl_context_properties *properties, cl_device_type type,             \
     void(CL_CALLBACK *call)(const char *, const void *, size_t, void *),      \
     void *user, cl_int *error),                                               \
    (properties, type, call, user, error), CL_SUCCESS)                         \
  X(clCreateCommandQueue, FAULT_QUEUE, cl_command_queue,                       \
    (cl_context context, cl_device_id device,                                  \
     cl_command_queue_properties properties, cl_int *error),                   \
    (context, device, properties, error), CL_SUCCESS)                          \
  X(clCreateCommandQueueWithProperties, FAULT_QUEUE, cl_command_queue,         \
    (cl_context context, cl_device_id device,                                  \
     const cl_queue_properties *properties, cl_int *error),                    \
    (context, device, properties, error), CL_SUCCESS)                          \
  X(clCreateBuffer, FAULT_MEM, cl_mem,                                         \
    (cl_context context, cl_mem_flags flags, size_t size, void *host,          \
     cl_int *error), (context, flags, size, host, error),                      \
    fault__refused(flags, size))                                               \
  X(clCreateBufferWithProperties, FAULT_MEM, cl_mem,                           \
    (cl_context context, const cl_mem_properties *properties,                  \
     cl_mem_flags flags, size_t size, void *host, cl_int *error),              \
    (context, properties, flags, size, host, error),                           \
    fault__refused(flags, size))                                               \
  X(clCreateSubBuffer, FAULT_MEM, cl_mem,                                      \
    (cl_mem mem, cl_mem_flags flags, cl_buffer_create_type type,               \
     const void *region, cl_int *error),                                       \
    (mem, flags, type, region, error), CL_SUCCESS)                             \
  X(clCreateUserEvent, FAULT_EVENT, cl_event,                                  \
    (cl_context context, cl_int *error), (context, error), CL_SUCCESS)         \
  X(clCreateProgramWithSource, FAULT_PROGRAM, cl_program,                      \
    (cl_context context, cl_uint count, const char **strings,                  \
     const size_t *lengths, cl_int *error),                                    \
    (context, count, strings, lengths, error), CL_SUCCESS)                     \
  X(clCreateKernel, FAULT_KERNEL, cl_kernel,                                   \
    (cl_program program, const char *name, cl_int *error),                     \
    (program, name, error), CL_SUCCESS)

/*
 * Commands: name, parameters, arguments, whether it blocks, whether one that
 * is to fail is carried out all the same (RUNS) or not (SKIPPED), and what it
 * moves: kind, bytes, buffer, second buffer.
 */
#define FAULT_COMMAND_CALLS(X)                                                 \
  X(clEnqueueReadBuffer, (cl_command_queue queue, cl_mem mem, cl_bool block,   \
    size_t offset, size_t size, void *data, WAIT_PARAMS),                      \
    (queue, mem, block, offset, size, data, WAIT_ARGS),                        \
    block, SKIPPED, CL_COMMAND_READ_BUFFER, FAULT_READ, size, mem, NULL)       \
  X(clEnqueueWriteBuffer, (cl_command_queue queue, cl_mem mem, cl_bool block,  \
    size_t offset, size_t size, const void *data, WAIT_PARAMS),                \
    (queue, mem, block, offset, size, data, WAIT_ARGS),                        \
    block, SKIPPED, CL_COMMAND_WRITE_BUFFER, FAULT_WRITE, size, mem, NULL)     \
  X(clEnqueueReadBufferRect, (cl_command_queue queue, cl_mem mem,              \
    cl_bool block, const size_t *from, const size_t *to, const size_t *region, \
    size_t row, size_t slice, size_t host_row, size_t host_slice, void *data,  \
    WAIT_PARAMS), (queue, mem, block, from, to, region, row, slice, host_row,  \
    host_slice, data, WAIT_ARGS),                                              \
    block, SKIPPED, CL_COMMAND_READ_BUFFER_RECT, FAULT_READ_RECT,              \
    fault__volume(region), mem, NULL)                                          \
  X(clEnqueueWriteBufferRect, (cl_command_queue queue, cl_mem mem,             \
    cl_bool block, const size_t *to, const size_t *from, const size_t *region, \
    size_t row, size_t slice, size_t host_row, size_t host_slice,              \
    const void *data, WAIT_PARAMS), (queue, mem, block, to, from, region, row, \
    slice, host_row, host_slice, data, WAIT_ARGS),                             \
    block, SKIPPED, CL_COMMAND_WRITE_BUFFER_RECT, FAULT_WRITE_RECT,            \
    fault__volume(region), mem, NULL)                                          \
  X(clEnqueueCopyBuffer, (cl_command_queue queue, cl_mem mem, cl_mem dst,      \
    size_t from, size_t to, size_t size, WAIT_PARAMS),                         \
    (queue, mem, dst, from, to, size, WAIT_ARGS),                              \
    CL_FALSE, SKIPPED, CL_COMMAND_COPY_BUFFER, FAULT_COPY, size, mem, dst)     \
  X(clEnqueueCopyBufferRect, (cl_command_queue queue, cl_mem mem, cl_mem dst,  \
    const size_t *from, const size_t *to, const size_t *region, size_t row,    \
    size_t slice, size_t dst_row, size_t dst_slice, WAIT_PARAMS),              \
    (queue, mem, dst, from, to, region, row, slice, dst_row, dst_slice,        \
    WAIT_ARGS), CL_FALSE, SKIPPED, CL_COMMAND_COPY_BUFFER_RECT,                \
    FAULT_COPY_RECT, fault__volume(region), mem, dst)                          \
  X(clEnqueueFillBuffer, (cl_command_queue queue, cl_mem mem,                  \
    const void *pattern, size_t pattern_size, size_t offset, size_t size,      \
    WAIT_PARAMS),                                                              \
    (queue, mem, pattern, pattern_size, offset, size, WAIT_ARGS),              \
    CL_FALSE, SKIPPED, CL_COMMAND_FILL_BUFFER, FAULT_FILL, size, mem, NULL)    \
  X(clEnqueueMigrateMemObjects, (cl_command_queue queue, cl_uint count,        \
    const cl_mem *mems, cl_mem_migration_flags flags, WAIT_PARAMS),            \
    (queue, count, mems, flags, WAIT_ARGS),                                    \
    CL_FALSE, SKIPPED, CL_COMMAND_MIGRATE_MEM_OBJECTS, FAULT_COPY, 0, NULL,    \
    NULL)                                                                      \
  X(clEnqueueNDRangeKernel, (cl_command_queue queue, cl_kernel kernel,         \
    cl_uint rank, const size_t *offset, const size_t *global,                  \
    const size_t *local, WAIT_PARAMS),                                         \
    (queue, kernel, rank, offset, global, local, WAIT_ARGS),                   \
    CL_FALSE, SKIPPED, CL_COMMAND_NDRANGE_KERNEL, FAULT_COPY, 0, NULL, NULL)   \
  X(clEnqueueMarkerWithWaitList, (cl_command_queue queue, WAIT_PARAMS),        \
    (queue, WAIT_ARGS), CL_FALSE, RUNS, CL_COMMAND_MARKER, FAULT_COPY, 0,      \
    NULL, NULL)                                                                \
  X(clEnqueueBarrierWithWaitList, (cl_command_queue queue, WAIT_PARAMS),       \
    (queue, WAIT_ARGS), CL_FALSE, RUNS, CL_COMMAND_BARRIER, FAULT_COPY, 0,     \
    NULL, NULL)

/* Calls whose wrapper is written by hand. */
#define FAULT_OWN_CALLS(X)                                                     \
  X(clGetDeviceInfo, own)                                                      \
  X(clWaitForEvents, own)                                                      \
  X(clGetEventInfo, own)                                                       \
  X(clSetEventCallback, own)

/* Commands whose wrapper is written by hand. */
#define FAULT_MAP_CALLS(X)                                                     \
  X(clEnqueueMapBuffer, own)                                                   \
  X(clEnqueueUnmapMemObject, own)

/* Commands last, so that one comparison tells them from other calls. */
#define FAULT_ALL_CALLS(X)                                                     \
  FAULT_PLAIN_CALLS(X)                                                         \
  FAULT_RETAIN_CALLS(X)                                                        \
  FAULT_RELEASE_CALLS(X)                                                       \
  FAULT_MAKE_CALLS(X)                                                          \
  FAULT_OWN_CALLS(X)                                                           \
  FAULT_COMMAND_CALLS(X)                                                       \
  FAULT_MAP_CALLS(X)

enum fault_call {
#define FAULT_CALL_ENUM(name, ...) FAULT_CALL_##name,
  FAULT_ALL_CALLS(FAULT_CALL_ENUM)
#undef FAULT_CALL_ENUM
  FAULT_CALLS,
  FAULT_FIRST_COMMAND = FAULT_CALL_clEnqueueReadBuffer
};

#endif

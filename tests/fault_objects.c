/*
 * fault_objects.c - what is known of each object: the references that the
 * program holds, the bytes moved, and for an event the error it is to end
 * with.  Calls no OpenCL.
 *
 * An object that the program has let go of stays in the table, with no
 * references, so that a release too many is seen; a new object at the same
 * address takes its place.
 */
#include "fault_layer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct object {
  struct object *next; /* in the bucket */
  const void *handle;
  fault_object kind;
  cl_int doom;
  cl_command_type type; /* of a doomed event's command */
  int64_t references;
  uint64_t moved[FAULT_MOVES];
};

/* Guarded by lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object **buckets;
static size_t bucket_count; /* a power of two */
static size_t object_count;
static int64_t live[FAULT_OBJECTS];
static uint64_t over_releases;
static uint64_t moved[FAULT_MOVES];

static struct object **bucket_of(const void *handle) {
  uintptr_t hash = (uintptr_t)handle;

  hash ^= hash >> 16;
  hash *= 0x9e3779b1u;
  hash ^= hash >> 13;
  return &buckets[hash & (bucket_count - 1)];
}

static struct object *find(fault_object kind, const void *handle) {
  struct object *object;

  if (bucket_count == 0)
    return NULL;
  for (object = *bucket_of(handle); object != NULL; object = object->next)
    if (object->handle == handle && object->kind == kind)
      return object;
  return NULL;
}

/* Makes the table larger where chains grow; a table that cannot grow works. */
static void grow(void) {
  size_t old_count = bucket_count;
  struct object **old = buckets;
  size_t new_count = old_count == 0 ? 1024 : 2 * old_count;
  struct object *object, *next, **bucket;
  size_t i;

  if (object_count < old_count)
    return;
  buckets = calloc(new_count, sizeof *buckets);
  if (buckets == NULL) {
    buckets = old;
    return;
  }
  bucket_count = new_count;
  for (i = 0; i < old_count; i++)
    for (object = old[i]; object != NULL; object = next) {
      next = object->next;
      bucket = bucket_of(object->handle);
      object->next = *bucket;
      *bucket = object;
    }
  free(old);
}

static struct object *add(fault_object kind, const void *handle) {
  struct object *object, **bucket;

  grow();
  object = calloc(1, sizeof *object);
  if (object == NULL || bucket_count == 0) {
    free(object);
    return NULL;
  }
  object->handle = handle;
  object->kind = kind;
  bucket = bucket_of(handle);
  object->next = *bucket;
  *bucket = object;
  object_count++;
  return object;
}

void fault__made(fault_object kind, const void *handle) {
  struct object *object;

  pthread_mutex_lock(&lock);
  object = find(kind, handle);
  if (object == NULL)
    object = add(kind, handle);
  if (object != NULL) {
    /* References that are left are those of an object that the driver has
     * taken back; the leak stays in the sum. */
    object->references = 1;
    object->doom = CL_SUCCESS;
    memset(object->moved, 0, sizeof object->moved);
    live[kind]++;
  }
  pthread_mutex_unlock(&lock);
}

void fault__retained(fault_object kind, const void *handle) {
  struct object *object;

  pthread_mutex_lock(&lock);
  object = find(kind, handle);
  if (object != NULL) {
    object->references++;
    live[kind]++;
  }
  pthread_mutex_unlock(&lock);
}

int fault__released(fault_object kind, const void *handle) {
  struct object *object;
  int held = 1;

  pthread_mutex_lock(&lock);
  object = find(kind, handle);
  if (object != NULL && object->references == 0) {
    over_releases++;
    held = 0;
  } else if (object != NULL) {
    object->references--;
    live[kind]--;
  }
  pthread_mutex_unlock(&lock);
  return held;
}

void fault__mapped(const void *pointer) {
  struct object *object;

  pthread_mutex_lock(&lock);
  object = find(FAULT_MAPPING, pointer);
  if (object == NULL)
    object = add(FAULT_MAPPING, pointer);
  if (object != NULL) {
    object->references++;
    live[FAULT_MAPPING]++;
  }
  pthread_mutex_unlock(&lock);
}

void fault__moved(fault_move move, size_t bytes, cl_mem mem, cl_mem second) {
  const cl_mem mems[2] = { mem, second };
  struct object *object;
  int i;

  pthread_mutex_lock(&lock);
  moved[move] += bytes;
  for (i = 0; i < 2; i++) {
    object = mems[i] == NULL ? NULL : find(FAULT_MEM, mems[i]);
    if (object != NULL)
      object->moved[move] += bytes;
  }
  pthread_mutex_unlock(&lock);
}

void fault__doom(cl_event event, cl_int status, cl_command_type type) {
  struct object *object;

  pthread_mutex_lock(&lock);
  object = find(FAULT_EVENT, event);
  if (object != NULL) {
    object->doom = status;
    object->type = type;
  }
  pthread_mutex_unlock(&lock);
}

cl_int fault__doomed(cl_event event, cl_command_type *type) {
  struct object *object;
  cl_int doom = CL_SUCCESS;

  pthread_mutex_lock(&lock);
  object = find(FAULT_EVENT, event);
  if (object != NULL && object->doom != CL_SUCCESS) {
    doom = object->doom;
    *type = object->type;
  }
  pthread_mutex_unlock(&lock);
  return doom;
}

int fault__any_doomed(cl_uint num, const cl_event *list) {
  cl_command_type type;
  cl_uint i;

  for (i = 0; list != NULL && i < num; i++)
    if (fault__doomed(list[i], &type) != CL_SUCCESS)
      return 1;
  return 0;
}

void fault__objects_reset(void) {
  struct object *object;
  size_t i;

  pthread_mutex_lock(&lock);
  over_releases = 0;
  memset(moved, 0, sizeof moved);
  for (i = 0; i < bucket_count; i++)
    for (object = buckets[i]; object != NULL; object = object->next)
      memset(object->moved, 0, sizeof object->moved);
  pthread_mutex_unlock(&lock);
}

int64_t fault__objects_live(fault_object kind) {
  int64_t count;

  pthread_mutex_lock(&lock);
  count = live[kind];
  pthread_mutex_unlock(&lock);
  return count;
}

int64_t fault__objects_references(fault_object kind, const void *handle) {
  struct object *object;
  int64_t count = 0;

  pthread_mutex_lock(&lock);
  object = find(kind, handle);
  if (object != NULL)
    count = object->references;
  pthread_mutex_unlock(&lock);
  return count;
}

uint64_t fault__objects_over_releases(void) {
  uint64_t count;

  pthread_mutex_lock(&lock);
  count = over_releases;
  pthread_mutex_unlock(&lock);
  return count;
}

uint64_t fault__objects_moved(cl_mem mem, fault_move move) {
  struct object *object;
  uint64_t bytes = 0;

  pthread_mutex_lock(&lock);
  if (mem == NULL)
    bytes = moved[move];
  else if ((object = find(FAULT_MEM, mem)) != NULL)
    bytes = object->moved[move];
  pthread_mutex_unlock(&lock);
  return bytes;
}

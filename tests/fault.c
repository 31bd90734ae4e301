/*
 * fault.c - the test's side of the fault layer: finds the module that the
 * OpenCL loader has loaded.
 */
#include "config.h"

#include "fault.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LAYERS "OPENCL_LAYERS"

void fault_use(void) {
  setenv(LAYERS, FAULT_DIRECTORY "/" LT_OBJDIR "fault_layer.so", 0);
}

int fault_works(void) {
  int status = 0;
  pid_t child = fork();

  if (child == 0)
    _exit(fault_open() != NULL ? 0 : 1);
  return child > 0 && waitpid(child, &status, 0) == child &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The functions of one module, if it is loaded and is ours. */
static const fault_api *module_api(const char *path) {
  const fault_api *(*function)(void) = NULL;
  const fault_api *api = NULL;
  void *module = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  void *symbol;

  if (module == NULL)
    return NULL;
  symbol = dlsym(module, FAULT_API_SYMBOL);
  if (symbol != NULL) {
    /* ISO C has no conversion from void * to a function; POSIX has. */
    memcpy(&function, &symbol, sizeof function);
    api = function();
  }
  dlclose(module); /* the loader's own reference stays */
  return api != NULL && api->version == FAULT_API_VERSION ? api : NULL;
}

const fault_api *fault_open(void) {
  const char *layers = getenv(LAYERS);
  /* Copied first: Khronos' loader cuts the original at its colons. */
  char *paths = layers != NULL ? strdup(layers) : NULL;
  const fault_api *api = NULL;
  char *path, *rest;
  cl_uint count;

  if (paths == NULL)
    return NULL;
  clGetPlatformIDs(0, NULL, &count); /* the loader loads layers only now */
  for (path = strtok_r(paths, ":", &rest); path != NULL && api == NULL;
       path = strtok_r(NULL, ":", &rest))
    api = module_api(path);
  free(paths);
  return api;
}

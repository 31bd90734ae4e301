/*
 * fault_rules.c - which calls fail: rules and the counts they need, memory
 * that is refused, answers in place of the device's.  Calls no OpenCL.
 */
#include "fault_layer.h"

#include <pthread.h>
#include <string.h>

#define MAX_RULES 64
#define MAX_ANSWERS 32
#define ANY_CALL FAULT_CALLS

struct rule {
  fault_rule rule;
  unsigned call; /* an enum fault_call, or ANY_CALL */
  uint64_t seen; /* calls that it looked at */
  uint64_t struck;
};

struct answer {
  cl_device_info name;
  size_t size;
  unsigned char value[64];
};

static const char *const call_names[FAULT_CALLS] = {
#define CALL_NAME(name, ...) #name,
  FAULT_ALL_CALLS(CALL_NAME)
#undef CALL_NAME
};

/* Guarded by lock. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[MAX_RULES];
static int rule_count;
static const char *last = "";
static uint64_t counts[FAULT_CALLS];
static struct answer answers[MAX_ANSWERS];
static int answer_count;
static cl_int pinned_error;
static cl_int large_error;
static size_t large;

static unsigned call_of_name(const char *name) {
  unsigned i;

  for (i = 0; i < FAULT_CALLS; i++)
    if (strcmp(name, call_names[i]) == 0)
      break;
  return i;
}

static int rule_covers(const struct rule *rule, unsigned call) {
  if (rule->rule.what != FAULT_CALL_FAILS && call < FAULT_FIRST_COMMAND)
    return 0;
  return rule->call == ANY_CALL || rule->call == call;
}

/* Whether this call, which it covers, is one that the rule is for. */
static int rule_strikes(struct rule *rule) {
  rule->seen++;
  if (rule->seen < rule->rule.nth ||
      (rule->seen > rule->rule.nth && !rule->rule.lasting))
    return 0;
  rule->struck++;
  return 1;
}

static void verdict_add(struct fault_verdict *verdict, const fault_rule *rule) {
  switch (rule->what) {
  case FAULT_CALL_FAILS:
    verdict->error = rule->error;
    break;
  case FAULT_EVENT_FAILS:
    verdict->doom = rule->error;
    verdict->hidden = rule->hidden;
    break;
  case FAULT_HELD:
    verdict->held = 1;
    verdict->hold_ns = rule->hold_ns;
    break;
  }
}

void fault__judge(enum fault_call call, struct fault_verdict *out) {
  int i;

  memset(out, 0, sizeof *out);
  pthread_mutex_lock(&lock);
  counts[call]++;
  for (i = 0; i < rule_count; i++)
    if (rule_covers(&rules[i], call) && rule_strikes(&rules[i])) {
      verdict_add(out, &rules[i].rule);
      last = call_names[call];
    }
  pthread_mutex_unlock(&lock);
}

cl_int fault__enter(enum fault_call call) {
  struct fault_verdict verdict;

  fault__judge(call, &verdict);
  return verdict.error;
}

cl_int fault__refused(cl_mem_flags flags, size_t size) {
  cl_int error = CL_SUCCESS;

  pthread_mutex_lock(&lock);
  if (flags & CL_MEM_ALLOC_HOST_PTR)
    error = pinned_error;
  if (error == CL_SUCCESS && size > large)
    error = large_error;
  pthread_mutex_unlock(&lock);
  return error;
}

static struct answer *answer_find(cl_device_info name) {
  int i;

  for (i = 0; i < answer_count; i++)
    if (answers[i].name == name)
      return &answers[i];
  return NULL;
}

int fault__answer(cl_device_info name, size_t room, void *value,
                  size_t *size_ret, cl_int *out) {
  struct answer *answer;

  pthread_mutex_lock(&lock);
  answer = answer_find(name);
  if (answer != NULL) {
    *out = CL_SUCCESS;
    if (value != NULL && room < answer->size)
      *out = CL_INVALID_VALUE;
    else if (value != NULL)
      memcpy(value, answer->value, answer->size);
    if (*out == CL_SUCCESS && size_ret != NULL)
      *size_ret = answer->size;
  }
  pthread_mutex_unlock(&lock);
  return answer != NULL;
}

void fault__rules_reset(void) {
  pthread_mutex_lock(&lock);
  rule_count = 0;
  answer_count = 0;
  pinned_error = large_error = CL_SUCCESS;
  last = "";
  memset(counts, 0, sizeof counts);
  pthread_mutex_unlock(&lock);
}

void fault__rules_disarm(void) {
  pthread_mutex_lock(&lock);
  rule_count = 0;
  pthread_mutex_unlock(&lock);
}

int fault__rules_arm(const fault_rule *rule) {
  unsigned call = rule->call == NULL ? ANY_CALL : call_of_name(rule->call);
  int number = -1;

  if (rule->call != NULL && call == ANY_CALL)
    return -1;
  pthread_mutex_lock(&lock);
  if (rule_count < MAX_RULES) {
    number = rule_count++;
    rules[number] = (struct rule){ *rule, call, 0, 0 };
    rules[number].rule.call = NULL; /* the caller's string may go */
  }
  pthread_mutex_unlock(&lock);
  return number;
}

uint64_t fault__rules_struck(int rule) {
  uint64_t struck = 0;

  pthread_mutex_lock(&lock);
  if (rule >= 0 && rule < rule_count)
    struck = rules[rule].struck;
  pthread_mutex_unlock(&lock);
  return struck;
}

const char *fault__rules_last(void) {
  const char *name;

  pthread_mutex_lock(&lock);
  name = last;
  pthread_mutex_unlock(&lock);
  return name;
}

uint64_t fault__rules_calls(const char *call) {
  unsigned only = call == NULL ? ANY_CALL : call_of_name(call);
  uint64_t sum = 0;
  unsigned i;

  pthread_mutex_lock(&lock);
  for (i = 0; i < FAULT_CALLS; i++)
    if (call == NULL || i == only)
      sum += counts[i];
  pthread_mutex_unlock(&lock);
  return sum;
}

void fault__refuse_pinned(cl_int error) {
  pthread_mutex_lock(&lock);
  pinned_error = error;
  pthread_mutex_unlock(&lock);
}

void fault__limit_allocation(size_t most, cl_int error) {
  pthread_mutex_lock(&lock);
  large = most;
  large_error = error;
  pthread_mutex_unlock(&lock);
}

int fault__device_info(cl_device_info name, const void *value, size_t size) {
  struct answer *answer;
  int result = 0;

  if (size > sizeof answers[0].value)
    return -1;
  pthread_mutex_lock(&lock);
  answer = answer_find(name);
  if (value == NULL) {
    if (answer != NULL)
      *answer = answers[--answer_count];
  } else if (answer == NULL && answer_count == MAX_ANSWERS) {
    result = -1;
  } else {
    if (answer == NULL)
      answer = &answers[answer_count++];
    answer->name = name;
    answer->size = size;
    memcpy(answer->value, value, size);
  }
  pthread_mutex_unlock(&lock);
  return result;
}

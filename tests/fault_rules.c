/*
 * fault_rules.c - which calls fail: rules and the counts they need, memory
 * that is refused, answers in place of the device's.  Calls no OpenCL.
 */
#include "fault_layer.h"

#include <pthread.h>
#include <string.h>

#define MAX_RULES 64
#define MAX_ANSWERS 32

struct rule {
  fault_rule rule;
  unsigned char covers[FAULT_CALLS]; /* 1: that call */
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

/* Whether a call is of that name; NULL is every name, and one that ends with
 * an asterisk every name that begins so. */
static int is_named(unsigned call, const char *name) {
  size_t length = name == NULL ? 0 : strlen(name);

  if (name == NULL)
    return 1;
  if (length > 0 && name[length - 1] == '*')
    return strncmp(call_names[call], name, length - 1) == 0;
  return strcmp(call_names[call], name) == 0;
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
    if (rules[i].covers[call] && rule_strikes(&rules[i])) {
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
  struct rule added = {*rule, {0}, 0, 0};
  int number = -1, any = 0;
  unsigned call = rule->what == FAULT_CALL_FAILS ? 0 : FAULT_FIRST_COMMAND;

  added.rule.call = NULL; /* the caller's string may go */
  for (; call < FAULT_CALLS; call++)
    if (is_named(call, rule->call)) {
      added.covers[call] = 1;
      any = 1;
    }
  if (!any)
    return -1;
  pthread_mutex_lock(&lock);
  if (rule_count < MAX_RULES) {
    number = rule_count++;
    rules[number] = added;
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
  uint64_t sum = 0;
  unsigned i;

  pthread_mutex_lock(&lock);
  for (i = 0; i < FAULT_CALLS; i++)
    if (is_named(i, call))
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

/* Signals that cancel a copy. */
#include "config.h"

#include "interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

/* Any thread may get the signal, a driver's too. */
static atomic_int seen;

static void note(int number)
{
  atomic_store(&seen, number);
}

void tool_interrupt_watch(void)
{
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    struct sigaction action, old;

    /* nohup stays in force.  SIGINT, which a shell ignores for what it starts
     * in the background, can be sent there by kill: that must cancel too. */
    if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &old) == 0 &&
        old.sa_handler == SIG_IGN)
      continue;
    action.sa_handler = note;
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(numbers[i], &action, NULL);
  }
}

int tool_interrupt_seen(void)
{
  return atomic_load(&seen);
}

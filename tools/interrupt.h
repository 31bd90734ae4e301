/* Signals that cancel a copy, so that it can clean up behind itself. */
#ifndef TOOL_INTERRUPT_H
#define TOOL_INTERRUPT_H

/* From now on SIGINT, SIGTERM and SIGHUP are noted; a second one ends the
 * process at once. */
void tool_interrupt_watch(void);

/* The signal that came, else 0. */
int tool_interrupt_seen(void);

#endif

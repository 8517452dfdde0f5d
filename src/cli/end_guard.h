/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends a process that was asked to end and does not: a thread of its own, which no
 * lock or system call of the others holds up (gateway/base/ending.h has the times).
 */
#ifndef CLI_END_GUARD_H
#define CLI_END_GUARD_H

/* Begins to watch; again: nothing. `tell` logs what has not ended. */
void end_guard_start(void (*tell)(void));
/* The time runs from now. From any thread or signal handler. */
void end_guard_begin(void);
/* All that may wait has ended; what is left is the return from main(). The process is
 * not ended by the guard any more. */
void end_guard_finish(void);
/* Ends the process at once, with what is buffered for standard output, and with
 * CLI_STUCK: threads of it do not end. */
void end_guard_leave(void) __attribute__((noreturn));

#endif

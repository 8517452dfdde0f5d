/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ends a process that was asked to end and does not: a thread of its own, which no
 * lock or system call of the others holds up (gateway/base/ending.h has the times).
 */
#ifndef CLI_END_GUARD_H
#define CLI_END_GUARD_H

/* Starts the thread; a second call does nothing. `tell` logs what has not ended. */
void end_guard_start(void (*tell)(void));
/* The end was asked for: the time limit runs. From any thread or signal handler. */
void end_guard_begin(void);
/* Everything that may wait has ended, only the return from main() is left: the guard
 * does not end the process any more. */
void end_guard_finish(void);
/* Ends the process at once with CLI_STUCK, because threads of it do not end. Buffered
 * output is lost. */
void end_guard_leave(void) __attribute__((noreturn));

#endif

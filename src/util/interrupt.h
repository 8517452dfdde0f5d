/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that a signal interrupts. A read() that sleeps continues behind a handler that was
 * installed with SA_RESTART, and fails with EINTR behind another one. epoll_wait() fails with EINTR
 * behind both (signal(7)), and the kernel does not say which handler has run. A caller that takes
 * epoll_wait() in place of read() needs these functions to keep the behaviour of read().
 */
#ifndef UTIL_INTERRUPT_H
#define UTIL_INTERRUPT_H

/* What the handlers of this process do to a read() that sleeps. */
enum interrupt {
	INTERRUPT_NEVER,   /* it continues: all have SA_RESTART, or there is none */
	INTERRUPT_ALWAYS,  /* it fails with EINTR: none has SA_RESTART */
	INTERRUPT_DEPENDS, /* there are handlers of both kinds */
};

/* Asks the kernel about each signal, which takes some microseconds. Faults of the processor are
 * left out, as they do not happen in a call that sleeps. */
enum interrupt interrupt_ask(void);

#endif

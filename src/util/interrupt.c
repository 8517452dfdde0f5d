/* SPDX-License-Identifier: BSD-2-Clause */
/* See interrupt.h. */
#include "util/interrupt.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

static bool is_fault(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
	       signal == SIGTRAP || signal == SIGSYS;
}

enum interrupt interrupt_ask(void)
{
	bool restart = false, fail = false;

	for (int signal = 1; signal <= SIGRTMAX; signal++) {
		struct sigaction a;

		/* Fails for signals that the C library keeps for itself. */
		if (is_fault(signal) || sigaction(signal, NULL, &a) ||
		    (!(a.sa_flags & SA_SIGINFO) &&
		     (a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)))
			continue;
		if (a.sa_flags & SA_RESTART)
			restart = true;
		else
			fail = true;
	}
	if (restart && fail)
		return INTERRUPT_DEPENDS;
	return fail ? INTERRUPT_ALWAYS : INTERRUPT_NEVER;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks at memory of the program; see touch.h. */
#include "hca/run/touch.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

/* The bounds of the table, made by the linker; NULL where no instruction is in it. */
extern const struct hca_touch_entry __start_busbar_touch[]
	__attribute__((weak, visibility("hidden")));
extern const struct hca_touch_entry __stop_busbar_touch[]
	__attribute__((weak, visibility("hidden")));

static struct {
	int signal;
	bool handled;
	struct sigaction before;
} faults[] = { { .signal = SIGSEGV }, { .signal = SIGBUS } };

bool hca_touch_more(const uint8_t *at, size_t length, bool write)
{
	const uint8_t *end = at + length;

	for (; at < end; at += HCA_TOUCH_PAGE - (uintptr_t)at % HCA_TOUCH_PAGE)
		if (write ? !hca_touch_one_write(at) : !hca_touch_one_read(at))
			return false;
	return true;
}

/* ---- the handler ---- */

/* The address at which the thread continues after the handler; NULL: this file does not know the
 * architecture. */
static uintptr_t *place_of(ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t *)&context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t *)&context->uc_mcontext.pc;
#else
	(void)context;
	return NULL;
#endif
}

static bool answer(ucontext_t *context)
{
	uintptr_t *place = place_of(context);

	for (const struct hca_touch_entry *e = __start_busbar_touch;
	     place && e < __stop_busbar_touch; e++) {
		if (*place != (uintptr_t)&e->instruction + (uintptr_t)(intptr_t)e->instruction)
			continue;
		*place = (uintptr_t)&e->elsewhere + (uintptr_t)(intptr_t)e->elsewhere;
		return true;
	}
	return false;
}

/* As the kernel does before it calls a handler that asked for it. */
static void reset_once(struct sigaction *before)
{
	if (!(before->sa_flags & SA_RESETHAND))
		return;
	before->sa_handler = SIG_DFL;
	before->sa_flags = 0;
}

/* Does what the signal would do without this handler: calls the program's, or ends the process. */
static void hand_on(struct sigaction *before, int signal_number, siginfo_t *info, void *context)
{
	const struct sigaction handler = *before;
	bool sent = info->si_code <= 0; /* by kill(2) and the like */

	/* The kernel looks at these two before the flags. */
	if (handler.sa_handler == SIG_IGN && sent)
		return;
	if (handler.sa_handler == SIG_DFL || handler.sa_handler == SIG_IGN) {
		/* The instruction faults again. */
		signal(signal_number, SIG_DFL);
		if (sent)
			raise(signal_number);
		return;
	}
	reset_once(before);
	if (handler.sa_flags & SA_SIGINFO)
		handler.sa_sigaction(signal_number, info, context);
	else
		handler.sa_handler(signal_number);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
	if (info->si_code > 0 && answer(context))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i].signal == signal_number)
			hand_on(&faults[i].before, signal_number, info, context);
}

void hca_touch_start(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct sigaction ours, *before = &faults[i].before;

		if (faults[i].handled || sigaction(faults[i].signal, NULL, before))
			continue;
		/* With the mask of the handler before, which may be called from ours. */
		ours = *before;
		ours.sa_sigaction = on_fault;
		ours.sa_flags = (before->sa_flags & (SA_NODEFER | SA_RESTART | SA_ONSTACK)) |
				SA_SIGINFO;
		faults[i].handled = !sigaction(faults[i].signal, &ours, NULL);
	}
}

void hca_touch_stop(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct sigaction now;

		/* The program may have its own handler by now, which may call ours. */
		if (!faults[i].handled || sigaction(faults[i].signal, NULL, &now) ||
		    now.sa_sigaction != on_fault)
			continue;
		sigaction(faults[i].signal, &faults[i].before, NULL);
		faults[i].handled = false;
	}
}

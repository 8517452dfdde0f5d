/* SPDX-License-Identifier: BSD-2-Clause */
/* The line of a call. */
#include <string.h>

#include "trace/calls.h"

/* Only one pointer per thread, because the data path reads it. */
static _Thread_local struct call *innermost;

static void current_set(struct call *call)
{
	struct counters *own = counters_own();

	if (!own)
		return;
	while (atomic_flag_test_and_set_explicit(&own->lock, memory_order_acquire))
		;
	atomic_store_explicit(&own->current, call, memory_order_relaxed);
	atomic_flag_clear_explicit(&own->lock, memory_order_release);
}

void call_begin(struct call *call, const char *name)
{
	call->name = name;
	call->outer = innermost;
	call->error = 0;
	call->reasoned = call->quiet = false;
	call->start_ns = 0;
	call->saved_errno = errno;
	text_clear(&call->text);
	for (const struct call *c = call->outer; c; c = c->outer)
		text_add(&call->text, "%s > ", c->name);
	text_add(&call->text, "%s(", name);
	call->text.item = false;
	count_start();
}

void call_go(struct call *call)
{
	innermost = call;
	call->start_ns = monotonic_ns();
	current_set(call);
	errno = call->saved_errno;
}

void call_done(struct call *call, int error)
{
	call->saved_errno = errno;
	call->spent_ns = monotonic_ns() - call->start_ns;
	current_set(call->outer);
	innermost = call->outer;
	/* May be -1 if the library sets no errno. */
	call->error = error;
}

void argument(struct text *t)
{
	text_next(t, ", ");
}

void output(struct text *t)
{
	text_add(t, " -> ");
}

void result_is(struct call *call)
{
	text_add(&call->text, ") = ");
}

static void failed(struct call *call)
{
	text_add(&call->text, "%s", error_name(call->error));
}

void result_null(struct call *call)
{
	result_is(call);
	if (call->error) {
		text_add(&call->text, "NULL ");
		failed(call);
	} else {
		text_add(&call->text, "NULL");
	}
}

void result_void(struct call *call)
{
	text_add(&call->text, ")");
}

void result_number(struct call *call, long number)
{
	result_is(call);
	if (!call->error)
		text_add(&call->text, "%ld", number);
	else if (number == -1) {
		text_add(&call->text, "-1 ");
		failed(call);
	} else
		failed(call);
}

static void add_time(struct call *call)
{
	text_add(&call->text, " <%u.%09u>", (unsigned)(call->spent_ns / UINT64_C(1000000000)),
		 (unsigned)(call->spent_ns % UINT64_C(1000000000)));
}

struct text *call_reason(struct call *call)
{
	add_time(call);
	call->reasoned = true;
	text_add(&call->text, ": ");
	call->text.item = false;
	return &call->text;
}

void call_end(struct call *call)
{
	static const char none[] = ": ";
	struct text *t = &call->text;

	if (!call->reasoned)
		add_time(call);
	else if (t->length >= sizeof(none) - 1 &&
		 !strcmp(t->at + t->length - (sizeof(none) - 1), none))
		text_add(t, "%s", strerrordesc_np(call->error) ?
					  strerrordesc_np(call->error) : "no reason known");
	out_line(realtime_ns() - (monotonic_ns() - call->start_ns), trace_tid(), t->at);
	errno = call->saved_errno;
}

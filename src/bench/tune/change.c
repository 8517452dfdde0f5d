/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of changes and what apply and undo have in common; see change.h. */
#include "bench/tune/change.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tune/change_parts.h"

#define HEX_DIGITS "0123456789abcdefABCDEF"
#define MASK_GROUP 8 /* digits */

void tune_plan_add(struct tune_plan *p, const struct tune_change *change)
{
	struct tune_change copy = *change, *more;

	copy.setting = strdup(change->setting);
	copy.path = strdup(change->path);
	copy.former = strdup(change->former);
	copy.now = strdup(change->now);
	more = copy.setting && copy.path && copy.former && copy.now ?
	       realloc(p->changes, (p->count + 1) * sizeof(*more)) : NULL;
	if (!more) {
		free(copy.setting);
		free(copy.path);
		free(copy.former);
		free(copy.now);
		p->err = -ENOMEM;
		return;
	}
	p->changes = more;
	p->changes[p->count++] = copy;
}

void tune_plan_free(struct tune_plan *p)
{
	for (size_t i = 0; i < p->count; i++) {
		free(p->changes[i].setting);
		free(p->changes[i].path);
		free(p->changes[i].former);
		free(p->changes[i].now);
	}
	free(p->changes);
	*p = (struct tune_plan){ 0 };
}

/* Hexadecimal digits, in groups of eight behind commas? A list of processors has shorter
 * numbers there. */
static bool is_mask(const char *text, size_t length)
{
	const char *end = text + length;
	size_t n = strspn(text, HEX_DIGITS);

	while (n && text + n < end && text[n] == ',') {
		text += n + 1;
		n = strspn(text, HEX_DIGITS);
		if (n != MASK_GROUP)
			return false;
	}
	return n && text + n == end;
}

/* Masks are the same with and without zeros in front; one digit remains of nothing. */
static const char *significant(const char *text, size_t *length)
{
	while (*text && strchr(" \t\n", *text))
		text++;
	*length = strlen(text);
	while (*length && strchr(" \t\n", text[*length - 1]))
		--*length;
	if (!is_mask(text, *length))
		return text;
	for (; *length > 1 && strchr("0,", *text); text++)
		--*length;
	return text;
}

bool change_same(enum tune_kind kind, const char *a, const char *b)
{
	char x[64], y[64];
	size_t n, m;

	if (kind == TUNE_CHOICE) {
		tune_chosen(a, x, sizeof(x));
		tune_chosen(b, y, sizeof(y));
		return !strcmp(x, y);
	}
	a = significant(a, &n);
	b = significant(b, &m);
	return n == m && !memcmp(a, b, n);
}

const char *change_shown(const struct tune_change *c, const char *text, char *to, size_t size)
{
	if (c->kind == TUNE_DIRECTORY)
		return "";
	tune_chosen(text, to, size);
	if (c->kind == TUNE_FLAG)
		snprintf(to, size, "%.*s", (int)strcspn(text, "\n"), text);
	return to[0] ? to : "nothing";
}

void change_say(struct tune_report *r, const char *mark, const struct tune_change *c,
		const char *format, ...)
{
	va_list args;

	if (!r->out)
		return;
	fprintf(r->out, "%-7s %-15s %s: ", mark, c->setting, c->path);
	va_start(args, format);
	vfprintf(r->out, format, args);
	va_end(args);
	fputc('\n', r->out);
	fflush(r->out);
}

static void end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

void change_hold_signals(sigset_t *before)
{
	sigset_t set;

	end_signals(&set);
	pthread_sigmask(SIG_BLOCK, &set, before);
}

bool change_interrupted(void)
{
	sigset_t pending;

	return !sigpending(&pending) &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM) ||
		sigismember(&pending, SIGHUP));
}

void change_release_signals(const sigset_t *before)
{
	const struct timespec at_once = { 0 };
	sigset_t set;

	/* It was heeded: it need not end the process now, before the last words. */
	end_signals(&set);
	while (sigtimedwait(&set, NULL, &at_once) > 0)
		;
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

void tune_plan_print(const struct tune_plan *p, FILE *out)
{
	struct tune_report report = { .out = out };

	for (size_t i = 0; i < p->count; i++) {
		const struct tune_change *c = &p->changes[i];
		char was[128];

		if (c->kind == TUNE_DIRECTORY)
			change_say(&report, "would", c, "make this cgroup");
		else if (c->kind == TUNE_NEW)
			change_say(&report, "would", c, "%s", c->now);
		else
			change_say(&report, "would", c, "%s -> %s",
				   change_shown(c, c->former, was, sizeof(was)), c->now);
	}
}

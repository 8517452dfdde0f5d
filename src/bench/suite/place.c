/* SPDX-License-Identifier: BSD-2-Clause */
/* See place.h. */
#define LOG_ROOM "bench"
#include "bench/suite/place.h"

#include <errno.h>
#include <string.h>

#include "bench/kind/parameters.h"
#include "bench/tune/cpus.h"
#include "util/log.h"
#include "util/num.h"

int place_parse_cpus(struct place *p, const char *text)
{
	struct tune_cpus cpus = { 0 };

	CPU_ZERO(&p->cpus);
	/* The kinds that take processors themselves know no ranges. */
	if (!strchr(text, '-') && !tune_cpus_parse_list(text, &cpus))
		for (size_t i = 0; i < CPU_SETSIZE; i++)
			if (tune_cpus_has(&cpus, (int)i))
				CPU_SET(i, &p->cpus);
	p->pinned = CPU_COUNT(&p->cpus) > 1;
	if (p->pinned)
		return 0;
	return log_fail(-EINVAL, "--cpus '%s' is not usable, expected processors such as 2,3",
			text);
}

int place_parse_priority(struct place *p, const char *text)
{
	const char *end = text + strlen(text);
	int64_t priority;

	if (num_parse_i64(text, end, &priority) == end && priority >= 0 &&
	    priority <= PLACE_PRIORITY_MAX) {
		p->priority = (int)priority;
		return 0;
	}
	return log_fail(-EINVAL, "--priority '%s' is not usable, expected 0 to %d", text,
			PLACE_PRIORITY_MAX);
}

static int set_priority(int priority)
{
	const struct sched_param param = { .sched_priority = priority };

	return sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param) ? -errno : 0;
}

bool place_is_allowed(const struct place *p)
{
	cpu_set_t before;
	int err;

	if (p->pinned && (sched_getaffinity(0, sizeof(before), &before) ||
			  sched_setaffinity(0, sizeof(p->cpus), &p->cpus)))
		return log_fail(false, "--cpus: this process may not use these processors: %s",
				strerror(errno));
	if (p->pinned)
		sched_setaffinity(0, sizeof(before), &before);
	err = p->priority ? set_priority(p->priority) : 0;
	if (p->priority && !err)
		set_priority(0);
	if (err)
		log_error("--priority %d: %s; it needs CAP_SYS_NICE or a limit, as by 'ulimit -r "
			  "%d'", p->priority, strerror(-err), p->priority);
	return !err;
}

static bool has(const struct bench_kind *kind, const char *name)
{
	char why[PARAMETER_WHY_SIZE];

	return parameter_find(kind, name, why);
}

void place_enter(const struct place *p, const struct bench_kind *kind, struct place *before)
{
	*before = (struct place){ .pinned = false };
	if (!p)
		return;
	if (p->pinned && !has(kind, "cpus") &&
	    !sched_getaffinity(0, sizeof(before->cpus), &before->cpus))
		before->pinned = !sched_setaffinity(0, sizeof(p->cpus), &p->cpus);
	if (p->priority && !has(kind, "priority") && !set_priority(p->priority))
		before->priority = p->priority;
}

void place_leave(const struct place *before)
{
	if (before->pinned)
		sched_setaffinity(0, sizeof(before->cpus), &before->cpus);
	if (before->priority)
		set_priority(0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar trace --counters`: suspects pitfalls from the counters of adapters, without packets and
 * without privilege. This file chooses the adapters and takes the intervals; src/analyzer/counters.c
 * has the rules.
 */
#include "cli/trace_counters.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/trace.h"
#include "gateway/plugin/plugin.h"
#include "util/clock.h"

#define WATCHED_MAX 64

struct watch {
	const struct trace_settings *s;
	const char *root;
	struct watched port[WATCHED_MAX];
	unsigned count;
	unsigned port_wanted; /* 0: all */
	int64_t start_ns;
};

static volatile sig_atomic_t stopped;

static void on_stop(int signal_number)
{
	stopped = signal_number;
}

/* ---- which adapters ---- */

static struct watched *room(struct watch *w)
{
	if (w->count < WATCHED_MAX)
		return &w->port[w->count];
	fprintf(stderr, "busbar trace: only the first %u ports are watched\n", WATCHED_MAX);
	return NULL;
}

static int add_port(void *arg, const char *device, unsigned port)
{
	struct watch *w = arg;
	struct watched *to;
	int error;

	if (w->port_wanted && w->port_wanted != port)
		return 0;
	to = room(w);
	error = to ? counters_sysfs_open(&to->counters, w->root, device, port) : -ENOSPC;
	if (!error)
		w->count++;
	return error == -ENOMEM ? error : 0;
}

static int add_soft(struct watch *w, const char *device)
{
	counters_soft_open_fn *open =
		(counters_soft_open_fn *)plugin_symbol("command_devices", "cli_counters_soft");
	struct watched *to = room(w);
	int error = !open ? -ENOSYS : !to ? -ENOSPC : open(&to->counters, device);

	if (!error)
		w->count++;
	return error;
}

static bool is_process(const char *name)
{
	return *name && !name[strspn(name, "0123456789")];
}

/* DEVICE, DEVICE:PORT, or the number of a process. */
static bool add_named(struct watch *w, const char *name)
{
	unsigned before = w->count;
	char device[64], *colon, *end = NULL;

	w->port_wanted = 0;
	if (strlen(name) >= sizeof(device)) {
		fprintf(stderr, "busbar trace: no device has a name like %s\n", name);
		return false;
	}
	strcpy(device, name);
	colon = strrchr(device, ':');
	if (colon) {
		*colon = '\0';
		w->port_wanted = (unsigned)strtoul(colon + 1, &end, 10);
		if (!w->port_wanted || *end) {
			fprintf(stderr, "busbar trace: '%s' is not the number of a port, from 1 on\n",
				colon + 1);
			return false;
		}
	}
	if (is_process(name))
		return !add_soft(w, name);
	counters_sysfs_list(w->root, device, add_port, w);
	if (w->count == before && !strncmp(device, "soft", 4) && w->port_wanted <= 1)
		return !add_soft(w, device);
	if (w->count == before)
		fprintf(stderr, "busbar trace: there is no RDMA device %s below %s/sys/class/infiniband; "
			"'busbar devices' lists all\n", name, w->root);
	return w->count > before;
}

static bool choose(struct watch *w)
{
	for (int i = 0; i < w->s->name_count; i++)
		if (!add_named(w, w->s->names[i]))
			return false;
	if (w->s->name_count)
		return true;
	counters_sysfs_list(w->root, NULL, add_port, w);
	if (!w->s->root)
		add_soft(w, "soft0");
	if (!w->count)
		fprintf(stderr, "busbar trace: there is no RDMA device below %s/sys/class/infiniband\n", w->root);
	return w->count;
}

/* ---- intervals ---- */

static void begin(struct watched *w)
{
	for (unsigned i = 0; i < w->counters.count; i++) {
		w->before[i] = w->first[i] = w->counters.counter[i].value;
		w->known |= 1u << w->counters.counter[i].means;
	}
}

static bool is_event(enum analyzer_counter means)
{
	return means != ANALYZER_COUNT_BYTES && means != ANALYZER_COUNT_REQUESTS;
}

static void judge(struct watched *w, struct analyzer_interval *i, bool as_json)
{
	uint64_t grown[COUNTERS_MAX] = { 0 };
	enum analyzer_kind kind;
	bool events = false;

	i->known = w->known;
	memset(i->grown, 0, sizeof(i->grown));
	for (unsigned k = 0; k < w->counters.count; k++) {
		const struct counter *c = &w->counters.counter[k];

		/* One that somebody has reset begins anew. */
		grown[k] = c->value > w->before[k] ? c->value - w->before[k] : 0;
		w->before[k] = c->value;
		w->grown[k] += grown[k];
		i->grown[c->means] += grown[k];
		events |= is_event(c->means) && grown[k];
	}
	kind = analyzer_counters_add(&w->judged, i);
	if (events)
		trace_counters_interval(w, i, grown, kind, as_json);
}

static void take(struct watch *w, struct analyzer_interval *i)
{
	i->end_ns = (int64_t)clock_monotonic_ns_slow() - w->start_ns;
	for (unsigned k = 0; k < w->count; k++) {
		struct watched *port = &w->port[k];
		int error = port->gone ? 0 : port->counters.read(&port->counters);

		port->failed |= error && error != -ESRCH;
		if (error && error != -ESRCH)
			fprintf(stderr, "busbar trace: %s: its counters cannot be read any more: %s\n",
				port->counters.name, strerror(-error));
		port->gone |= error != 0;
		if (!port->gone)
			judge(port, i, w->s->json);
	}
	i->begin_ns = i->end_ns;
}

/* Until all intervals were taken, all adapters are gone, or a signal comes. */
static void watch(struct watch *w)
{
	uint64_t next_ns = clock_monotonic_ns_slow();
	struct analyzer_interval i = { 0 };
	bool there = true;

	w->start_ns = (int64_t)next_ns;
	for (unsigned n = 0; !stopped && there && (!w->s->count || n < w->s->count); n++) {
		struct timespec until;

		next_ns += w->s->interval_ms * UINT64_C(1000000);
		until = timespec_from_ns(next_ns);
		while (!stopped && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
			;
		take(w, &i);
		there = false;
		for (unsigned k = 0; k < w->count; k++)
			there |= !w->port[k].gone;
		if (ferror(stdout))
			break;
	}
}

static enum cli_status status_of(const struct watch *w)
{
	bool pitfall = false, doubt = false;

	for (unsigned k = 0; k < w->count; k++) {
		pitfall |= analyzer_counters_verdict(&w->port[k].judged) < ANALYZER_PITFALLS_END;
		doubt |= w->port[k].failed;
		for (int kind = 0; kind < ANALYZER_PITFALLS_END; kind++)
			doubt |= analyzer_counters_doubt(w->port[k].known, (enum analyzer_kind)kind) != NULL;
	}
	return pitfall ? CLI_FAILED : doubt ? CLI_INCOMPLETE : CLI_OK;
}

int trace_counters(const struct trace_settings *s)
{
	const struct sigaction stop = { .sa_handler = on_stop, .sa_flags = (int)SA_RESETHAND };
	struct watch w = { .s = s };
	enum cli_status status = CLI_INCOMPLETE;

	w.root = s->root ? s->root : "";
	/* A second Ctrl-C ends the process. */
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	if (choose(&w)) {
		for (unsigned i = 0; i < w.count; i++) {
			begin(&w.port[i]);
			trace_counters_missing(&w.port[i]);
		}
		trace_counters_begin(w.port, w.count, s->interval_ms, s->json);
		watch(&w);
		status = status_of(&w);
		trace_counters_verdicts(w.port, w.count, (int64_t)clock_monotonic_ns_slow() - w.start_ns,
					(int)status, s->json);
	}
	for (unsigned i = 0; i < w.count; i++)
		w.port[i].counters.close(&w.port[i].counters);
	return (int)status;
}

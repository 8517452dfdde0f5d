/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar trace --counters`: suspects pitfalls from the counters of adapters, without packets and
 * without privilege. This file chooses the adapters, takes the intervals and prints what
 * src/analyzer/counters.c, which has the rules, says of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "analyzer/words.h"
#include "cli/cli.h"
#include "cli/counters.h"
#include "cli/trace.h"
#include "cli/trace_text.h"
#include "gateway/plugin/plugin.h"
#include "util/clock.h"

/* A port that is watched. */
struct watched {
	struct counters counters;
	uint64_t before[COUNTERS_MAX];
	uint64_t grown[COUNTERS_MAX]; /* in all intervals, of each counter */
	uint32_t known;               /* bits of enum analyzer_counter */
	bool gone;                    /* the adapter was taken away, or the process has ended */
	bool failed;                  /* not because its process has ended */
	struct analyzer_counters judged;
};

#define WATCHED_MAX 64

struct watch {
	const struct trace_settings *s;
	const char *root;
	struct watched port[WATCHED_MAX];
	unsigned count;
	unsigned port_wanted; /* 0: all */
	int64_t start_ns;
};

/* ---- what is printed; as JSON an object on a line ---- */

static const enum analyzer_kind judged[] = { ANALYZER_DAMMING, ANALYZER_READ_FLOOD,
					     ANALYZER_WRITE_AMPLIFICATION, ANALYZER_TIMEOUT };
#define JUDGED (sizeof(judged) / sizeof(judged[0]))

static json_t *growth(const struct watched *w, const uint64_t *grown)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < w->counters.count; i++)
		if (grown[i])
			json_object_set_new(o, w->counters.counter[i].name, json_integer((json_int_t)grown[i]));
	return o;
}

/* `comma`: what is before the first. */
static void print_growth(const struct watched *w, const uint64_t *grown, const char *comma)
{
	for (unsigned i = 0; i < w->counters.count; i++) {
		if (!grown[i])
			continue;
		printf("%s%s +%" PRIu64, comma, w->counters.counter[i].name, grown[i]);
		comma = ", ";
	}
}

/* The ports that are watched from now on. */
static void say_begin(const struct watch *w)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < w->count; i++) {
		json_array_append_new(list, json_string(w->port[i].counters.name));
		if (!w->s->json)
			printf("%s %s", i ? "," : "watching", w->port[i].counters.name);
	}
	if (w->s->json)
		trace_print_line(json_pack("{s:O, s:i}", "watching", list, "interval_ms",
					   (int)w->s->interval_ms));
	else
		printf(" every %u ms, until Ctrl-C\n", w->s->interval_ms);
	json_decref(list);
	fflush(stdout);
}

/* An interval in which a counter of events has grown. */
static void say_interval(const struct watched *w, const struct analyzer_interval *i,
			 const uint64_t *grown, enum analyzer_kind kind, bool as_json)
{
	if (as_json) {
		trace_print_line(json_pack("{s:s, s:I, s:I, s:s, s:o}", "adapter", w->counters.name,
					   "begin_ns", (json_int_t)i->begin_ns, "end_ns", (json_int_t)i->end_ns,
					   "kind", analyzer_kind_key(kind), "counters", growth(w, grown)));
	} else {
		printf("%10.3f s  %s: ", (double)i->end_ns / 1e9, w->counters.name);
		print_growth(w, grown, "");
		if (kind < ANALYZER_PITFALLS_END)
			printf("  suspected: %s", analyzer_kind_name(kind));
		else if (kind != ANALYZER_NONE)
			printf("  %s", analyzer_kind_name(kind));
		putchar('\n');
	}
	fflush(stdout);
}

/* Counters that the adapter lacks, and what cannot be judged without them. */
static void say_missing(const struct watched *w)
{
	if (*w->counters.missing)
		fprintf(stderr, "busbar trace: %s has no counter %s\n", w->counters.name, w->counters.missing);
	for (size_t i = 0; i < JUDGED; i++) {
		const char *why = analyzer_counters_doubt(w->known, judged[i]);

		if (why)
			fprintf(stderr, "busbar trace: %s: %s is not judged: %s\n", w->counters.name,
				analyzer_kind_name(judged[i]), why);
	}
}

static void sentence(const struct watched *w, enum analyzer_kind kind, char *text, size_t size)
{
	const struct analyzer_counters *c = &w->judged;

	switch (kind) {
	case ANALYZER_DAMMING:
		snprintf(text, size, "%ju timeout%s came behind %s and no packet was reported lost; the port was "
			 "quiet for %s before.", (uintmax_t)c->stalls, c->stalls == 1 ? "" : "s",
			 c->side == ANALYZER_SERVER ? "RNR NAKs" : "page faults",
			 TRACE_DURATION(c->quiet_max_ns));
		break;
	case ANALYZER_READ_FLOOD:
		snprintf(text, size, "Requests were repeated more than four times each, without RNR NAKs.");
		break;
	case ANALYZER_WRITE_AMPLIFICATION:
		snprintf(text, size, "Requests were repeated more than four times each, behind RNR NAKs.");
		break;
	case ANALYZER_TIMEOUT:
		snprintf(text, size, "Timeouts without RNR NAKs, page faults or losses before them. This is no sign "
			 "of on-demand paging.");
		break;
	case ANALYZER_LOSS:
		snprintf(text, size, "Packets were lost on the way. No pitfall.");
		break;
	case ANALYZER_NONE:
		snprintf(text, size, "Nothing found.");
		break;
	default:
		snprintf(text, size, "Waits of the usual length. No pitfall.");
		break;
	}
}

static json_t *intervals(const struct analyzer_counters *c)
{
	json_t *o = json_object();

	for (int kind = 0; kind < ANALYZER_NONE; kind++)
		if (c->intervals[kind])
			json_object_set_new(o, analyzer_kind_key((enum analyzer_kind)kind),
					    json_integer((json_int_t)c->intervals[kind]));
	return o;
}

static json_t *not_judged(const struct watched *w)
{
	json_t *list = json_array();

	for (size_t i = 0; i < JUDGED; i++)
		if (analyzer_counters_doubt(w->known, judged[i]))
			json_array_append_new(list, json_string(analyzer_kind_key(judged[i])));
	return list;
}

static json_t *verdict_json(const struct watched *w)
{
	enum analyzer_kind kind = analyzer_counters_verdict(&w->judged);
	char text[300];

	sentence(w, kind, text, sizeof(text));
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:s, s:o, s:b}",
			 "adapter", w->counters.name, "verdict", analyzer_kind_key(kind),
			 "suspected", kind < ANALYZER_PITFALLS_END, "confidence",
			 analyzer_confidence_key(analyzer_counters_confidence(&w->judged, kind)),
			 "sentence", text, "advice", analyzer_kind_advice(kind), "stalls",
			 (json_int_t)w->judged.stalls, "quiet_ns", (json_int_t)w->judged.quiet_max_ns,
			 "intervals", intervals(&w->judged), "counters", growth(w, w->grown),
			 "missing", w->counters.missing, "not_judged", not_judged(w), "ended", w->gone);
}

static void print_verdict(const struct watched *w)
{
	enum analyzer_kind kind = analyzer_counters_verdict(&w->judged);
	bool pitfall = kind < ANALYZER_PITFALLS_END;
	char text[300];

	sentence(w, kind, text, sizeof(text));
	printf("\n%s: %s%s", w->counters.name, pitfall ? "suspected: " : "", analyzer_kind_name(kind));
	if (pitfall)
		printf(" (confidence %s)",
		       analyzer_confidence_key(analyzer_counters_confidence(&w->judged, kind)));
	if (kind != ANALYZER_NONE)
		printf(". %s", text);
	print_growth(w, w->grown, "\n    ");
	puts(w->failed ? "; then the adapter was gone" : w->gone ? "; then the process ended" : "");
	if (pitfall)
		printf("what to do: %s\nA packet capture names the connection: busbar trace CAPTURE.\n",
		       analyzer_kind_advice(kind));
}

static void say_verdicts(const struct watch *w, int64_t duration_ns, int status)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < w->count; i++) {
		if (w->s->json)
			json_array_append_new(list, verdict_json(&w->port[i]));
		else
			print_verdict(&w->port[i]);
	}
	if (w->s->json)
		trace_print_line(json_pack("{s:i, s:I, s:O}", "status", status, "duration_ns",
					   (json_int_t)duration_ns, "adapters", list));
	json_decref(list);
}

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
		w->before[i] = w->counters.counter[i].value;
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
		say_interval(w, i, grown, kind, as_json);
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
			say_missing(&w.port[i]);
		}
		say_begin(&w);
		watch(&w);
		status = status_of(&w);
		say_verdicts(&w, (int64_t)clock_monotonic_ns_slow() - w.start_ns, (int)status);
	}
	for (unsigned i = 0; i < w.count; i++)
		w.port[i].counters.close(&w.port[i].counters);
	return (int)status;
}

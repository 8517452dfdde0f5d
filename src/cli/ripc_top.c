/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar ripc top`: what the instances of this host and user do, again and again: rates of
 * their counters since the last look.
 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/ripc_common.h"
#include "cli/ripc_shown.h"
#include "util/clock.h"

#define SEEN_MAX 1024

struct settings {
	uint64_t interval_ns, count;
	bool json;
};

static const struct option_entry table[] = {
	{ "-i, --interval SECONDS: from one look to the next (1)", RIPC_SECONDS(struct settings, interval_ns) },
	{ "-c, --count N: looks (0: until interrupted)", OPTION_WHOLE(struct settings, count, 0, UINT32_MAX) },
	{ "-j, --json: one JSON object a look, with the counters as they are", OPTION_FLAG(struct settings, json) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar ripc top",
	.synopsis = "[OPTIONS]",
	.about = "Shows what the instances of this user on this host do: messages and bytes per second.\n"
		 "The superuser sees those of all.\n",
	.table = table,
};

/* An instance at the last look. */
struct seen {
	uint64_t instance;
	struct ripc_counters counters;
};

struct look {
	struct seen *before, *now;
	unsigned before_count, now_count;
	double seconds;
	struct cli_json *json;
};

static double rate(const struct look *l, uint64_t before, uint64_t now)
{
	return l->seconds > 0 && now > before ? (double)(now - before) / l->seconds : 0;
}

static void print_rates(const struct look *l, const struct shown *s)
{
	const struct ripc_counters *c = &s->head.counters, *b = c;

	for (unsigned i = 0; i < l->before_count; i++)
		if (l->before[i].instance == s->head.instance)
			b = &l->before[i].counters;
	printf("%7" PRIu32 " %-15s %-24s %4" PRIu64 " %9.0f %9.0f %8.0f %8.0f %9.1f %7" PRIu64
	       " %7" PRIu64 "\n", s->head.pid, s->head.command, s->head.address, c->connections,
	       rate(l, b->short_sent, c->short_sent),
	       rate(l, b->short_received, c->short_received),
	       rate(l, b->long_sent, c->long_sent), rate(l, b->long_received, c->long_received),
	       rate(l, b->bytes_pushed + b->bytes_pulled, c->bytes_pushed + c->bytes_pulled) / 1e6,
	       c->short_dropped, c->long_failed);
}

static void print_service(const struct ripc_show_service *v, struct cli_json *j)
{
	cli_json_open(j, NULL, '{');
	ripc_shown_service_json(v, j);
	cli_json_close(j, '}');
}

static void print_json(struct cli_json *j, const struct shown *s)
{
	cli_json_open(j, NULL, '{');
	cli_json_put(j, j_uint("pid", s->head.pid), j_text("command", s->head.command),
			j_text("address", s->head.address));
	cli_json_open(j, "counters", '{');
	ripc_counters_json(&s->head.counters, j);
	cli_json_close(j, '}');
	cli_json_open(j, "services", '[');
	for (unsigned i = 0; i < s->head.services; i++)
		print_service(&s->services[i], j);
	cli_json_close(j, ']');
	cli_json_put(j, j_uint("services_left_out", s->head.services_left_out));
	cli_json_close(j, '}');
}

static void one(const struct shown *s, void *arg)
{
	struct look *l = arg;

	if (l->json)
		print_json(l->json, s);
	else
		print_rates(l, s);
	if (l->now_count < SEEN_MAX)
		l->now[l->now_count++] =
			(struct seen){ s->head.instance, s->head.counters };
}

static int look(struct look *l, bool json)
{
	struct cli_json j = { .out = stdout };
	int ret;

	l->json = json ? &j : NULL;
	l->now_count = 0;
	if (json) {
		cli_json_open_list(&j, "instances");
	} else {
		if (isatty(STDOUT_FILENO))
			printf("\033[H\033[2J");
		printf("%7s %-15s %-24s %4s %9s %9s %8s %8s %9s %7s %7s\n", "PID", "COMMAND",
		       "ADDRESS", "CONN", "SHORT/s", "RECV/s", "LONG/s", "RECV/s", "MB/s",
		       "DROPPED", "FAILED");
	}
	ret = ripc_shown_each(one, l);
	if (json)
		cli_json_close_list(&j);
	fflush(stdout);
	return ret;
}

int cli_ripc_top(int argc, char **argv)
{
	static struct seen tables[2][SEEN_MAX];
	struct settings set = { .interval_ns = 1000000000 };
	int status = options_parse(&options, argc, argv, &set, NULL);
	struct timespec pause;
	struct look l = { .before = tables[0], .now = tables[1] };
	uint64_t last = 0;

	if (status >= 0)
		return status;
	pause = timespec_from_ns(set.interval_ns);
	ripc_common_catch();
	for (uint64_t n = 0; !atomic_load(&ripc_interrupted) && (!set.count || n < set.count); n++) {
		struct seen *spare = l.before;
		uint64_t now;

		if (n)
			nanosleep(&pause, NULL); /* a signal ends it, and the loop */
		if (atomic_load(&ripc_interrupted))
			break;
		now = clock_monotonic_ns_slow();
		l.seconds = n ? (double)(now - last) / 1e9 : 0;
		last = now;
		if (look(&l, set.json))
			return CLI_FAILED;
		l.before = l.now;
		l.before_count = l.now_count;
		l.now = spare;
	}
	return CLI_OK;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busbar-odp-sim FILE: runs the points of the file, one line each (point.h), with the adapter in
 * virtual time, and prints one JSON object for each trial. For `busbar bench odp`.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"
#include "virtual/net.h"
#include "virtual/odp/record.h"
#include "virtual/odp/run.h"

static void print_times(const char *name, const uint64_t *ns, uint64_t count)
{
	printf(", \"%s\": [", name);
	for (uint64_t i = 0; i < count; i++)
		printf("%s%" PRIu64, i ? ", " : "", ns[i]);
	printf("]");
}

static void print_result(unsigned number, uint64_t trial, const struct odp_point *p,
			 const struct odp_result *r, bool recorded)
{
	const struct odp_counts *c = &r->count;

	printf("{\"point\": %u, \"trial\": %" PRIu64 ", \"time_ns\": %" PRIu64
	       ", \"packets\": %" PRIu64 ", \"requests\": %" PRIu64 ", \"repeated\": %" PRIu64
	       ", \"rnr_naks\": %" PRIu64 ", \"sequence_naks\": %" PRIu64 ", \"lost\": %" PRIu64
	       ", \"timeouts\": %" PRIu64 ", \"failed\": %" PRIu64 ", \"wrong\": %" PRIu64
	       ", \"status\": \"%s\", \"timeout_ns\": %" PRIu64 ", \"rnr_ns\": %" PRIu64,
	       number, trial, r->took_ns, c->requests + c->responses, c->requests, c->repeated,
	       c->rnr_naks, c->sequence_naks, c->lost, c->timeouts, r->failed, r->wrong,
	       ibv_wc_status_str(r->status), r->timeout_ns, r->rnr_ns);
	if (p->list) {
		print_times("posted_ns", r->posted_ns, p->num_ops);
		print_times("done_ns", r->done_ns, p->num_ops);
	}
	if (recorded) {
		printf(", \"recorded\": ");
		odp_record_print(stdout);
	}
	printf("}\n");
}

static int run_line(char *line, unsigned number)
{
	static struct odp_result result;
	struct odp_point p;
	bool wanted, recorded = false;
	char why[200];

	if (odp_point_parse(line, &p, why, sizeof(why))) {
		fprintf(stderr, "point %u: %s\n", number, why);
		return -EINVAL;
	}
	for (uint64_t trial = 0; trial < p.trials; trial++) {
		if (!odp_run(&p, p.seed + trial, &result))
			return -EINVAL;
		/* The first trial in which anything went wrong, else the last. */
		wanted = p.list && !recorded && (odp_record_is_eventful() || trial + 1 == p.trials);
		print_result(number, trial, &p, &result, wanted);
		recorded |= wanted;
		p.capture = ""; /* of the first one only */
	}
	return 0;
}

/* The settings of a program's adapter, which are none of an experiment. */
static void forget_settings(void)
{
	static const char prefix[] = "BUSBAR_";

	for (char **e = environ; *e;) {
		char name[80];
		size_t length = strcspn(*e, "=");

		snprintf(name, sizeof(name), "%.*s", (int)length, *e);
		if (strncmp(name, prefix, strlen(prefix)) || !strcmp(name, "BUSBAR_LOG") ||
		    length >= sizeof(name))
			e++;
		else
			unsetenv(name);
	}
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "re") : NULL;
	char line[4096];
	int ret = 0;

	if (!f) {
		fprintf(stderr, "usage: busbar-odp-sim FILE: a line of PARAMETER=VALUE words for "
				"each point\n");
		return 2;
	}
	forget_settings();
	log_init(LOG_WARN);
	virtual_device();
	for (unsigned number = 0; !ret && fgets(line, sizeof(line), f); number++)
		ret = run_line(line, number);
	fclose(f);
	return ret ? 2 : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The sub-command check: looks at all settings and measures; see tune.h. */
#define LOG_ROOM "tune"
#include "bench/tune/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/tune/work.h"
#include "util/container_of.h"
#include "util/log.h"

const char *const check_verdicts[TUNE_VERDICTS] = {
	[TUNE_GOOD] = "good", [TUNE_BETTER] = "better", [TUNE_LIMIT] = "limit",
	[TUNE_ABSENT] = "absent",
};

/* All time that the hypervisor says it gave to others; 0: it does not say. */
static double steal_ns(const struct tune_tree *t)
{
	unsigned long long ticks;
	char line[256];
	long rate = sysconf(_SC_CLK_TCK);

	if (rate <= 0 || tune_tree_line(t, "/proc/stat", line, sizeof(line)) ||
	    sscanf(line, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &ticks) != 1)
		return 0;
	return (double)ticks * 1e9 / (double)rate;
}

static int look_all(const struct tune_options *o, struct check *c)
{
	const struct tune_setting *s = NULL;

	while ((s = tune_setting_next(s))) {
		struct tune_profile profile = { 0 };
		struct check_row *more;
		int err;

		if (!tune_wanted(o, s))
			continue;
		more = realloc(c->rows, (c->count + 1) * sizeof(*more));
		if (!more)
			return -ENOMEM;
		c->rows = more;
		more[c->count].setting = s;
		tune_look(&c->host, s, &profile, &more[c->count].look);
		more[c->count].changes = s->applies && !s->asked_only &&
					 more[c->count].look.better[0] ? profile.count : 0;
		c->count++;
		err = profile.err;
		tune_profile_free(&profile);
		if (err)
			return err;
	}
	return 0;
}

static void measure(const struct tune_options *o, struct check *c)
{
	const struct tune_cpus *cpus = tune_cpus_count(&c->host.cpus) ?
				       &c->host.cpus : &c->host.online;
	double before = steal_ns(&c->host.tree);

	c->measured = true;
	c->gaps_err = tune_gaps_measure(cpus, o->measure_ns, &c->gaps, &c->gaps_count);
	c->steal_ns = steal_ns(&c->host.tree) - before;
	tune_wake_measure(&c->wake);
}

int tune_check_main(const struct tune_options *o, FILE *out)
{
	struct check c = { 0 };
	int err = tune_prepare(o, &c.host);

	if (!err) {
		err = look_all(o, &c);
		if (err)
			log_error("looking at the settings: %s", strerror(-err));
	}
	if (!err) {
		/* A copy of files is not the machine that would be measured. */
		if (!o->no_measure && !o->root[0])
			measure(o, &c);
		(o->json ? check_print_json : check_print_text)(&c, out);
	}
	free(c.rows);
	free(c.gaps);
	return err ? 1 : 0;
}

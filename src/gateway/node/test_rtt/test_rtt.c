/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `test_rtt`: sends samples at the rates of a list of cases and
 * measures how long they take until they are written to it again. What lies
 * between is the business of the configuration: a path from this node to some
 * other one, and a path back.
 *
 * A case: warm-up (samples go out and do not count) - measuring - waiting for
 * what is still under way - cool-down (silence). The reading thread moves from
 * one phase to the next; the writing one only records, under a lock that the
 * reading thread takes where a case begins and ends.
 */
#define LOG_ROOM "gateway/test_rtt"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/plugin/node.h"
#include "gateway/part/timer.h"
#include "gateway/node/test_rtt/cases.h"
#include "gateway/node/test_rtt/measurement.h"
#include "gateway/plugin/services.h"
#include "util/clock.h"
#include "util/log.h"

/* How often is looked whether the last ones have come back. */
#define DRAIN_STEP_NS (1 * UINT64_C(1000000))

enum phase {
	PHASE_IDLE,     /* between cases */
	PHASE_WARMUP,
	PHASE_MEASURE,
	PHASE_DRAIN,
	PHASE_COOLDOWN,
	PHASE_DONE,
};

struct test_rtt {
	struct node *node;
	/* Settings. */
	const char *prefix, *output;
	json_t *format_cfg, *cases_cfg;
	struct rtt_settings common;
	bool shutdown;
	int timer_kind;
	double timeout_s, catch_up_s;

	struct rtt_case *cases;
	unsigned case_count, next_case;
	struct format *format;
	char path_prefix[PATH_MAX];

	struct timer timer;
	bool timer_open;
	enum phase phase;
	uint64_t phase_end_ns, measure_start_ns; /* of the timer's clock */

	pthread_mutex_t lock;        /* `active` and what it points at */
	bool has_lock;
	struct measurement *active;  /* samples that come back are recorded */
	struct measurement *measurement;
};

#define OFFSET(field) offsetof(struct test_rtt, field)

static const struct config_key rtt_keys[] = {
	{ "prefix", CONFIG_STRING, OFFSET(prefix),
	  .help = "Beginning of the files' names, the node's name; placeholders "
		  "of strftime() are replaced by the local time at start" },
	{ "output", CONFIG_STRING, OFFSET(output), ".",
	  .help = "Folder of the files; it is made when it is not there" },
	{ "format", CONFIG_JSON, OFFSET(format_cfg),
	  .help = "Format of the files, one with lines; villas.human" },
	{ "cases", CONFIG_JSON, OFFSET(cases_cfg),
	  .help = "A group, or a list of groups, with rates, values, count, "
		  "duration, warmup, cooldown and mode" },
	{ "shutdown", CONFIG_BOOL, OFFSET(shutdown), "false",
	  .help = "Stop the gateway behind the last case" },
	{ "timeout", CONFIG_REAL, OFFSET(timeout_s), "1", .min = 0, .max = 1e6,
	  .help = "Seconds that the last samples of a case may take to come "
		  "back" },
	{ "timer", CONFIG_ENUM, OFFSET(timer_kind), "auto",
	  .names = timer_kind_names,
	  .help = "As for signals; auto goes by the highest of all rates" },
	TIMER_CATCH_UP_KEY(OFFSET(catch_up_s)),
	/* Of all cases that say nothing else; read by parse. */
	{ "rates", CONFIG_JSON, OFFSET(common.rates),
	  .help = "Samples per second, a number or a list" },
	{ "values", CONFIG_JSON, OFFSET(common.values),
	  .help = "Values in a sample, an integer or a list" },
	{ "count", CONFIG_INT, OFFSET(common.count), "0", .min = 0, .max = 1e15,
	  .help = "Samples to send; 1000 where neither this nor duration is given" },
	{ "duration", CONFIG_REAL, OFFSET(common.duration_s), "0", .min = 0,
	  .max = 1e9, .help = "Seconds that samples are sent" },
	{ "warmup", CONFIG_REAL, OFFSET(common.warmup_s), "0", .min = 0,
	  .max = 1e9,
	  .help = "Seconds that samples are sent before they count" },
	{ "cooldown", CONFIG_REAL, OFFSET(common.cooldown_s), "0", .min = 0,
	  .max = 1e9, .help = "Seconds of silence behind a case" },
	{ "mode", CONFIG_ENUM, OFFSET(common.mode), "min",
	  .names = rtt_mode_names,
	  .help = "What ends a case: min, max, stop_after_count, "
		  "stop_after_duration, at_least_count or at_least_duration" },
};

static unsigned values_max(const struct test_rtt *t)
{
	unsigned most = 0;

	for (unsigned i = 0; i < t->case_count; i++)
		most = MAX(most, t->cases[i].values);
	return most;
}

/* Samples of the largest case, unless the configuration has names. */
static int set_signals(struct node *n, struct test_rtt *t, struct config *c,
		       json_t *cfg)
{
	unsigned most = values_max(t);
	struct signal_list *l;

	if (n->in.signals && n->in.signals->count < most) {
		config_fail(c, cfg, "values",
			    "samples of %u values are to be sent, but `signals` names %u",
			    most, n->in.signals->count);
		return -EINVAL;
	}
	if (n->in.signals)
		return 0;
	l = signal_list_new(most, SIGNAL_FLOAT);
	if (!l)
		return -ENOMEM;
	n->in.signals = l;
	return 0;
}

static int rtt_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct test_rtt *t = n->private_data;
	int ret = rtt_cases_parse(&t->cases, &t->case_count, c, cfg, &t->common);

	if (!ret)
		ret = set_signals(n, t, c, cfg);
	if (!ret)
		ret = format_new(&t->format, c, t->format_cfg, "villas.human",
				 NULL);
	if (ret)
		return ret;
	/* Each line tells of a round trip; the values are known anyway. */
	t->format->data = false;
	if (!t->prefix || !*t->prefix)
		t->prefix = n->name;
	return 0;
}

static int rtt_check(struct node *n, struct config *c, json_t *cfg)
{
	const struct test_rtt *t = n->private_data;

	if (t->format->type->lines && t->format->type->print)
		return 0;
	config_fail(c, cfg, "format",
		    "'%s' is no text with lines, so no line of results can stand behind the samples; take villas.human or csv",
		    t->format->type->name);
	return -EINVAL;
}

static void rtt_destroy(struct node *n)
{
	struct test_rtt *t = n->private_data;

	format_destroy(t->format);
	free(t->cases);
	free(t->measurement);
	if (t->has_lock)
		pthread_mutex_destroy(&t->lock);
}

/* The folder and those above it. */
static int make_folder(const char *folder)
{
	char part[PATH_MAX];
	struct stat st;
	int err = 0;

	snprintf(part, sizeof(part), "%s", folder);
	for (char *p = part + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(part, 0777);
		*p = '/';
	}
	if (mkdir(part, 0777) && errno != EEXIST)
		err = errno;
	else if (stat(part, &st) || !S_ISDIR(st.st_mode))
		err = ENOTDIR;
	else if (access(part, W_OK | X_OK))
		err = errno;
	if (err)
		log_error("cannot put files into '%s': %s", folder,
			  strerror(err));
	return -err;
}

static int make_prefix(struct test_rtt *t)
{
	char name[NAME_MAX];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* that is the point */
	if (!strftime(name, sizeof(name), t->prefix, &tm) ||
	    snprintf(t->path_prefix, sizeof(t->path_prefix), "%s/%s",
		     t->output, name) >= (int)sizeof(t->path_prefix)) {
#pragma GCC diagnostic pop
		log_error("the prefix '%s' is longer than a path may be",
			  t->prefix);
		return -ENAMETOOLONG;
	}
	return 0;
}

static int rtt_start(struct node *n)
{
	struct test_rtt *t = n->private_data;
	double rate_hz = 0;
	int ret;

	t->node = n;
	for (unsigned i = 0; i < t->case_count; i++)
		rate_hz = MAX(rate_hz, t->cases[i].rate_hz);
	ret = make_folder(t->output);
	if (!ret)
		ret = make_prefix(t);
	if (ret)
		return ret;
	if (!t->has_lock)
		pthread_mutex_init(&t->lock, NULL);
	t->has_lock = true;
	if (!t->measurement)
		t->measurement = aligned_alloc(
			CACHE_LINE, (sizeof(*t->measurement) + CACHE_LINE - 1) &
					    ~(size_t)(CACHE_LINE - 1));
	if (!t->measurement)
		return -ENOMEM;
	memset(t->measurement, 0, sizeof(*t->measurement));
	ret = timer_open(&t->timer, (enum timer_kind)t->timer_kind, rate_hz);
	if (ret)
		return ret;
	t->timer_open = true;
	timer_set_catch_up(&t->timer, t->catch_up_s);
	t->phase = PHASE_IDLE;
	t->next_case = 0;
	if (n->services && !n->is_destination)
		log_warn("node %s: no path leads back to it, nothing will be measured",
			 n->name);
	return 0;
}

/* What comes back from now on counts, or not any more. */
static void set_active(struct test_rtt *t, struct measurement *m)
{
	pthread_mutex_lock(&t->lock);
	t->active = m;
	pthread_mutex_unlock(&t->lock);
}

static int finish_case(struct test_rtt *t, bool complete)
{
	struct measurement *m = t->measurement;

	set_active(t, NULL);
	if (!m->writer)
		return 0;
	if (!m->stopped.tv_sec)
		m->stopped = clock_realtime();
	return measurement_close(m, complete);
}

static int rtt_stop(struct node *n)
{
	struct test_rtt *t = n->private_data;
	int ret;

	if (!t->timer_open)
		return 0;
	ret = finish_case(t, false);
	t->timer_open = false;
	timer_close(&t->timer);
	return ret;
}

static uint64_t ns_from(double s)
{
	return (uint64_t)(s * 1e9);
}

static int begin_case(struct test_rtt *t)
{
	const struct rtt_case *k = &t->cases[t->next_case];
	int ret = measurement_open(t->measurement, t->node, k,
				   t->next_case, t->path_prefix, t->format);

	if (ret)
		return ret;
	log_info("case %u of %u: rate %.10g values %u to '%s'", t->next_case,
		 t->case_count, k->rate_hz, k->values, t->measurement->path);
	t->next_case++;
	t->phase = PHASE_WARMUP;
	timer_start(&t->timer, k->rate_hz);
	t->phase_end_ns = t->timer.now_ns() + ns_from(k->warmup_s);
	return 0;
}

static void begin_measuring(struct node *n, struct test_rtt *t)
{
	struct measurement *m = t->measurement;

	tally_begin(&m->tally, n->sequence);
	t->measure_start_ns = 0;
	t->phase = PHASE_MEASURE;
	set_active(t, m);
}

static void begin_draining(struct test_rtt *t)
{
	t->measurement->stopped = clock_realtime();
	t->phase = PHASE_DRAIN;
	t->phase_end_ns = t->timer.now_ns() + ns_from(t->timeout_s);
}

static void begin_cooldown(struct test_rtt *t)
{
	t->phase = PHASE_COOLDOWN;
	t->phase_end_ns = t->timer.now_ns() +
			  ns_from(t->measurement->setting->cooldown_s);
}

static int end_of_cases(struct node *n, struct test_rtt *t)
{
	if (t->phase != PHASE_DONE) {
		t->phase = PHASE_DONE;
		log_info("node %s: %u of %u cases are done%s", n->name,
			 t->next_case, t->case_count,
			 t->shutdown ? ", the gateway stops" : "");
		if (t->shutdown)
			services_request_stop(n->services);
	}
	return -ENODATA;
}

static bool is_over(const struct test_rtt *t)
{
	const struct measurement *m = t->measurement;
	double passed_s = 0;

	/* Where the next sample will stand, not where we are: so a duration
	 * makes the same number of samples each time. Half a step: rounding. */
	if (t->measure_start_ns)
		passed_s = (double)(timer_grid_next_ns(&t->timer.grid) -
				    t->measure_start_ns) / 1e9 +
			   0.5 / m->setting->rate_hz;
	return rtt_case_is_over(m->setting, tally_sent(&m->tally),
				tally_received(&m->tally), passed_s);
}

/* On to the phase in which a sample is due: 0 with *sends when there is one. */
static int advance(struct node *n, struct test_rtt *t, bool *sends)
{
	const struct tally *tally = &t->measurement->tally;
	uint64_t now = t->timer.now_ns();

	*sends = false;
	switch (t->phase) {
	case PHASE_IDLE:
		if (t->next_case == t->case_count)
			return end_of_cases(n, t);
		return begin_case(t) ? end_of_cases(n, t) : 0;
	case PHASE_WARMUP:
		*sends = now < t->phase_end_ns;
		if (!*sends)
			begin_measuring(n, t);
		return 0;
	case PHASE_MEASURE:
		*sends = !is_over(t);
		if (!*sends)
			begin_draining(t);
		return 0;
	case PHASE_DRAIN:
		if (tally_received(tally) < tally_sent(tally) &&
		    now < t->phase_end_ns)
			return timer_wait_until(&t->timer, now + DRAIN_STEP_NS);
		begin_cooldown(t);
		return 0;
	case PHASE_COOLDOWN:
		if (now < t->phase_end_ns)
			return timer_wait_until(&t->timer, t->phase_end_ns);
		finish_case(t, true);
		t->phase = PHASE_IDLE;
		return 0;
	case PHASE_DONE:
		break;
	}
	return -ENODATA;
}

/* The values tell the sample's number, and which of them each is. */
static void fill(struct node *n, const struct test_rtt *t, struct sample *s)
{
	s->signals = n->in.signals;
	s->length = MIN(t->measurement->setting->values, s->capacity);
	for (unsigned i = 0; i < s->length; i++) {
		if (s->signals->signals[i].type == SIGNAL_FLOAT)
			s->data[i].f = (double)n->sequence + i;
		else
			s->data[i].bits = 0;
	}
	s->sequence = n->sequence++;
	s->origin = clock_realtime();
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
}

/* Of a step that counts: what became of those before it, and of its own time. */
static void count_steps(struct node *n, struct test_rtt *t, uint64_t left_out)
{
	struct measurement *m = t->measurement;

	if (unlikely(left_out)) {
		m->missed += left_out;
		atomic_fetch_add_explicit(&n->counters.missed, left_out,
					  memory_order_relaxed);
	}
	if (unlikely(t->timer.grid.made_up)) {
		m->made_up++;
		atomic_fetch_add_explicit(&n->counters.made_up, 1,
					  memory_order_relaxed);
	}
}

static int send_one(struct node *n, struct test_rtt *t, struct sample *s)
{
	struct measurement *m = t->measurement;
	uint64_t late_ns;
	int64_t steps = timer_wait_step(&t->timer, &late_ns);

	if (steps < 0)
		return (int)steps;
	if (t->phase == PHASE_WARMUP) {
		m->warmup_sent++;
		fill(n, t, s);
		return 1;
	}
	if (!t->measure_start_ns) {
		t->measure_start_ns = timer_grid_next_ns(&t->timer.grid) -
				      (uint64_t)(1e9 / m->setting->rate_hz);
		m->started = clock_realtime();
		steps = 1; /* those before it are of the warm-up */
		late_ns = timer_step_age_ns(&t->timer);
	}
	count_steps(n, t, (uint64_t)steps - 1);
	hist_record(&m->late_ns, late_ns);
	fill(n, t, s);
	tally_send(&m->tally, clock_now_ns(), timer_step_age_ns(&t->timer));
	return 1;
}

static int rtt_read(struct node *n, struct sample *smps[], unsigned cnt,
		    unsigned *release)
{
	struct test_rtt *t = n->private_data;
	bool sends;

	if (!t->timer_open)
		return -EBADF;
	do {
		int ret = advance(n, t, &sends);

		if (ret)
			return ret;
	} while (!sends);
	return send_one(n, t, smps[0]);
}

static int rtt_write(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct test_rtt *t = n->private_data;
	/* One instant for all of a batch: they are there together. */
	struct timespec received = clock_realtime();
	uint64_t now_ns = clock_now_ns();

	pthread_mutex_lock(&t->lock);
	for (unsigned i = 0; t->active && i < cnt; i++)
		measurement_record(t->active, smps[i], received, now_ns);
	pthread_mutex_unlock(&t->lock);
	return (int)cnt;
}

static void rtt_interrupt(struct node *n)
{
	struct test_rtt *t = n->private_data;

	if (t->timer_open)
		timer_interrupt(&t->timer);
}

static void rtt_rearm(struct node *n)
{
	struct test_rtt *t = n->private_data;

	if (t->timer_open)
		timer_rearm(&t->timer);
}

static void rtt_resume(struct node *n)
{
	struct test_rtt *t = n->private_data;

	if (t->timer_open)
		timer_grid_forgive(&t->timer.grid);
}

static void rtt_print(struct node *n, char *buf, size_t size)
{
	const struct test_rtt *t = n->private_data;

	snprintf(buf, size, "%u cases, output %s, prefix %s", t->case_count,
		 t->output, t->prefix);
}

const struct node_type node_test_rtt = {
	.name = "test_rtt",
	.description = "Measures the round trip of what it sends",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct test_rtt),
	.keys = rtt_keys,
	.key_count = ARRAY_SIZE(rtt_keys),
	.parse = rtt_parse,
	.check = rtt_check,
	.start = rtt_start,
	.stop = rtt_stop,
	.destroy = rtt_destroy,
	.read = rtt_read,
	.write = rtt_write,
	.interrupt = rtt_interrupt,
	.rearm = rtt_rearm,
	.resume = rtt_resume,
	.print = rtt_print,
};

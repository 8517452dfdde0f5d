/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node that generates samples, once its settings are known: what the
 * node-types `signal` and `signal.v2` share. They differ in where the settings of
 * a value stand.
 */
#ifndef GATEWAY_PART_SIGNAL_SOURCE_H
#define GATEWAY_PART_SIGNAL_SOURCE_H

#include "gateway/plugin/node.h"
#include "gateway/part/signal_generator.h"
#include "gateway/part/timer.h"

struct hist;

struct signal_source {
	/* Settings; keys of both node-types. */
	int64_t limit, seed;
	double rate_hz, catch_up_s;
	bool realtime, monitor_missed;
	int timer_kind;
	int origin;             /* enum origin_mode */

	struct generator generator;
	struct timer timer;
	bool timer_open;
	bool resumed;           /* it was paused, so no path read it for a while */
	struct timespec started;
	double period_ns;
	uint64_t steps;         /* taken and missed */
	uint64_t left_out;      /* just before the last one */
	double *ready;          /* values of the next sample, made before its time */
	uint64_t ready_step;    /* whose they are; UINT64_MAX: nobody's */
	struct hist *late_ns;
};

/*
 * Rows of the key table; `offset` is that of the source in the private data,
 * which must be 0 for the callbacks below.
 */
#define SIGNAL_SOURCE_KEYS(offset, monitor) \
	{ "rate", CONFIG_REAL, (offset) + offsetof(struct signal_source, rate_hz), \
	  "10", .min = 1e-6, .max = 1e9, .help = "Samples per second" }, \
	{ "limit", CONFIG_INT, (offset) + offsetof(struct signal_source, limit), \
	  "-1", .help = "End after this many steps; 0 and below: never" }, \
	{ "realtime", CONFIG_BOOL, \
	  (offset) + offsetof(struct signal_source, realtime), "true", \
	  .help = "Wait for each step; false: as fast as samples are taken, " \
		  "stamped as if the rate had been kept" }, \
	{ "monitor_missed", CONFIG_BOOL, \
	  (offset) + offsetof(struct signal_source, monitor_missed), monitor, \
	  .help = "Report missed steps and lateness at the end" }, \
	{ "timer", CONFIG_ENUM, \
	  (offset) + offsetof(struct signal_source, timer_kind), "auto", \
	  .names = timer_kind_names, \
	  .help = "timerfd: sleeps, for moderate rates; tsc: spins before each " \
		  "step; auto: timerfd up to 20000 per second, tsc above" }, \
	{ "origin", CONFIG_ENUM, \
	  (offset) + offsetof(struct signal_source, origin), "actual", \
	  .names = origin_mode_names, \
	  .help = "Origin timestamp in real time: actual, when the sample is " \
		  "made; planned, when its step was due, and the receive " \
		  "timestamp says when it was made, so that what is measured " \
		  "holds the lateness of the step" }, \
	TIMER_CATCH_UP_KEY((offset) + offsetof(struct signal_source, catch_up_s)), \
	{ "seed", CONFIG_INT, (offset) + offsetof(struct signal_source, seed), \
	  .min = 0, .max = UINT32_MAX, \
	  .help = "Of its random walks; without it they draw from the numbers " \
		  "that all nodes share and that `seed` of the gateway begins" }

/*
 * Allocates `count` values with defaults and the shape `mixed`. 0 or -ENOMEM. The caller then
 * sets the values and calls signal_source_ready().
 */
int signal_source_init(struct signal_source *s, unsigned count);

/* Which of the settings of a value a text or number sets. */
struct signal_setting {
	const char *key;
	size_t field;           /* double in struct generator_value */
	double fallback;
};

#define SIGNAL_SETTING_COUNT 8
extern const struct signal_setting signal_settings[SIGNAL_SETTING_COUNT];

/*
 * Sets one of them of value `index`, or its shape, from `j` (NULL: leaves the
 * default). `at` and `key` say where it stands. 0 or -EINVAL after reporting.
 */
int signal_source_set(struct signal_source *s, unsigned index,
		      const struct signal_setting *setting, const json_t *j,
		      struct config *c, const json_t *at);
int signal_source_set_shape(struct signal_source *s, unsigned index,
			    const json_t *j, struct config *c,
			    const json_t *at);

/* Called when all values are set. `named`: the configuration names the signals. */
int signal_source_ready(struct node *n, struct signal_source *s, json_t *cfg,
			bool named);

/* Callbacks of the node-types. */
void signal_source_destroy(struct node *n);
int signal_source_start(struct node *n);
int signal_source_stop(struct node *n);
int signal_source_read(struct node *n, struct sample *smps[], unsigned cnt,
		       unsigned *release);
void signal_source_interrupt(struct node *n);
void signal_source_rearm(struct node *n);
void signal_source_resume(struct node *n);
int signal_source_poll_fds(struct node *n, int fds[], int max);
void signal_source_print(struct node *n, char *buf, size_t size);

#endif

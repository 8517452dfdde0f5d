/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emulator; see netem.h. Delayed messages stand in slots that were allocated
 * before. Those that wait are a heap at the start of the array, so the one that is due
 * next is the first; a thread sends it.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/netem.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/thread.h"
#include "gateway/base/waiting.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/prng.h"

#define SLOT_SIZE 2048 /* a larger message makes its slot grow, once */
#define CLOSE_NS NSEC_PER_SEC

enum distribution { UNIFORM, NORMAL, PARETO, PARETONORMAL };

static const char *const distribution_names[] = { "uniform", "normal", "pareto",
						  "paretonormal", NULL };

struct slot {
	uint64_t due_ns, order;
	size_t len, size;
	char *buf;
};

struct netem {
	struct netem_settings settings;
	netem_send_fn send;
	void *context;
	struct netem_counters counters;
	struct prng random;
	struct slot current;    /* what is sent now, without the lock */

	/* With a delay only. */
	pthread_t thread;
	bool has_thread, stopping;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct slot *slots;     /* settings.limit of them; the first ones wait */
	unsigned waiting;
	uint64_t order, last_due_ns, end_ns;
};

#define KEY(field) offsetof(struct netem_settings, field)

static const struct config_key netem_keys[] = {
	{ "enabled", CONFIG_BOOL, KEY(enabled), "true", .help = "Emulate" },
	{ "delay", CONFIG_REAL, KEY(delay_us), "0", .min = 0, .max = 60e6,
	  .help = "Delay of each message in microseconds" },
	{ "jitter", CONFIG_REAL, KEY(jitter_us), "0", .min = 0, .max = 60e6,
	  .help = "Spread of the delay in microseconds" },
	{ "distribution", CONFIG_ENUM, KEY(distribution), "uniform",
	  .names = distribution_names, .help = "Distribution of the jitter" },
	{ "loss", CONFIG_REAL, KEY(loss), "0", .min = 0, .max = 100,
	  .help = "Messages that are lost, in percent" },
	{ "duplicate", CONFIG_REAL, KEY(duplicate), "0", .min = 0, .max = 100,
	  .help = "Messages that are sent twice, in percent" },
	{ "corrupt", CONFIG_REAL, KEY(corrupt), "0", .min = 0, .max = 100,
	  .help = "Messages with a wrong bit, in percent" },
	{ "corruption", CONFIG_JSON, KEY(corruption),
	  .help = "Another name of corrupt" },
	{ "seed", CONFIG_INT, KEY(seed), "0", .min = 0, .max = 9e15,
	  .help = "Begin of the random numbers; 0: another one each time" },
	{ "limit", CONFIG_INT, KEY(limit), "1000", .min = 1, .max = 1 << 20,
	  .help = "Messages under way at most; more are lost" },
};

int netem_parse(struct netem_settings *s, struct config *c, json_t *cfg)
{
	int ret = config_unpack(c, cfg, netem_keys, ARRAY_SIZE(netem_keys), s,
				NULL, 0);

	if (ret || !s->corruption)
		return ret;
	if (!json_is_number(s->corruption) ||
	    json_number_value(s->corruption) < 0 ||
	    json_number_value(s->corruption) > 100) {
		config_fail(c, cfg, "corruption", "is a percentage, 0 to 100");
		return -EINVAL;
	}
	if (json_object_get(cfg, "corrupt") &&
	    s->corrupt != json_number_value(s->corruption)) {
		config_fail(c, cfg, "corruption",
			    "contradicts `corrupt`, of which it is another name");
		return -EINVAL;
	}
	s->corrupt = json_number_value(s->corruption);
	return 0;
}

/* In [0, 1). */
static double uniform(struct netem *n)
{
	return (double)(prng_next(&n->random) >> 11) * 0x1p-53;
}

static bool happens(struct netem *n, double percent)
{
	/* Drawn in any case: other settings do not change what is lost. */
	return uniform(n) * 100.0 < percent;
}

/* Mean 0, standard deviation 1, but uniform: within -1 and 1. */
static double spread(struct netem *n)
{
	double a = uniform(n), b = uniform(n), normal, pareto;

	if (n->settings.distribution == UNIFORM)
		return 2 * a - 1;
	normal = sqrt(-2 * log(1 - a)) * cos(2 * M_PI * b);
	/* Shape 3 has mean 1.5 and standard deviation sqrt(3)/2. */
	pareto = (MIN(pow(1 - b, -1.0 / 3), 20) - 1.5) / 0.8660254;
	if (n->settings.distribution == NORMAL)
		return normal;
	return n->settings.distribution == PARETO ?
		       pareto : 0.25 * normal + 0.75 * pareto;
}

static bool before(const struct slot *a, const struct slot *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap(struct slot *a, struct slot *b)
{
	struct slot was = *a;

	*a = *b;
	*b = was;
}

/* The slot behind those that wait has been filled. */
static void push(struct netem *n)
{
	unsigned at = n->waiting++;

	for (; at > 0 && before(&n->slots[at], &n->slots[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&n->slots[at], &n->slots[(at - 1) / 2]);
}

/* Takes the first one into n->current. */
static void pop(struct netem *n)
{
	unsigned at = 0, least = 0;

	swap(&n->current, &n->slots[0]);
	swap(&n->slots[0], &n->slots[--n->waiting]);
	do {
		at = least;
		for (unsigned c = 2 * at + 1; c < 2 * at + 3 && c < n->waiting; c++)
			if (before(&n->slots[c], &n->slots[least]))
				least = c;
		swap(&n->slots[at], &n->slots[least]);
	} while (least != at);
}

static void *run(void *arg)
{
	struct netem *n = arg;

	waiting_sharpen_sleep();
	pthread_mutex_lock(&n->lock);
	while (!n->stopping || n->waiting) {
		uint64_t due_ns = n->waiting ? n->slots[0].due_ns : UINT64_MAX;
		struct timespec due = timespec_from_ns(due_ns);

		if (n->stopping && due_ns > n->end_ns) {
			/* So are all others. */
			n->counters.overflown += n->waiting;
			break;
		}
		if (!n->waiting) {
			pthread_cond_wait(&n->changed, &n->lock);
		} else if (due_ns > clock_monotonic_ns_slow()) {
			pthread_cond_clockwait(&n->changed, &n->lock, CLOCK_MONOTONIC, &due);
		} else {
			pop(n);
			pthread_mutex_unlock(&n->lock);
			n->send(n->context, n->current.buf, n->current.len);
			pthread_mutex_lock(&n->lock);
		}
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* Copies a message into a slot; false if there is no memory for it. */
static bool fill(struct netem *n, struct slot *s, const char *buf, size_t len, bool corrupt)
{
	size_t spare = n->settings.spare;
	uint64_t r;

	if (unlikely(len > s->size)) {
		char *larger = realloc(s->buf, len);

		if (!larger) {
			n->counters.overflown++;
			return false;
		}
		s->buf = larger;
		s->size = len;
	}
	memcpy(s->buf, buf, len);
	s->len = len;
	if (!corrupt)
		return true;
	r = prng_next(&n->random);
	if (len > spare)
		s->buf[spare + r / 8 % (len - spare)] ^= (char)(1 << r % 8);
	return true;
}

static void enqueue(struct netem *n, const char *buf, size_t len, bool corrupt)
{
	double us = n->settings.delay_us + n->settings.jitter_us * spread(n);
	struct slot *s;

	pthread_mutex_lock(&n->lock);
	s = &n->slots[n->waiting];
	if (n->waiting == n->settings.limit) {
		n->counters.overflown++;
	} else if (fill(n, s, buf, len, corrupt)) {
		s->due_ns = clock_monotonic_ns_slow() + (uint64_t)(MAX(us, 0.0) * 1e3);
		if (n->settings.keep_order)
			s->due_ns = MAX(s->due_ns, n->last_due_ns);
		n->last_due_ns = s->due_ns;
		s->order = n->order++;
		push(n);
		if (n->slots[0].order == n->order - 1)
			pthread_cond_signal(&n->changed);
	}
	pthread_mutex_unlock(&n->lock);
}

void netem_put(struct netem *n, const char *buf, size_t len)
{
	bool lost = happens(n, n->settings.loss);
	bool twice = happens(n, n->settings.duplicate);
	bool corrupt = happens(n, n->settings.corrupt);

	n->counters.messages++;
	if (lost) {
		n->counters.lost++;
		return;
	}
	n->counters.duplicated += twice;
	n->counters.corrupted += corrupt;
	for (unsigned i = 0; i < 1 + (unsigned)twice; i++) {
		if (n->has_thread)
			enqueue(n, buf, len, corrupt);
		else if (fill(n, &n->current, buf, len, corrupt))
			n->send(n->context, n->current.buf, n->current.len);
	}
}

static bool allocate(struct slot *s)
{
	s->buf = malloc(SLOT_SIZE);
	s->size = s->buf ? SLOT_SIZE : 0;
	return s->buf;
}

static int start_thread(struct netem *n)
{
	int ret;

	n->slots = calloc((size_t)n->settings.limit, sizeof(*n->slots));
	if (!n->slots)
		return -ENOMEM;
	for (int64_t i = 0; i < n->settings.limit; i++)
		if (!allocate(&n->slots[i]))
			return -ENOMEM;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	ret = thread_start(&n->thread, "socket-netem", THREAD_AS_CALLER, run, n);
	n->has_thread = !ret;
	return ret;
}

static void netem_free(struct netem *n)
{
	for (int64_t i = 0; n->slots && i < n->settings.limit; i++)
		free(n->slots[i].buf);
	free(n->slots);
	free(n->current.buf);
	free(n);
}

int netem_open(struct netem **out, const struct netem_settings *settings,
	       netem_send_fn send, void *context)
{
	struct netem *n = calloc(1, sizeof(*n));
	int ret = 0;

	if (!n)
		return -ENOMEM;
	n->settings = *settings;
	n->send = send;
	n->context = context;
	n->random.state = settings->seed ? (uint64_t)settings->seed : clock_ticks();
	if (!allocate(&n->current))
		ret = -ENOMEM;
	else if (settings->delay_us > 0 || settings->jitter_us > 0)
		ret = start_thread(n);
	if (ret) {
		log_error("cannot emulate a network: %s", strerror(-ret));
		netem_free(n);
		return ret;
	}
	*out = n;
	return 0;
}

void netem_close(struct netem *n, const char *node)
{
	if (!n)
		return;
	if (n->has_thread) {
		pthread_mutex_lock(&n->lock);
		n->stopping = true;
		n->end_ns = clock_monotonic_ns_slow() + CLOSE_NS;
		pthread_cond_signal(&n->changed);
		pthread_mutex_unlock(&n->lock);
		pthread_join(n->thread, NULL);
		pthread_cond_destroy(&n->changed);
		pthread_mutex_destroy(&n->lock);
	}
	log_info("%s: netem: of %ju messages %ju lost, %ju sent twice, %ju with a wrong bit, %ju too many under way",
		 node, (uintmax_t)n->counters.messages,
		 (uintmax_t)n->counters.lost,
		 (uintmax_t)n->counters.duplicated,
		 (uintmax_t)n->counters.corrupted,
		 (uintmax_t)n->counters.overflown);
	netem_free(n);
}

const struct netem_counters *netem_counters(const struct netem *n)
{
	return &n->counters;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The emulator; see netem.h. Delayed messages stand in slots that were allocated
 * before; a heap over them knows which one is due next, and a thread sends it.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/netem.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "gateway/base/thread.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

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
	uint64_t random;

	/* With a delay only. */
	pthread_t thread;
	bool has_thread, stopping;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct slot *slots;
	unsigned *heap, *spare; /* indices of slots: waiting, free */
	unsigned waiting, spare_count, limit;
	uint64_t order, last_due_ns, end_ns;

	char *damaged;          /* a copy, when there is no delay */
	size_t damaged_size;
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

static uint64_t next_random(struct netem *n)
{
	uint64_t z = (n->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* In [0, 1). */
static double uniform(struct netem *n)
{
	return (double)(next_random(n) >> 11) * 0x1p-53;
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

/* The heap: the slot that is due first stands at index 0. */

static bool before(const struct netem *n, unsigned a, unsigned b)
{
	const struct slot *x = &n->slots[a], *y = &n->slots[b];

	return x->due_ns != y->due_ns ? x->due_ns < y->due_ns :
					x->order < y->order;
}

static void swap(unsigned *a, unsigned *b)
{
	unsigned was = *a;

	*a = *b;
	*b = was;
}

static void heap_push(struct netem *n, unsigned slot)
{
	unsigned at = n->waiting++;

	n->heap[at] = slot;
	while (at > 0 && before(n, n->heap[at], n->heap[(at - 1) / 2])) {
		swap(&n->heap[at], &n->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

static unsigned heap_pop(struct netem *n)
{
	unsigned first = n->heap[0], at = 0;

	n->heap[0] = n->heap[--n->waiting];
	for (;;) {
		unsigned least = at, child = 2 * at + 1;

		for (unsigned c = child; c < child + 2 && c < n->waiting; c++)
			if (before(n, n->heap[c], n->heap[least]))
				least = c;
		if (least == at)
			return first;
		swap(&n->heap[at], &n->heap[least]);
		at = least;
	}
}

static void sleep_until(struct netem *n, uint64_t due_ns)
{
	struct timespec t = timespec_from_ns(due_ns);

	pthread_cond_clockwait(&n->changed, &n->lock, CLOCK_MONOTONIC, &t);
}

static void *run(void *arg)
{
	struct netem *n = arg;

	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&n->lock);
	while (!n->stopping || n->waiting) {
		struct slot *s;
		unsigned slot;

		if (!n->waiting) {
			pthread_cond_wait(&n->changed, &n->lock);
			continue;
		}
		s = &n->slots[n->heap[0]];
		if (n->stopping && s->due_ns > n->end_ns) {
			/* So are all others. */
			n->counters.overflown += n->waiting;
			break;
		}
		if (s->due_ns > clock_monotonic_ns_slow()) {
			sleep_until(n, s->due_ns);
			continue;
		}
		slot = heap_pop(n);
		pthread_mutex_unlock(&n->lock);
		n->send(n->context, s->buf, s->len);
		pthread_mutex_lock(&n->lock);
		n->spare[n->spare_count++] = slot;
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

static void damage(struct netem *n, char *buf, size_t len)
{
	size_t spare = n->settings.spare;
	uint64_t r = next_random(n);

	if (len <= spare)
		return;
	buf[spare + r / 8 % (len - spare)] ^= (char)(1 << r % 8);
}

static void enqueue(struct netem *n, const char *buf, size_t len, bool corrupt)
{
	double us = n->settings.delay_us + n->settings.jitter_us * spread(n);
	struct slot *s;
	unsigned slot;

	pthread_mutex_lock(&n->lock);
	if (!n->spare_count) {
		n->counters.overflown++;
		goto out;
	}
	slot = n->spare[n->spare_count - 1];
	s = &n->slots[slot];
	if (unlikely(len > s->size)) {
		char *larger = realloc(s->buf, len);

		if (!larger) {
			n->counters.overflown++;
			goto out;
		}
		s->buf = larger;
		s->size = len;
	}
	memcpy(s->buf, buf, len);
	if (corrupt)
		damage(n, s->buf, len);
	s->len = len;
	s->due_ns = clock_monotonic_ns_slow() + (uint64_t)(MAX(us, 0.0) * 1e3);
	if (n->settings.keep_order)
		s->due_ns = MAX(s->due_ns, n->last_due_ns);
	n->last_due_ns = s->due_ns;
	s->order = n->order++;
	n->spare_count--;
	heap_push(n, slot);
	if (n->heap[0] == slot)
		pthread_cond_signal(&n->changed);
out:
	pthread_mutex_unlock(&n->lock);
}

static void send_now(struct netem *n, const char *buf, size_t len, bool corrupt)
{
	if (len > n->damaged_size) {
		char *larger = realloc(n->damaged, len);

		if (!larger) {
			n->counters.overflown++;
			return;
		}
		n->damaged = larger;
		n->damaged_size = len;
	}
	memcpy(n->damaged, buf, len);
	if (corrupt)
		damage(n, n->damaged, len);
	n->send(n->context, n->damaged, len);
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
		else
			send_now(n, buf, len, corrupt);
	}
}

static int start_thread(struct netem *n)
{
	int ret;

	n->limit = (unsigned)n->settings.limit;
	n->slots = calloc(n->limit, sizeof(*n->slots));
	n->heap = calloc(n->limit, sizeof(*n->heap));
	n->spare = calloc(n->limit, sizeof(*n->spare));
	if (!n->slots || !n->heap || !n->spare)
		return -ENOMEM;
	for (unsigned i = 0; i < n->limit; i++) {
		n->spare[i] = i;
		n->slots[i].buf = malloc(SLOT_SIZE);
		n->slots[i].size = SLOT_SIZE;
		if (!n->slots[i].buf)
			return -ENOMEM;
	}
	n->spare_count = n->limit;
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	ret = thread_start(&n->thread, "socket-netem", THREAD_AS_CALLER, run, n);
	n->has_thread = !ret;
	return ret;
}

static void netem_free(struct netem *n)
{
	for (unsigned i = 0; n->slots && i < n->limit; i++)
		free(n->slots[i].buf);
	free(n->slots);
	free(n->heap);
	free(n->spare);
	free(n->damaged);
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
	n->random = settings->seed ? (uint64_t)settings->seed : clock_ticks();
	if (settings->delay_us > 0 || settings->jitter_us > 0)
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

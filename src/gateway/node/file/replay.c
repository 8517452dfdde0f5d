/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replay of a recording: which sample is next, when it is due, and with which
 * timestamp it goes out.
 */
#define LOG_ROOM "gateway/file"
#include "gateway/node/file/replay.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"
#include "gateway/plugin/services.h"
#include "util/clock.h"
#include "util/log.h"

/* How often a file that is still being written is looked at. */
#define GROWTH_NS (5 * UINT64_C(1000000))
#define PIPE_POLL_MS 20

int replay_open(struct replay *r)
{
	double rate = r->rate_hz > 0 ? r->rate_hz : INFINITY;
	int ret;

	ret = timer_open(&r->timer, (enum timer_kind)r->timer_kind, rate);
	if (ret)
		return ret;
	ret = reader_open(&r->reader, r->path, r->format,
			  (size_t)r->buffer_size);
	if (ret) {
		timer_close(&r->timer);
		return ret;
	}
	r->open = true;
	r->started = r->warned = false;
	atomic_store(&r->rewind_asked, false);
	r->samples = r->rounds = r->malformed = 0;
	r->interval_ns = 0;
	r->polled = r->has_ahead = false;
	if (r->late_ns)
		hist_reset(r->late_ns);
	return 0;
}

void replay_close(struct node *n, struct replay *r)
{
	if (!r->open)
		return;
	r->open = false;
	if (r->reader.malformed)
		log_warn("node %s: %ju malformed lines ignored", n->name,
			 (uintmax_t)r->reader.malformed);
	reader_close(&r->reader);
	timer_close(&r->timer);
	if (r->ahead)
		sample_own_list(r->ahead, NULL);
	free(r->ahead);
	r->ahead = NULL;
}

/* The file has no more: 0 to look again, or a negative errno. */
static int at_end(struct node *n, struct replay *r)
{
	switch ((enum eof_mode)r->eof) {
	case EOF_WAIT:
		if (r->polled)
			return -EAGAIN;
		return timer_wait_until(&r->timer,
					r->timer.now_ns() + GROWTH_NS);
	case EOF_REWIND:
		/* Else a file that yields nothing would keep us here. */
		if (r->samples > (uint64_t)r->skip && !reader_rewind(&r->reader)) {
			r->samples = 0;
			r->rounds++;
			r->started = false;
			return 0;
		}
		break;
	case EOF_EXIT:
		services_request_stop(n->services);
		break;
	case EOF_STOP:
		break;
	}
	return -ENODATA;
}

/* Sleeps until a pipe has data, with a look at interrupts now and then. */
static int wait_readable(struct replay *r)
{
	struct pollfd p = { .fd = r->reader.fd, .events = POLLIN };

	poll(&p, 1, PIPE_POLL_MS);
	return atomic_load(&r->timer.interrupted) ? -EINTR : 0;
}

/* The next samples of the file, `skip` obeyed; waits as `eof` says. */
static int next_samples(struct node *n, struct replay *r,
			struct sample *smps[], unsigned cnt)
{
	bool complete = r->eof != EOF_WAIT;

	for (;;) {
		int ret = reader_next(&r->reader, smps, cnt, complete);

		if (unlikely(r->reader.malformed != r->malformed)) {
			node_figure_add(n, REPLAY_MALFORMED,
					r->reader.malformed - r->malformed);
			r->malformed = r->reader.malformed;
		}
		if (ret > 0) {
			r->samples += (uint64_t)ret;
			if (likely(r->samples > (uint64_t)r->skip))
				return ret;
			continue;
		}
		if (ret == 0)
			ret = reader_at_eof(&r->reader) ? at_end(n, r) :
							  wait_readable(r);
		if (ret)
			return ret;
	}
}

/* The time that a recorded one is moved to. */
static struct timespec replayed_time(const struct replay *r, const struct sample *s)
{
	int64_t since;

	if (r->epoch_mode == EPOCH_ORIGINAL)
		return s->origin;
	since = sample_time_since_ns(s->origin, r->first);
	if (unlikely(r->speed != 1.0)) {
		double scaled = (double)since / r->speed;

		/* Out of range is undefined for the conversion itself. */
		since = (int64_t)fmax(-0x1p62, fmin(scaled, 0x1p62));
	}
	return sample_time_add_ns(r->begin, since);
}

/* The first sample (after a rewind) says how recorded times are moved. */
static void start_clock(struct replay *r, const struct sample *first)
{
	int64_t epoch = (int64_t)(r->epoch_s * 1e9);
	struct timespec now = clock_realtime();

	r->started = true;
	r->first = first->origin;
	if (r->rounds && (r->epoch_mode == EPOCH_DIRECT ||
			  r->epoch_mode == EPOCH_WAIT)) {
		/* The next round follows like one more sample. */
		r->begin = sample_time_add_ns(r->last, r->interval_ns);
		return;
	}
	r->base_ns = (int64_t)r->timer.now_ns() - sample_time_to_ns(now);
	switch ((enum epoch_mode)r->epoch_mode) {
	case EPOCH_DIRECT:
		r->begin = now;
		break;
	case EPOCH_WAIT:
		r->begin = sample_time_add_ns(now, epoch);
		break;
	case EPOCH_RELATIVE:
		r->begin = sample_time_add_ns(first->origin, epoch);
		break;
	case EPOCH_ABSOLUTE:
		r->begin = sample_time_from_ns(epoch);
		break;
	case EPOCH_ORIGINAL:
		break;
	}
	if (r->rate_hz > 0 && !r->rounds)
		timer_start(&r->timer, r->rate_hz);
}

/* When a sample is due, of the timer's clock; 0: at once. */
static uint64_t due_ns(struct replay *r, const struct sample *s)
{
	int64_t due;

	if (r->rate_hz > 0)
		return timer_grid_next_ns(&r->timer.grid);
	if (r->epoch_mode == EPOCH_ORIGINAL)
		return 0;
	if (unlikely(!(s->flags & SAMPLE_HAS_ORIGIN))) {
		if (!r->warned)
			log_warn("%s: samples without time are replayed at once; set `rate`",
				 r->path);
		r->warned = true;
		return 0;
	}
	due = sample_time_sum_ns(sample_time_to_ns(replayed_time(r, s)), r->base_ns);
	return due > 0 ? (uint64_t)due : 0;
}

static int wait_due(struct node *n, struct replay *r, const struct sample *s)
{
	uint64_t late_ns;
	int64_t steps;

	if (r->rate_hz <= 0) {
		uint64_t due = due_ns(r, s);
		int ret = timer_wait_until(&r->timer, due);

		/* The first one sets the time. */
		r->planned_ns = due ? due : r->timer.now_ns();
		if (!ret && due)
			node_record_step(n, r->timer.now_ns() - due);
		return ret;
	}
	steps = timer_wait_step(&r->timer, &late_ns);
	r->planned_ns = timer_grid_taken_ns(&r->timer.grid);
	if (steps > 0)
		node_record_step(n, late_ns);
	if (steps > 1)
		atomic_fetch_add_explicit(&n->counters.missed,
					  (uint64_t)steps - 1,
					  memory_order_relaxed);
	return steps < 0 ? (int)steps : 0;
}

static void stamp(struct node *n, struct replay *r, struct sample *s)
{
	struct timespec replayed = replayed_time(r, s);

	if (s->flags & SAMPLE_HAS_ORIGIN) {
		if (r->samples > 1)
			r->interval_ns = sample_time_since_ns(replayed, r->last);
		r->last = replayed;
	}
	if (r->stamp == STAMP_NOW) {
		s->origin = clock_realtime();
		s->flags |= SAMPLE_HAS_ORIGIN;
	} else if (r->stamp == STAMP_PLANNED) {
		s->origin = timer_planned_time(&r->timer, r->planned_ns,
					       &s->received);
		s->flags |= SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED;
	} else if (s->flags & SAMPLE_HAS_ORIGIN) {
		s->origin = replayed;
	}
	/* Whoever took the recording received it, but nobody has yet now. */
	if (r->epoch_mode != EPOCH_ORIGINAL && r->stamp != STAMP_PLANNED)
		s->flags &= ~(uint32_t)SAMPLE_HAS_RECEIVED;
	if (r->sequence == SEQUENCE_NEW || !(s->flags & SAMPLE_HAS_SEQUENCE)) {
		s->sequence = n->sequence++;
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
}

/* Back to the first sample, whose time is now as it was at the start. */
static void obey_rewind(struct node *n, struct replay *r)
{
	int ret;

	/* Asked again until it was not meanwhile: its interrupt would be lost. */
	while (atomic_exchange(&r->rewind_asked, false))
		timer_rearm(&r->timer);
	ret = reader_rewind(&r->reader);
	if (ret) {
		log_warn("node %s: '%s' cannot be rewound: %s", n->name,
			 r->path, strerror(-ret));
		return;
	}
	r->samples = r->rounds = 0;
	r->started = r->has_ahead = false;
}

static bool is_paced(const struct replay *r)
{
	return r->epoch_mode != EPOCH_ORIGINAL || r->rate_hz > 0;
}

/* Reads the next sample ahead, when there is one: 0, or a negative errno. */
static int look_ahead(struct node *n, struct replay *r)
{
	int ret;

	if (r->has_ahead)
		return 0;
	r->ahead->flags = r->ahead->length = 0;
	r->ahead->signals = NULL;
	ret = next_samples(n, r, &r->ahead, 1);
	if (ret < 0)
		return ret;
	r->has_ahead = true;
	if (unlikely(!r->started))
		start_clock(r, r->ahead);
	return 0;
}

/* Sets the descriptor to the time when a read will find something to do. */
static void await_next(struct node *n, struct replay *r)
{
	int ret = look_ahead(n, r);

	if (ret == -EAGAIN)
		timer_arm(&r->timer, r->timer.now_ns() + GROWTH_NS);
	else
		timer_arm(&r->timer, ret ? 0 : due_ns(r, r->ahead));
}

/* What is due, without a wait that is worth the name. */
static int read_polled(struct node *n, struct replay *r, struct sample *smps[],
		       unsigned cnt)
{
	unsigned got = 0;
	int ret = 0;

	if (is_paced(r))
		cnt = MIN(cnt, 1u);
	while (got < cnt && !ret) {
		ret = look_ahead(n, r);
		if (ret || !timer_is_due(&r->timer, due_ns(r, r->ahead)))
			break;
		if (is_paced(r))
			ret = wait_due(n, r, r->ahead);
		if (ret)
			break;
		sample_copy(smps[got], r->ahead);
		r->has_ahead = false;
		stamp(n, r, smps[got++]);
	}
	if (got || !ret || ret == -EAGAIN) {
		await_next(n, r);
		return (int)got;
	}
	return ret;
}

static int read_next(struct node *n, struct replay *r, struct sample *smps[],
		     unsigned cnt)
{
	bool paced = is_paced(r);
	int got, ret;

	if (r->polled)
		return read_polled(n, r, smps, cnt);

	/* One at a time while samples are skipped or have their own instants. */
	if (paced || r->samples < (uint64_t)r->skip)
		cnt = MIN(cnt, 1u);
	got = next_samples(n, r, smps, cnt);
	if (got < 0)
		return got;
	if (unlikely(!r->started))
		start_clock(r, smps[0]);
	if (paced) {
		ret = wait_due(n, r, smps[0]);
		if (ret)
			return ret;
	}
	for (int i = 0; i < got; i++)
		stamp(n, r, smps[i]);
	return got;
}

int replay_read(struct node *n, struct replay *r, struct sample *smps[],
		unsigned cnt)
{
	int ret;

	if (!r->open)
		return -EBADF;
	for (;;) {
		if (unlikely(atomic_load_explicit(&r->rewind_asked,
						  memory_order_acquire)))
			obey_rewind(n, r);
		ret = read_next(n, r, smps, cnt);
		/* A rewind ends a wait like a stop does; that one asks again. */
		if (ret != -EINTR || !atomic_load(&r->rewind_asked))
			break;
	}
	return ret;
}

int replay_poll_fds(struct node *n, struct replay *r, int fds[], int max)
{
	unsigned capacity = MAX(n->in.signals ? n->in.signals->count : 0u,
				(unsigned)SIGNALS_DEFAULT);

	if (max < 1)
		r->polled = false;
	/* A read of a file that is not regular may wait. */
	if (max < 1 || !r->open || !r->reader.regular)
		return 0;
	if (!r->ahead)
		r->ahead = calloc(1, sizeof(*r->ahead) +
				     capacity * sizeof(r->ahead->data[0]));
	if (!r->ahead)
		return 0;
	r->ahead->capacity = capacity;
	if (!r->polled)
		timer_arm(&r->timer, 0);
	r->polled = true;
	fds[0] = r->timer.fd;
	return 1;
}

int replay_rewind(struct replay *r)
{
	if (!r->open)
		return -EBADF;
	if (!r->reader.regular)
		return -ESPIPE;
	atomic_store(&r->rewind_asked, true);
	timer_interrupt(&r->timer);
	return 0;
}

void replay_rearm(struct replay *r)
{
	if (r->open)
		timer_rearm(&r->timer);
}

void replay_interrupt(struct replay *r)
{
	if (r->open)
		timer_interrupt(&r->timer);
}

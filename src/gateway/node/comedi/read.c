/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading samples: scans out of the kernel's buffer while a command runs, or single conversions
 * at the steps of a timer.
 */
#define LOG_ROOM "gateway/comedi"
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/comedi/daq.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* A board whose rate differs from the configuration by more than this is told. */
#define RATE_TOLERANCE 1e-3

static int start_command(struct node *n)
{
	struct daq_node *d = n->private_data;
	struct daq_side *s = &d->in;

	s->start = s->end = 0;
	if (daq_command(d, s, false))
		return -EIO;
	daq_clock_start(&d->clock, s->period_ns, timespec_to_ns(clock_realtime()));
	return 0;
}

int daq_read_start(struct node *n)
{
	struct daq_node *d = n->private_data;
	struct daq_side *s = &d->in;
	int ret;

	if (!s->streams) {
		ret = timer_open(&d->timer, TIMER_AUTO, s->rate);
		d->has_timer = !ret;
		if (!ret)
			timer_start(&d->timer, s->rate);
		return ret;
	}
	ret = start_command(n);
	if (ret) {
		log_error("node %s: in: the board cannot convert %u channels at %g Hz: %s", n->name,
			  s->count, s->rate, daq_error());
		return ret;
	}
	if (fabs(s->period_ns * s->rate / 1e9 - 1) > RATE_TOLERANCE)
		log_warn("node %s: in.rate is %g Hz, the nearest that the board can", n->name,
			 1e9 / s->period_ns);
	return 0;
}

/* Scans that the board has converted during a pause do not count as lost. */
void daq_resume(struct node *n)
{
	struct daq_node *d = n->private_data;

	if (d->has_timer)
		timer_grid_forgive(&d->timer.grid);
	d->resumed = d->has_timer;
	if (!d->in.streams || !d->dev)
		return;
	daq_cancel(d, &d->in);
	/* If the command does not begin, the next read() reports it. */
	start_command(n);
}

static void finish(struct node *n, struct sample *s)
{
	struct daq_node *d = n->private_data;

	s->signals = n->in.signals;
	s->length = MIN(d->in.count, s->capacity);
	s->sequence = n->sequence++;
	s->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_SEQUENCE;
}

static void take_code(struct node *n, struct sample *s, unsigned i, uint32_t code)
{
	struct daq_node *d = n->private_data;
	const struct daq_channel *ch = &d->in.channels[i];
	bool at_limit = false;

	if (i >= s->capacity)
		return;
	daq_from_code(&ch->scale, ch->type, code, &s->data[i], &at_limit);
	if (at_limit)
		node_figure_add(n, DAQ_AT_LIMIT, 1);
}

/* ---- a command ---- */

/* Whole scans of the buffer; returns how many. */
static unsigned take_scans(struct node *n, struct sample *smps[], unsigned cnt)
{
	struct daq_node *d = n->private_data;
	struct daq_side *s = &d->in;
	size_t code = daq_code_size(s->wide);
	unsigned got = 0;

	for (; got < cnt && s->end - s->start >= s->scan_size; got++) {
		uint64_t back = (s->end - s->start) / s->scan_size - 1;

		for (unsigned i = 0; i < s->count; i++)
			take_code(n, smps[got], i, daq_code_get(s->buffer + s->start + i * code, s->wide));
		smps[got]->origin = timespec_from_ns(daq_clock_time(&d->clock, back));
		finish(n, smps[got]);
		s->start += s->scan_size;
	}
	return got;
}

/* The kernel had no room for scans and has ended the command. How many were lost is known by the
 * time only. */
static int begin_again(struct node *n, int error)
{
	struct daq_node *d = n->private_data;
	uint64_t lost;

	daq_cancel(d, &d->in);
	lost = daq_clock_missing(&d->clock, timespec_to_ns(clock_realtime()));
	fault_note(&d->faults, FAULT_OVERRUN, 1,
		   "the board has stopped (%s), %llu scans are lost; read faster or raise in.bufsize (%d KiB)",
		   error ? strerror(error) : "its command has ended", (unsigned long long)lost,
		   (int)d->in.buffer_kib);
	n->sequence += lost;
	if (!start_command(n))
		return 0;
	if (fault_may_log(&d->faults))
		log_error("node %s: in: the board does not start again: %s", n->name, daq_error());
	return -EIO;
}

/* 1: scans have come, 0: none for now, or a negative errno. */
static int receive(struct node *n)
{
	struct daq_node *d = n->private_data;
	struct daq_side *s = &d->in;
	size_t before;
	ssize_t got;

	if (!s->commanded)
		return begin_again(n, 0);
	memmove(s->buffer, s->buffer + s->start, s->end - s->start);
	s->end -= s->start;
	s->start = 0;
	before = s->end / s->scan_size;
	got = read(d->fd, s->buffer + s->end, s->size - s->end);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got <= 0)
		return begin_again(n, got < 0 ? errno : 0);
	s->end += (size_t)got;
	daq_clock_advance(&d->clock, s->end / s->scan_size - before,
			  timespec_to_ns(clock_realtime()));
	return 1;
}

static int read_stream(struct node *n, struct sample *smps[], unsigned cnt)
{
	struct daq_node *d = n->private_data;
	bool polled = atomic_load_explicit(&d->wait.polled, memory_order_relaxed);

	if (polled)
		socket_wait_clear(&d->wait);
	for (;;) {
		unsigned got = take_scans(n, smps, cnt);
		int ret;

		if (polled && d->in.end - d->in.start >= d->in.scan_size)
			socket_wait_kick(&d->wait);
		if (got)
			return (int)got;
		if (socket_wait_interrupted(&d->wait))
			return -EINTR;
		ret = receive(n);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		if (polled)
			return 0;
		socket_wait_sleep(&d->wait, d->fd, UINT64_MAX);
	}
}

/* ---- single conversions ---- */

static int convert(struct daq_node *d, const struct daq_channel *ch, uint32_t *code)
{
	unsigned sub = (unsigned)d->in.subdevice;

	if (ch->scale.digital)
		return comedi_dio_read(d->dev, sub, ch->number, code);
	return comedi_data_read(d->dev, sub, ch->number, ch->range, ch->reference, code);
}

static int read_single(struct node *n, struct sample *s)
{
	struct daq_node *d = n->private_data;
	uint64_t late_ns;
	int64_t steps = timer_wait_step(&d->timer, &late_ns);

	if (steps < 0)
		return (int)steps;
	if (!d->resumed)
		atomic_fetch_add_explicit(&n->counters.missed, (uint64_t)steps - 1,
					  memory_order_relaxed);
	d->resumed = false;
	s->origin = clock_realtime();
	for (unsigned i = 0; i < d->in.count; i++) {
		uint32_t code = 0;

		if (convert(d, &d->in.channels[i], &code) < 0) {
			node_figure_add(n, DAQ_READ_ERRORS, 1);
			n->sequence++;
			if (fault_may_log(&d->faults))
				log_warn("node %s: channel %u cannot be read, the sample is lost: %s",
					 n->name, d->in.channels[i].number, daq_error());
			return 0;
		}
		take_code(n, s, i, code);
	}
	finish(n, s);
	return 1;
}

int daq_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct daq_node *d = n->private_data;

	(void)release;
	return d->in.streams ? read_stream(n, smps, cnt) : read_single(n, smps[0]);
}

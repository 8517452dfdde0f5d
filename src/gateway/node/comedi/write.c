/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing samples: each at once, or into the kernel's buffer, out of which a command converts them
 * at the board's rate. The command begins with a buffer that is half full of the first sample, so
 * that it has scans while those of the path come unevenly.
 */
#define LOG_ROOM "gateway/comedi"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/format/part/text.h"
#include "gateway/node/comedi/daq.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define STUCK_NS (2 * NSEC_PER_SEC)
#define BLOCK_MS 20
/* A write gives up when it was asked to this often while it waits: once may have been meant for
 * the reader of the same node. */
#define INTERRUPTS 3

int daq_write_start(struct node *n)
{
	struct daq_node *d = n->private_data;

	d->codes = calloc(d->out.count, sizeof(*d->codes));
	d->triggered = false;
	return d->codes ? 0 : -ENOMEM;
}

void daq_write_stop(struct node *n)
{
	struct daq_node *d = n->private_data;

	free(d->codes);
	d->codes = NULL;
}

/* The codes of a sample; false: it cannot be written, and is counted. */
static bool to_codes(struct node *n, const struct sample *s)
{
	struct daq_node *d = n->private_data;
	const struct signal_list *l = s->signals ? s->signals : n->out.signals;

	if (s->length < d->out.count) {
		node_refuse(n, NODE_LOSS_FORMAT, 1, "a sample has %u values, out.signals are %u",
			    s->length, d->out.count);
		return false;
	}
	for (unsigned i = 0; i < d->out.count; i++) {
		bool at_limit = false;
		const char *why = daq_to_code(&d->out.channels[i].scale, text_type(l, i), &s->data[i],
					      &d->codes[i], &at_limit);

		if (why) {
			node_refuse(n, NODE_LOSS_FORMAT, 1, "value %u (from 0 on) %s", i, why);
			return false;
		}
		if (at_limit)
			node_figure_add(n, DAQ_AT_LIMIT, 1);
	}
	return true;
}

/* ---- single conversions ---- */

static bool write_single(struct node *n)
{
	struct daq_node *d = n->private_data;
	unsigned sub = (unsigned)d->out.subdevice;

	for (unsigned i = 0; i < d->out.count; i++) {
		const struct daq_channel *ch = &d->out.channels[i];
		int ret = ch->scale.digital ?
				  comedi_dio_write(d->dev, sub, ch->number, d->codes[i]) :
				  comedi_data_write(d->dev, sub, ch->number, ch->range,
						    ch->reference, d->codes[i]);

		if (ret < 0) {
			node_refuse(n, NODE_LOSS_REFUSED, 1, "channel %u: %s", ch->number, daq_error());
			return false;
		}
	}
	return true;
}

/* ---- a command ---- */

/* Bytes from `*done` on. 0, -EAGAIN: no room, or another negative errno: the command has ended. */
static int put_bytes(struct daq_node *d, const char *bytes, size_t size, size_t *done)
{
	while (*done < size) {
		ssize_t got = write(d->fd, bytes + *done, size - *done);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			*done += (size_t)got;
	}
	return 0;
}

/* Fills half of the buffer with the scan that `buffer` begins with, and lets the board begin. */
static int begin(struct daq_node *d)
{
	struct daq_side *s = &d->out;
	size_t scans = s->kernel_size / s->scan_size / 2, done = 0;

	daq_cancel(d, s);
	d->triggered = false;
	for (size_t i = 1; i < scans; i++)
		memcpy(s->buffer + i * s->scan_size, s->buffer, s->scan_size);
	if (daq_command(d, s, true) || put_bytes(d, s->buffer, scans * s->scan_size, &done) ||
	    comedi_internal_trigger(d->dev, (unsigned)s->subdevice, 0) < 0)
		return -EIO;
	d->triggered = true;
	return 0;
}

/* Waits until the board has taken the scan. A negative errno: it takes none, or has ended. */
static int put_patiently(struct daq_node *d)
{
	struct pollfd p = { .fd = d->fd, .events = POLLOUT };
	unsigned asked = atomic_load(&d->wait.interrupts);
	uint64_t since_ns = clock_monotonic_ns_slow();
	size_t done = 0;
	int ret;

	while ((ret = put_bytes(d, d->out.buffer, d->out.scan_size, &done)) == -EAGAIN) {
		/* After a part of a scan all later ones would be shifted: it begins again. */
		if (atomic_load(&d->wait.interrupts) - asked >= INTERRUPTS ||
		    clock_monotonic_ns_slow() - since_ns > STUCK_NS)
			return done ? -ETIMEDOUT : -EAGAIN;
		poll(&p, 1, BLOCK_MS);
	}
	return ret;
}

static bool write_stream(struct node *n)
{
	struct daq_node *d = n->private_data;
	struct daq_side *s = &d->out;
	size_t code = daq_code_size(s->wide);
	int ret = 0;

	for (unsigned i = 0; i < s->count; i++)
		daq_code_put(s->buffer + i * code, s->wide, d->codes[i]);
	if (d->triggered) {
		ret = put_patiently(d);
		if (!ret)
			return true;
		if (ret == -EAGAIN) {
			node_refuse(n, NODE_LOSS_STUCK, 1, "the board takes nothing");
			return false;
		}
		/* The board had no scan to convert when one was due, and has ended the command. */
		node_figure_add(n, DAQ_UNDERRUNS, 1);
		if (fault_may_log(&d->faults))
			log_warn("node %s: out: the board has run out of samples (%s) and begins again; write at %g Hz, or raise out.bufsize (%d KiB)",
				 n->name, strerror(-ret), s->rate, (int)s->buffer_kib);
	}
	if (!begin(d))
		return true;
	node_refuse(n, NODE_LOSS_REFUSED, 1, "the board does not convert %u channels at %g Hz: %s",
		    s->count, s->rate, daq_error());
	return false;
}

int daq_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct daq_node *d = n->private_data;
	unsigned done = 0;

	(void)release;
	for (unsigned i = 0; i < cnt; i++)
		if (to_codes(n, smps[i]))
			done += d->out.streams ? write_stream(n) : write_single(n);
	return (int)done;
}

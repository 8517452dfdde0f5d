/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `comedi`: samples from and to the converters and digital lines of a measuring board
 * that a driver of comedi handles. This file has the settings.
 */
#define LOG_ROOM "gateway/comedi"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/comedi/daq.h"
#include "gateway/sample/signals.h"
#include "util/container_of.h"

/* comedi_get_cmd_generic_timed() has the period in ns, as 32 bits. */
#define RATE_MIN_HZ 0.25
#define RATE_MAX_HZ 1e9

extern const struct node_type node_comedi;

static const char *const kinds[] = { "analog", "digital", NULL };
static const char *const modes[] = { "auto", "stream", "single", NULL };

#define OFFSET(field) offsetof(struct daq_node, field)

static const struct config_key daq_keys[] = {
	{ "device", CONFIG_STRING, OFFSET(device), .required = true,
	  .help = "The board, \"/dev/comedi0\"" },
};

#define MODE_HELP \
	"stream: the board converts at the rate by its own clock; single: one conversion after another; auto: stream where the board can"

static const struct config_key daq_in_keys[] = {
	{ "subdevice", CONFIG_INT, OFFSET(in.subdevice), "-1", .min = 0, .max = 65535,
	  .help = "Number of the subdevice; without this key the first one of its kind" },
	{ "kind", CONFIG_ENUM, OFFSET(in.kind), "analog", .names = kinds,
	  .help = "analog, or digital: lines that are 0 or 1" },
	{ "mode", CONFIG_ENUM, OFFSET(in.mode), "auto", .names = modes, .help = MODE_HELP },
	{ "rate", CONFIG_REAL, OFFSET(in.rate), "0.0", .min = RATE_MIN_HZ, .max = RATE_MAX_HZ,
	  .help = "Samples per second; required to read" },
	{ "bufsize", CONFIG_INT, OFFSET(in.buffer_kib), "16", .min = 4, .max = 1 << 20,
	  .help = "KiB of the kernel's buffer, for stream" },
};

static const struct config_key daq_out_keys[] = {
	{ "subdevice", CONFIG_INT, OFFSET(out.subdevice), "-1", .min = 0, .max = 65535,
	  .help = "Number of the subdevice; without this key the first one of its kind" },
	{ "kind", CONFIG_ENUM, OFFSET(out.kind), "analog", .names = kinds,
	  .help = "analog, or digital: lines that are 0 or 1" },
	{ "mode", CONFIG_ENUM, OFFSET(out.mode), "auto", .names = modes, .help = MODE_HELP },
	{ "rate", CONFIG_REAL, OFFSET(out.rate), "0.0", .min = RATE_MIN_HZ, .max = RATE_MAX_HZ,
	  .help = "Samples per second, for stream; without this key each is converted when it comes" },
	{ "bufsize", CONFIG_INT, OFFSET(out.buffer_kib), "16", .min = 4, .max = 1 << 20,
	  .help = "KiB of the kernel's buffer, for stream; half of it is a delay" },
};

struct entry {
	int64_t channel, range, aref;
};

static const struct config_key signal_keys[] = {
	{ "channel", CONFIG_INT, offsetof(struct entry, channel), .required = true, .min = 0,
	  .max = 65535, .help = "Number of the channel on the subdevice" },
	{ "range", CONFIG_INT, offsetof(struct entry, range), "0", .min = 0, .max = 255,
	  .help = "Number of the range of the channel, as comedi_board_info(1) lists them" },
	{ "aref", CONFIG_INT, offsetof(struct entry, aref), "0", .min = AREF_GROUND,
	  .max = AREF_OTHER,
	  .help = "What a voltage is measured against: 0 ground, 1 common, 2 differential, 3 other" },
};

/* ---- settings ---- */

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

static int parse_channel(struct daq_channel *ch, const struct daq_side *s, struct config *c,
			 const json_t *at)
{
	struct entry e = { 0 };

	if (config_unpack_part(c, at, signal_keys, ARRAY_SIZE(signal_keys), &e))
		return -EINVAL;
	ch->number = (unsigned)e.channel;
	ch->range = (unsigned)e.range;
	ch->reference = (unsigned)e.aref;
	if (ch->type == SIGNAL_COMPLEX)
		return fail(c, at, "type", "a channel has no complex value");
	if (s->kind == DAQ_ANALOG && ch->type == SIGNAL_BOOLEAN)
		return fail(c, at, "type", "an analog channel is a float, or an integer: its code");
	if (s->kind == DAQ_DIGITAL && (e.range || e.aref))
		return fail(c, at, e.range ? "range" : "aref", "digital channels have none");
	return 0;
}

static int parse_side(struct daq_side *s, struct config *c, const json_t *at,
		      const struct signal_list *l)
{
	int count = l ? signal_entries(c, at,
				       "each signal needs an entry with its channel: { name = \"u\"; channel = 0; }") : 0;
	int ret = 0;

	if (count <= 0)
		return count;
	s->channels = calloc((unsigned)count, sizeof(*s->channels));
	if (!s->channels)
		return -ENOMEM;
	s->count = (unsigned)count;
	for (unsigned i = 0; i < s->count; i++) {
		s->channels[i].type = l->signals[i].type;
		ret = parse_channel(&s->channels[i], s, c, signal_entry(at, i)) ?: ret;
	}
	return ret;
}

static const json_t *signals_of(const struct node_direction *d, const json_t *cfg)
{
	return signal_list_is_given(d->cfg, "signals") ? d->cfg : cfg;
}

static int check_mode(const struct daq_side *s, struct config *c, const json_t *at)
{
	if (s->mode != DAQ_STREAM)
		return 0;
	if (s->kind == DAQ_DIGITAL)
		return fail(c, at, "mode", "digital channels are read and written singly");
	return s->rate > 0 ? 0 : fail(c, at, "rate", "stream needs the rate");
}

static int daq_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct daq_node *d = n->private_data;
	int ret = parse_side(&d->in, c, signals_of(&n->in, cfg), n->in.signals);

	ret = parse_side(&d->out, c, signals_of(&n->out, cfg), n->out.signals) ?: ret;
	ret = check_mode(&d->in, c, n->in.cfg) ?: ret;
	ret = check_mode(&d->out, c, n->out.cfg) ?: ret;
	if (!*d->device)
		ret = fail(c, cfg, "device", "is the name of the board, \"/dev/comedi0\"");
	return ret;
}

static int daq_check(struct node *n, struct config *c, json_t *cfg)
{
	struct daq_node *d = n->private_data;
	int ret = 0;

	if (n->is_source && !d->in.count)
		ret = fail(c, cfg, NULL, "a path reads the node, but in.signals is missing");
	if (n->is_destination && !d->out.count)
		ret = fail(c, cfg, NULL, "a path writes the node, but out.signals is missing");
	if (n->is_source && d->in.rate == 0)
		ret = fail(c, n->in.cfg ? n->in.cfg : cfg, "rate", "is required to read");
	return ret;
}

static int daq_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct daq_node *d = n->private_data;
	const struct signal_list *l = n->out.hooked;

	for (unsigned i = 0; l && i < MIN(l->count, d->out.count); i++)
		if (l->signals[i].type == SIGNAL_COMPLEX) {
			config_fail(c, cfg, "out", "the signal '%.60s' is complex, and a channel has one value",
				    l->signals[i].name);
			return -EINVAL;
		}
	return 0;
}

/* ---- the node ---- */

static int daq_init(struct node *n)
{
	struct daq_node *d = n->private_data;

	d->wait.wake_fd = d->fd = -1;
	return 0;
}

static void daq_destroy(struct node *n)
{
	struct daq_node *d = n->private_data;

	free(d->in.channels);
	free(d->out.channels);
}

static int daq_stop(struct node *n)
{
	struct daq_node *d = n->private_data;

	if (d->has_timer)
		timer_close(&d->timer);
	d->has_timer = false;
	daq_write_stop(n);
	daq_close(n);
	socket_wait_close(&d->wait);
	fault_finish(&d->faults);
	return 0;
}

static int daq_start(struct node *n)
{
	struct daq_node *d = n->private_data;
	int ret;

	d->faults.node = n;
	ret = socket_wait_open(&d->wait) ?: daq_open(n);
	if (!ret && n->is_destination)
		ret = daq_write_start(n);
	if (!ret && n->is_source)
		ret = daq_read_start(n);
	if (ret)
		daq_stop(n);
	return ret;
}

static void daq_interrupt(struct node *n)
{
	struct daq_node *d = n->private_data;

	if (d->has_timer)
		timer_interrupt(&d->timer);
	socket_wait_interrupt(&d->wait);
}

static void daq_rearm(struct node *n)
{
	struct daq_node *d = n->private_data;

	if (d->has_timer)
		timer_rearm(&d->timer);
}

static int daq_poll_fds(struct node *n, int fds[], int max)
{
	struct daq_node *d = n->private_data;

	if (d->has_timer) {
		if (max < 1)
			return 0;
		fds[0] = timer_poll_fd(&d->timer, false);
		return 1;
	}
	if (!socket_wait_set_polled(&d->wait, max >= 2))
		return 0;
	fds[0] = d->fd;
	fds[1] = d->wait.wake_fd;
	return 2;
}

/* A write may wait for room in the kernel's buffer. */
static bool daq_may_wait(struct node *n)
{
	return true;
}

static void daq_print(struct node *n, char *buf, size_t size)
{
	const struct daq_node *d = n->private_data;

	snprintf(buf, size, "board %.100s, %u %s channels in at %g Hz, %u %s channels out", d->device,
		 d->in.count, kinds[d->in.kind], d->in.rate, d->out.count, kinds[d->out.kind]);
}

static const struct node_figure daq_figures[DAQ_FIGURES] = {
	[FAULT_OVERRUN] = { "overruns", "Times that the kernel's buffer was full and the board began again",
			    NODE_COUNTER },
	[DAQ_AT_LIMIT] = { "at_limit", "Values at an end of their range, or beyond it", NODE_COUNTER },
	[DAQ_READ_ERRORS] = { "read_errors", "Samples that the board could not convert", NODE_COUNTER },
	[DAQ_UNDERRUNS] = { "underruns", "Times that the board had no sample to convert and began again",
			    NODE_COUNTER },
};

const struct node_type node_comedi = {
	.name = "comedi",
	.description = "Converters and digital lines of measuring boards with a driver of comedi",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct daq_node),
	.keys = daq_keys,
	.key_count = ARRAY_SIZE(daq_keys),
	.in_keys = daq_in_keys,
	.in_key_count = ARRAY_SIZE(daq_in_keys),
	.out_keys = daq_out_keys,
	.out_key_count = ARRAY_SIZE(daq_out_keys),
	.signal_keys = signal_keys,
	.signal_key_count = ARRAY_SIZE(signal_keys),
	.figures = daq_figures,
	.figure_count = DAQ_FIGURES,
	.init = daq_init,
	.destroy = daq_destroy,
	.parse = daq_parse,
	.check = daq_check,
	.check_signals = daq_check_signals,
	.start = daq_start,
	.stop = daq_stop,
	.read = daq_read,
	.write = daq_write,
	.may_wait = daq_may_wait,
	.interrupt = daq_interrupt,
	.rearm = daq_rearm,
	.resume = daq_resume,
	.poll_fds = daq_poll_fds,
	.print = daq_print,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The board: its subdevices and channels, and commands that convert at a rate. */
#define LOG_ROOM "gateway/comedi"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/comedi/daq.h"
#include "util/container_of.h"
#include "util/log.h"

/* Up to this rate the board is asked to hand on each scan at once. */
#define PROMPT_HZ 1000.0
/* A driver changes a command until it can do it; more often than this none does. */
#define TESTS 5

const char *daq_error(void)
{
	return comedi_strerror(comedi_errno());
}

static const char *side_name(const struct daq_node *d, const struct daq_side *s)
{
	return s == &d->in ? "in" : "out";
}

static int fail(struct node *n, const struct daq_side *s, const char *what)
{
	struct daq_node *d = n->private_data;

	log_error("node %s: %s.subdevice %d of %s %s", n->name, side_name(d, s), (int)s->subdevice,
		  d->device, what);
	return -ENODEV;
}

static bool is_of_kind(const struct daq_node *d, const struct daq_side *s, int type)
{
	if (s->kind == DAQ_DIGITAL)
		return type == COMEDI_SUBD_DIO ||
		       type == (s == &d->in ? COMEDI_SUBD_DI : COMEDI_SUBD_DO);
	return type == (s == &d->in ? COMEDI_SUBD_AI : COMEDI_SUBD_AO);
}

static int find_subdevice(struct node *n, struct daq_side *s)
{
	struct daq_node *d = n->private_data;
	int count = comedi_get_n_subdevices(d->dev);

	if (s->subdevice >= count)
		return fail(n, s, "is not there");
	if (s->subdevice >= 0 &&
	    !is_of_kind(d, s, comedi_get_subdevice_type(d->dev, (unsigned)s->subdevice)))
		return fail(n, s, s->kind == DAQ_DIGITAL ? "is not digital, or of the other direction" :
							   "is not analog, or of the other direction");
	for (int i = 0; s->subdevice < 0 && i < count; i++)
		if (is_of_kind(d, s, comedi_get_subdevice_type(d->dev, (unsigned)i)))
			s->subdevice = i;
	if (s->subdevice >= 0)
		return 0;
	log_error("node %s: %s has no %s subdevice for %s", n->name, d->device,
		  s->kind == DAQ_DIGITAL ? "digital" : "analog", side_name(d, s));
	return -ENODEV;
}

/* Ranges and the number of codes of each channel. */
static int look_at_channel(struct node *n, struct daq_side *s, struct daq_channel *ch)
{
	struct daq_node *d = n->private_data;
	unsigned sub = (unsigned)s->subdevice;
	comedi_range *range;

	if (s->kind == DAQ_DIGITAL) {
		ch->scale = (struct daq_scale){ .max = 1, .maxdata = 1, .digital = true };
		return 0;
	}
	range = comedi_get_range(d->dev, sub, ch->number, ch->range);
	ch->scale.maxdata = comedi_get_maxdata(d->dev, sub, ch->number);
	if (!range || !ch->scale.maxdata) {
		log_error("node %s: channel %u of %s.subdevice %d has no range %u, but %d of them",
			  n->name, ch->number, side_name(d, s), (int)s->subdevice, ch->range,
			  comedi_get_n_ranges(d->dev, sub, ch->number));
		return -EINVAL;
	}
	ch->scale.min = range->min;
	ch->scale.max = range->max;
	return ch->scale.max > ch->scale.min ? 0 : fail(n, s, "has a range without an extent");
}

static int look_at_channels(struct node *n, struct daq_side *s)
{
	struct daq_node *d = n->private_data;
	int count = comedi_get_n_channels(d->dev, (unsigned)s->subdevice), ret = 0;

	s->list = calloc(s->count, sizeof(*s->list));
	if (!s->list)
		return -ENOMEM;
	for (unsigned i = 0; i < s->count && !ret; i++) {
		struct daq_channel *ch = &s->channels[i];

		if ((int)ch->number >= count) {
			log_error("node %s: %s.subdevice %d has no channel %u, but %d of them",
				  n->name, side_name(d, s), (int)s->subdevice, ch->number, count);
			return -EINVAL;
		}
		s->list[i] = CR_PACK(ch->number, ch->range, ch->reference);
		ret = look_at_channel(n, s, ch);
	}
	return ret;
}

/* Of a subdevice whose channels may be either. */
static int set_direction(struct node *n, struct daq_side *s)
{
	struct daq_node *d = n->private_data;
	unsigned sub = (unsigned)s->subdevice;

	if (comedi_get_subdevice_type(d->dev, sub) != COMEDI_SUBD_DIO)
		return 0;
	for (unsigned i = 0; i < s->count; i++)
		if (comedi_dio_config(d->dev, sub, s->channels[i].number,
				      s == &d->in ? COMEDI_INPUT : COMEDI_OUTPUT) < 0) {
			log_error("node %s: channel %u of %s.subdevice %d cannot be made an %s: %s",
				  n->name, s->channels[i].number, side_name(d, s),
				  (int)s->subdevice, s == &d->in ? "input" : "output", daq_error());
			return -EIO;
		}
	return 0;
}

static int choose_mode(struct node *n, struct daq_side *s, int flags)
{
	struct daq_node *d = n->private_data;
	int can = s == &d->in ? SDF_CMD_READ : SDF_CMD_WRITE;

	s->streams = s->mode != DAQ_SINGLE && s->kind == DAQ_ANALOG && s->rate > 0 && (flags & can);
	if (s->mode == DAQ_STREAM && !s->streams)
		return fail(n, s, "cannot convert at a rate of its own; set mode to single");
	return 0;
}

/* The kernel rounds to pages; more than its limit needs a privilege. */
static int set_buffer(struct node *n, struct daq_side *s)
{
	struct daq_node *d = n->private_data;
	unsigned sub = (unsigned)s->subdevice, wanted = (unsigned)s->buffer_kib << 10;
	int is;

	if ((int)wanted > comedi_get_max_buffer_size(d->dev, sub))
		comedi_set_max_buffer_size(d->dev, sub, wanted);
	comedi_set_buffer_size(d->dev, sub, wanted);
	is = comedi_get_buffer_size(d->dev, sub);
	s->scan_size = s->count * daq_code_size(s->wide);
	if (is < (int)(2 * s->scan_size)) {
		log_error("node %s: the buffer of %s.subdevice %d has %d bytes, a scan has %zu",
			  n->name, side_name(d, s), (int)s->subdevice, is, s->scan_size);
		return -ENOBUFS;
	}
	if (is < (int)wanted)
		log_warn("node %s: %s.bufsize is %d KiB, because the kernel allows no more", n->name,
			 side_name(d, s), is >> 10);
	s->kernel_size = s->size = (size_t)is;
	s->buffer = malloc(s->size);
	return s->buffer ? 0 : -ENOMEM;
}

static int open_side(struct node *n, struct daq_side *s)
{
	struct daq_node *d = n->private_data;
	int ret = find_subdevice(n, s), flags;

	if (ret)
		return ret;
	flags = comedi_get_subdevice_flags(d->dev, (unsigned)s->subdevice);
	s->wide = flags & SDF_LSAMPL;
	ret = look_at_channels(n, s) ?: choose_mode(n, s, flags);
	if (ret)
		return ret;
	if (comedi_lock(d->dev, (unsigned)s->subdevice) < 0)
		return fail(n, s, "is locked by another program");
	s->locked = true;
	return set_direction(n, s) ?: s->streams ? set_buffer(n, s) : 0;
}

static void close_side(struct daq_node *d, struct daq_side *s)
{
	daq_cancel(d, s);
	if (s->locked)
		comedi_unlock(d->dev, (unsigned)s->subdevice);
	free(s->list);
	free(s->buffer);
	s->list = NULL;
	s->buffer = NULL;
	s->locked = s->streams = false;
}

int daq_open(struct node *n)
{
	struct daq_node *d = n->private_data;
	int ret = 0;

	d->dev = comedi_open(d->device);
	if (!d->dev) {
		log_error("node %s: the board %s cannot be opened: %s; its driver has to be loaded and configured (comedi_config)",
			  n->name, d->device, daq_error());
		return -ENODEV;
	}
	d->fd = comedi_fileno(d->dev);
	fcntl(d->fd, F_SETFL, fcntl(d->fd, F_GETFL) | O_NONBLOCK);
	log_info("node %s: board %s, driver %s", n->name, comedi_get_board_name(d->dev),
		 comedi_get_driver_name(d->dev));
	if (n->is_source)
		ret = open_side(n, &d->in);
	if (!ret && n->is_destination)
		ret = open_side(n, &d->out);
	return ret;
}

void daq_close(struct node *n)
{
	struct daq_node *d = n->private_data;

	if (!d->dev)
		return;
	close_side(d, &d->in);
	close_side(d, &d->out);
	comedi_close(d->dev);
	d->dev = NULL;
	d->fd = -1;
}

/* ---- commands ---- */

static void describe(const struct daq_side *s, bool writes, comedi_cmd *cmd)
{
	cmd->chanlist = s->list;
	cmd->chanlist_len = s->count;
	cmd->scan_end_arg = s->count;
	cmd->stop_src = TRIG_NONE;
	cmd->stop_arg = 0;
	if (s->rate <= PROMPT_HZ)
		cmd->flags |= CMDF_WAKE_EOS;
	if (!writes)
		return;
	cmd->flags |= CMDF_WRITE;
	/* Begins when the buffer has been filled. */
	cmd->start_src = TRIG_INT;
	cmd->start_arg = 0;
}

int daq_command(struct daq_node *d, struct daq_side *s, bool writes)
{
	unsigned sub = (unsigned)s->subdevice;
	comedi_cmd cmd = { 0 };
	int ret = 1;

	if (writes ? comedi_set_write_subdevice(d->dev, sub) :
		     comedi_set_read_subdevice(d->dev, sub))
		return -EIO;
	if (comedi_get_cmd_generic_timed(d->dev, sub, &cmd, s->count, (unsigned)(1e9 / s->rate)) < 0)
		return -EIO;
	describe(s, writes, &cmd);
	for (unsigned i = 0; i < TESTS && ret > 0; i++)
		ret = comedi_command_test(d->dev, &cmd);
	if (ret || comedi_command(d->dev, &cmd) < 0)
		return -EIO;
	s->period_ns = cmd.scan_begin_src == TRIG_TIMER ? cmd.scan_begin_arg :
						      (double)cmd.convert_arg * s->count;
	s->commanded = true;
	return 0;
}

void daq_cancel(struct daq_node *d, struct daq_side *s)
{
	if (s->commanded)
		comedi_cancel(d->dev, (unsigned)s->subdevice);
	s->commanded = false;
}

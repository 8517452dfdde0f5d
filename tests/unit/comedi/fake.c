/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake.h. Also a library to be loaded before libcomedi. */
#include "fake.h"

#include <comedilib.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHANNELS 16

enum { AI, AO, DIO, SLOW_AI, SUBDEVICES };

struct stream {
	pthread_t thread;
	bool runs, is_output;
	atomic_bool stop;
	unsigned channels, period_ns;
	unsigned list[MAX_CHANNELS];
	bool triggered;
};

struct comedi_t_struct {
	int fd, peer;
	unsigned buffer[SUBDEVICES];
	struct stream in, out;
};

struct fake_board fake_board;

static comedi_range ranges[] = { { -10, 10, UNIT_volt }, { 0, 5, UNIT_volt } };
static const int types[] = { COMEDI_SUBD_AI, COMEDI_SUBD_AO, COMEDI_SUBD_DIO, COMEDI_SUBD_AI };
static const int channels[] = { 8, 4, 8, 2 };
static _Thread_local int error;

static int fail(int e)
{
	error = e;
	return -1;
}

int comedi_errno(void)
{
	return error;
}

const char *comedi_strerror(int e)
{
	return strerror(e);
}

/* ---- the descriptor ---- */

/* The buffer of a command takes the place of what the number of the descriptor was before: our
 * end is for reading or for writing. */
static int connect_buffer(comedi_t *it, unsigned sub)
{
	int fds[2], ours = sub == AI ? 0 : 1;

	if (pipe2(fds, O_NONBLOCK | O_CLOEXEC))
		return fail(errno);
	fcntl(fds[0], F_SETPIPE_SZ, (int)it->buffer[sub]);
	dup2(fds[ours], it->fd);
	close(fds[ours]);
	it->peer = fds[1 - ours];
	return 0;
}

static void disconnect(comedi_t *it)
{
	if (it->peer >= 0)
		close(it->peer);
	it->peer = -1;
}

comedi_t *comedi_open(const char *name)
{
	comedi_t *it;

	if (!strstr(name, "fake")) {
		fail(ENOENT);
		return NULL;
	}
	it = calloc(1, sizeof(*it));
	it->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	it->peer = -1;
	for (unsigned i = 0; i < SUBDEVICES; i++)
		it->buffer[i] = 65536;
	return it;
}

int comedi_close(comedi_t *it)
{
	comedi_cancel(it, AI);
	comedi_cancel(it, AO);
	close(it->fd);
	free(it);
	return 0;
}

int comedi_fileno(comedi_t *it)
{
	return it->fd;
}

/* ---- what is there ---- */

const char *comedi_get_board_name(comedi_t *it)
{
	return "fake";
}

const char *comedi_get_driver_name(comedi_t *it)
{
	return "fake";
}

int comedi_get_n_subdevices(comedi_t *it)
{
	return SUBDEVICES;
}

int comedi_get_subdevice_type(comedi_t *it, unsigned sub)
{
	return sub < SUBDEVICES ? types[sub] : COMEDI_SUBD_UNUSED;
}

int comedi_get_subdevice_flags(comedi_t *it, unsigned sub)
{
	return sub == AI ? SDF_CMD_READ : sub == AO ? SDF_CMD_WRITE : sub == SLOW_AI ? SDF_LSAMPL : 0;
}

int comedi_get_n_channels(comedi_t *it, unsigned sub)
{
	return channels[sub];
}

int comedi_get_n_ranges(comedi_t *it, unsigned sub, unsigned chan)
{
	return 2;
}

comedi_range *comedi_get_range(comedi_t *it, unsigned sub, unsigned chan, unsigned range)
{
	return range < 2 ? &ranges[range] : NULL;
}

lsampl_t comedi_get_maxdata(comedi_t *it, unsigned sub, unsigned chan)
{
	return sub == DIO ? 1 : sub == SLOW_AI ? 0xffffff : 0xffff;
}

int comedi_get_buffer_size(comedi_t *it, unsigned sub)
{
	return (int)it->buffer[sub];
}

int comedi_get_max_buffer_size(comedi_t *it, unsigned sub)
{
	return 65536;
}

int comedi_set_max_buffer_size(comedi_t *it, unsigned sub, unsigned size)
{
	return fail(EPERM);
}

int comedi_set_buffer_size(comedi_t *it, unsigned sub, unsigned size)
{
	if (size > 65536)
		return fail(EPERM);
	it->buffer[sub] = size;
	return (int)size;
}

int comedi_lock(comedi_t *it, unsigned sub)
{
	return atomic_load(&fake_board.locked) ? fail(EBUSY) : 0;
}

int comedi_unlock(comedi_t *it, unsigned sub)
{
	return 0;
}

int comedi_set_read_subdevice(comedi_t *it, unsigned sub)
{
	return sub == AI ? 0 : fail(EINVAL);
}

int comedi_set_write_subdevice(comedi_t *it, unsigned sub)
{
	return sub == AO ? 0 : fail(EINVAL);
}

/* ---- single conversions ---- */

int comedi_data_read(comedi_t *it, unsigned sub, unsigned chan, unsigned range, unsigned aref,
		     lsampl_t *data)
{
	uint32_t code = chan < 4 ? atomic_load(&fake_board.output[chan]) : 0;

	if (atomic_load(&fake_board.broken))
		return fail(EIO);
	*data = sub == SLOW_AI ? code << 8 : code;
	return 1;
}

int comedi_data_write(comedi_t *it, unsigned sub, unsigned chan, unsigned range, unsigned aref,
		      lsampl_t data)
{
	if (atomic_load(&fake_board.broken))
		return fail(EIO);
	atomic_store(&fake_board.output[chan], data);
	return 1;
}

int comedi_dio_config(comedi_t *it, unsigned sub, unsigned chan, unsigned dir)
{
	if (dir == COMEDI_OUTPUT)
		atomic_fetch_or(&fake_board.directions, 1u << chan);
	return 0;
}

int comedi_dio_read(comedi_t *it, unsigned sub, unsigned chan, unsigned *bit)
{
	*bit = atomic_load(&fake_board.lines) >> chan & 1;
	return 1;
}

int comedi_dio_write(comedi_t *it, unsigned sub, unsigned chan, unsigned bit)
{
	if (bit)
		atomic_fetch_or(&fake_board.lines, 1u << chan);
	else
		atomic_fetch_and(&fake_board.lines, ~(1u << chan));
	return 1;
}

/* ---- commands ---- */

int comedi_get_cmd_generic_timed(comedi_t *it, unsigned sub, comedi_cmd *cmd, unsigned count,
				 unsigned period_ns)
{
	*cmd = (comedi_cmd){ .subdev = sub, .start_src = TRIG_NOW, .scan_begin_src = TRIG_TIMER,
			     .scan_begin_arg = period_ns, .convert_src = TRIG_NOW,
			     .scan_end_src = TRIG_COUNT, .scan_end_arg = count,
			     .stop_src = TRIG_COUNT, .stop_arg = 2, .chanlist_len = count };
	return 0;
}

/* Periods are whole microseconds here. */
int comedi_command_test(comedi_t *it, comedi_cmd *cmd)
{
	unsigned period = (cmd->scan_begin_arg + 500) / 1000 * 1000;

	if (cmd->chanlist_len > MAX_CHANNELS || !period)
		return fail(EINVAL);
	if (period == cmd->scan_begin_arg)
		return 0;
	cmd->scan_begin_arg = period;
	return 4;
}

static void *convert_in(void *arg)
{
	comedi_t *it = arg;
	struct stream *s = &it->in;
	struct timespec at;
	uint16_t scan[MAX_CHANNELS];

	clock_gettime(CLOCK_MONOTONIC, &at);
	for (unsigned n = 1; !atomic_load(&s->stop); n++) {
		at.tv_nsec += s->period_ns;
		for (; at.tv_nsec >= 1000000000; at.tv_nsec -= 1000000000)
			at.tv_sec++;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		for (unsigned i = 0; i < s->channels; i++) {
			unsigned chan = CR_CHAN(s->list[i]);

			scan[i] = (uint16_t)(atomic_load(&fake_board.ramp) ? n :
					     chan < 4 ? atomic_load(&fake_board.output[chan]) : 0);
		}
		if (write(it->peer, scan, s->channels * sizeof(*scan)) < 0) {
			disconnect(it); /* overflow */
			atomic_fetch_add(&fake_board.ended, 1);
			return NULL;
		}
		atomic_fetch_add(&fake_board.scans_in, 1);
	}
	return NULL;
}

static void *convert_out(void *arg)
{
	comedi_t *it = arg;
	struct stream *s = &it->out;
	size_t size = s->channels * sizeof(uint16_t);
	uint16_t scan[MAX_CHANNELS];
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	while (!atomic_load(&s->stop)) {
		at.tv_nsec += s->period_ns;
		for (; at.tv_nsec >= 1000000000; at.tv_nsec -= 1000000000)
			at.tv_sec++;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		if (read(it->peer, scan, size) != (ssize_t)size) {
			disconnect(it); /* underrun */
			atomic_fetch_add(&fake_board.ended, 1);
			return NULL;
		}
		for (unsigned i = 0; i < s->channels; i++)
			atomic_store(&fake_board.output[CR_CHAN(s->list[i]) % 4], scan[i]);
		atomic_fetch_add(&fake_board.scans_out, 1);
	}
	return NULL;
}

int comedi_command(comedi_t *it, comedi_cmd *cmd)
{
	struct stream *s = cmd->subdev == AI ? &it->in : &it->out;

	if (it->in.runs || it->out.runs)
		return fail(EBUSY); /* of this board: one command at a time */
	if (connect_buffer(it, cmd->subdev))
		return -1;
	s->channels = cmd->chanlist_len;
	s->period_ns = cmd->scan_begin_arg;
	memcpy(s->list, cmd->chanlist, s->channels * sizeof(*s->list));
	s->runs = true;
	s->triggered = cmd->start_src == TRIG_NOW;
	atomic_store(&s->stop, false);
	atomic_store(&fake_board.period_ns, s->period_ns);
	atomic_fetch_add(&fake_board.commands, 1);
	return s->triggered ? pthread_create(&s->thread, NULL, convert_in, it) : 0;
}

int comedi_internal_trigger(comedi_t *it, unsigned sub, unsigned number)
{
	struct stream *s = &it->out;

	if (!s->runs || s->triggered)
		return fail(EINVAL);
	s->triggered = true;
	return pthread_create(&s->thread, NULL, convert_out, it);
}

int comedi_cancel(comedi_t *it, unsigned sub)
{
	struct stream *s = sub == AI ? &it->in : &it->out;

	if (!s->runs)
		return 0;
	atomic_store(&s->stop, true);
	if (s->triggered)
		pthread_join(s->thread, NULL);
	s->runs = s->triggered = false;
	disconnect(it);
	return 0;
}

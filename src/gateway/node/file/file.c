/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `file`: replays recorded samples at their times or at a fixed rate,
 * and records samples. reader.c knows the input file, writer.c the output file;
 * here are the settings and the time of the replay.
 */
#define LOG_ROOM "gateway/file"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node.h"
#include "gateway/node/file/reader.h"
#include "gateway/node/file/writer.h"
#include "gateway/node/signal/timer.h"
#include "gateway/super_node.h"
#include "util/clock.h"
#include "util/log.h"

/* Bytes at the beginning of a recording that may name its signals. */
#define NAMES_MAX (256 << 10)
/* How often a file that is still being written is looked at. */
#define GROWTH_NS (5 * UINT64_C(1000000))

enum eof_mode { EOF_STOP, EOF_EXIT, EOF_REWIND, EOF_WAIT };
enum epoch_mode {
	EPOCH_DIRECT,
	EPOCH_WAIT,
	EPOCH_RELATIVE,
	EPOCH_ABSOLUTE,
	EPOCH_ORIGINAL,
};

static const char *const eof_names[] = { "stop", "exit", "rewind", "wait", NULL };
static const char *const epoch_mode_names[] = { "direct", "wait", "relative",
						"absolute", "original", NULL };
static const char *const stamp_names[] = { "recorded", "now", NULL };
static const char *const buffering_names[] = { "stream", "memory", NULL };
static const char *const full_names[] = { "block", "drop", NULL };

struct file_node {
	const char *uri;
	json_t *format;
	struct {
		const char *uri;
		json_t *format_cfg;
		int eof, epoch_mode, stamp, timer_kind;
		double rate_hz, epoch_s;
		int64_t skip, buffer_size;

		char path[PATH_MAX];
		struct format *format;
		struct reader reader;
		struct timer timer;
		bool open, started;     /* started: a first sample has set the time */
		bool warned;            /* of missing timestamps */
		uint64_t samples;       /* since the beginning of the file */
		int64_t shift_ns;       /* recorded time to replayed time */
		int64_t base_ns;        /* replayed wall clock to the timer's */
	} in;
	struct {
		const char *uri;
		json_t *format_cfg;
		bool flush, append;
		int buffering, full;
		int64_t buffer_size;

		char path[PATH_MAX];
		struct format *format;
		struct writer *writer;
	} out;
};

#define OFFSET(field) offsetof(struct file_node, field)

static const struct config_key file_keys[] = {
	{ "uri", CONFIG_STRING, OFFSET(uri),
	  .help = "Path of the file; placeholders of strftime() are replaced "
		  "by the local time at start" },
	{ "format", CONFIG_JSON, OFFSET(format),
	  .help = "Format of both directions, villas.human" },
};

static const struct config_key file_in_keys[] = {
	{ "uri", CONFIG_STRING, OFFSET(in.uri), .help = "Path of the recording" },
	{ "format", CONFIG_JSON, OFFSET(in.format_cfg),
	  .help = "Format of the recording" },
	{ "eof", CONFIG_ENUM, OFFSET(in.eof), "stop", .names = eof_names,
	  .help = "At the end of the file: stop reading, exit the gateway, "
		  "rewind, or wait for more" },
	{ "rate", CONFIG_REAL, OFFSET(in.rate_hz), "0", .min = 0, .max = 1e9,
	  .help = "Samples per second; 0: by the recorded timestamps" },
	{ "epoch", CONFIG_REAL, OFFSET(in.epoch_s), "0", .min = -9e9,
	  .max = 9e9,
	  .help = "Seconds, meaning by epoch_mode" },
	{ "epoch_mode", CONFIG_ENUM, OFFSET(in.epoch_mode), "direct",
	  .names = epoch_mode_names,
	  .help = "When the first sample is due: direct: now; wait: after epoch "
		  "seconds; relative: epoch seconds after its recorded time; "
		  "absolute: at epoch; original: at once, with its recorded "
		  "time, as all others" },
	{ "skip", CONFIG_INT, OFFSET(in.skip), "0", .max = 1e15,
	  .help = "Samples to leave out at the beginning" },
	{ "buffer_size", CONFIG_INT, OFFSET(in.buffer_size), "1048576",
	  .min = 64, .max = 1 << 30, .help = "Bytes read at once" },
	{ "stamp", CONFIG_ENUM, OFFSET(in.stamp), "recorded",
	  .names = stamp_names,
	  .help = "Origin of a replayed sample: its recorded time, moved as "
		  "epoch_mode says; or now, the instant of its replay" },
	{ "timer", CONFIG_ENUM, OFFSET(in.timer_kind), "auto",
	  .names = timer_kind_names,
	  .help = "As for signals; auto takes tsc for recorded timestamps" },
};

static const struct config_key file_out_keys[] = {
	{ "uri", CONFIG_STRING, OFFSET(out.uri), .help = "Path of the file" },
	{ "format", CONFIG_JSON, OFFSET(out.format_cfg),
	  .help = "Format of the file" },
	{ "flush", CONFIG_BOOL, OFFSET(out.flush), "false",
	  .help = "Write within milliseconds, not in large pieces" },
	{ "append", CONFIG_BOOL, OFFSET(out.append), "true",
	  .help = "Keep what the file holds; false: begin it anew" },
	{ "buffer_size", CONFIG_INT, OFFSET(out.buffer_size), "8388608",
	  .min = 32768, .max = (double)(INT64_C(1) << 36),
	  .help = "Bytes of memory for samples that are not written yet" },
	{ "buffering", CONFIG_ENUM, OFFSET(out.buffering), "stream",
	  .names = buffering_names,
	  .help = "stream: write all the time; memory: keep everything, and "
		  "format and write it at the end" },
	{ "full", CONFIG_ENUM, OFFSET(out.full), "block", .names = full_names,
	  .help = "When the buffer is full: block until there is room, or drop "
		  "samples and count them" },
};

/* Replaces placeholders; reports what is wrong with the path. */
static int make_path(struct config *c, json_t *cfg, const char *uri,
		     char path[PATH_MAX])
{
	time_t now = time(NULL);
	struct tm tm;

	if (!uri || !*uri) {
		config_fail(c, cfg, "uri", "is required: the path of the file");
		return -EINVAL;
	}
	localtime_r(&now, &tm);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* that is the point */
	if (strftime(path, PATH_MAX, uri, &tm))
		return 0;
#pragma GCC diagnostic pop
	config_fail(c, cfg, "uri", "is longer than a path may be");
	return -EINVAL;
}

static bool can_read(const struct node *n)
{
	return n->in.present && n->in.enabled;
}

static bool can_write(const struct node *n)
{
	return n->out.present && n->out.enabled;
}

/* Names the signals as the recording does, unless the configuration does. */
static void adopt_names(struct node *n, struct file_node *f, json_t *cfg)
{
	struct signal_list *l;
	char *buf;
	size_t len;
	FILE *in;

	if (!f->in.format->type->names || json_object_get(cfg, "signals") ||
	    json_object_get(n->in.cfg, "signals"))
		return;
	/* Without the file there are no names; start() will complain. */
	in = fopen(f->in.path, "re");
	buf = in ? malloc(NAMES_MAX) : NULL;
	if (buf) {
		len = fread(buf, 1, NAMES_MAX, in);
		l = f->in.format->type->names(f->in.format, buf, len);
		if (l) {
			signal_list_put(n->in.signals);
			n->in.signals = l;
			signal_list_put(f->in.format->signals);
			f->in.format->signals = signal_list_get(l);
		}
	}
	free(buf);
	if (in)
		fclose(in);
}

static int file_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct file_node *f = n->private_data;
	json_t *in_format = f->in.format_cfg ? f->in.format_cfg : f->format;
	json_t *out_format = f->out.format_cfg ? f->out.format_cfg : f->format;
	int ret = 0;

	if (!can_read(n) && !can_write(n)) {
		config_fail(c, cfg, NULL,
			    "needs `in = { }` to read the file, or `out = { }` to write it");
		return -EINVAL;
	}
	if (can_read(n)) {
		ret = make_path(c, cfg, f->in.uri ? f->in.uri : f->uri, f->in.path);
		if (!ret)
			ret = format_new(&f->in.format, c, in_format,
					 "villas.human", n->in.signals);
		if (!ret)
			adopt_names(n, f, cfg);
	}
	if (can_write(n) && !ret) {
		ret = make_path(c, cfg, f->out.uri ? f->out.uri : f->uri,
				f->out.path);
		if (!ret)
			ret = format_new(&f->out.format, c, out_format,
					 "villas.human", n->out.signals);
	}
	return ret;
}

static int file_check(struct node *n, struct config *c, json_t *cfg)
{
	struct file_node *f = n->private_data;
	int ret = 0;

	if (can_read(n) && !f->in.format->type->scan) {
		config_fail(c, cfg, "format", "'%s' cannot be read",
			    f->in.format->type->name);
		ret = -EINVAL;
	}
	if (can_write(n) && !f->out.format->type->print) {
		config_fail(c, cfg, "format", "'%s' cannot be written",
			    f->out.format->type->name);
		ret = -EINVAL;
	}
	if (can_read(n) && can_write(n) && !strcmp(f->in.path, f->out.path)) {
		config_fail(c, cfg, "uri",
			    "the node would read the file that it writes; give `in` and `out` a `uri` each");
		ret = -EINVAL;
	}
	return ret;
}

static void file_destroy(struct node *n)
{
	struct file_node *f = n->private_data;

	format_destroy(f->in.format);
	format_destroy(f->out.format);
}

static int start_reader(struct file_node *f)
{
	double rate = f->in.rate_hz > 0 ? f->in.rate_hz : INFINITY;
	int ret;

	ret = timer_open(&f->in.timer, (enum timer_kind)f->in.timer_kind, rate);
	if (ret)
		return ret;
	ret = reader_open(&f->in.reader, f->in.path, f->in.format,
			  (size_t)f->in.buffer_size);
	if (ret) {
		timer_close(&f->in.timer);
		return ret;
	}
	f->in.open = true;
	f->in.started = f->in.warned = false;
	f->in.samples = 0;
	return 0;
}

static void stop_reader(struct node *n, struct file_node *f)
{
	if (!f->in.open)
		return;
	f->in.open = false;
	if (f->in.reader.malformed)
		log_warn("node %s: %ju malformed lines ignored", n->name,
			 (uintmax_t)f->in.reader.malformed);
	reader_close(&f->in.reader);
	timer_close(&f->in.timer);
}

static int file_start(struct node *n)
{
	struct file_node *f = n->private_data;
	const struct writer_settings settings = {
		.path = f->out.path,
		.append = f->out.append,
		.flush = f->out.flush,
		.in_memory = f->out.buffering == 1,
		.block = f->out.full == 0,
		.buffer_size = (size_t)f->out.buffer_size,
	};
	int ret = 0;

	if (can_read(n))
		ret = start_reader(f);
	if (!ret && can_write(n))
		ret = writer_open(&f->out.writer, &settings, f->out.format);
	if (ret)
		stop_reader(n, f);
	return ret;
}

static int file_stop(struct node *n)
{
	struct file_node *f = n->private_data;
	int ret = 0;

	stop_reader(n, f);
	if (f->out.writer)
		ret = writer_close(f->out.writer, n->out.signals);
	f->out.writer = NULL;
	return ret;
}

/* The file has no more: 0 to look again, or a negative errno. */
static int at_end(struct node *n, struct file_node *f)
{
	switch ((enum eof_mode)f->in.eof) {
	case EOF_WAIT:
		return timer_wait_until(&f->in.timer,
					f->in.timer.now_ns() + GROWTH_NS);
	case EOF_REWIND:
		/* Else an empty file would keep us here. */
		if (f->in.samples && !reader_rewind(&f->in.reader)) {
			f->in.samples = 0;
			f->in.started = false;
			return 0;
		}
		break;
	case EOF_EXIT:
		if (n->super)
			super_node_request_stop(n->super);
		break;
	case EOF_STOP:
		break;
	}
	return -ENODATA;
}

/* Sleeps until a pipe has data; the timer's descriptor tells of an interrupt. */
static int wait_readable(struct file_node *f)
{
	struct pollfd p[2] = {
		{ .fd = f->in.reader.fd, .events = POLLIN },
		{ .fd = f->in.timer.fd, .events = POLLIN },
	};

	poll(p, 2, -1);
	return atomic_load(&f->in.timer.interrupted) ? -EINTR : 0;
}

/* The next samples of the file, `skip` obeyed; waits as `eof` says. */
static int next_samples(struct node *n, struct file_node *f,
			struct sample *smps[], unsigned cnt)
{
	bool complete = f->in.eof != EOF_WAIT;

	for (;;) {
		int ret = reader_next(&f->in.reader, smps, cnt, complete);

		if (ret > 0) {
			f->in.samples += (uint64_t)ret;
			if (likely(f->in.samples > (uint64_t)f->in.skip))
				return ret;
			continue;
		}
		if (ret == 0)
			ret = reader_at_eof(&f->in.reader) ? at_end(n, f) :
							     wait_readable(f);
		if (ret)
			return ret;
	}
}

static int64_t origin_ns(const struct sample *s)
{
	return (int64_t)timespec_to_ns(s->origin);
}

/* What stands in a file may be any number: wraps instead of overflowing. */
static int64_t add_ns(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t since_ns(int64_t later, int64_t earlier)
{
	return (int64_t)((uint64_t)later - (uint64_t)earlier);
}

/* The first sample (after a rewind) says how recorded times are moved. */
static void start_clock(struct file_node *f, const struct sample *first)
{
	int64_t epoch = (int64_t)(f->in.epoch_s * 1e9);
	int64_t now = (int64_t)timespec_to_ns(clock_realtime());

	f->in.base_ns = (int64_t)f->in.timer.now_ns() - now;
	switch ((enum epoch_mode)f->in.epoch_mode) {
	case EPOCH_DIRECT:
		f->in.shift_ns = since_ns(now, origin_ns(first));
		break;
	case EPOCH_WAIT:
		f->in.shift_ns = since_ns(now + epoch, origin_ns(first));
		break;
	case EPOCH_RELATIVE:
		f->in.shift_ns = epoch;
		break;
	case EPOCH_ABSOLUTE:
		f->in.shift_ns = since_ns(epoch, origin_ns(first));
		break;
	case EPOCH_ORIGINAL:
		f->in.shift_ns = 0;
		break;
	}
	if (f->in.rate_hz > 0)
		timer_start(&f->in.timer, f->in.rate_hz);
	f->in.started = true;
}

static int wait_due(struct node *n, struct file_node *f, const struct sample *s)
{
	uint64_t late_ns;
	int64_t due, steps;

	if (f->in.epoch_mode == EPOCH_ORIGINAL && f->in.rate_hz <= 0)
		return 0;
	if (f->in.rate_hz > 0) {
		steps = timer_wait_step(&f->in.timer, &late_ns);
		if (steps > 1)
			atomic_fetch_add_explicit(&n->counters.missed,
						  (uint64_t)steps - 1,
						  memory_order_relaxed);
		return steps < 0 ? (int)steps : 0;
	}
	if (unlikely(!(s->flags & SAMPLE_HAS_ORIGIN))) {
		if (!f->in.warned)
			log_warn("%s: samples without time are replayed at once; set `rate`",
				 f->in.path);
		f->in.warned = true;
		return 0;
	}
	due = add_ns(add_ns(origin_ns(s), f->in.shift_ns), f->in.base_ns);
	return timer_wait_until(&f->in.timer, due > 0 ? (uint64_t)due : 0);
}

static void stamp(struct node *n, struct file_node *f, struct sample *s)
{
	if (f->in.stamp == 1) {
		s->origin = clock_realtime();
		s->flags |= SAMPLE_HAS_ORIGIN;
	} else if (s->flags & SAMPLE_HAS_ORIGIN) {
		s->origin = timespec_from_ns(
			(uint64_t)add_ns(origin_ns(s), f->in.shift_ns));
	}
	/* Whoever took the recording received it, but nobody has yet now. */
	if (f->in.epoch_mode != EPOCH_ORIGINAL)
		s->flags &= ~(uint32_t)SAMPLE_HAS_RECEIVED;
	if (!(s->flags & SAMPLE_HAS_SEQUENCE)) {
		s->sequence = n->sequence++;
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
}

static int file_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct file_node *f = n->private_data;
	bool paced = f->in.epoch_mode != EPOCH_ORIGINAL || f->in.rate_hz > 0;
	int got, ret;

	if (!f->in.open)
		return -EBADF;
	/* One at a time while samples are skipped or have their own instants. */
	if (paced || f->in.samples < (uint64_t)f->in.skip)
		cnt = MIN(cnt, 1u);
	got = next_samples(n, f, smps, cnt);
	if (got < 0)
		return got;
	if (unlikely(!f->in.started))
		start_clock(f, smps[0]);
	if (paced) {
		ret = wait_due(n, f, smps[0]);
		if (ret)
			return ret;
	}
	for (int i = 0; i < got; i++)
		stamp(n, f, smps[i]);
	return got;
}

static int file_write(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct file_node *f = n->private_data;

	return f->out.writer ? (int)writer_put(f->out.writer, smps, cnt) : -EBADF;
}

static void file_interrupt(struct node *n)
{
	struct file_node *f = n->private_data;

	if (f->in.open)
		timer_interrupt(&f->in.timer);
	if (f->out.writer)
		writer_interrupt(f->out.writer);
}

static void file_print(struct node *n, char *buf, size_t size)
{
	const struct file_node *f = n->private_data;

	snprintf(buf, size, "%s%.100s%s%s%.100s",
		 can_read(n) ? "in " : "", can_read(n) ? f->in.path : "",
		 can_read(n) && can_write(n) ? " " : "",
		 can_write(n) ? "out " : "", can_write(n) ? f->out.path : "");
}

const struct node_type node_file = {
	.name = "file",
	.description = "Replays and records samples",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS,
	.size = sizeof(struct file_node),
	.keys = file_keys,
	.key_count = ARRAY_SIZE(file_keys),
	.in_keys = file_in_keys,
	.in_key_count = ARRAY_SIZE(file_in_keys),
	.out_keys = file_out_keys,
	.out_key_count = ARRAY_SIZE(file_out_keys),
	.parse = file_parse,
	.check = file_check,
	.start = file_start,
	.stop = file_stop,
	.destroy = file_destroy,
	.read = file_read,
	.write = file_write,
	.interrupt = file_interrupt,
	.print = file_print,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `file`: replays samples that were recorded, and records samples.
 * reader.c knows the input file, replay.c the times, writer.c the output file;
 * here are the settings.
 */
#define LOG_ROOM "gateway/file"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gateway/format/comtrade_file.h"
#include "gateway/plugin/node.h"
#include "gateway/node/file/recording.h"
#include "gateway/node/file/replay.h"
#include "gateway/part/writer.h"
#include "gateway/sample/signals.h"
#include "util/log.h"

#define IN_BUFFER_MIN 64
#define IN_BUFFER_DEFAULT (1 << 20)
#define OUT_BUFFER_MIN 32768
#define OUT_BUFFER_DEFAULT (8 << 20)
/* Samples at a time where none has an instant of its own. */
#define BATCH 64

/* Bytes at the beginning of a recording that may name its signals. */
#define NAMES_MAX (2 << 20)

static const char *const eof_names[] = {
	[EOF_STOP] = "stop",
	[EOF_EXIT] = "exit",
	[EOF_REWIND] = "rewind",
	[EOF_WAIT] = "wait",
	NULL,
};

static const char *const epoch_mode_names[] = {
	[EPOCH_DIRECT] = "direct",
	[EPOCH_WAIT] = "wait",
	[EPOCH_RELATIVE] = "relative",
	[EPOCH_ABSOLUTE] = "absolute",
	[EPOCH_ORIGINAL] = "original",
	NULL,
};

static const char *const stamp_names[] = {
	[STAMP_RECORDED] = "recorded",
	[STAMP_NOW] = "now",
	[STAMP_PLANNED] = "planned",
	NULL,
};

static const char *const sequence_names[] = {
	[SEQUENCE_RECORDED] = "recorded",
	[SEQUENCE_NEW] = "new",
	NULL,
};

static const char *const buffering_names[] = { "stream", "memory", NULL };
static const char *const full_names[] = { "block", "drop", NULL };

struct file_node {
	const char *uri;
	json_t *format;
	struct replay in;
	struct record in_record, out_record; /* of format comtrade alone */
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
	{ "speed", CONFIG_REAL, OFFSET(in.speed), "1", .min = 1e-6, .max = 1e6,
	  .help = "Recorded distances are divided by this" },
	{ "skip", CONFIG_INT, OFFSET(in.skip), "0", .max = 1e15,
	  .help = "Samples to leave out at the beginning" },
	{ "buffer_size", CONFIG_INT, OFFSET(in.buffer_size), "0",
	  .min = 0, .max = 1 << 30,
	  .help = "Bytes read at once; 0: 1 MiB" },
	{ "stamp", CONFIG_ENUM, OFFSET(in.stamp), "recorded",
	  .names = stamp_names,
	  .help = "Origin of a replayed sample: its recorded time, moved as "
		  "epoch_mode says; now, the instant of its replay; or planned, "
		  "when it was due, and the receive timestamp says when it was "
		  "replayed" },
	{ "sequence", CONFIG_ENUM, OFFSET(in.sequence), "recorded",
	  .names = sequence_names,
	  .help = "Sequence numbers as recorded, or new ones, which go on when "
		  "the file is rewound" },
	{ "timer", CONFIG_ENUM, OFFSET(in.timer_kind), "auto",
	  .names = timer_kind_names,
	  .help = "As for signals; auto sleeps until recorded timestamps that are far enough apart" },
};

static const struct config_key file_out_keys[] = {
	{ "uri", CONFIG_STRING, OFFSET(out.uri), .help = "Path of the file" },
	{ "format", CONFIG_JSON, OFFSET(out.format_cfg),
	  .help = "Format of the file" },
	{ "flush", CONFIG_BOOL, OFFSET(out.flush), "false",
	  .help = "Write within milliseconds, not in large pieces" },
	{ "append", CONFIG_BOOL, OFFSET(out.append), "true",
	  .help = "Keep what the file holds; false: begin it anew" },
	{ "buffer_size", CONFIG_INT, OFFSET(out.buffer_size), "0",
	  .min = 0, .max = (double)(INT64_C(1) << 36),
	  .help = "Bytes of memory for samples that are not written yet, 32768 "
		  "if less; 0: 8 MiB" },
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
	if (!strncmp(uri, "file://", 7))
		uri += 7;
	if (strstr(uri, "://")) {
		config_fail(c, cfg, "uri",
			    "files on other hosts are not read or written; use the node-type exec with a program such as curl");
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

/* Without groups paths say what the file is for. */
static bool may_read(const struct node *n)
{
	return n->in.enabled && node_side_is_open(n->type, n->cfg, "in");
}

static bool may_write(const struct node *n)
{
	return n->out.enabled && node_side_is_open(n->type, n->cfg, "out");
}

/* Known when the node starts. */
static bool can_read(const struct node *n)
{
	return may_read(n) && (node_group_opens(n->in.cfg) || n->is_source);
}

static bool can_write(const struct node *n)
{
	return may_write(n) && (node_group_opens(n->out.cfg) || n->is_destination);
}

static void take_signals(struct node *n, struct file_node *f,
			 struct signal_list *l)
{
	if (!l)
		return;
	l = signal_list_intern(l);
	signal_list_put(n->in.signals);
	n->in.signals = l;
	signal_list_put(f->in.format->signals);
	f->in.format->signals = signal_list_get(l);
}

/* Names the signals as the recording does, unless the configuration does. */
static void adopt_names(struct node *n, struct file_node *f)
{
	char *buf;
	size_t len;
	struct stat st;
	FILE *in;

	if (!f->in.format->type->names || n->in.signals)
		return;
	/* Without the file there are no names; start() will complain. */
	if (record_is_comtrade(f->in.format)) {
		if (record_name(&f->in_record, f->in.path, true))
			take_signals(n, f, record_signals(&f->in_record));
		return;
	}
	/* A FIFO would wait for its writer here, and lose what is read. */
	in = stat(f->in.path, &st) || !S_ISREG(st.st_mode) ?
		     NULL : fopen(f->in.path, "re");
	buf = in ? malloc(NAMES_MAX) : NULL;
	if (buf) {
		len = fread(buf, 1, NAMES_MAX, in);
		take_signals(n, f, f->in.format->type->names(f->in.format, buf,
							     len));
	}
	free(buf);
	if (in)
		fclose(in);
}

static bool is_paced(const struct file_node *f)
{
	return f->in.epoch_mode != EPOCH_ORIGINAL || f->in.rate_hz > 0;
}

/* More than one sample in a call, unless the configuration says how many. */
static void choose_batches(struct node *n, const struct file_node *f,
			   json_t *cfg)
{
	if (json_object_get(cfg, "vectorize"))
		return;
	if (may_read(n) && !is_paced(f) && !json_object_get(n->in.cfg, "vectorize"))
		n->in.vectorize = BATCH;
	if (may_write(n) && !json_object_get(n->out.cfg, "vectorize"))
		n->out.vectorize = BATCH;
}

/* How late samples go out, where they have a time to go out at. */
static int keep_steps(struct node *n, struct file_node *f)
{
	if (!may_read(n) || !is_paced(f))
		return 0;
	f->in.late_ns = malloc(sizeof(*f->in.late_ns));
	if (!f->in.late_ns)
		return -ENOMEM;
	hist_init(f->in.late_ns);
	n->step_late_ns = f->in.late_ns;
	n->origin_planned = f->in.stamp == STAMP_PLANNED ||
			    (f->in.stamp == STAMP_RECORDED &&
			     !(f->in.rate_hz > 0));
	return 0;
}

static int file_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct file_node *f = n->private_data;
	json_t *in_format = f->in.format_cfg ? f->in.format_cfg : f->format;
	json_t *out_format = f->out.format_cfg ? f->out.format_cfg : f->format;
	int ret = 0;

	if (may_read(n)) {
		ret = make_path(c, cfg, f->in.uri ? f->in.uri : f->uri, f->in.path);
		if (!ret)
			ret = format_new(&f->in.format, c, in_format,
					 "villas.human", n->in.signals);
		if (!ret)
			adopt_names(n, f);
	}
	if (may_write(n) && !ret) {
		ret = make_path(c, cfg, f->out.uri ? f->out.uri : f->uri,
				f->out.path);
		if (!ret)
			ret = format_new(&f->out.format, c, out_format,
					 "villas.human", n->out.signals);
	}
	choose_batches(n, f, cfg);
	return ret ? ret : keep_steps(n, f);
}

/* 0 is the default, as everywhere where this key is known. Elsewhere it is the
 * buffer of a stream, of which any size will do. */
static void raise_buffer(const struct node *n, const char *key, int64_t *size,
			 int64_t least, int64_t usual)
{
	if (*size == 0)
		*size = usual;
	if (*size >= least)
		return;
	log_info("node %s: %s.buffer_size %lld is raised to %lld", n->name, key,
		 (long long)*size, (long long)least);
	*size = least;
}

/* Of format comtrade the names of files decide how they are used. */
static int check_record(struct config *c, json_t *cfg, struct record *r,
			struct format *format, const char *path, bool to_read)
{
	const char *problem;

	if (!record_is_comtrade(format))
		return 0;
	if (!record_name(r, path, to_read)) {
		config_fail(c, cfg, "uri",
			    "a COMTRADE record ends in .cfg (its .dat beside it) or .cff; '%s' does not",
			    path);
		return -EINVAL;
	}
	r->format = format;
	comtrade_format_set_layout(format, r->single ? COMTRADE_SINGLE :
							COMTRADE_PAIR);
	problem = to_read ? NULL : comtrade_format_problem(format);
	if (!problem)
		return 0;
	config_fail(c, cfg, "format", "%s", problem);
	return -EINVAL;
}

static int file_check(struct node *n, struct config *c, json_t *cfg)
{
	struct file_node *f = n->private_data;
	int ret = 0;

	raise_buffer(n, "in", &f->in.buffer_size, IN_BUFFER_MIN,
		     IN_BUFFER_DEFAULT);
	raise_buffer(n, "out", &f->out.buffer_size, OUT_BUFFER_MIN,
		     OUT_BUFFER_DEFAULT);
	if (f->in.rate_hz > 0 && f->in.speed != 1.0) {
		config_fail(c, n->in.cfg, "speed",
			    "scales recorded times, but `rate` replays without them; give one of the two");
		ret = -EINVAL;
	}
	if (may_read(n) && f->in.stamp == STAMP_PLANNED && !is_paced(f)) {
		config_fail(c, n->in.cfg, "stamp",
			    "planned: with epoch_mode = \"original\" no time is planned for samples; give `rate`, another epoch_mode, or stamp = \"now\"");
		ret = -EINVAL;
	}
	if (format_check_use(may_read(n) ? f->in.format : NULL,
			     may_write(n) ? f->out.format : NULL, c, cfg))
		ret = -EINVAL;
	if (!ret && may_read(n))
		ret = check_record(c, cfg, &f->in_record, f->in.format, f->in.path,
				   true);
	if (!ret && may_write(n))
		ret = check_record(c, cfg, &f->out_record, f->out.format,
				   f->out.path, false);
	if (!ret && node_group_opens(n->in.cfg) && node_group_opens(n->out.cfg) &&
	    f->in_record.format && f->out_record.format &&
	    !strcmp(f->in_record.dat, f->out_record.dat)) {
		config_fail(c, cfg, "uri",
			    "the node would read the record that it writes; give `in` and `out` a `uri` each");
		ret = -EINVAL;
	}
	return ret;
}

static int file_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct file_node *f = n->private_data;

	if (!may_write(n))
		return 0;
	if (n->out.hooked)
		raise_buffer(n, "out", &f->out.buffer_size,
			     (int64_t)writer_buffer_min(n->out.hooked->count),
			     OUT_BUFFER_DEFAULT);
	return format_check_signals(f->out.format, c, cfg, n->out.hooked);
}

static void file_destroy(struct node *n)
{
	struct file_node *f = n->private_data;

	format_destroy(f->in.format);
	format_destroy(f->out.format);
	free(f->in.late_ns);
}

/* The configuration of a record before its data. */
static int start_record(struct node *n, struct file_node *f,
			struct writer_settings *settings)
{
	struct record *r = &f->out_record;
	int ret = 0;

	if (can_read(n) && record_is_comtrade(f->in.format)) {
		record_name(&f->in_record, f->in.path, true);
		ret = record_open(&f->in_record, f->in.format);
		strcpy(f->in.path, f->in_record.dat);
	}
	if (ret || !can_write(n) || !record_is_comtrade(f->out.format))
		return ret;
	comtrade_format_set_layout(f->out.format, r->single ? COMTRADE_SINGLE :
							      COMTRADE_PAIR);
	r->signals = n->out.signals;
	settings->path = r->dat;
	/* The head of a single file is written over. */
	settings->append = false;
	settings->settle = record_settle;
	settings->settle_arg = r;
	return record_check_output(r, f->out.append);
}

static int file_stop(struct node *n)
{
	struct file_node *f = n->private_data;
	int ret = 0;

	replay_close(n, &f->in);
	if (f->out.writer)
		ret = writer_close(f->out.writer, n->out.signals);
	f->out.writer = NULL;
	return ret;
}

static int file_start(struct node *n)
{
	struct file_node *f = n->private_data;
	struct writer_settings settings = {
		.path = f->out.path,
		.append = f->out.append,
		.flush = f->out.flush,
		.in_memory = f->out.buffering == 1,
		.block = f->out.full == 0,
		.buffer_size = (size_t)f->out.buffer_size,
		.node = n,
	};
	int ret = start_record(n, f, &settings);

	/* First what is written: it may be the file that is read. */
	if (!ret && can_write(n))
		ret = writer_open(&f->out.writer, &settings, f->out.format);
	if (!ret && can_read(n))
		ret = replay_open(&f->in);
	if (ret)
		file_stop(n);
	return ret;
}

static int file_read(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release)
{
	struct file_node *f = n->private_data;

	return replay_read(n, &f->in, smps, cnt);
}

static int file_write(struct node *n, struct sample *smps[], unsigned cnt,
		      unsigned *release)
{
	struct file_node *f = n->private_data;

	char why[300];
	enum node_loss cause;
	unsigned taken;

	if (!f->out.writer)
		return -EBADF;
	taken = writer_put(f->out.writer, smps, cnt);
	if (unlikely(taken < cnt)) {
		cause = writer_why(f->out.writer, smps[taken], why, sizeof(why));
		node_refuse(n, cause, cnt - taken, "%s", why);
	}
	return (int)taken;
}

static bool file_may_wait(struct node *n)
{
	const struct file_node *f = n->private_data;

	return f->out.writer && writer_may_wait(f->out.writer);
}

static void file_interrupt(struct node *n)
{
	struct file_node *f = n->private_data;

	replay_interrupt(&f->in);
	if (f->out.writer)
		writer_interrupt(f->out.writer);
}

static int file_poll_fds(struct node *n, int fds[], int max)
{
	struct file_node *f = n->private_data;

	return can_read(n) ? replay_poll_fds(n, &f->in, fds, max) : 0;
}

static void file_rearm(struct node *n)
{
	struct file_node *f = n->private_data;

	replay_rearm(&f->in);
	if (f->out.writer)
		writer_rearm(f->out.writer);
}

static int file_rewind(struct node *n)
{
	struct file_node *f = n->private_data;

	return can_read(n) ? replay_rewind(&f->in) : -ENOTSUP;
}

static void file_print(struct node *n, char *buf, size_t size)
{
	const struct file_node *f = n->private_data;

	snprintf(buf, size, "%s%.100s%s%s%.100s",
		 can_read(n) ? "in " : "", can_read(n) ? f->in.path : "",
		 can_read(n) && can_write(n) ? " " : "",
		 can_write(n) ? "out " : "", can_write(n) ? f->out.path : "");
}

static const struct node_figure file_figures[] = {
	[REPLAY_MALFORMED] = { "malformed", "Lines or records of the file that the format cannot read",
			       NODE_COUNTER },
};

const struct node_type node_file = {
	.name = "file",
	.description = "Replays and records samples",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS |
		 NODE_NEEDS_GROUP,
	.size = sizeof(struct file_node),
	.keys = file_keys,
	.key_count = ARRAY_SIZE(file_keys),
	.in_keys = file_in_keys,
	.in_key_count = ARRAY_SIZE(file_in_keys),
	.out_keys = file_out_keys,
	.out_key_count = ARRAY_SIZE(file_out_keys),
	.figures = file_figures,
	.figure_count = ARRAY_SIZE(file_figures),
	.parse = file_parse,
	.check = file_check,
	.check_signals = file_check_signals,
	.start = file_start,
	.stop = file_stop,
	.destroy = file_destroy,
	.read = file_read,
	.write = file_write,
	.may_wait = file_may_wait,
	.interrupt = file_interrupt,
	.poll_fds = file_poll_fds,
	.rearm = file_rearm,
	.rewind = file_rewind,
	.print = file_print,
};

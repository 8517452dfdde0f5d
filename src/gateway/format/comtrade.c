/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * comtrade: records of IEEE C37.111 (library gateway/comtrade). A stream holds
 * a single file (.cff), whose head tells how to read the data behind it. Node
 * `file` uses the pair of .cfg and .dat too (format/comtrade.h).
 *
 * A sample is one row: analog channels are floats, digital ones booleans; its
 * sequence is the number of the row, its origin the start time of the record
 * plus the time stamp.
 */
#include "gateway/format/comtrade_file.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_ROOM "gateway/comtrade"
#include "gateway/comtrade/write.h"
#include "gateway/format/part/text.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

/* A single file whose data do not begin within this is none. */
#define HEAD_MAX (64u << 20)

enum comtrade_zero {
	ZERO_START,
	ZERO_TRIGGER,
	ZERO_FIRST,
};

enum scan_state {
	SCAN_HEAD,
	SCAN_DATA,
	SCAN_DONE, /* what still comes is of no interest */
};

struct comtrade {
	/* Settings. */
	int64_t revision; /* 0: auto */
	int data, time, zero, resolution;
	const char *station, *device, *time_quality, *time_zone;
	double line_hz;
	json_t *primary, *min, *max;
	enum comtrade_side side;
	bool has_zone;
	int32_t zone_s;

	enum comtrade_layout layout;
	struct comtrade_writer writer;

	/* Of reading. */
	enum scan_state state;
	struct comtrade_cfg *cfg;
	struct comtrade_clock clock;
	int64_t base_ns;        /* time 0 of the record */
	uint64_t rows;
	uint64_t bad_rows;      /* that were there, too */
	uint64_t behind;        /* bytes, of a single file, that come after these */
	uint64_t left;          /* bytes of data; UINT64_MAX: not told */
	bool by_rate_told, head_told; /* messages about this file */
	const char *cfg_name, *dat_name; /* for messages; NULL: not known */
	size_t message_left;    /* bytes of a message that are still to be scanned */
	/* Those of the record, while the configuration names none. */
	bool own_signals;
	bool converts;          /* the configuration has types of its own */
};

static const char *const data_key_names[] = { "auto", "ascii", "binary",
					      "binary32", "float32", NULL };
static const char *const time_names[] = {
	[COMTRADE_CLOCK_AUTO] = "auto",
	[COMTRADE_CLOCK_STAMPS] = "stamps",
	[COMTRADE_CLOCK_RATE] = "rate",
	NULL,
};
static const char *const zero_names[] = {
	[ZERO_START] = "start",
	[ZERO_TRIGGER] = "trigger",
	[ZERO_FIRST] = "first",
	NULL,
};
static const char *const resolution_names[] = { "auto", "ns", "us", NULL };

#define OFFSET(field) offsetof(struct comtrade, field)

static const struct config_key comtrade_keys[] = {
	{ "revision", CONFIG_INT, OFFSET(revision), "0", .min = 0, .max = 2013,
	  .help = "Of the standard: 1999 or 2013 to write (0: 2013); to read, how "
		  "dates are written (0: as the record says; 1991: month first)" },
	{ "data", CONFIG_ENUM, OFFSET(data), "auto", .names = data_key_names,
	  .help = "Type of the data to write: ascii, binary (16-bit integers), "
		  "binary32, float32; auto: float32 to files, ascii to streams, "
		  "binary with revision 1999" },
	{ "station", CONFIG_STRING, OFFSET(station), "busbar",
	  .help = "Name of the station to write" },
	{ "device", CONFIG_STRING, OFFSET(device), "gateway",
	  .help = "Name of the recording device to write" },
	{ "line_frequency", CONFIG_REAL, OFFSET(line_hz), "50", .max = 1e6,
	  .help = "Hz, to write" },
	{ "primary", CONFIG_JSON, OFFSET(primary),
	  .help = "To read: true makes all values primary ones, false secondary "
		  "ones, by the ratios of the record; without the key they stay "
		  "as recorded. To write: which of them the values are, true" },
	{ "min", CONFIG_JSON, OFFSET(min),
	  .help = "Smallest value, for data that are integers: one number, or a "
		  "list with one for each analog channel" },
	{ "max", CONFIG_JSON, OFFSET(max), .help = "Largest value, likewise" },
	{ "resolution", CONFIG_ENUM, OFFSET(resolution), "auto",
	  .names = resolution_names,
	  .help = "Of time stamps to write: ns or us; auto: ns in ascii, us in "
		  "binary types, whose stamps have 32 bits" },
	{ "time_quality", CONFIG_STRING, OFFSET(time_quality), "B",
	  .help = "Quality of the clock to write, 0 (locked) to B, or F (failed)" },
	{ "time", CONFIG_ENUM, OFFSET(time), "auto", .names = time_names,
	  .help = "Times of rows that are read: by their stamps, by the sampling "
		  "rate, or auto: stamps, but the rate where they are missing or "
		  "do not advance as it says" },
	{ "zero", CONFIG_ENUM, OFFSET(zero), "start", .names = zero_names,
	  .help = "What time stamps count from: the start time of the record, its "
		  "trigger time; or first: the first row has the start time" },
	{ "time_zone", CONFIG_STRING, OFFSET(time_zone), "record",
	  .help = "Of the times in the record: hours such as \"+9\" or \"-5h30\"; "
		  "record: what it says itself (2013), else UTC" },
};

/* format_new() reports it, with its place. */
static int __attribute__((format(printf, 2, 3)))
refuse(struct format *f, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(f->error, sizeof(f->error), fmt, args);
	va_end(args);
	return -EINVAL;
}

static int parse_bounds(struct format *f, struct comtrade_bounds *b,
			const char *key, const json_t *from)
{
	size_t count = json_is_array(from) ? json_array_size(from) : 1;

	if (!from)
		return 0;
	b->values = calloc(count + 1, sizeof(*b->values));
	if (!b->values)
		return -ENOMEM;
	b->given = true;
	b->each = json_is_array(from);
	b->count = (unsigned)count;
	for (size_t i = 0; i < count; i++) {
		const json_t *v = b->each ? json_array_get(from, i) : from;

		b->values[i] = json_number_value(v);
		if (json_is_number(v) && isfinite(b->values[i]))
			continue;
		return refuse(f, "`%s` is neither a number nor a list of numbers",
			      key);
	}
	return 0;
}

static int parse_primary(struct format *f)
{
	struct comtrade *t = f->private_data;
	const char *text = json_string_value(t->primary);

	t->side = COMTRADE_AS_RECORDED;
	if (!t->primary)
		return 0;
	if (json_is_true(t->primary) || (text && !strcmp(text, "true")))
		t->side = COMTRADE_PRIMARY;
	else if (json_is_false(t->primary) || (text && !strcmp(text, "false")))
		t->side = COMTRADE_SECONDARY;
	else
		return refuse(f, "`primary` is neither true nor false");
	return 0;
}

static int parse_texts(struct format *f)
{
	struct comtrade *t = f->private_data;
	const char *zone = t->time_zone;

	t->has_zone = strcmp(zone, "record") != 0;
	if (t->has_zone &&
	    !comtrade_zone_parse(zone, zone + strlen(zone), &t->zone_s))
		return refuse(f, "`time_zone` '%.20s' is no number of hours such as \"+9\" or \"-5h30\"",
			      zone);
	if (strlen(t->time_quality) != 1 ||
	    !strchr("0123456789ABF", *t->time_quality))
		return refuse(f, "`time_quality` '%.20s' is none of 0 to 9, A, B, F",
			      t->time_quality);
	if (t->revision && t->revision != 1991 && t->revision != 1999 &&
	    t->revision != 2013)
		return refuse(f, "`revision` %jd is none of 1991, 1999, 2013",
			      (intmax_t)t->revision);
	return 0;
}

static int comtrade_init(struct format *f)
{
	static const int64_t units[] = { 0, 1, 1000 };
	struct comtrade *t = f->private_data;
	struct comtrade_writer *w = &t->writer;
	int ret = parse_primary(f);

	if (!ret)
		ret = parse_texts(f);
	if (!ret)
		ret = parse_bounds(f, &w->low, "min", t->min);
	if (!ret)
		ret = parse_bounds(f, &w->high, "max", t->max);
	if (ret) {
		free(w->low.values);
		free(w->high.values);
		return ret;
	}
	w->revision = t->revision ? (unsigned)t->revision : 2013;
	w->data = t->data - 1;
	w->station = t->station;
	w->device = t->device;
	w->quality = t->time_quality;
	w->line_hz = t->line_hz;
	w->secondary = t->side == COMTRADE_SECONDARY;
	w->unit_ns = units[t->resolution];
	t->left = UINT64_MAX;
	t->own_signals = f->signals->count == 0;
	return 0;
}

static void comtrade_destroy(struct format *f)
{
	struct comtrade *t = f->private_data;

	comtrade_writer_reset(&t->writer);
	free(t->writer.low.values);
	free(t->writer.high.values);
	comtrade_cfg_free(t->cfg);
}

void comtrade_format_set_layout(struct format *f, enum comtrade_layout layout)
{
	struct comtrade *t = f->private_data;

	comtrade_writer_reset(&t->writer);
	t->layout = t->writer.layout = layout;
}

const char *comtrade_format_problem(const struct format *f)
{
	const struct comtrade *t = f->private_data;

	return comtrade_writer_problem(&t->writer);
}

size_t comtrade_format_head(struct format *f, const struct signal_list *signals,
			    char *buf, size_t size)
{
	struct comtrade *t = f->private_data;

	return comtrade_writer_head(&t->writer, f, signals, buf, size);
}

static int comtrade_print(struct format *f, char *buf, size_t size, size_t *used,
			  struct sample *const smps[], unsigned cnt)
{
	struct comtrade *t = f->private_data;

	return comtrade_writer_print(&t->writer, f, buf, size, used, smps, cnt);
}

/* Reading. */

struct signal_list *comtrade_signals(const struct comtrade_cfg *c)
{
	unsigned count = comtrade_cfg_values(c);
	struct signal_list *l = signal_list_alloc(count);

	for (unsigned i = 0; l && i < count; i++) {
		bool analog = i < c->analog_count;
		unsigned k = analog ? i : i - c->analog_count;
		const char *name = analog ? c->analog[k].name : c->digital[k].name;
		char made[32];

		snprintf(made, sizeof(made), "%s%u", analog ? "analog" : "digital",
			 k + 1);
		if (!signal_set(&l->signals[i], *name ? name : made,
				analog ? c->analog[k].unit : NULL,
				analog ? SIGNAL_FLOAT : SIGNAL_BOOLEAN))
			continue;
		signal_list_put(l);
		l = NULL;
	}
	return l;
}

static bool has_other_types(const struct signal_list *l,
			    const struct comtrade_cfg *c)
{
	for (unsigned i = 0; i < comtrade_cfg_values(c); i++)
		if (text_type(l, i) != (i < c->analog_count ? SIGNAL_FLOAT :
							       SIGNAL_BOOLEAN))
			return true;
	return false;
}

static const char *name_of(const char *file)
{
	return file ? file : "a COMTRADE record";
}

void comtrade_format_set_name(struct format *f, const char *cfg, const char *dat)
{
	struct comtrade *t = f->private_data;

	t->cfg_name = cfg;
	t->dat_name = dat;
	t->by_rate_told = t->head_told = false;
}

/* Warns that time stamps contradict the rate, with the row and both times. */
static void tell_by_rate(struct comtrade *t)
{
	const struct comtrade_clock *k = &t->clock;

	t->by_rate_told = true;
	log_warn("%s: row %ju: its time stamp is %.9f s from the start, by the rate of %.9g Hz it is %.9f s: from here on times are by the rate (set `time` to say otherwise)",
		 name_of(t->dat_name), (uintmax_t)k->odd.row, (double)k->odd.stamp_ns / 1e9,
		 k->odd.hz, (double)k->odd.rate_ns / 1e9);
}

/* The data of this configuration are next. */
static int start_data(struct format *f, struct comtrade_cfg *c)
{
	struct comtrade *t = f->private_data;
	const struct comtrade_time *zero =
		t->zero == ZERO_TRIGGER && c->trigger.known ? &c->trigger : &c->start;

	if (t->has_zone) {
		c->has_zone = true;
		c->zone_s = t->zone_s;
	} else if (c->zone_unread && !t->head_told) {
		log_warn("%s: how far the record's clock is from UTC cannot be read: its times are taken as UTC (set `time_zone` to say otherwise)",
			 name_of(t->cfg_name));
	}
	if (c->revision_unread && !t->revision && !t->head_told)
		log_warn("%s: the revision '%.20s' is no year: dates are read %s first (set `revision` to say otherwise)",
			 name_of(t->cfg_name), c->revision_unread,
			 c->revision > 1991 ? "day" : "month");
	t->head_told = true;
	comtrade_cfg_convert(c, t->side);
	if (t->own_signals && f->signals->count != comtrade_cfg_values(c)) {
		struct signal_list *l = comtrade_signals(c);

		if (!l)
			return -ENOMEM;
		signal_list_put(f->signals);
		f->signals = signal_list_intern_told(l);
	}
	t->cfg = c;
	t->converts = has_other_types(f->signals, c);
	t->base_ns = zero->known ? comtrade_time_ns(c, zero) : 0;
	comtrade_clock_init(&t->clock, c, (enum comtrade_clock_mode)t->time);
	t->rows = t->bad_rows = 0;
	t->state = SCAN_DATA;
	f->binary = c->data != COMTRADE_ASCII;
	return 0;
}

int comtrade_format_use_cfg(struct format *f, const char *text, size_t len,
			    struct comtrade_error *err)
{
	struct comtrade *t = f->private_data;
	struct comtrade_cfg *c;
	int ret = comtrade_cfg_parse(&c, text, len, (unsigned)t->revision, err);

	if (ret)
		return ret;
	comtrade_cfg_free(t->cfg);
	t->cfg = NULL;
	ret = start_data(f, c);
	if (ret)
		comtrade_cfg_free(c);
	return ret;
}

static void comtrade_reset(struct format *f)
{
	struct comtrade *t = f->private_data;

	t->rows = t->bad_rows = t->behind = 0;
	t->left = UINT64_MAX;
	if (t->layout != COMTRADE_PAIR) {
		t->state = SCAN_HEAD;
		f->binary = false;
	} else if (t->cfg) {
		comtrade_clock_init(&t->clock, t->cfg,
				    (enum comtrade_clock_mode)t->time);
		t->state = SCAN_DATA;
	}
}

/* The head of a single file: 1 when it is there and good, 0 when more is needed;
 * *used as for scan. */
static int scan_head(struct format *f, const char *buf, size_t len, size_t *used)
{
	struct comtrade *t = f->private_data;
	struct comtrade_error err = { 0 };
	struct comtrade_cff parts;
	int ret = comtrade_cff_find(buf, len, &parts, &err);

	if (ret == 0 && len > HEAD_MAX) {
		snprintf(err.text, sizeof(err.text),
			 "no data begin within %u MiB", HEAD_MAX >> 20);
		ret = -EBADMSG;
	}
	if (ret == 1) {
		ret = comtrade_format_use_cfg(f, buf + parts.cfg_start,
					      parts.cfg_end - parts.cfg_start,
					      &err);
		err.line += err.line ? parts.cfg_line : 0;
		if (ret == 0) {
			t->left = parts.has_size ? parts.dat_size : UINT64_MAX;
			if (parts.data >= 0)
				t->cfg->data = (enum comtrade_data)parts.data;
			f->binary = t->cfg->data != COMTRADE_ASCII;
			*used = parts.dat_start;
			return 1;
		}
	}
	if (ret == 0)
		return 0;
	/* Nothing behind can be understood. */
	*used = len;
	t->state = SCAN_DONE;
	return ret == -EBADMSG ? text_fail(f, "line %u of the record: %s; nothing of it is read",
					   err.line, err.text) : ret;
}

/* Values as the configuration types them, when it does. */
static void convert(const struct format *f, const struct comtrade_cfg *c,
		    struct sample *s)
{
	for (unsigned i = 0; i < s->length; i++) {
		bool analog = i < c->analog_count;
		enum signal_type type = text_type(f->signals, i);
		union signal_data v = s->data[i];
		double real = analog ? v.f : (double)v.i;

		switch (type) {
		case SIGNAL_FLOAT:
			s->data[i].f = real;
			break;
		case SIGNAL_INTEGER:
			/* NaN is missing: 0. */
			s->data[i].i = fabs(real) < 9e18 ? (int64_t)real : 0;
			break;
		case SIGNAL_BOOLEAN:
			s->data[i].i = real != 0 && real == real;
			break;
		case SIGNAL_COMPLEX:
			s->data[i].z.re = (float)real;
			s->data[i].z.im = 0;
			break;
		}
	}
}

static struct timespec to_timespec(int64_t ns)
{
	const int64_t second = (int64_t)NSEC_PER_SEC;
	int64_t sec = ns / second, rest = ns % second;

	return (struct timespec){
		.tv_sec = sec - (rest < 0),
		.tv_nsec = rest < 0 ? rest + second : rest,
	};
}

static void fill_sample(struct format *f, const struct comtrade_row *row,
			struct sample *s)
{
	struct comtrade *t = f->private_data;
	int64_t ns;

	s->flags = SAMPLE_HAS_DATA | SAMPLE_HAS_SEQUENCE;
	s->length = comtrade_cfg_values(t->cfg);
	sample_set_signals(s, f->signals);
	s->sequence = row->has_number ? row->number : t->rows + 1;
	s->origin = (struct timespec){ 0, 0 };
	if (comtrade_clock_next(&t->clock, row, &ns)) {
		if (t->rows == 0 && t->zero == ZERO_FIRST)
			t->base_ns -= ns;
		s->origin = to_timespec((int64_t)((uint64_t)t->base_ns + (uint64_t)ns));
		s->flags |= SAMPLE_HAS_ORIGIN;
	}
	if (unlikely(t->clock.by_rate && !t->by_rate_told))
		tell_by_rate(t);
	if (t->converts)
		convert(f, t->cfg, s);
	t->rows++;
}

/* One row; as comtrade_row_decode(). */
static int scan_row(struct format *f, const char *buf, size_t len, size_t *used,
		    struct sample *s)
{
	struct comtrade *t = f->private_data;
	struct comtrade_error err = { 0 };
	struct comtrade_row row;
	int ret;

	if (unlikely(comtrade_cfg_values(t->cfg) > s->capacity)) {
		*used = len;
		t->state = SCAN_DONE;
		return text_fail(f, "the record has %u channels, more than the %u values that a sample holds here; nothing of it is read",
				 comtrade_cfg_values(t->cfg), s->capacity);
	}
	if (f->binary && len > t->left)
		len = t->left;
	ret = comtrade_row_decode(t->cfg, buf, len, used, &row, s->data, &err);
	if (f->binary && t->left != UINT64_MAX)
		t->left -= *used;
	if (ret == -ENODATA || (f->binary && t->left < comtrade_row_size(t->cfg)))
		t->state = SCAN_DONE;
	if (ret == -EBADMSG) {
		t->bad_rows++;
		text_fail(f, "%s", err.text);
	}
	if (ret == 1)
		fill_sample(f, &row, s);
	return ret == -ENODATA ? 0 : ret;
}

static int scan_rows(struct format *f, const char *buf, size_t len, size_t *used,
		     struct sample *smps[], unsigned cnt)
{
	struct comtrade *t = f->private_data;
	size_t pos = 0, n = 0;
	unsigned i = 0;
	int ret;

	*used = 0;
	if (t->state == SCAN_HEAD) {
		if (t->layout == COMTRADE_PAIR) {
			*used = len;
			return len ? text_fail(f, "there is no configuration for these data") : 0;
		}
		ret = scan_head(f, buf, len, used);
		if (ret <= 0)
			return ret;
		pos = *used;
	}
	while (i < cnt && t->state == SCAN_DATA) {
		ret = scan_row(f, buf + pos, len - pos, &n, smps[i]);
		if (ret < 0 && i > 0 && t->state == SCAN_DATA)
			break; /* the next call meets it again */
		pos += n;
		*used = pos;
		if (ret < 0)
			return ret;
		if (ret == 0)
			break;
		i++;
	}
	if (t->state == SCAN_DONE && i < cnt) {
		t->behind += len - pos;
		*used = len;
	}
	return (int)i;
}

static int comtrade_scan(struct format *f, const char *buf, size_t len,
			 size_t *used, struct sample *smps[], unsigned cnt)
{
	struct comtrade *t = f->private_data;
	int ret;

	/* A message is a record of its own, unless this is the rest of the one
	 * before. */
	if (f->message && len != t->message_left)
		comtrade_reset(f);
	ret = scan_rows(f, buf, len, used, smps, cnt);
	t->message_left = f->message ? len - *used : 0;
	return ret;
}

/*
 * The last sampling rate says how many rows there are; 0 is written by who could
 * not go back. What the head of a single file says in bytes counts when that does
 * not.
 */
static int comtrade_finish(struct format *f)
{
	const struct comtrade *t = f->private_data;
	const struct comtrade_cfg *c = t->cfg;
	uint64_t rows = t->rows + t->bad_rows, told;

	/* Nothing of it was read, for a reason that was told. */
	if (!c || t->state == SCAN_HEAD || (t->state == SCAN_DONE && !rows))
		return 0;
	told = c->rates[MAX(c->rate_count, 1u) - 1].end;
	if (told && told != rows) {
		text_fail(f, "the record announces %ju rows, but %ju are there",
			  (uintmax_t)told, (uintmax_t)rows);
		return told > rows ? -EBADMSG : -EOVERFLOW;
	}
	if (!told && f->binary && t->left != UINT64_MAX &&
	    t->left >= comtrade_row_size(c))
		return text_fail(f, "the record announces %ju bytes of data more than are there",
				 (uintmax_t)t->left);
	/* An end of line or two is not worth a word. */
	if (f->binary && t->behind >= comtrade_row_size(c)) {
		text_fail(f, "%ju bytes stand behind the data that the record announces",
			  (uintmax_t)t->behind);
		return -EOVERFLOW;
	}
	return 0;
}

static struct signal_list *comtrade_names(struct format *f, const char *buf,
					  size_t len)
{
	const struct comtrade *t = f->private_data;
	struct comtrade_error err;
	struct comtrade_cff parts;
	struct signal_list *l;
	struct comtrade_cfg *c;

	if (comtrade_cff_find(buf, len, &parts, &err) != 1 ||
	    comtrade_cfg_parse(&c, buf + parts.cfg_start,
			       parts.cfg_end - parts.cfg_start,
			       (unsigned)t->revision, &err))
		return NULL;
	l = comtrade_signals(c);
	comtrade_cfg_free(c);
	return l;
}

const struct format_type format_comtrade = {
	.name = "comtrade",
	.description = "Records of IEEE C37.111, as single files (.cff) or in pairs",
	.lines = true, /* unless format->binary says otherwise */
	.size = sizeof(struct comtrade),
	.keys = comtrade_keys,
	.key_count = ARRAY_SIZE(comtrade_keys),
	.init = comtrade_init,
	.destroy = comtrade_destroy,
	.print = comtrade_print,
	.reset = comtrade_reset,
	.names = comtrade_names,
	.scan = comtrade_scan,
	.finish = comtrade_finish,
};

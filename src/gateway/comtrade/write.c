/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples to a COMTRADE record: the first sample decides which channels there
 * are (floats, integers and the parts of complex values are analog ones, all
 * before the digital ones, which are booleans).
 */
#include "gateway/comtrade/write.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_ROOM "gateway/comtrade"
#include "gateway/sample/time.h"
#include "util/clock.h"
#include "util/log.h"

/* By which the text of a head may grow: count, rate, bytes of data. */
#define HEAD_RESERVE 128

enum source_part {
	PART_FLOAT,
	PART_INTEGER,
	PART_REAL,
	PART_IMAGINARY,
	PART_BOOLEAN,
};

struct comtrade_source {
	unsigned value;
	enum source_part part;
};

static enum comtrade_data data_type(const struct comtrade_writer *w)
{
	if (w->data >= 0)
		return (enum comtrade_data)w->data;
	if (w->revision < 2013)
		return COMTRADE_BINARY;
	return w->layout == COMTRADE_STREAM ? COMTRADE_ASCII : COMTRADE_FLOAT32;
}

const char *comtrade_writer_problem(const struct comtrade_writer *w)
{
	const struct comtrade_cfg like = {
		.revision = w->revision,
		.data = data_type(w),
	};

	if (w->revision < 1999)
		return "revision 1991 is only read; 1999 and 2013 are written";
	if (w->revision < 2013 && (like.data == COMTRADE_BINARY32 ||
				   like.data == COMTRADE_FLOAT32))
		return "revision 1999 knows only data = \"ascii\" and \"binary\"";
	if (w->revision < 2013 && w->layout != COMTRADE_PAIR)
		return "single files came with revision 2013; 1999 is written to a .cfg and its .dat";
	if (w->revision < 2013 && w->unit_ns == 1)
		return "revision 1999 has microseconds; resolution = \"ns\" needs 2013";
	if (comtrade_is_integer(&like) && (!w->low.given || !w->high.given))
		return "integers need `min` and `max` of the values; without them data = \"float32\" (revision 2013) loses nothing of a float";
	return NULL;
}

static enum signal_type type_of(const struct signal_list *l, unsigned i)
{
	return l && i < l->count ? l->signals[i].type : SIGNAL_FLOAT;
}

static const char *text_of(const char *text)
{
	return text ? text : "";
}

/* "name", or a made one; with the part of a complex value behind it. */
static char *channel_name(const struct signal_list *l, unsigned i,
			  const char *suffix)
{
	char *name;

	if (l && i < l->count)
		return asprintf(&name, "%s%s", l->signals[i].name, suffix) < 0 ?
			       NULL : name;
	return asprintf(&name, "signal%u%s", i, suffix) < 0 ? NULL : name;
}

static int bound(const struct comtrade_bounds *b, const char *key, unsigned i,
		 const char *name, double *v)
{
	if (b->each && i >= b->count) {
		log_error("`%s` has %u numbers, none for analog channel %u '%s'",
			  key, b->count, i + 1, name);
		return -EINVAL;
	}
	*v = b->given ? b->values[b->each ? i : 0] : 0;
	return 0;
}

static int add_analog(struct comtrade_writer *w, struct comtrade_cfg *c,
		      const struct signal_list *l, unsigned i,
		      enum source_part part)
{
	struct comtrade_analog *a = &c->analog[c->analog_count];
	double low, high;
	int ret;

	a->name = channel_name(l, i, part == PART_REAL ? ".re" :
				     part == PART_IMAGINARY ? ".im" : "");
	a->phase = strdup("");
	a->component = strdup("");
	a->unit = strdup(l && i < l->count ? text_of(l->signals[i].unit) : "");
	w->sources[c->analog_count++] = (struct comtrade_source){ i, part };
	if (!a->name || !a->phase || !a->component || !a->unit)
		return -ENOMEM;
	a->primary = a->secondary = 1;
	a->side = w->secondary ? 'S' : 'P';
	ret = bound(&w->low, "min", c->analog_count - 1, a->name, &low);
	if (!ret)
		ret = bound(&w->high, "max", c->analog_count - 1, a->name, &high);
	if (ret)
		return ret;
	if (comtrade_is_integer(c) && !(low < high)) {
		log_error("`min` %g is not below `max` %g of channel '%s'", low,
			  high, a->name);
		return -EINVAL;
	}
	comtrade_analog_scale(a, c, low, high);
	return 0;
}

static int add_digital(struct comtrade_writer *w, struct comtrade_cfg *c,
		       const struct signal_list *l, unsigned i)
{
	struct comtrade_digital *d = &c->digital[c->digital_count];

	d->name = channel_name(l, i, "");
	d->phase = strdup("");
	d->component = strdup("");
	w->sources[c->analog_count + c->digital_count++] =
		(struct comtrade_source){ i, PART_BOOLEAN };
	return d->name && d->phase && d->component ? 0 : -ENOMEM;
}

static int add_channels(struct comtrade_writer *w, struct comtrade_cfg *c,
			const struct signal_list *l)
{
	int ret = 0;

	for (unsigned i = 0; !ret && i < w->values; i++) {
		switch (type_of(l, i)) {
		case SIGNAL_FLOAT:
			ret = add_analog(w, c, l, i, PART_FLOAT);
			break;
		case SIGNAL_INTEGER:
			ret = add_analog(w, c, l, i, PART_INTEGER);
			break;
		case SIGNAL_COMPLEX:
			ret = add_analog(w, c, l, i, PART_REAL);
			if (!ret)
				ret = add_analog(w, c, l, i, PART_IMAGINARY);
			break;
		case SIGNAL_BOOLEAN:
			break;
		}
	}
	for (unsigned i = 0; !ret && i < w->values; i++)
		if (type_of(l, i) == SIGNAL_BOOLEAN)
			ret = add_digital(w, c, l, i);
	return ret;
}

static struct comtrade_cfg *new_cfg(const struct comtrade_writer *w)
{
	struct comtrade_cfg *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->revision = w->revision;
	c->data = data_type(w);
	c->line_hz = w->line_hz;
	c->has_zone = true; /* samples have UTC */
	c->rate_count = 1;
	c->rates = calloc(1, sizeof(*c->rates));
	c->station = strdup(w->station);
	c->device = strdup(w->device);
	/* A complex value makes two channels. */
	c->analog = calloc(2 * w->values + 1, sizeof(*c->analog));
	c->digital = calloc(w->values + 1, sizeof(*c->digital));
	snprintf(c->quality, sizeof(c->quality), "%s", w->quality);
	snprintf(c->leap, sizeof(c->leap), "3"); /* unknown */
	if (c->rates && c->station && c->device && c->analog && c->digital)
		return c;
	comtrade_cfg_free(c);
	return NULL;
}

static int begin(struct comtrade_writer *w, const struct signal_list *l,
		 unsigned values, int64_t start_ns)
{
	const char *problem = comtrade_writer_problem(w);
	enum comtrade_data data = data_type(w);
	struct comtrade_cfg *c;
	int64_t unit_ns;
	int ret = -ENOMEM;

	if (problem) {
		log_error("cannot write COMTRADE: %s", problem);
		return -EINVAL;
	}
	if (!values)
		return -ENODATA;
	w->values = values;
	w->sources = calloc(2 * values, sizeof(*w->sources));
	w->row = calloc(2 * values, sizeof(*w->row));
	c = new_cfg(w);
	if (!w->sources || !w->row || !c)
		goto err_free;
	ret = add_channels(w, c, l);
	if (ret)
		goto err_free;
	unit_ns = w->unit_ns ? w->unit_ns : data == COMTRADE_ASCII ? 1 : 1000;
	comtrade_recorder_init(&w->recorder, c, start_ns, unit_ns);
	w->begun = true;
	return 0;

err_free:
	comtrade_cfg_free(c);
	comtrade_writer_reset(w);
	return ret;
}

void comtrade_writer_reset(struct comtrade_writer *w)
{
	if (w->begun)
		comtrade_recorder_destroy(&w->recorder);
	free(w->sources);
	free(w->row);
	w->sources = NULL;
	w->row = NULL;
	w->begun = w->head_printed = false;
	w->head_size = 0;
	w->bytes = w->clipped = 0;
}

/* A single file up to its data. The size never changes: blanks in the part for
 * people fill it. */
static size_t single_head(struct comtrade_writer *w, char *buf, size_t size)
{
	static const char before[] = "--- file type: CFG ---\r\n";
	static const char parts[] = "--- file type: INF ---\r\n"
				    "--- file type: HDR ---\r\n";
	const struct comtrade_cfg *c = w->recorder.cfg;
	size_t cfg = comtrade_cfg_print(c, NULL, 0), used, pad;
	char dat[80];
	int n;

	n = c->data == COMTRADE_ASCII ?
		    snprintf(dat, sizeof(dat), "\r\n--- file type: DAT ASCII ---\r\n") :
		    snprintf(dat, sizeof(dat), "\r\n--- file type: DAT %s: %ju ---\r\n",
			     comtrade_data_name(c->data), (uintmax_t)w->bytes);
	used = strlen(before) + cfg + strlen(parts) + (size_t)n;
	if (!w->head_size)
		w->head_size = used + HEAD_RESERVE;
	if (size < w->head_size)
		return w->head_size;
	pad = w->head_size - used;
	buf = mempcpy(buf, before, strlen(before));
	comtrade_cfg_print(c, buf, cfg);
	buf = mempcpy(buf + cfg, parts, strlen(parts));
	memset(buf, ' ', pad);
	memcpy(buf + pad, dat, (size_t)n);
	return w->head_size;
}

size_t comtrade_writer_head(struct comtrade_writer *w, const struct format *f,
			    const struct signal_list *signals, char *buf,
			    size_t size)
{
	if (!signals)
		signals = f->signals;
	if (!w->begun &&
	    begin(w, signals, signals->count,
		  (int64_t)timespec_to_ns(clock_realtime())))
		return 0;
	if (w->layout != COMTRADE_STREAM)
		comtrade_recorder_settle(&w->recorder);
	return w->layout == COMTRADE_PAIR ?
		       comtrade_cfg_print(w->recorder.cfg, buf, size) :
		       single_head(w, buf, size);
}

static int64_t time_of(struct comtrade_writer *w, const struct sample *s)
{
	if (s->flags & SAMPLE_HAS_ORIGIN)
		return sample_time_to_ns(s->origin);
	if (s->flags & SAMPLE_HAS_RECEIVED)
		return sample_time_to_ns(s->received);
	if (!w->warned_time)
		log_warn("samples without time are recorded with that of their writing");
	w->warned_time = true;
	return (int64_t)timespec_to_ns(clock_realtime());
}

/* The values of a sample in the order of the channels. */
static void fill_row(struct comtrade_writer *w, const struct sample *s)
{
	const struct comtrade_cfg *c = w->recorder.cfg;

	for (unsigned k = 0; k < comtrade_cfg_values(c); k++) {
		const struct comtrade_source *from = &w->sources[k];
		const union signal_data *v = &s->data[from->value];
		union signal_data *to = &w->row[k];

		if (from->value >= s->length) {
			if (from->part == PART_BOOLEAN)
				to->i = 0;
			else
				to->f = NAN;
			continue;
		}
		switch (from->part) {
		case PART_FLOAT:
			to->f = v->f;
			break;
		case PART_INTEGER:
			to->f = (double)v->i;
			break;
		case PART_REAL:
			to->f = v->z.re;
			break;
		case PART_IMAGINARY:
			to->f = v->z.im;
			break;
		case PART_BOOLEAN:
			to->i = v->i != 0;
			break;
		}
	}
}

static void warn_once(struct comtrade_writer *w, const struct sample *s)
{
	if (s->length != w->values && !w->warned_length) {
		w->warned_length = true;
		log_warn("a sample has %u values, the record %u: further ones are left out, missing ones marked",
			 s->length, w->values);
	}
	if (w->clipped && !w->warned_clipped) {
		w->warned_clipped = true;
		log_warn("values beyond what the record can hold are cut (row %ju is the first)",
			 (uintmax_t)w->recorder.rows);
	}
	if (w->recorder.early && !w->warned_early) {
		w->warned_early = true;
		log_warn("samples older than the first get its time (row %ju is the first)",
			 (uintmax_t)w->recorder.rows);
	}
}

/* One sample; 0 when it does not fit (then nothing has changed). */
static size_t print_row(struct comtrade_writer *w, const struct format *f,
			char *buf, size_t size, const struct sample *s)
{
	struct comtrade_recorder before = w->recorder;
	struct comtrade_row row;
	uint64_t clipped = 0;
	int digits = f->real_precision > 16 ? 0 : (int)f->real_precision;
	size_t used;

	row = comtrade_recorder_next(&w->recorder, time_of(w, s));
	fill_row(w, s);
	used = comtrade_row_encode(w->recorder.cfg, buf, size, &row, w->row,
				   digits, &clipped);
	if (!used) {
		w->recorder = before;
		return 0;
	}
	w->clipped += clipped;
	w->bytes += used;
	warn_once(w, s);
	return used;
}

int comtrade_writer_print(struct comtrade_writer *w, const struct format *f,
			  char *buf, size_t size, size_t *used,
			  struct sample *const smps[], unsigned cnt)
{
	size_t head = 0, pos, n;
	unsigned i;
	int ret;

	*used = 0;
	if (!cnt)
		return 0;
	if (!w->begun) {
		ret = begin(w, smps[0]->signals ? smps[0]->signals : f->signals,
			    smps[0]->length, time_of(w, smps[0]));
		/* There is no channel: nothing to write. */
		if (ret == -ENODATA)
			return (int)cnt;
		if (ret)
			return ret;
	}
	if (!w->head_printed && w->layout != COMTRADE_PAIR) {
		head = comtrade_writer_head(w, f, NULL, buf, size);
		if (head > size)
			return 0;
	}
	pos = head;
	for (i = 0; i < cnt; i++) {
		n = print_row(w, f, buf + pos, size - pos, smps[i]);
		if (!n)
			break;
		pos += n;
	}
	if (i == 0)
		return 0; /* the head comes again, in a larger buffer */
	w->head_printed = true;
	*used = pos;
	return (int)i;
}

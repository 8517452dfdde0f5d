/* SPDX-License-Identifier: BSD-2-Clause */
/* See scans.h. */
#include "gateway/node/comedi/scans.h"

#include <math.h>
#include <string.h>

#include "util/container_of.h"

/* After so many reads the least delay of them is taken off the times. */
#define LOOKS 256
/* A correction is shorter; the host's clock was set when it goes back further. */
#define CORRECTION_NS UINT64_C(1000000000)

void daq_from_code(const struct daq_scale *s, enum signal_type type, uint32_t code,
		   union signal_data *value, bool *at_limit)
{
	code = MIN(code, s->maxdata);
	if (!s->digital && (code == 0 || code == s->maxdata))
		*at_limit = true;
	if (type == SIGNAL_FLOAT)
		value->f = s->min + (s->max - s->min) * ((double)code / s->maxdata);
	else
		value->i = type == SIGNAL_BOOLEAN ? code != 0 : (int64_t)code;
}

static const char *from_physical(const struct daq_scale *s, double value, uint32_t *code,
				 bool *at_limit)
{
	double at = (value - s->min) / (s->max - s->min) * s->maxdata;

	if (isnan(at))
		return "is not a number";
	if (at < -0.5 || at > s->maxdata + 0.5)
		*at_limit = true;
	*code = at <= 0 ? 0 : at >= s->maxdata ? s->maxdata : (uint32_t)(at + 0.5);
	return NULL;
}

const char *daq_to_code(const struct daq_scale *s, enum signal_type type,
			const union signal_data *value, uint32_t *code, bool *at_limit)
{
	switch (type) {
	case SIGNAL_FLOAT:
		return from_physical(s, value->f, code, at_limit);
	case SIGNAL_BOOLEAN:
		return from_physical(s, value->i ? 1 : 0, code, at_limit);
	case SIGNAL_INTEGER:
		if (value->i < 0 || value->i > (int64_t)s->maxdata)
			return "is no code of the channel";
		*code = (uint32_t)value->i;
		return NULL;
	case SIGNAL_COMPLEX:
		break;
	}
	return "is complex";
}

uint32_t daq_code_get(const char *at, bool wide)
{
	uint32_t code = 0;
	uint16_t narrow;

	if (wide) {
		memcpy(&code, at, sizeof(code));
		return code;
	}
	memcpy(&narrow, at, sizeof(narrow));
	return narrow;
}

void daq_code_put(char *at, bool wide, uint32_t code)
{
	uint16_t narrow = (uint16_t)code;

	if (wide)
		memcpy(at, &code, sizeof(code));
	else
		memcpy(at, &narrow, sizeof(narrow));
}

void daq_clock_start(struct daq_clock *c, double period_ns, uint64_t now_ns)
{
	*c = (struct daq_clock){ .begin_ns = now_ns, .period_ns = period_ns,
				 .least_ns = UINT64_MAX, .told_ns = c->told_ns };
}

static uint64_t time_of(const struct daq_clock *c, uint64_t scan)
{
	return c->begin_ns + (uint64_t)((double)scan * c->period_ns);
}

void daq_clock_advance(struct daq_clock *c, uint64_t count, uint64_t now_ns)
{
	uint64_t newest;

	c->scans += count;
	newest = time_of(c, c->scans);
	if (newest > now_ns) {
		c->begin_ns -= newest - now_ns;
		c->least_ns = UINT64_MAX;
		c->looks = 0;
		return;
	}
	c->least_ns = MIN(c->least_ns, now_ns - newest);
	if (++c->looks < LOOKS)
		return;
	c->begin_ns += c->least_ns;
	c->least_ns = UINT64_MAX;
	c->looks = 0;
}

uint64_t daq_clock_time(struct daq_clock *c, uint64_t back)
{
	uint64_t ns = time_of(c, c->scans - MIN(back, c->scans));

	if (ns <= c->told_ns && c->told_ns - ns < CORRECTION_NS)
		ns = c->told_ns + 1;
	c->told_ns = ns;
	return ns;
}

uint64_t daq_clock_missing(const struct daq_clock *c, uint64_t now_ns)
{
	uint64_t newest = time_of(c, c->scans);

	if (now_ns <= newest)
		return 1;
	return MAX((uint64_t)((double)(now_ns - newest) / c->period_ns), UINT64_C(1));
}

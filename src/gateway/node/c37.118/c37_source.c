/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_source.h. */
#include "gateway/node/c37.118/c37_source.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

#define SECOND INT64_C(1000000000)
/* A sample may come before its time by this part of a period: clocks are not exact. */
#define EARLY 0.3

/* ---- signals ---- */

static bool bind_input(struct c37_input *in, const struct signal_list *l, const char **missing)
{
	in->index = -1;
	if (!in->signal)
		return true;
	for (unsigned i = 0; l && i < l->count; i++)
		if (!strcmp(l->signals[i].name, in->signal)) {
			in->index = (int)i;
			in->type = l->signals[i].type;
			return true;
		}
	*missing = in->signal;
	return false;
}

static bool bind_channels(struct c37_channel *c, unsigned count, const struct signal_list *l,
			  const char **missing)
{
	for (unsigned i = 0; i < count; i++)
		if (!bind_input(&c[i].input, l, missing))
			return false;
	return true;
}

bool c37_source_bind(struct c37_source *s, const struct signal_list *l, const char **missing)
{
	for (unsigned i = 0; i < s->count; i++) {
		struct c37_pmu *p = &s->pmus[i];

		if (!bind_input(&p->stat, l, missing) || !bind_input(&p->frequency, l, missing) ||
		    !bind_input(&p->rocof, l, missing) ||
		    !bind_channels(p->phasors, p->station.block.phasors, l, missing) ||
		    !bind_channels(p->analogs, p->station.block.analogs, l, missing) ||
		    !bind_channels(p->digitals, p->digital_count, l, missing))
			return false;
	}
	return true;
}

static const union signal_data *find(const struct c37_input *in, const struct sample *s)
{
	return in->index >= 0 && (unsigned)in->index < s->length ? &s->data[in->index] : NULL;
}

static void complex_of(const struct c37_input *in, const struct sample *s, double z[2])
{
	const union signal_data *d = find(in, s);

	z[0] = z[1] = d ? 0 : (double)NAN;
	if (!d)
		return;
	if (in->type == SIGNAL_COMPLEX) {
		z[0] = d->z.re;
		z[1] = d->z.im;
	} else {
		z[0] = in->type == SIGNAL_FLOAT ? d->f : (double)d->i;
	}
}

static double real_of(const struct c37_input *in, const struct sample *s)
{
	double z[2];

	complex_of(in, s, z);
	return z[0];
}

/* ---- frames ---- */

static struct c37_frame head_of(const struct c37_source *s, enum c37_type type, uint8_t version,
				int64_t ns)
{
	struct c37_frame f = { .type = type, .version = version, .idcode = s->idcode,
			       .quality = s->quality };
	/* To the nearest unit, which may be in the next second. */
	int64_t units = (ns % SECOND * s->time_base + SECOND / 2) / SECOND;

	f.soc = (uint32_t)(ns / SECOND + units / s->time_base);
	f.fraction = (uint32_t)(units % s->time_base);
	return f;
}

static void put_text(struct c37_out *out, bool cfg3, const char *text)
{
	c37_put_name(out, cfg3, (struct c37_bytes){ (const uint8_t *)text, strlen(text) });
}

static void put_pmu(struct c37_out *out, const struct c37_pmu *p, bool cfg3)
{
	struct c37_station s = p->station;
	unsigned words = s.block.digitals;

	s.cfg3 = cfg3;
	c37_put_station(out, &s);
	for (unsigned i = 0; i < s.block.phasors; i++)
		put_text(out, cfg3, p->phasors[i].name);
	for (unsigned i = 0; i < s.block.analogs; i++)
		put_text(out, cfg3, p->analogs[i].name);
	for (unsigned i = 0; i < 16 * words; i++)
		put_text(out, cfg3, i < p->digital_count ? p->digitals[i].name : "");
	for (unsigned i = 0; i < s.block.phasors; i++)
		c37_put_phasor_unit(out, cfg3, &p->phasors[i].phasor);
	for (unsigned i = 0; i < s.block.analogs; i++)
		c37_put_analog_unit(out, cfg3, &p->analogs[i].analog);
	for (unsigned w = 0; w < words; w++) {
		struct c37_digital_unit u = { 0 };

		for (unsigned i = 16 * w; i < 16 * w + 16 && i < p->digital_count; i++) {
			u.valid |= (uint16_t)(1u << i % 16);
			u.normal |= (uint16_t)(p->digitals[i].normal << i % 16);
		}
		c37_put_digital_unit(out, &u);
	}
	c37_put_station_end(out, &s);
}

static void put_config(struct c37_out *out, const struct c37_source *s,
		       const struct c37_config *config)
{
	c37_put_config(out, config);
	for (unsigned i = 0; i < s->count; i++)
		put_pmu(out, &s->pmus[i], config->cfg3);
	c37_put_rate(out, s->rate);
}

/* In as many frames as it needs. */
static size_t make_parts(const struct c37_source *s, const struct c37_frame *head,
			 const struct c37_config *config, uint8_t *to, size_t size)
{
	uint8_t *whole = malloc(C37_CONFIG_MAX);
	struct c37_out out;
	size_t len = 0;

	if (!whole)
		return 0;
	c37_begin(&out, whole, C37_CONFIG_MAX, head);
	put_config(&out, s, config);
	if (!out.full)
		len = c37_parts_write(head, (struct c37_bytes){ whole + C37_HEADER_SIZE,
								out.used - C37_HEADER_SIZE },
				      s->part_size ? s->part_size : C37_FRAME_MAX, to, size);
	free(whole);
	return len;
}

size_t c37_source_config(const struct c37_source *s, enum c37_type type, uint8_t version,
			 int64_t ns, uint8_t *to, size_t size)
{
	const struct c37_frame head = head_of(s, type, version, ns);
	const struct c37_config config = { .cfg3 = type == C37_CFG3, .time_base = s->time_base,
					   .stations = s->count };
	struct c37_out out;

	if (config.cfg3)
		return make_parts(s, &head, &config, to, size);
	c37_begin(&out, to, size, &head);
	put_config(&out, s, &config);
	return c37_end(&out);
}

/* A station without a frequency, as a concentrator has it of one that did not come, has no good
 * data. */
static uint16_t stat_of(const struct c37_pmu *p, const struct sample *smp)
{
	double given = p->stat.index >= 0 ? real_of(&p->stat, smp) : 0;
	uint16_t stat = (uint16_t)signal_type_to_integer(given);

	if (!(stat & C37_STAT_ERROR) && isnan(real_of(&p->frequency, smp)))
		stat |= C37_STAT_ABSENT;
	return stat;
}

static void put_values(struct c37_out *out, const struct c37_pmu *p, const struct sample *smp)
{
	const struct c37_block *b = &p->station.block;
	double z[2];

	c37_put_16(out, stat_of(p, smp));
	for (unsigned i = 0; i < b->phasors; i++) {
		complex_of(&p->phasors[i].input, smp, z);
		c37_put_phasor(out, b, &p->phasors[i].phasor, z);
	}
	c37_put_frequency(out, b, real_of(&p->frequency, smp), real_of(&p->rocof, smp));
	for (unsigned i = 0; i < b->analogs; i++)
		c37_put_analog(out, b, &p->analogs[i].analog, real_of(&p->analogs[i].input, smp));
	for (unsigned w = 0; w < b->digitals; w++) {
		uint16_t bits = 0;

		for (unsigned i = 16 * w; i < 16 * w + 16 && i < p->digital_count; i++) {
			double v = real_of(&p->digitals[i].input, smp);

			bits |= (uint16_t)((!isnan(v) && v != 0) << i % 16);
		}
		c37_put_16(out, bits);
	}
}

size_t c37_source_data(const struct c37_source *s, const struct sample *smp, int64_t ns,
		       uint8_t *to, size_t size)
{
	const struct c37_frame head = head_of(s, C37_DATA, C37_VERSION_2011, ns);
	struct c37_out out;

	c37_begin(&out, to, size, &head);
	for (unsigned i = 0; i < s->count; i++)
		put_values(&out, &s->pmus[i], smp);
	return c37_end(&out);
}

static size_t make_header(const struct c37_source *s, uint8_t version, int64_t ns, uint8_t *to,
			  size_t size)
{
	const struct c37_frame head = head_of(s, C37_HEADER, version, ns);
	struct c37_out out;

	c37_begin(&out, to, size, &head);
	c37_put_bytes(&out, s->header, strlen(s->header));
	return c37_end(&out);
}

struct c37_answer c37_source_answer(const struct c37_source *s, const struct c37_frame *f,
				    bool sends, int64_t ns, uint8_t *to, size_t size)
{
	struct c37_answer a = { .known = true, .sends = sends };

	if (f->type != C37_COMMAND || f->idcode != s->idcode)
		return (struct c37_answer){ 0 };
	switch (c37_command_of(f)) {
	case C37_DATA_OFF:
		a.sends = false;
		break;
	case C37_DATA_ON:
		a.sends = true;
		break;
	case C37_SEND_HEADER:
		a.len = make_header(s, f->version, ns, to, size);
		break;
	case C37_SEND_CFG1:
		a.len = c37_source_config(s, C37_CFG1, f->version, ns, to, size);
		break;
	case C37_SEND_CFG2:
		a.len = c37_source_config(s, C37_CFG2, f->version, ns, to, size);
		break;
	case C37_SEND_CFG3:
		a.len = c37_source_config(s, C37_CFG3, C37_VERSION_2011, ns, to, size);
		break;
	default:
		a.known = false;
	}
	return a;
}

/* ---- rate ---- */

/*
 * Time that passes is credit, and a frame costs a period of it. Credit for two frames can be saved,
 * so that a sample that was late does not cost the next one its place.
 */
bool c37_gate_admits(struct c37_gate *g, double period_ns, int64_t ns)
{
	if (!g->began)
		g->credit_ns = period_ns;
	else if (ns > g->last_ns)
		g->credit_ns = fmin(g->credit_ns + (double)(ns - g->last_ns), 2 * period_ns);
	g->began = true;
	g->last_ns = ns;
	if (g->credit_ns < period_ns * (1 - EARLY))
		return false;
	g->credit_ns -= period_ns;
	return true;
}

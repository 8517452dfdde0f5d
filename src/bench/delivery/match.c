/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading of recordings, and matching of samples; see match.h. */
#include "bench/delivery/match.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/statistics.h"
#include "gateway/part/reader.h"
#include "gateway/sample/signals.h"
#include "gateway/sample/time.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/order.h"

#define VALUES_MAX 65536
#define READ_BYTES (1 << 20)
#define DIFFERENCES_SHOWN 5

static int make_room(void **array, size_t *capacity, size_t needed, size_t size)
{
	size_t more = MAX(*capacity * 2, MAX(needed, (size_t)1024));
	void *p;

	if (needed <= *capacity)
		return 0;
	p = reallocarray(*array, more, size);
	if (!p)
		return -ENOMEM;
	*array = p;
	*capacity = more;
	return 0;
}

int delivery_samples_add(struct delivery_samples *l, const struct sample *s)
{
	void *samples = l->samples, *values = l->values;
	int ret = make_room(&samples, &l->capacity, l->count + 1,
			    sizeof(*l->samples));

	l->samples = samples;
	if (!ret)
		ret = make_room(&values, &l->value_capacity,
				l->value_count + s->length, sizeof(*l->values));
	l->values = values;
	if (ret)
		return ret;
	l->samples[l->count] = (struct delivery_sample){
		/* Without sequence numbers samples are matched by position. */
		.sequence = s->flags & SAMPLE_HAS_SEQUENCE ? s->sequence :
							     l->count,
		.position = l->count,
		.origin = s->origin,
		.received = s->received,
		.flags = s->flags,
		.length = s->length,
		.data = l->value_count,
		.match = DELIVERY_NONE,
	};
	if (s->length)
		memcpy(l->values + l->value_count, s->data,
		       s->length * sizeof(s->data[0]));
	l->value_count += s->length;
	l->count++;
	return 0;
}

void delivery_samples_free(struct delivery_samples *l)
{
	free(l->samples);
	free(l->values);
	signal_list_put(l->signals);
}

static int by_sequence(const void *a, const void *b)
{
	const struct delivery_sample *x = a, *y = b;

	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return x->position < y->position ? -1 : x->position > y->position;
}

static bool close_enough(double a, double b, double epsilon)
{
	return fabs(a - b) <= epsilon || (isnan(a) && isnan(b));
}

static bool same_value(union signal_data a, union signal_data b,
		       enum signal_type type, double epsilon)
{
	if (a.bits == b.bits)
		return true;
	switch (type) {
	case SIGNAL_FLOAT:
		return (isnan(a.f) && isnan(b.f)) ||
		       (epsilon > 0 && close_enough(a.f, b.f, epsilon));
	case SIGNAL_COMPLEX:
		return epsilon > 0 &&
		       close_enough((double)a.z.re, (double)b.z.re, epsilon) &&
		       close_enough((double)a.z.im, (double)b.z.im, epsilon);
	case SIGNAL_INTEGER:
	case SIGNAL_BOOLEAN:
		break;
	}
	return false;
}

struct match {
	const struct delivery_samples *sent, *received;
	const struct delivery_options *o;
	struct delivery_result *r;
	unsigned shown;
	int64_t *service_ns;   /* of each pair for which it is known */
};

static bool shall_show(struct match *m)
{
	return m->o->differences && m->shown++ < DIFFERENCES_SHOWN;
}

static bool same_values(struct match *m, const struct delivery_sample *a,
			const struct delivery_sample *b)
{
	const struct signal_list *l = m->sent->signals;

	if (a->length != b->length) {
		if (shall_show(m))
			fprintf(m->o->differences,
				"sequence %ju: %u values were sent, %u received\n",
				(uintmax_t)a->sequence, a->length, b->length);
		return false;
	}
	for (unsigned i = 0; i < a->length; i++) {
		union signal_data x = m->sent->values[a->data + i];
		union signal_data y = m->received->values[b->data + i];
		enum signal_type type =
			l && i < l->count ? l->signals[i].type : SIGNAL_FLOAT;

		if (same_value(x, y, type, m->o->epsilon))
			continue;
		if (!shall_show(m))
			return false;
		if (type == SIGNAL_FLOAT)
			fprintf(m->o->differences,
				"sequence %ju: value %u was sent as %.17g, received as %.17g\n",
				(uintmax_t)a->sequence, i, x.f, y.f);
		else
			fprintf(m->o->differences,
				"sequence %ju: value %u was sent as %#jx, received as %#jx\n",
				(uintmax_t)a->sequence, i, (uintmax_t)x.bits,
				(uintmax_t)y.bits);
		return false;
	}
	return true;
}

static bool same_origin(struct match *m, const struct delivery_sample *a,
			const struct delivery_sample *b)
{
	char sent[SAMPLE_TIME_TEXT], received[SAMPLE_TIME_TEXT];

	if (!((a->flags ^ b->flags) & SAMPLE_HAS_ORIGIN) &&
	    (!(a->flags & SAMPLE_HAS_ORIGIN) ||
	     (a->origin.tv_sec == b->origin.tv_sec &&
	      a->origin.tv_nsec == b->origin.tv_nsec)))
		return true;
	if (shall_show(m))
		fprintf(m->o->differences,
			"sequence %ju: origin was sent as %s, received as %s\n",
			(uintmax_t)a->sequence, sample_time_print(sent, a->origin),
			sample_time_print(received, b->origin));
	return false;
}

static void compare_pair(struct match *m, const struct delivery_sample *a,
			 const struct delivery_sample *b)
{
	m->r->matched++;
	if (a->flags & b->flags & SAMPLE_HAS_RECEIVED)
		m->service_ns[m->r->service_count++] =
			sample_time_since_ns(b->received, a->received);
	if (!m->o->ignore_values && !same_values(m, a, b))
		m->r->values_differ++;
	if (!m->o->ignore_times && !same_origin(m, a, b))
		m->r->times_differ++;
}

/* Matches two sorted lists. `first`: the lowest received number. */
static void merge(struct match *m)
{
	struct delivery_sample *a = m->sent->samples;
	const struct delivery_sample *b = m->received->samples;
	const struct delivery_sample *a_end = a + m->sent->count;
	const struct delivery_sample *b_end = b + m->received->count;
	uint64_t first = m->received->count ? b->sequence : UINT64_MAX;

	while (a < a_end || b < b_end) {
		if (b == b_end || (a < a_end && a->sequence < b->sequence)) {
			if (a->sequence < first)
				m->r->before++;
			else
				m->r->lost++;
			a++;
			continue;
		}
		if (a == a_end || b->sequence < a->sequence) {
		/* The same number as that of the sample before: a duplicate. */
			if (b > m->received->samples &&
			    b[-1].sequence == b->sequence)
				m->r->duplicates++;
			else
				m->r->unknown++;
			b++;
			continue;
		}
		a->match = (size_t)(b - m->received->samples);
		compare_pair(m, a, b);
		a++;
		b++;
	}
}

/* Computes the percentiles; sorts `ns`. */
static void percentiles(int64_t ns[], size_t n, int64_t out[5])
{
	static const double percents[] = { 0, 50, 99, 99.9, 100 };

	order_int64(ns, n);
	for (size_t i = 0; n && i < ARRAY_SIZE(percents); i++)
		out[i] = statistics_percentile(ns, n, percents[i]);
}

static int measure_latency(const struct delivery_samples *l,
			   struct delivery_result *r)
{
	const uint32_t both = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED;
	int64_t *ns = malloc((l->count + 1) * sizeof(*ns));
	size_t n = 0;

	if (!ns)
		return -ENOMEM;
	for (size_t i = 0; i < l->count; i++) {
		const struct delivery_sample *s = &l->samples[i];

		if ((s->flags & both) == both)
			ns[n++] = sample_time_since_ns(s->received, s->origin);
	}
	r->latency_count = n;
	percentiles(ns, n, r->latency_ns);
	free(ns);
	return 0;
}

static void number_by_position(struct delivery_samples *l)
{
	for (size_t i = 0; i < l->count; i++)
		l->samples[i].sequence = i;
}

int delivery_match(struct delivery_samples *sent, struct delivery_samples *received,
		  const struct delivery_options *o, struct delivery_result *r)
{
	struct match m = { sent, received, o, r, 0, NULL };
	uint64_t highest = 0;

	memset(r, 0, sizeof(*r));
	m.service_ns = malloc((sent->count + 1) * sizeof(*m.service_ns));
	if (!m.service_ns)
		return -ENOMEM;
	r->sent = sent->count;
	r->received = received->count;
	if (o->ignore_sequence) {
		number_by_position(sent);
		number_by_position(received);
	}
	for (size_t i = 0; i < received->count; i++) {
		uint64_t sequence = received->samples[i].sequence;

		r->out_of_order += i > 0 && sequence < highest;
		highest = MAX(highest, sequence);
	}
	/* glibc's qsort() is a merge sort, which is fast on nearly sorted arrays. */
	if (sent->count)
		qsort(sent->samples, sent->count, sizeof(*sent->samples),
		      by_sequence);
	if (received->count) /* an empty list has no array to sort */
		qsort(received->samples, received->count,
		      sizeof(*received->samples), by_sequence);
	merge(&m);
	percentiles(m.service_ns, r->service_count, r->service_ns);
	free(m.service_ns);
	return measure_latency(received, r);
}

/* ---- recordings ---- */

const char *delivery_format_by_name(const char *path)
{
	static const struct { const char *end, *format; } known[] = {
		{ ".csv", "csv" }, { ".tsv", "tsv" }, { ".json", "json" },
		{ ".bin", "busbar.binary" },
	};
	const char *dot = strrchr(path, '.');

	for (size_t i = 0; dot && i < ARRAY_SIZE(known); i++)
		if (!strcmp(dot, known[i].end))
			return known[i].format;
	return "villas.human";
}

/* The configuration text of a format, so that all its spellings are accepted; NULL: no memory. */
static char *text_of(const struct delivery_file *file)
{
	json_t *name = json_string(file->format), *types = json_string(file->types ?: "1f");
	char *quoted = json_dumps(name, JSON_ENCODE_ANY);
	char *list = json_dumps(types, JSON_ENCODE_ANY), *text = NULL;

	if (quoted && list &&
	    asprintf(&text, "{ \"format\": %s, \"signals\": %s }",
		     file->format[0] == '{' ? file->format : quoted, list) < 0)
		text = NULL;
	json_decref(name);
	json_decref(types);
	free(quoted);
	free(list);
	return text;
}

int delivery_open(const struct delivery_file *file, struct delivery_reading *r)
{
	char *text = text_of(file);
	struct signal_list *signals = NULL;
	json_t *all;
	int ret = -ENOMEM;

	*r = (struct delivery_reading){ 0 };
	if (text)
		ret = config_load_text("command line", text, strlen(text), &r->config);
	free(text);
	if (ret)
		return ret;
	all = config_root(r->config);
	if (file->types)
		ret = signal_list_parse(&signals, r->config, all, "signals");
	if (!ret)
		ret = format_new(&r->format, r->config, json_object_get(all, "format"), NULL,
				 signals);
	signal_list_put(signals);
	if (!ret && !r->format->type->scan) {
		ret = log_fail(-EINVAL, "format '%s' cannot be read", r->format->type->name);
		format_destroy(r->format);
	}
	if (ret)
		config_destroy(r->config);
	return ret;
}

int delivery_read(struct delivery_reading *r, const char *path,
		  int (*take)(void *data, struct sample *s), void *data)
{
	struct sample *smp = calloc(1, sizeof(*smp) + VALUES_MAX * sizeof(smp->data[0]));
	struct reader reader;
	int ret;

	if (!smp)
		return -ENOMEM;
	smp->capacity = VALUES_MAX;
	ret = reader_open(&reader, path, r->format, READ_BYTES);
	if (!ret) {
		while ((ret = reader_next(&reader, &smp, 1, true)) > 0) {
			ret = take(data, smp);
			if (ret)
				break;
		}
		r->malformed = reader.malformed;
		reader_close(&reader);
	}
	free(smp);
	return ret;
}

void delivery_close(struct delivery_reading *r)
{
	format_destroy(r->format);
	config_destroy(r->config);
}

/* One word that differs when a bit of the values or their number does, but for chance. */
static uint64_t digest(const struct sample *s)
{
	uint64_t h = s->length + UINT64_C(0x9e3779b97f4a7c15);

	for (unsigned i = 0; i < s->length; i++) {
		h = (h ^ s->data[i].bits) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	return h;
}

static int add_digest(void *samples, struct sample *s)
{
	s->data[0].bits = digest(s);
	s->length = 1;
	return delivery_samples_add(samples, s);
}

static int add_values(void *samples, struct sample *s)
{
	return delivery_samples_add(samples, s);
}

int delivery_load(const struct delivery_file *file, struct delivery_samples *out)
{
	struct delivery_reading r;
	int ret = delivery_open(file, &r);

	if (ret)
		return ret;
	ret = delivery_read(&r, file->path, file->digest ? add_digest : add_values, out);
	if (!ret && r.malformed)
		ret = log_fail(-EBADMSG, "%s: %ju malformed lines", file->path,
			       (uintmax_t)r.malformed);
	else if (ret == -ENOMEM)
		log_error("no memory for the samples of '%s'", file->path);
	if (!file->digest)
		out->signals = signal_list_get(r.format->signals);
	delivery_close(&r);
	return ret;
}

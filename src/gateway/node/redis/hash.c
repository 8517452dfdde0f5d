/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of mode `hash`: each signal is a field by its name, with its value as text. */
#define LOG_ROOM "gateway/redis"
#include <errno.h>
#include <stdio.h>

#include "gateway/format/part/text.h"
#include "gateway/node/redis/redis.h"
#include "gateway/sample/signals.h"
#include "util/num.h"

#define VALUE_MAX (2 * NUM_DOUBLE_MAX + 2)
#define NAME_MAX_BYTES 32

static char *print_complex(char *at, const union signal_data *v)
{
	char imag[NUM_DOUBLE_MAX];
	size_t len = (size_t)(num_print_double(imag, (double)v->z.im) - imag);

	at = num_print_double(at, (double)v->z.re);
	if (*imag != '-')
		*at++ = '+';
	memcpy(at, imag, len);
	at += len;
	*at++ = 'i';
	return at;
}

static char *print_value(char *at, enum signal_type type, const union signal_data *v)
{
	switch (type) {
	case SIGNAL_INTEGER:
		return num_print_i64(at, v->i);
	case SIGNAL_BOOLEAN:
		*at = v->i ? '1' : '0';
		return at + 1;
	case SIGNAL_COMPLEX:
		return print_complex(at, v);
	default:
		return num_print_double(at, v->f);
	}
}

static struct redis_word name_of(const struct signal_list *l, unsigned i, char buf[NAME_MAX_BYTES])
{
	if (l && i < l->count)
		return redis_word(l->signals[i].name);
	snprintf(buf, NAME_MAX_BYTES, "signal%u", i);
	return redis_word(buf);
}

int redis_hash_print(struct outside *o, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt)
{
	struct redis_node *m = redis_of(o);
	const struct sample *s = smps[0];
	const struct signal_list *l = s->signals ? s->signals : o->node->out.signals;
	const char *end = buf + size;
	char *at;

	if (!s->length)
		return outside_unprintable(o, -EBADMSG, "a sample has no values");
	at = redis_print_count(buf, end, '*', 2 + 2 * (size_t)s->length);
	at = redis_print_word(at, end, redis_word("HSET"));
	at = redis_print_word(at, end, redis_word(m->key));
	for (unsigned i = 0; i < s->length && at; i++) {
		char value[VALUE_MAX], name[NAME_MAX_BYTES];
		size_t len = (size_t)(print_value(value, text_type(l, i), &s->data[i]) - value);

		at = redis_print_word(at, end, name_of(l, i, name));
		at = redis_print_word(at, end, (struct redis_word){ value, len });
	}
	if (!at)
		return 0;
	*used = (size_t)(at - buf);
	return 1;
}

/* One field and its value; false: it cannot be read, which is counted. `seen`: a bit for each
 * signal that has a value. */
static bool take_field(struct redis_node *m, const struct redis_value *name,
		       const struct redis_value *value, unsigned guess, struct sample *s,
		       uint8_t *seen)
{
	const struct signal_list *l = m->outside.node->in.signals;
	char shown[40];
	long i;

	if (name->type != REDIS_TEXT || value->type != REDIS_TEXT) {
		outside_malformed(&m->outside, "the hash has fields without sense");
		return false;
	}
	i = text_find_signal(l, (struct text){ name->text, name->text + name->len }, guess);
	if (i < 0 || i >= (long)s->capacity || i >= (long)l->count)
		return true;
	if (!text_scan_value((struct text){ value->text, value->text + value->len },
			     l->signals[i].type, &s->data[i])) {
		outside_malformed(&m->outside, "field %s: \"%s\" %s", l->signals[i].name,
				  redis_value_shown(value, shown, sizeof(shown)),
				  text_value_problem(l->signals[i].type));
		return false;
	}
	seen[i / 8] |= (uint8_t)(1 << i % 8);
	return true;
}

static bool fill(struct redis_node *m, const struct redis_value *v, struct sample *s)
{
	struct signal_list *l = m->outside.node->in.signals;
	uint8_t seen[SIGNALS_MAX / 8 + 1] = { 0 };

	for (size_t i = 0; i + 1 < v->len; i += 2)
		if (!take_field(m, v->items[i], v->items[i + 1], (unsigned)(i / 2), s, seen))
			return false;
	for (unsigned i = 0; i < l->count; i++)
		if (!(seen[i / 8] & 1 << i % 8)) {
			outside_malformed(&m->outside, "the hash has no field %s",
					  l->signals[i].name);
			return false;
		}
	s->signals = l;
	s->length = l->count;
	s->flags = SAMPLE_HAS_DATA;
	return true;
}

void redis_hash_received(struct redis_node *m, const struct redis_value *v)
{
	struct sample *s;

	if (outside_samples_take(&m->outside, &s, 1))
		outside_samples_give(&m->outside, &s, 1, fill(m, v, s));
}

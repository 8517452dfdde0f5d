/* SPDX-License-Identifier: BSD-2-Clause */
/* Values to bits and back; see places.h. */
#include "gateway/node/can/places.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

/* ---- bits ---- */

/* The place of a big endian value, counted from the most significant bit of the first byte on. */
static unsigned from_top(unsigned start)
{
	return start / 8 * 8 + 7 - start % 8;
}

static uint64_t get_little(const uint8_t data[], unsigned at, unsigned length)
{
	uint64_t v = 0;

	for (unsigned got = 0, n; got < length; got += n, at += n) {
		n = MIN(8 - at % 8, length - got);
		v |= (uint64_t)(data[at / 8] >> at % 8 & ((1u << n) - 1)) << got;
	}
	return v;
}

static uint64_t get_big(const uint8_t data[], unsigned at, unsigned length)
{
	uint64_t v = 0;

	for (unsigned n; length; length -= n, at += n) {
		n = MIN(8 - at % 8, length);
		v = v << n | (data[at / 8] >> (8 - at % 8 - n) & ((1u << n) - 1));
	}
	return v;
}

uint64_t can_bits_get(const uint8_t data[], unsigned start, unsigned length, bool big)
{
	assert(length && length <= CAN_VALUE_BITS);
	return big ? get_big(data, from_top(start), length) : get_little(data, start, length);
}

/* The `n` lowest bits of `v` into a byte, above its `shift` lowest ones. */
static void put(uint8_t *byte, unsigned shift, unsigned n, uint64_t v)
{
	unsigned mask = ((1u << n) - 1) << shift;

	*byte = (uint8_t)((*byte & ~mask) | ((unsigned)v << shift & mask));
}

static void set_little(uint8_t data[], unsigned at, unsigned length, uint64_t v)
{
	for (unsigned n; length; length -= n, at += n, v >>= n) {
		n = MIN(8 - at % 8, length);
		put(&data[at / 8], at % 8, n, v);
	}
}

static void set_big(uint8_t data[], unsigned at, unsigned length, uint64_t v)
{
	for (unsigned n; length; length -= n, at += n) {
		n = MIN(8 - at % 8, length);
		put(&data[at / 8], 8 - at % 8 - n, n, v >> (length - n));
	}
}

void can_bits_set(uint8_t data[], unsigned start, unsigned length, bool big, uint64_t bits)
{
	assert(length && length <= CAN_VALUE_BITS);
	if (big)
		set_big(data, from_top(start), length, bits);
	else
		set_little(data, start, length, bits);
}

unsigned can_bits_reach(unsigned start, unsigned length, bool big)
{
	return ((big ? from_top(start) : start) + length + 7) / 8;
}

/* ---- values ---- */

static uint64_t get(const struct can_map *m, const uint8_t data[])
{
	return can_bits_get(data, m->start, m->length, m->big);
}

static void set(const struct can_map *m, uint8_t data[], uint64_t bits)
{
	can_bits_set(data, m->start, m->length, m->big, bits);
}

static int64_t extend(const struct can_map *m, uint64_t bits)
{
	unsigned unused = CAN_VALUE_BITS - m->length;

	return m->is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

static double float_of(uint64_t bits)
{
	uint32_t low = (uint32_t)bits;
	float f;

	memcpy(&f, &low, sizeof(f));
	return (double)f;
}

static uint64_t bits_of_float(double v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static double read_real(const struct can_map *m, uint64_t bits)
{
	union signal_data v = { .bits = bits };

	return m->length == 32 ? float_of(bits) : v.f;
}

/* The place of the imaginary part is 32 bits behind that of the real one, in both orders. */
static void read_complex(const struct can_map *m, const uint8_t data[], union signal_data *out)
{
	out->z.re = (float)float_of(can_bits_get(data, m->start, 32, m->big));
	out->z.im = (float)float_of(can_bits_get(data, m->start + 32, 32, m->big));
}

static bool is_inside(const struct can_map *m, double v)
{
	return !(v < m->min || v > m->max);
}

bool can_value_read(const struct can_map *m, const uint8_t data[], union signal_data *out)
{
	uint64_t bits;

	if (m->kind == CAN_COMPLEX) {
		read_complex(m, data, out);
		return true;
	}
	bits = get(m, data);
	switch (m->kind) {
	case CAN_INTEGER:
		out->i = extend(m, bits);
		return is_inside(m, (double)out->i);
	case CAN_SCALED:
		out->f = (m->is_signed ? (double)extend(m, bits) : (double)bits) * m->factor + m->offset;
		return is_inside(m, out->f);
	case CAN_REAL:
		out->f = read_real(m, bits) * m->factor + m->offset;
		return is_inside(m, out->f);
	case CAN_BOOLEAN:
	case CAN_COMPLEX:
		break;
	}
	out->i = bits != 0;
	return true;
}

/* The greatest and the smallest integer that the bits can hold. */
static uint64_t greatest(const struct can_map *m)
{
	return UINT64_MAX >> (CAN_VALUE_BITS - m->length) >> m->is_signed;
}

static int64_t smallest(const struct can_map *m)
{
	return m->is_signed ? -1 - (int64_t)greatest(m) : 0;
}

static enum can_written write_integer(const struct can_map *m, int64_t v, uint8_t data[])
{
	int64_t to = v;

	/* An unsigned field of 64 bits can hold every pattern, so nothing is clipped. */
	if (m->is_signed || m->length < CAN_VALUE_BITS) {
		to = MAX(to, smallest(m));
		to = to > 0 && (uint64_t)to > greatest(m) ? (int64_t)greatest(m) : to;
	}
	set(m, data, (uint64_t)to);
	return to == v ? CAN_WRITTEN : CAN_CLIPPED;
}

/* 2 to the number of bits is exact, the greatest integer need not be. */
static enum can_written write_rounded(const struct can_map *m, double v, uint8_t data[])
{
	double end = ldexp(1, (int)(m->length - m->is_signed));
	bool low, high;

	v = round(v);
	low = v < (m->is_signed ? -end : 0);
	high = v >= end;
	if (low || high)
		set(m, data, low ? (uint64_t)smallest(m) : greatest(m));
	else
		set(m, data, v < 0 ? (uint64_t)(int64_t)v : (uint64_t)v);
	return low || high ? CAN_CLIPPED : CAN_WRITTEN;
}

static enum can_written write_real(const struct can_map *m, double v, uint8_t data[])
{
	const union signal_data d = { .f = v };
	bool clipped = m->length == 32 && isfinite(v) && fabs(v) > (double)FLT_MAX;

	if (clipped)
		v = copysign((double)FLT_MAX, v);
	set(m, data, m->length == 32 ? bits_of_float(v) : d.bits);
	return clipped ? CAN_CLIPPED : CAN_WRITTEN;
}

static enum can_written write_complex(const struct can_map *m, enum signal_type type,
				      const union signal_data *v, uint8_t data[])
{
	bool is = type == SIGNAL_COMPLEX;
	double re = is ? (double)v->z.re : type == SIGNAL_FLOAT ? v->f : (double)v->i;

	can_bits_set(data, m->start, 32, m->big, bits_of_float(re));
	can_bits_set(data, m->start + 32, 32, m->big, bits_of_float(is ? (double)v->z.im : 0));
	return CAN_WRITTEN;
}

static enum can_written write_limited(const struct can_map *m, double v, uint8_t data[])
{
	double to = (v < m->min ? m->min : v > m->max ? m->max : v);
	double raw = m->kind == CAN_INTEGER ? to : (to - m->offset) / m->factor;
	enum can_written w = m->kind == CAN_REAL ? write_real(m, raw, data) :
						   write_rounded(m, raw, data);

	return isnan(to) || to == v ? w : CAN_CLIPPED;
}

enum can_written can_value_write(const struct can_map *m, enum signal_type type,
				 const union signal_data *v, uint8_t data[])
{
	if (m->kind == CAN_COMPLEX)
		return write_complex(m, type, v, data);
	if (type == SIGNAL_COMPLEX)
		return CAN_NO_NUMBER;
	if (type == SIGNAL_FLOAT && isnan(v->f) && m->kind != CAN_REAL)
		return CAN_NO_NUMBER;
	if (m->kind == CAN_BOOLEAN) {
		set(m, data, type == SIGNAL_FLOAT ? v->f != 0 : v->i != 0);
		return CAN_WRITTEN;
	}
	/* Without a detour by a double, which has not all integers. */
	if (m->kind == CAN_INTEGER && type != SIGNAL_FLOAT && is_inside(m, (double)v->i))
		return write_integer(m, v->i, data);
	return write_limited(m, type == SIGNAL_FLOAT ? v->f : (double)v->i, data);
}

/* ---- messages ---- */

static int compare(const void *a, const void *b)
{
	const struct can_map *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	if (!x->mux.length != !y->mux.length)
		return x->mux.length ? 1 : -1;
	if (x->mux.length && x->mux.value != y->mux.value)
		return x->mux.value < y->mux.value ? -1 : 1;
	return x->signal < y->signal ? -1 : x->signal > y->signal;
}

/* Frames of CAN FD have only some lengths above 8. */
static unsigned next_length(unsigned len)
{
	static const uint8_t steps[] = { 12, 16, 20, 24, 32, 48, 64 };

	if (len <= CAN_MAX_DLEN)
		return len;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		if (len <= steps[i])
			return steps[i];
	return CANFD_MAX_DLEN;
}

static bool is_of(const struct can_message *msg, const struct can_map *m)
{
	return msg->id == m->id && !msg->mux.length == !m->mux.length &&
	       (!m->mux.length || msg->mux.value == m->mux.value);
}

static struct can_message new_message(const struct can_map *m, unsigned first)
{
	struct can_message msg = { .id = m->id, .mux = m->mux, .first = first };

	if (m->mux.length)
		msg.reach = can_bits_reach(m->mux.start, m->mux.length, m->mux.big);
	msg.length = msg.reach;
	return msg;
}

/* Gives the messages of a multiplexor's values the signals that are always there. */
static void share(struct can_message list[], unsigned count)
{
	struct can_message *always = NULL;

	for (unsigned i = 0; i < count; i++) {
		struct can_message *m = &list[i];

		if (!m->mux.length)
			always = m;
		if (!m->mux.length || !always || always->id != m->id)
			continue;
		always->has_values = true;
		m->always_first = always->first;
		m->always_count = always->count;
		m->length = MAX(m->length, always->length);
	}
}

unsigned can_messages_make(struct can_map maps[], unsigned count, bool fd,
			   struct can_message out[])
{
	struct can_message *at = NULL;
	unsigned n = 0;

	qsort(maps, count, sizeof(*maps), compare);
	for (unsigned i = 0; i < count; i++) {
		const struct can_map *m = &maps[i];

		if (!at || !is_of(at, m)) {
			at = &out[n++];
			*at = new_message(m, i);
		}
		at->count++;
		at->reach = MAX(at->reach, can_bits_reach(m->start, m->length, m->big));
		at->length = MAX(at->length, MAX(at->reach, m->frame_length));
	}
	share(out, n);
	for (unsigned i = 0; fd && i < n; i++)
		out[i].length = next_length(out[i].length);
	return n;
}

const struct can_map *can_find_overlap(const struct can_map maps[], unsigned count)
{
	uint8_t used[CANFD_MAX_DLEN], always[CANFD_MAX_DLEN], own[CANFD_MAX_DLEN];

	for (unsigned i = 0; i < count; i++) {
		const struct can_map *m = &maps[i];

		if (!i || m->id != maps[i - 1].id) {
			memset(used, 0, sizeof(used));
			memset(always, 0, sizeof(always));
		}
		/* Signals of other values of a multiplexor may share their bits, but not with it. */
		if (m->mux.length && (!i || m->id != maps[i - 1].id || !maps[i - 1].mux.length ||
				      m->mux.value != maps[i - 1].mux.value)) {
			memcpy(used, always, sizeof(used));
			can_bits_set(used, m->mux.start, m->mux.length, m->mux.big, UINT64_MAX);
		}
		memset(own, 0, sizeof(own));
		can_bits_set(own, m->start, m->length, m->big, UINT64_MAX);
		for (unsigned k = 0; k < sizeof(own); k++) {
			if (own[k] & used[k])
				return m;
			used[k] |= own[k];
		}
		if (!m->mux.length)
			memcpy(always, used, sizeof(always));
	}
	return NULL;
}

const struct can_message *can_message_find(const struct can_message messages[], unsigned count,
					   uint32_t id)
{
	unsigned low = 0, high = count;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (messages[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < count && messages[low].id == id ? &messages[low] : NULL;
}

/* ---- frames ---- */

const char *can_frame_decode(const void *bytes, size_t size, struct can_received *r)
{
	uint32_t id;
	uint8_t len;

	/* struct can_frame and struct canfd_frame have the same head. */
	static_assert(offsetof(struct can_frame, data) == offsetof(struct canfd_frame, data), "head");
	static_assert(offsetof(struct can_frame, len) == offsetof(struct canfd_frame, len), "head");
	if (size != CAN_MTU && size != CANFD_MTU)
		return "it has neither the size of a frame nor that of one of CAN FD";
	memcpy(&id, bytes, sizeof(id));
	memcpy(&len, (const uint8_t *)bytes + offsetof(struct canfd_frame, len), 1);
	if (len > (size == CAN_MTU ? CAN_MAX_DLEN : CANFD_MAX_DLEN))
		return "it has more bytes than are possible";
	*r = (struct can_received){
		.error = id & CAN_ERR_FLAG,
		.remote = id & CAN_RTR_FLAG,
		.len = len,
		.data = (const uint8_t *)bytes + offsetof(struct canfd_frame, data),
	};
	r->id = r->error ? id & CAN_ERR_MASK :
		id & CAN_EFF_FLAG ? (id & CAN_EFF_MASK) | CAN_EFF_FLAG : id & CAN_SFF_MASK;
	return NULL;
}

bool can_message_is_there(const struct can_message *msg, const uint8_t data[])
{
	const struct can_switch *s = &msg->mux;

	return !s->length || can_bits_get(data, s->start, s->length, s->big) == s->value;
}

unsigned can_message_read(const struct can_message *msg, const struct can_map maps[],
			  const struct can_received *r, union signal_data values[])
{
	unsigned outside = 0;

	assert(r->len >= msg->reach);
	for (unsigned i = msg->first; i < msg->first + msg->count; i++)
		outside += !can_value_read(&maps[i], r->data, &values[maps[i].signal]);
	return outside;
}

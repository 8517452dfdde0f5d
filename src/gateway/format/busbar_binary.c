/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busbar.binary: everything that a sample holds, 64 bits wide, little-endian.
 * A stream is a row of records of whole multiples of 8 bytes, so that values in a
 * mapped file or a received message can be used where they lie:
 *
 *   sample record               signals record (at the beginning)
 *   0  mark "BBs\1"             0  mark "BBh\1"
 *   4  u32 size of the record   4  u32 size of the record
 *   8  u32 check                8  u32 check
 *   12 u32 flags                12 u32 number of signals
 *   16 u64 sequence             16 u64 zero
 *   24 i64 origin seconds       24 per signal: u8 type, u8 zero, u16 bytes of the
 *   32 i64 received seconds        name, u16 bytes of the unit (0xffff: none),
 *   40 u32 origin nanoseconds      u16 zero; name; unit; zeros up to 8 bytes
 *   44 u32 received nanoseconds
 *   48 u32 number of values
 *   52 u32 hash of their types
 *   56 values, 8 bytes each
 *
 * The flags are those of enum sample_flags, the types those of enum signal_type:
 * neither may ever change. Size and number of values must agree and the check
 * cover the whole record, so that a reader notices damage; it goes on at the next
 * mark. Nothing here is a format of another program.
 */
#include "gateway/format/part/bytes.h"

#include <stdlib.h>

#include "gateway/sample/signals.h"

#define MARK_SAMPLE 0x01734242u  /* "BBs\1" read as little-endian */
#define MARK_SIGNALS 0x01684242u /* "BBh\1" */
#define HEAD_SIZE 16
#define SAMPLE_SIZE 56
#define SIGNALS_SIZE 24
#define SIGNALS_RECORD_MAX (32u << 20)
#define NAME_MAX_BYTES 0xfffe
#define NO_UNIT 0xffff
#define LISTS_MAX 8

static_assert(SAMPLE_HAS_SEQUENCE == 1 && SAMPLE_HAS_ORIGIN == 2 &&
		      SAMPLE_HAS_RECEIVED == 4 && SAMPLE_HAS_DATA == 8 &&
		      SAMPLE_NEW_FRAME == 16 && SAMPLE_NEW_SIMULATION == 32 &&
		      SIGNAL_FLOAT == 0 && SIGNAL_INTEGER == 1 &&
		      SIGNAL_BOOLEAN == 2 && SIGNAL_COMPLEX == 3,
	      "these numbers stand in files");

static const bool swap = BYTES_HOST_IS_BIG;

/* Hash of the types of the first `length` values, for one list at a time. */
struct layout {
	const struct signal_list *signals;
	unsigned length;
	uint32_t hash;
};

struct busbar_binary {
	struct layout written, described, configured;
	/* The last descriptions that came, so that a source that sends its own often
	 * costs nothing; the oldest goes. */
	struct signal_list *lists[LISTS_MAX];
	unsigned oldest;
	/* The one that holds for what follows, NULL for the configured signals. It
	 * holds to the end of the message, or of the stream: what another message
	 * said, perhaps of another source, says nothing of this one. */
	struct signal_list *present;
	size_t left; /* bytes of a message that are still to be scanned */
	/* Kept so that the address in `written` means one list only. */
	struct signal_list *held;
};

/* Of all words of a record but the check itself. */
static uint32_t record_check(const char *at, size_t size)
{
	uint64_t a = 1, b = 0, h;

	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = bytes_get64(at + i, swap);

		if (i == 8)
			word &= ~UINT64_C(0xffffffff);
		a += word;
		b += a;
	}
	h = a ^ (b << 29 | b >> 35);
	h ^= h >> 32;
	return (uint32_t)((h * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t layout_hash(const struct signal_list *signals, unsigned length)
{
	uint32_t hash = 2166136261u;

	for (unsigned i = 0; i < length; i++)
		hash = (hash ^ (uint32_t)text_type(signals, i)) * 16777619u;
	return hash;
}

static inline uint32_t layout_of(struct layout *l,
				 const struct signal_list *signals,
				 unsigned length)
{
	if (unlikely(l->signals != signals || l->length != length || !l->hash)) {
		l->signals = signals;
		l->length = length;
		l->hash = layout_hash(signals, length);
	}
	return l->hash;
}

/* Writing. */

/* A complex value is two numbers of 4 bytes, all others one of 8. */
static void copy_values(char *to, const char *from, unsigned length,
			const struct signal_list *signals)
{
	if (!BYTES_HOST_IS_BIG) {
		memcpy(to, from, 8 * (size_t)length);
		return;
	}
	for (unsigned i = 0; i < length; i++, to += 8, from += 8) {
		if (text_type(signals, i) == SIGNAL_COMPLEX) {
			bytes_put32(to, bytes_get32(from, true), false);
			bytes_put32(to + 4, bytes_get32(from + 4, true), false);
		} else {
			bytes_put64(to, bytes_get64(from, true), false);
		}
	}
}

static uint32_t flags_of(const struct format *f, const struct sample *s)
{
	uint32_t mask = SAMPLE_NEW_FRAME | SAMPLE_NEW_SIMULATION;

	mask |= f->sequence ? SAMPLE_HAS_SEQUENCE : 0;
	mask |= f->ts_origin ? SAMPLE_HAS_ORIGIN : 0;
	mask |= f->ts_received ? SAMPLE_HAS_RECEIVED : 0;
	mask |= f->data ? SAMPLE_HAS_DATA : 0;
	return s->flags & mask;
}

static void put_sample(struct format *f, char *at, const struct sample *s,
		       unsigned length, size_t size)
{
	struct busbar_binary *b = f->private_data;
	const struct signal_list *signals = bytes_signals(f, s);
	uint32_t flags = flags_of(f, s);
	bool origin = flags & SAMPLE_HAS_ORIGIN;
	bool received = flags & SAMPLE_HAS_RECEIVED;

	if (unlikely(signals != b->held)) {
		signal_list_put(b->held);
		b->held = signals ? signal_list_get((struct signal_list *)signals) :
				    NULL;
		b->written.hash = 0;
	}
	bytes_put32(at, MARK_SAMPLE, swap);
	bytes_put32(at + 4, (uint32_t)size, swap);
	bytes_put32(at + 12, flags, swap);
	bytes_put64(at + 16, flags & SAMPLE_HAS_SEQUENCE ? s->sequence : 0, swap);
	bytes_put64(at + 24, origin ? (uint64_t)s->origin.tv_sec : 0, swap);
	bytes_put64(at + 32, received ? (uint64_t)s->received.tv_sec : 0, swap);
	bytes_put32(at + 40, origin ? sample_time_nsec(s->origin) : 0, swap);
	bytes_put32(at + 44, received ? sample_time_nsec(s->received) : 0, swap);
	bytes_put32(at + 48, length, swap);
	bytes_put32(at + 52, layout_of(&b->written, signals, length), swap);
	copy_values(at + SAMPLE_SIZE, (const char *)s->data, length, signals);
	bytes_put32(at + 8, record_check(at, size), swap);
}

static int busbar_print(struct format *f, char *buf, size_t size, size_t *used,
			struct sample *const smps[], unsigned cnt)
{
	size_t at = 0;
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt; i++) {
		unsigned length = bytes_length(f, smps[i]);
		size_t need = SAMPLE_SIZE + 8 * (size_t)length;

		if (length > SIGNALS_MAX && i == 0) {
			text_fail(f, "the sample has %u values, %d are the most",
				  length, SIGNALS_MAX);
			return -E2BIG;
		}
		if (length > SIGNALS_MAX || size - at < need)
			break;
		put_sample(f, buf + at, smps[i], length, need);
		at += need;
	}
	*used = at;
	return (int)i;
}

static size_t entry_size(size_t name, size_t unit)
{
	return (8 + name + unit + 7) & ~(size_t)7;
}

static size_t busbar_header(struct format *f, char *buf, size_t size,
			    const struct signal_list *signals)
{
	unsigned count = signals ? MIN(signals->count, (unsigned)SIGNALS_MAX) : 0;
	size_t need = SIGNALS_SIZE;
	char *at;

	for (unsigned i = 0; i < count; i++) {
		const struct signal *s = &signals->signals[i];

		need += entry_size(strnlen(s->name, NAME_MAX_BYTES),
				   s->unit ? strnlen(s->unit, NAME_MAX_BYTES) : 0);
	}
	if (size < need || need > SIGNALS_RECORD_MAX)
		return need > SIGNALS_RECORD_MAX ? 0 : need;
	memset(buf, 0, need);
	bytes_put32(buf, MARK_SIGNALS, swap);
	bytes_put32(buf + 4, (uint32_t)need, swap);
	bytes_put32(buf + 12, count, swap);
	at = buf + SIGNALS_SIZE;
	for (unsigned i = 0; i < count; i++) {
		const struct signal *s = &signals->signals[i];
		size_t name = strnlen(s->name, NAME_MAX_BYTES);
		size_t unit = s->unit ? strnlen(s->unit, NAME_MAX_BYTES) : 0;

		at[0] = (char)s->type;
		bytes_put16(at + 2, (uint16_t)name, swap);
		bytes_put16(at + 4, s->unit ? (uint16_t)unit : NO_UNIT, swap);
		memcpy(at + 8, s->name, name);
		if (unit)
			memcpy(at + 8 + name, s->unit, unit);
		at += entry_size(name, unit);
	}
	bytes_put32(buf + 8, record_check(buf, need), swap);
	return need;
}

/* Reading. */

/* One entry at *at; NULL end means that it is malformed. */
static const char *take_signal(const char *at, const char *end, struct signal *s)
{
	size_t name, unit, size;
	bool has_unit;

	if (end - at < 8)
		return NULL;
	name = bytes_get16(at + 2, swap);
	has_unit = bytes_get16(at + 4, swap) != NO_UNIT;
	unit = has_unit ? bytes_get16(at + 4, swap) : 0;
	size = entry_size(name, unit);
	if ((size_t)(end - at) < size || (unsigned char)at[0] > SIGNAL_COMPLEX)
		return NULL;
	free(s->name);
	s->type = (enum signal_type)at[0];
	s->name = strndup(at + 8, name);
	s->unit = has_unit ? strndup(at + 8 + name, unit) : NULL;
	return s->name && (!has_unit || s->unit) ? at + size : NULL;
}

/* From a whole record whose check is right; NULL when it is malformed. */
static struct signal_list *take_signals(const char *at, size_t size)
{
	const char *end = at + size;
	uint32_t count = bytes_get32(at + 12, swap);
	struct signal_list *l;

	if (count > SIGNALS_MAX || count * UINT64_C(8) > size)
		return NULL;
	l = signal_list_new(count, SIGNAL_FLOAT);
	at += SIGNALS_SIZE;
	for (uint32_t i = 0; l && i < count; i++) {
		at = take_signal(at, end, &l->signals[i]);
		if (!at) {
			signal_list_put(l);
			return NULL;
		}
	}
	return l;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

static bool same_signals(const struct signal_list *a, const struct signal_list *b)
{
	if (a->count != b->count)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		if (a->signals[i].type != b->signals[i].type ||
		    !same_text(a->signals[i].name, b->signals[i].name) ||
		    !same_text(a->signals[i].unit, b->signals[i].unit))
			return false;
	return true;
}

/* Makes `l` the description of what follows; takes the reference. */
static void adopt(struct format *f, struct signal_list *l)
{
	struct busbar_binary *b = f->private_data;

	b->described.hash = 0;
	b->present = NULL;
	if (same_signals(l, f->signals)) {
		signal_list_put(l);
		return;
	}
	for (unsigned i = 0; i < LISTS_MAX && b->lists[i]; i++) {
		if (!same_signals(l, b->lists[i]))
			continue;
		signal_list_put(l);
		b->present = b->lists[i];
		return;
	}
	/* Samples that point at the oldest own it, or it is a lasting one. */
	signal_list_put(b->lists[b->oldest]);
	b->present = signal_list_intern_told(l);
	b->lists[b->oldest] = b->present;
	b->oldest = (b->oldest + 1) % LISTS_MAX;
}

/* Bytes up to the next mark behind this place. */
static size_t skip_to_mark(const char *at, size_t len)
{
	const char *p = at + 1, *end = at + len - 3;

	while (p < end && (p = memchr(p, 'B', (size_t)(end - p)))) {
		uint32_t mark = bytes_get32(p, swap);

		if (mark == MARK_SAMPLE || mark == MARK_SIGNALS)
			return (size_t)(p - at);
		p++;
	}
	return len - 3;
}

static int damaged(struct format *f, const char *at, size_t len, size_t *size,
		   const char *what)
{
	*size = skip_to_mark(at, len);
	return text_fail(f, "%s; %zu bytes passed over", what, *size);
}

/* What a sample's values are: as the description says, else as is configured.
 * False when its types are neither's. */
static inline bool find_signals(struct format *f, uint32_t length, uint32_t hash,
				struct signal_list **signals)
{
	struct busbar_binary *b = f->private_data;

	*signals = b->present;
	if (b->present && likely(hash == layout_of(&b->described, b->present,
						   length)))
		return true;
	*signals = f->signals->count ? f->signals : NULL;
	return hash == layout_of(&b->configured, *signals, length);
}

static int fail_types(struct format *f)
{
	const struct busbar_binary *b = f->private_data;

	return text_fail(f, "the types of the values are not those of the configured signals%s",
			 b->present ? ", nor of the description before it" :
			 f->message ? ", and the message has no description of its own before it" :
				      ", and no description came before it");
}

static int take_values(struct format *f, const char *at, struct sample *s)
{
	struct signal_list *signals;
	uint32_t length = bytes_get32(at + 48, swap);

	if (unlikely(length > s->capacity))
		return bytes_fail_length(f, length, s);
	if (unlikely(!find_signals(f, length, bytes_get32(at + 52, swap),
				   &signals)))
		return fail_types(f);
	sample_set_signals(s, signals);
	s->flags = bytes_get32(at + 12, swap) & 0x3f;
	s->length = length;
	s->sequence = bytes_get64(at + 16, swap);
	s->origin.tv_sec = (time_t)bytes_get64(at + 24, swap);
	s->received.tv_sec = (time_t)bytes_get64(at + 32, swap);
	s->origin.tv_nsec = (long)bytes_get32(at + 40, swap);
	s->received.tv_nsec = (long)bytes_get32(at + 44, swap);
	copy_values((char *)s->data, at + SAMPLE_SIZE, length, signals);
	return BYTES_SAMPLE;
}

static int take_record(struct format *f, const char *at, size_t len, size_t *size,
		       struct sample *s)
{
	struct signal_list *l;
	uint32_t mark, bytes, count;

	if (len < HEAD_SIZE)
		return BYTES_INCOMPLETE;
	mark = bytes_get32(at, swap);
	bytes = bytes_get32(at + 4, swap);
	if (unlikely(mark != MARK_SAMPLE && mark != MARK_SIGNALS))
		return damaged(f, at, len, size, "no record begins here");
	if (mark == MARK_SAMPLE) {
		if (len < SAMPLE_SIZE)
			return BYTES_INCOMPLETE;
		count = bytes_get32(at + 48, swap);
		if (unlikely(count > SIGNALS_MAX ||
			     bytes != SAMPLE_SIZE + 8 * count ||
			     bytes_get32(at + 40, swap) >= 1000000000 ||
			     bytes_get32(at + 44, swap) >= 1000000000))
			return damaged(f, at, len, size, "the record is damaged");
	} else if (bytes < SIGNALS_SIZE || bytes % 8 ||
		   bytes > SIGNALS_RECORD_MAX) {
		return damaged(f, at, len, size, "the record is damaged");
	}
	if (len < bytes)
		return BYTES_INCOMPLETE;
	if (unlikely(record_check(at, bytes) != bytes_get32(at + 8, swap)))
		return damaged(f, at, len, size, "the record is damaged");
	*size = bytes;
	if (likely(mark == MARK_SAMPLE))
		return take_values(f, at, s);
	l = take_signals(at, bytes);
	if (!l)
		return text_fail(f, "the description of the signals is malformed");
	adopt(f, l);
	return BYTES_NOTHING;
}

static int busbar_scan(struct format *f, const char *buf, size_t len,
		       size_t *used, struct sample *smps[], unsigned cnt)
{
	struct busbar_binary *b = f->private_data;
	int ret;

	/* A message begins, unless this is the rest of the one before. */
	if (f->message && len != b->left)
		b->present = NULL;
	ret = bytes_scan_records(f, take_record, buf, len, used, smps, cnt);
	b->left = f->message && ret > 0 ? len - *used : 0;
	return ret;
}

static struct signal_list *busbar_names(struct format *f, const char *buf,
					size_t len)
{
	uint32_t size;

	if (len < SIGNALS_SIZE || bytes_get32(buf, swap) != MARK_SIGNALS)
		return NULL;
	size = bytes_get32(buf + 4, swap);
	if (size < SIGNALS_SIZE || size % 8 || size > len ||
	    record_check(buf, size) != bytes_get32(buf + 8, swap))
		return NULL;
	return take_signals(buf, size);
}

static void busbar_reset(struct format *f)
{
	struct busbar_binary *b = f->private_data;

	b->present = NULL;
	b->left = 0;
}

static void busbar_destroy(struct format *f)
{
	struct busbar_binary *b = f->private_data;

	for (unsigned i = 0; i < LISTS_MAX; i++)
		signal_list_put(b->lists[i]);
	signal_list_put(b->held);
}

const struct format_type format_busbar_binary = {
	.name = "busbar.binary",
	.description = "Binary records that lose nothing and describe themselves",
	.binary = true,
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA |
			 SAMPLE_NEW_FRAME | SAMPLE_NEW_SIMULATION,
		.values_max = SIGNALS_MAX, .real_bits = 64, .integer_bits = 64,
		.sequence_bits = 64, .seconds_bits = 64, .time_step_ns = 1,
	},
	.size = sizeof(struct busbar_binary),
	.print = busbar_print,
	.header = busbar_header,
	.reset = busbar_reset,
	.names = busbar_names,
	.scan = busbar_scan,
	.destroy = busbar_destroy,
};

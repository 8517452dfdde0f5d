/* SPDX-License-Identifier: BSD-2-Clause */
/* See sv.h. */
#include "wire/grid/sv.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"

enum tag {
	TAG_MESSAGE = 0x60,
	TAG_COUNT = 0x80,
	TAG_SECURITY = 0x81,
	TAG_SECURITY_ANY = 0xa1, /* as ASN.1 encodes a value of any type */
	TAG_ASDUS = 0xa2,
	TAG_ASDU = 0x30,
	/* in an ASDU */
	TAG_ID = 0x80,
	TAG_DATASET = 0x81,
	TAG_SAMPLE_COUNT = 0x82,
	TAG_REVISION = 0x83,
	TAG_TIME = 0x84,
	TAG_SYNCH = 0x85,
	TAG_RATE = 0x86,
	TAG_VALUES = 0x87,
	TAG_MODE = 0x88,
	TAG_GRANDMASTER = 0x89,
};

/* Tags of an ASDU stand in the order of their numbers. */
#define SEEN(tag) (1u << ((tag) - TAG_ID))
#define NEEDED (SEEN(TAG_ID) | SEEN(TAG_SAMPLE_COUNT) | SEEN(TAG_REVISION) | SEEN(TAG_SYNCH) | \
		SEEN(TAG_VALUES))

const char *sv_decode(const struct ber *body, struct sv_message *m)
{
	struct ber rest = *body;
	struct ber_item message, item;
	uint64_t count;
	bool secured;
	int ret;

	if (ber_next(&rest, &message) != 1 || message.tag != TAG_MESSAGE)
		return "it is no message of sampled values";
	if (rest.len)
		return "bytes are left behind the message";
	if (ber_next(&message.value, &item) != 1 || item.tag != TAG_COUNT ||
	    !ber_unsigned(&item.value, &count) || !count || count > SV_ASDUS_MAX)
		return "noASDU is not a number of 1 to 255";
	ret = ber_next(&message.value, &item);
	secured = ret == 1 && (item.tag == TAG_SECURITY || item.tag == TAG_SECURITY_ANY);
	if (secured)
		ret = ber_next(&message.value, &item);
	if (ret != 1 || item.tag != TAG_ASDUS)
		return "it has no seqASDU";
	*m = (struct sv_message){ .count = (unsigned)count, .secured = secured,
				  .rest = item.value };
	return NULL;
}

static bool take_16(const struct ber *v, uint16_t *out)
{
	if (v->len == 2)
		*out = get_16(v->at);
	return v->len == 2;
}

/* One item of an ASDU; false: it is not as long as its type. */
static bool take_item(struct sv_asdu *a, uint8_t tag, const struct ber *v)
{
	switch (tag) {
	case TAG_ID:
		a->id = *v;
		return v->len <= SV_ID_MAX;
	case TAG_DATASET:
		a->dataset = *v;
		return v->len > 0;
	case TAG_SAMPLE_COUNT:
		return take_16(v, &a->count);
	case TAG_REVISION:
		if (v->len != 4)
			return false;
		a->revision = get_32(v->at);
		return true;
	case TAG_TIME:
		a->has_time = utc_time_decode(v, &a->time);
		return a->has_time;
	case TAG_SYNCH:
		if (v->len != 1)
			return false;
		a->synch = *v->at;
		return true;
	case TAG_RATE:
		a->has_rate = take_16(v, &a->rate);
		return a->has_rate;
	case TAG_VALUES:
		a->values = *v;
		return true;
	case TAG_MODE:
		a->has_mode = take_16(v, &a->mode);
		return a->has_mode;
	case TAG_GRANDMASTER:
		a->has_grandmaster = v->len == sizeof(a->grandmaster);
		if (a->has_grandmaster)
			memcpy(a->grandmaster, v->at, v->len);
		return a->has_grandmaster;
	default:
		return false;
	}
}

int sv_next(struct sv_message *m, struct sv_asdu *a, const char **why)
{
	struct ber_item asdu, item;
	unsigned seen = 0;
	int ret = ber_next(&m->rest, &asdu);

	*a = (struct sv_asdu){ 0 };
	if (!ret && !m->count)
		return 0;
	*why = "noASDU is not the number of ASDUs";
	if (!ret || (ret == 1 && !m->count))
		return -EPROTO;
	*why = "an ASDU is damaged";
	if (ret < 0 || asdu.tag != TAG_ASDU)
		return -EPROTO;
	m->count--;
	while ((ret = ber_next(&asdu.value, &item)) > 0) {
		*why = "an ASDU has an item that is unknown, out of order or of a wrong length";
		if (item.tag < TAG_ID || item.tag > TAG_GRANDMASTER ||
		    seen >= SEEN(item.tag) || !take_item(a, item.tag, &item.value))
			return -EPROTO;
		seen |= SEEN(item.tag);
	}
	*why = ret ? "an ASDU is damaged" : "an ASDU lacks svID, smpCnt, confRev, smpSynch or values";
	return ret || (seen & NEEDED) != NEEDED ? -EPROTO : 1;
}

static void put_item_16(struct ber_writer *w, uint8_t tag, uint16_t value)
{
	uint8_t bytes[2];

	put_16(bytes, value);
	ber_item_bytes(w, tag, bytes, sizeof(bytes));
}

/* From its last item to its first one. */
static void put_asdu(struct ber_writer *w, const struct sv_asdu *a)
{
	size_t before = ber_written(w);
	uint8_t bytes[UTC_TIME_BYTES];

	if (a->has_grandmaster)
		ber_item_bytes(w, TAG_GRANDMASTER, a->grandmaster, sizeof(a->grandmaster));
	if (a->has_mode)
		put_item_16(w, TAG_MODE, a->mode);
	ber_item_bytes(w, TAG_VALUES, a->values.at, a->values.len);
	if (a->has_rate)
		put_item_16(w, TAG_RATE, a->rate);
	ber_item_bytes(w, TAG_SYNCH, &a->synch, 1);
	if (a->has_time) {
		utc_time_encode(&a->time, bytes);
		ber_item_bytes(w, TAG_TIME, bytes, UTC_TIME_BYTES);
	}
	put_32(bytes, a->revision);
	ber_item_bytes(w, TAG_REVISION, bytes, 4);
	put_item_16(w, TAG_SAMPLE_COUNT, a->count);
	if (a->dataset.len)
		ber_item_bytes(w, TAG_DATASET, a->dataset.at, a->dataset.len);
	ber_item_bytes(w, TAG_ID, a->id.at, a->id.len);
	ber_wrap(w, TAG_ASDU, before);
}

static void put_body(struct ber_writer *w, const struct sv_asdu asdus[], unsigned count)
{
	for (unsigned i = count; i; i--)
		put_asdu(w, &asdus[i - 1]);
	ber_wrap(w, TAG_ASDUS, 0);
	ber_item_unsigned(w, TAG_COUNT, count);
	ber_wrap(w, TAG_MESSAGE, 0);
}

uint8_t *sv_encode_body(const struct sv_asdu asdus[], unsigned count, uint8_t *buffer, size_t size,
			size_t *len)
{
	struct ber_writer w;

	ber_begin(&w, buffer, size);
	put_body(&w, asdus, count);
	*len = ber_written(&w);
	return w.full || *len > UINT16_MAX ? NULL : w.at;
}

uint8_t *sv_encode(const struct apdu *head, const struct sv_asdu asdus[], unsigned count,
		   uint8_t *buffer, size_t size, size_t *len)
{
	uint8_t bytes[APDU_HEADER];
	struct ber_writer w;

	ber_begin(&w, buffer, size);
	put_body(&w, asdus, count);
	if (ber_written(&w) + APDU_HEADER > UINT16_MAX)
		return NULL;
	apdu_encode(head, ber_written(&w), bytes);
	ber_bytes(&w, bytes, sizeof(bytes));
	*len = ber_written(&w);
	return w.full ? NULL : w.at;
}

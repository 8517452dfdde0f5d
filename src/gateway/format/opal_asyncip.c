/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * opal.asyncip: packets of the AsyncIP example of OPAL-RT simulators: 8 bytes of
 * header and up to 64 doubles, all little-endian.
 *
 *   bytes 0..1  number of the device
 *   bytes 2..5  number of the message: the low 32 bits of the sequence number
 *   bytes 6..7  bytes of data
 *
 * Integers and booleans travel as doubles; there are no times.
 */
#include "gateway/format/part/bytes.h"

#define LOG_ROOM "gateway/opal.asyncip"
#include "util/log.h"

#define HEAD_SIZE 8
/* What the receiving example has room for. */
#define WRITTEN_MAX 64

struct opal {
	int64_t dev_id;
	bool warned;
};

static const struct config_key opal_keys[] = {
	{ "dev_id", CONFIG_INT, offsetof(struct opal, dev_id), "0",
	  .min = -32768, .max = 32767,
	  .help = "Number of the device in each packet" },
};

static void take_value(double v, enum signal_type type, union signal_data *to)
{
	switch (type) {
	case SIGNAL_INTEGER:
		to->i = signal_type_to_integer(v);
		break;
	case SIGNAL_BOOLEAN:
		to->i = v != 0;
		break;
	default:
		to->f = v;
	}
}

static int take_packet(struct format *f, const char *at, size_t len, size_t *size,
		       struct sample *s)
{
	const bool swap = BYTES_HOST_IS_BIG;
	unsigned bytes, length;

	if (len < HEAD_SIZE)
		return BYTES_INCOMPLETE;
	bytes = bytes_get16(at + 6, swap);
	if (bytes % 8 || bytes > INT16_MAX) {
		/* All that is sent is a multiple of eight bytes. */
		*size = f->message ? len : HEAD_SIZE;
		return text_fail(f, "%u bytes of data are no number of doubles", bytes);
	}
	*size = HEAD_SIZE + bytes;
	if (len < *size)
		return BYTES_INCOMPLETE;
	length = bytes / 8;
	if (length > s->capacity)
		return bytes_fail_length(f, length, s);
	s->signals = f->signals->count ? f->signals : NULL;
	s->flags = SAMPLE_HAS_SEQUENCE | (length ? SAMPLE_HAS_DATA : 0);
	s->sequence = bytes_get32(at + 2, swap);
	s->length = length;
	for (unsigned i = 0; i < length; i++)
		take_value(bytes_to_double(bytes_get64(at + HEAD_SIZE + 8 * (size_t)i,
						       swap)),
			   text_type(f->signals, i), &s->data[i]);
	return BYTES_SAMPLE;
}

static int opal_scan(struct format *f, const char *buf, size_t len, size_t *used,
		     struct sample *smps[], unsigned cnt)
{
	return bytes_scan_records(f, take_packet, buf, len, used, smps, cnt);
}

static unsigned length_of(struct format *f, const struct sample *s)
{
	struct opal *o = f->private_data;
	unsigned length = bytes_length(f, s);

	if (likely(length <= WRITTEN_MAX))
		return length;
	if (!o->warned)
		log_warn("samples have %u values, opal.asyncip sends the first %d",
			 length, WRITTEN_MAX);
	o->warned = true;
	return WRITTEN_MAX;
}

static int put_packet(struct format *f, char *at, const struct sample *s,
		      unsigned length)
{
	const struct opal *o = f->private_data;
	const struct signal_list *signals = bytes_signals(f, s);
	const bool swap = BYTES_HOST_IS_BIG;
	bool sequence = f->sequence && s->flags & SAMPLE_HAS_SEQUENCE;

	bytes_put16(at, (uint16_t)o->dev_id, swap);
	bytes_put32(at + 2, sequence ? (uint32_t)s->sequence : 0, swap);
	bytes_put16(at + 6, (uint16_t)(8 * length), swap);
	at += HEAD_SIZE;
	for (unsigned i = 0; i < length; i++, at += 8) {
		switch (text_type(signals, i)) {
		case SIGNAL_FLOAT:
			bytes_put64(at, s->data[i].bits, swap);
			break;
		case SIGNAL_INTEGER:
		case SIGNAL_BOOLEAN:
			bytes_put64(at, bytes_of_double((double)s->data[i].i), swap);
			break;
		default:
			return bytes_refuse(f, signals, i);
		}
	}
	return 0;
}

static int opal_print(struct format *f, char *buf, size_t size, size_t *used,
		      struct sample *const smps[], unsigned cnt)
{
	size_t at = 0;
	unsigned i;
	int ret = 0;

	cnt = f->message ? MIN(cnt, 1u) : cnt;
	for (i = 0; i < cnt; i++) {
		unsigned length = length_of(f, smps[i]);
		size_t need = HEAD_SIZE + 8 * (size_t)length;

		if (size - at < need)
			break;
		ret = put_packet(f, buf + at, smps[i], length);
		if (ret)
			break;
		at += need;
	}
	*used = at;
	return i > 0 ? (int)i : ret;
}

const struct format_type format_opal_asyncip = {
	.name = "opal.asyncip",
	.description = "Packets of OPAL-RT's AsyncIP example",
	.binary = true,
	.carries = {
		.traits = FORMAT_SELF_DELIMITING | FORMAT_NEEDS_SIGNALS |
			  FORMAT_ONE_PER_MESSAGE,
		.types = FORMAT_TYPE(SIGNAL_FLOAT) |
			 FORMAT_TYPE(SIGNAL_INTEGER) |
			 FORMAT_TYPE(SIGNAL_BOOLEAN),
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_DATA,
		.values_max = WRITTEN_MAX, .real_bits = 64, .integer_bits = 53,
		.sequence_bits = 32,
	},
	.size = sizeof(struct opal),
	.keys = opal_keys,
	.key_count = ARRAY_SIZE(opal_keys),
	.print = opal_print,
	.scan = opal_scan,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The sender's side of FPDUs; see fpdu.h. */
#include "wire/iwarp/fpdu.h"

#include <string.h>

#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/iwarp/crc32c.h"

enum { BETWEEN_MARKERS = IWARP_MARKER_INTERVAL - IWARP_MARKER_BYTES };

size_t iwarp_mulpdu(size_t mss, bool markers)
{
	size_t extra = IWARP_LENGTH_BYTES + IWARP_CRC_BYTES + mss % 4;

	if (markers)
		extra += IWARP_MARKER_BYTES *
			 ((mss + IWARP_MARKER_INTERVAL - 1) / IWARP_MARKER_INTERVAL);
	if (mss < extra + IWARP_MULPDU_MIN)
		return IWARP_MULPDU_MIN;
	return MIN(mss - extra, (size_t)IWARP_MULPDU_MAX);
}

size_t iwarp_framer_bytes(const struct iwarp_framer *f, size_t ulpdu_bytes)
{
	size_t bytes = IWARP_LENGTH_BYTES + ulpdu_bytes + iwarp_pad(ulpdu_bytes) +
		       IWARP_CRC_BYTES;
	size_t before = -f->position % IWARP_MARKER_INTERVAL; /* the first marker */

	if (f->markers && bytes > before)
		bytes += IWARP_MARKER_BYTES *
			 (1 + (bytes - before - 1) / BETWEEN_MARKERS);
	return bytes;
}

/* An FPDU in the making: copied to `to`, or as pieces in `out` if there is one. */
struct making {
	struct iwarp_framer *f;
	uint8_t *to;          /* the copy, or the framer's own bytes */
	struct iovec *out;
	unsigned count, room;
	bool full;            /* `out` was too short */
	uint32_t crc;
	uint64_t length_at;   /* position of the length */
};

static void append(struct making *m, const uint8_t *data, size_t bytes)
{
	struct iovec *last = m->count ? &m->out[m->count - 1] : NULL;

	if (last && (const uint8_t *)last->iov_base + last->iov_len == data) {
		last->iov_len += bytes;
	} else if (m->count == m->room) {
		m->full = true;
	} else {
		m->out[m->count].iov_base = (void *)(uintptr_t)data;
		m->out[m->count++].iov_len = bytes;
	}
}

/* `stays`: the data need not be copied. */
static void put_raw(struct making *m, const uint8_t *data, size_t bytes, bool stays)
{
	if (m->f->crc)
		m->crc = crc32c_add(m->crc, data, bytes);
	m->f->position += bytes;
	if (!m->out || !stays) {
		memcpy(m->to, data, bytes);
		data = m->to;
		m->to += bytes;
	}
	if (m->out)
		append(m, data, bytes);
}

static void put_marker(struct making *m)
{
	uint8_t marker[IWARP_MARKER_BYTES] = { 0 };

	if (m->f->position > m->length_at)
		put_16(marker + 2, (uint16_t)(m->f->position - m->length_at));
	put_raw(m, marker, sizeof(marker), false);
}

static void put(struct making *m, const uint8_t *data, size_t bytes, bool stays)
{
	while (bytes) {
		size_t n = bytes;

		if (m->f->markers) {
			if (m->f->position % IWARP_MARKER_INTERVAL == 0)
				put_marker(m);
			n = MIN(n, IWARP_MARKER_INTERVAL -
					   m->f->position % IWARP_MARKER_INTERVAL);
		}
		put_raw(m, data, n, stays);
		data += n;
		bytes -= n;
	}
}

/* The CRC does not cover itself, but a marker in front of it. */
static void put_crc(struct making *m)
{
	uint8_t crc[IWARP_CRC_BYTES] = { 0 };

	if (m->f->markers && m->f->position % IWARP_MARKER_INTERVAL == 0)
		put_marker(m);
	if (m->f->crc)
		crc32c_end(m->crc, crc);
	put_raw(m, crc, sizeof(crc), false);
}

static size_t sum_of(const struct iovec *pieces, unsigned count)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < count; i++)
		bytes += pieces[i].iov_len;
	return bytes;
}

static void make(struct making *m, const struct iovec *pieces, unsigned count, size_t bytes)
{
	static const uint8_t zeros[3];
	uint8_t length[IWARP_LENGTH_BYTES];
	bool marker_first = m->f->markers && m->f->position % IWARP_MARKER_INTERVAL == 0;

	m->length_at = m->f->position + (marker_first ? IWARP_MARKER_BYTES : 0);
	put_16(length, (uint16_t)bytes);
	put(m, length, sizeof(length), false);
	for (unsigned i = 0; i < count; i++)
		put(m, pieces[i].iov_base, pieces[i].iov_len, true);
	put(m, zeros, iwarp_pad(bytes), false);
	put_crc(m);
}

/* Without markers. */
static size_t write_plain(struct iwarp_framer *f, const struct iovec *pieces, unsigned count,
			  size_t bytes, uint8_t *to)
{
	uint8_t *at = put_16(to, (uint16_t)bytes);

	for (unsigned i = 0; i < count; i++)
		at = (uint8_t *)mempcpy(at, pieces[i].iov_base, pieces[i].iov_len);
	memset(at, 0, iwarp_pad(bytes) + IWARP_CRC_BYTES);
	at += iwarp_pad(bytes);
	if (f->crc)
		crc32c_end(crc32c_add(CRC32C_BEGIN, to, (size_t)(at - to)), at);
	f->position += (size_t)(at - to) + IWARP_CRC_BYTES;
	return (size_t)(at - to) + IWARP_CRC_BYTES;
}

size_t iwarp_framer_write(struct iwarp_framer *f, const struct iovec *pieces, unsigned count,
			  uint8_t *to)
{
	struct making m = { .f = f, .to = to, .crc = CRC32C_BEGIN };
	size_t bytes = sum_of(pieces, count);

	if (bytes > IWARP_MULPDU_MAX)
		return 0;
	if (!f->markers)
		return write_plain(f, pieces, count, bytes, to);
	make(&m, pieces, count, bytes);
	return (size_t)(m.to - to);
}

unsigned iwarp_framer_gather(struct iwarp_framer *f, const struct iovec *pieces,
			     unsigned count, uint8_t *own, struct iovec *out, unsigned room)
{
	struct making m = { .f = f, .to = own, .out = out, .room = room,
			    .crc = CRC32C_BEGIN };
	size_t bytes = sum_of(pieces, count);
	uint64_t before = f->position;

	if (bytes > IWARP_MULPDU_MAX)
		return 0;
	make(&m, pieces, count, bytes);
	if (m.full) {
		f->position = before;
		return 0;
	}
	return m.count;
}

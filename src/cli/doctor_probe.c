/* SPDX-License-Identifier: BSD-2-Clause */
/* The datagrams of `busbar doctor`; see doctor_probe.h. */
#include "cli/doctor_probe.h"

#include <errno.h>
#include <string.h>

#define OPCODE 0xfe
#define TVER 0x0f
static const uint8_t magic[8] = { 'b', 'u', 's', 'b', 'a', 'r', 'D', 'r' };

static void put(uint8_t *to, unsigned bytes, uint64_t value)
{
	for (unsigned i = bytes; i-- > 0; value >>= 8)
		to[i] = (uint8_t)value;
}

static uint64_t get(const uint8_t *from, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | from[i];
	return value;
}

static int is_zero(const uint8_t *from, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (from[i])
			return 0;
	return 1;
}

void doctor_probe_encode(const struct doctor_probe *p, uint8_t *to)
{
	memset(to, 0, p->length);
	to[0] = OPCODE;
	to[1] = TVER;
	to[2] = DOCTOR_PROBE_VERSION;
	to[3] = (uint8_t)p->kind;
	memcpy(to + 8, magic, sizeof(magic));
	put(to + 16, 4, p->session);
	put(to + 20, 4, p->sequence);
	put(to + 24, 2, p->length);
	put(to + 26, 2, p->other);
	to[28] = (uint8_t)p->status;
	put(to + 32, 8, p->token);
}

int doctor_probe_decode(const void *bytes, size_t len, struct doctor_probe *p)
{
	const uint8_t *from = bytes;
	struct doctor_probe is;

	if (len < DOCTOR_PROBE_BYTES || len > DOCTOR_PROBE_MAX || from[0] != OPCODE ||
	    from[1] != TVER || memcmp(from + 8, magic, sizeof(magic)))
		return -EBADMSG;
	if (from[2] != DOCTOR_PROBE_VERSION)
		return -EPROTONOSUPPORT;
	is = (struct doctor_probe){
		.kind = (enum doctor_kind)from[3],
		.status = (enum doctor_status)from[28],
		.session = (uint32_t)get(from + 16, 4),
		.sequence = (uint32_t)get(from + 20, 4),
		.length = (uint16_t)get(from + 24, 2),
		.other = (uint16_t)get(from + 26, 2),
		.token = get(from + 32, 8),
	};
	if ((is.kind != DOCTOR_REQUEST && is.kind != DOCTOR_REPLY) ||
	    from[28] > (is.kind == DOCTOR_REPLY ? DOCTOR_TOKEN : DOCTOR_DONE) ||
	    is.length != len || is.other < DOCTOR_PROBE_BYTES ||
	    is.other > DOCTOR_PROBE_MAX || !is_zero(from + 4, 4) ||
	    !is_zero(from + 29, 3) ||
	    !is_zero(from + DOCTOR_PROBE_BYTES, len - DOCTOR_PROBE_BYTES))
		return -EBADMSG;
	*p = is;
	return 0;
}

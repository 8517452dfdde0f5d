/* SPDX-License-Identifier: BSD-2-Clause */
/* The body of a TERMINATE; see terminate.h. */
#include "wire/iwarp/terminate.h"

#include <string.h>

#include "wire/bytes.h"

enum {
	M = IWARP_TERMINATE_M >> 8, D = IWARP_TERMINATE_D >> 8, R = IWARP_TERMINATE_R >> 8,
	FLAGS = M | D | R,
	/* as siw writes them */
	SIW_M = 0x01, SIW_D = 0x02, SIW_R = 0x04,
	SIW_FLAGS = SIW_M | SIW_D | SIW_R,

	DDP_TAGGED = 0x80,
};

static uint8_t header_bytes(const uint8_t *ddp)
{
	return ddp[0] & DDP_TAGGED ? IWARP_TAGGED_BYTES : IWARP_UNTAGGED_BYTES;
}

static bool agrees(const struct iwarp_terminate *t)
{
	if (t->layer > 15 || t->type > 15)
		return false;
	if (t->has_ddp ? t->ddp_bytes != header_bytes(t->ddp) : t->ddp_bytes != 0)
		return false;
	return t->rdmap_bytes == 0 ||
	       (t->has_rdmap && t->rdmap_bytes == IWARP_READ_REQUEST_BYTES);
}

uint8_t *iwarp_terminate_put(const struct iwarp_terminate *t, uint8_t *to)
{
	if (!agrees(t))
		return NULL;
	*to++ = (uint8_t)(t->layer << 4 | t->type);
	*to++ = t->code;
	*to++ = (uint8_t)((t->has_length ? M : 0) | (t->has_ddp ? D : 0) |
			  (t->has_rdmap ? R : 0));
	*to++ = 0;
	if (t->has_length || t->has_ddp)
		to = put_16(to, t->segment_bytes);
	memcpy(to, t->ddp, t->ddp_bytes);
	to += t->ddp_bytes;
	memcpy(to, t->rdmap, t->rdmap_bytes);
	return to + t->rdmap_bytes;
}

static bool in_siw_order(const uint8_t *word)
{
	uint8_t high = word[0] >> 4, low = word[0] & 15;

	if (word[2] & FLAGS)
		return false;
	if (word[2] & SIW_FLAGS)
		return true;
	return !iwarp_code_known(high, low, word[1]) && iwarp_code_known(low, high, word[1]);
}

static void get_control(const uint8_t *word, struct iwarp_terminate *t)
{
	bool siw = in_siw_order(word);

	memset(t, 0, sizeof(*t));
	t->siw_order = siw;
	t->layer = siw ? word[0] & 15 : word[0] >> 4;
	t->type = siw ? word[0] >> 4 : word[0] & 15;
	t->code = word[1];
	t->has_length = word[2] & (siw ? SIW_M : M);
	t->has_ddp = word[2] & (siw ? SIW_D : D);
	t->has_rdmap = word[2] & (siw ? SIW_R : R);
}

/* The headers behind the length; what is left is nothing. */
static enum iwarp_error get_headers(const uint8_t *from, size_t bytes,
				    struct iwarp_terminate *t)
{
	if (t->has_ddp) {
		if (!bytes || bytes < header_bytes(from))
			return IWARP_RDMAP_LENGTH;
		t->ddp_bytes = header_bytes(from);
		memcpy(t->ddp, from, t->ddp_bytes);
		from += t->ddp_bytes;
		bytes -= t->ddp_bytes;
	}
	/* siw sets R also where it sends no header of RDMAP. */
	if (t->has_rdmap && bytes) {
		if (bytes < IWARP_READ_REQUEST_BYTES)
			return IWARP_RDMAP_LENGTH;
		t->rdmap_bytes = IWARP_READ_REQUEST_BYTES;
		memcpy(t->rdmap, from, t->rdmap_bytes);
		bytes -= t->rdmap_bytes;
	}
	return bytes ? IWARP_DDP_TOO_LONG : IWARP_OK;
}

enum iwarp_error iwarp_terminate_get(const uint8_t *from, size_t bytes,
				     struct iwarp_terminate *t)
{
	get_control(from, t);
	from += IWARP_TERMINATE_MIN;
	bytes -= IWARP_TERMINATE_MIN;
	if (t->has_length || t->has_ddp) {
		if (bytes < 2)
			return IWARP_RDMAP_LENGTH;
		t->segment_bytes = get_16(from);
		from += 2;
		bytes -= 2;
	}
	return get_headers(from, bytes, t);
}

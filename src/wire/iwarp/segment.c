/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of DDP and RDMAP; see segment.h. */
#include "wire/iwarp/segment.h"

#include <string.h>

#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/iwarp/terminate.h"

enum {
	/* byte 0: DDP control */
	TAGGED = 0x80, LAST = 0x40, DDP_VERSION = 0x03, DDP_VERSION_1 = 0x01,
	/* byte 1: RDMAP control */
	RDMAP_VERSION = 0xc0, RDMAP_VERSION_1 = 0x40, OPCODE = 0x0f,

	CONTROL_BYTES = 2,
	/* tagged */
	AT_STAG = 2, AT_TO = 6,
	/* untagged */
	AT_INVALIDATE = 2, AT_QN = 6, AT_MSN = 10, AT_MO = 14,

	ATOMIC_OPERATION = 0x0f,
};

#define U(more) (IWARP_UNTAGGED_BYTES + (more))

const struct iwarp_opcode_info iwarp_opcodes[IWARP_OPCODES] = {
	[IWARP_WRITE] = { .known = true, .tagged = true, .payload = true,
			  .bytes = IWARP_TAGGED_BYTES, .name = "WRITE" },
	[IWARP_READ_REQUEST] = { .known = true, .qn = IWARP_QN_READ_REQUEST,
				 .bytes = U(IWARP_READ_REQUEST_BYTES),
				 .name = "READ request" },
	[IWARP_READ_RESPONSE] = { .known = true, .tagged = true, .payload = true,
				  .bytes = IWARP_TAGGED_BYTES, .name = "READ response" },
	[IWARP_SEND] = { .known = true, .payload = true, .bytes = U(0), .name = "SEND" },
	[IWARP_SEND_INVALIDATE] = { .known = true, .payload = true, .invalidates = true,
				    .bytes = U(0), .name = "SEND with invalidate" },
	[IWARP_SEND_SE] = { .known = true, .payload = true, .solicited = true,
			    .bytes = U(0), .name = "SEND with solicited event" },
	[IWARP_SEND_SE_INVALIDATE] = { .known = true, .payload = true, .invalidates = true,
				       .solicited = true, .bytes = U(0),
				       .name = "SEND with solicited event and invalidate" },
	[IWARP_TERMINATE] = { .known = true, .qn = IWARP_QN_TERMINATE,
			      .bytes = U(IWARP_TERMINATE_MIN), .name = "TERMINATE" },
	[IWARP_IMMEDIATE] = { .known = true, .qn = IWARP_QN_SEND,
			      .bytes = U(IWARP_IMMEDIATE_BYTES), .name = "immediate data" },
	[IWARP_IMMEDIATE_SE] = { .known = true, .solicited = true, .qn = IWARP_QN_SEND,
				 .bytes = U(IWARP_IMMEDIATE_BYTES),
				 .name = "immediate data with solicited event" },
	[IWARP_ATOMIC_REQUEST] = { .known = true, .qn = IWARP_QN_READ_REQUEST,
				   .bytes = U(IWARP_ATOMIC_REQUEST_BYTES),
				   .name = "atomic request" },
	[IWARP_ATOMIC_RESPONSE] = { .known = true, .qn = IWARP_QN_ATOMIC_RESPONSE,
				    .bytes = U(IWARP_ATOMIC_RESPONSE_BYTES),
				    .name = "atomic response" },
};

static bool operation_known(uint8_t operation)
{
	return operation == IWARP_FETCH_ADD || operation == IWARP_COMPARE_SWAP;
}

/* ---- encoding ---- */

static uint8_t *put_ddp(const struct iwarp_segment *s, uint8_t *to)
{
	const struct iwarp_opcode_info *op = &iwarp_opcodes[s->opcode];

	*to++ = (uint8_t)((op->tagged ? TAGGED : 0) | (s->last || !op->payload ? LAST : 0) |
			  DDP_VERSION_1);
	*to++ = (uint8_t)(RDMAP_VERSION_1 | s->opcode);
	if (op->tagged)
		return put_64(put_32(to, s->stag), s->to);
	to = put_32(to, op->invalidates ? s->invalidate_stag : 0);
	to = put_32(to, op->qn);
	to = put_32(to, s->msn);
	return put_32(to, op->payload ? s->mo : 0);
}

static uint8_t *put_read(const struct iwarp_segment *s, uint8_t *to)
{
	to = put_64(put_32(to, s->read.sink_stag), s->read.sink_to);
	to = put_32(to, s->read.bytes);
	return put_64(put_32(to, s->read.source_stag), s->read.source_to);
}

static uint8_t *put_atomic(const struct iwarp_segment *s, uint8_t *to)
{
	if (!operation_known(s->atomic.operation))
		return NULL;
	to = put_32(to, s->atomic.operation);
	to = put_32(to, s->atomic.request);
	to = put_64(put_32(to, s->atomic.stag), s->atomic.to);
	to = put_64(put_64(to, s->atomic.add_swap), s->atomic.add_swap_mask);
	return put_64(put_64(to, s->atomic.compare), s->atomic.compare_mask);
}

static uint8_t *put_message(const struct iwarp_segment *s, uint8_t *to)
{
	switch (s->opcode) {
	case IWARP_READ_REQUEST:
		return put_read(s, to);
	case IWARP_TERMINATE:
		return iwarp_terminate_put(&s->terminate, to);
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		return put_64(to, s->immediate);
	case IWARP_ATOMIC_REQUEST:
		return put_atomic(s, to);
	case IWARP_ATOMIC_RESPONSE:
		return put_64(put_32(to, s->atomic_response.request),
			      s->atomic_response.original);
	default:
		return to;
	}
}

size_t iwarp_segment_encode(const struct iwarp_segment *segment, uint8_t *to)
{
	const uint8_t *end;

	if (segment->opcode >= IWARP_OPCODES || !iwarp_opcodes[segment->opcode].known)
		return 0;
	end = put_message(segment, put_ddp(segment, to));
	return end ? (size_t)(end - to) : 0;
}

/* ---- decoding ---- */

static size_t ddp_bytes(const uint8_t *from)
{
	return from[0] & TAGGED ? IWARP_TAGGED_BYTES : IWARP_UNTAGGED_BYTES;
}

size_t iwarp_segment_need(const uint8_t *from, size_t there, size_t bytes)
{
	size_t need;

	if (there < CONTROL_BYTES)
		return MIN(bytes, CONTROL_BYTES);
	need = MAX(ddp_bytes(from), iwarp_opcodes[from[1] & OPCODE].bytes);
	if ((from[1] & OPCODE) == IWARP_TERMINATE)
		need = IWARP_HEADERS_MAX;
	return MIN(bytes, need);
}

/* What DDP checks; `bytes` of the segment. */
static enum iwarp_error check_ddp(const uint8_t *from, size_t bytes)
{
	if (bytes < CONTROL_BYTES)
		return IWARP_DDP_SHORT;
	if ((from[0] & DDP_VERSION) != DDP_VERSION_1)
		return from[0] & TAGGED ? IWARP_DDP_TAGGED_VERSION :
					  IWARP_DDP_UNTAGGED_VERSION;
	if (bytes < ddp_bytes(from))
		return IWARP_DDP_SHORT;
	if (!(from[0] & TAGGED) && get_32(from + AT_QN) > IWARP_QN_ATOMIC_RESPONSE)
		return IWARP_DDP_QN;
	return IWARP_OK;
}

/* A message whose length and place are fixed. */
static enum iwarp_error check_single(const uint8_t *from, size_t bytes)
{
	uint8_t opcode = from[1] & OPCODE;
	size_t most = opcode == IWARP_TERMINATE ? IWARP_HEADERS_MAX :
						  iwarp_opcodes[opcode].bytes;

	if (get_32(from + AT_MO) != 0)
		return IWARP_DDP_MO;
	if (bytes > most)
		return IWARP_DDP_TOO_LONG;
	if (!(from[0] & LAST))
		return IWARP_RDMAP_NOT_LAST;
	return bytes < iwarp_opcodes[opcode].bytes ? IWARP_RDMAP_LENGTH : IWARP_OK;
}

static enum iwarp_error check_rdmap(const uint8_t *from, size_t bytes)
{
	const struct iwarp_opcode_info *op = &iwarp_opcodes[from[1] & OPCODE];

	if ((from[1] & RDMAP_VERSION) != RDMAP_VERSION_1)
		return IWARP_RDMAP_VERSION;
	if (!op->known || op->tagged != !!(from[0] & TAGGED) ||
	    (!op->tagged && get_32(from + AT_QN) != op->qn))
		return IWARP_RDMAP_OPCODE;
	return op->payload ? IWARP_OK : check_single(from, bytes);
}

static void get_ddp(const uint8_t *from, size_t bytes, struct iwarp_segment *s)
{
	const struct iwarp_opcode_info *op;

	memset(s, 0, sizeof(*s));
	s->opcode = from[1] & OPCODE;
	s->last = from[0] & LAST;
	op = &iwarp_opcodes[s->opcode];
	if (op->tagged) {
		s->stag = get_32(from + AT_STAG);
		s->to = get_64(from + AT_TO);
	} else {
		s->invalidate_stag = op->invalidates ? get_32(from + AT_INVALIDATE) : 0;
		s->msn = get_32(from + AT_MSN);
		s->mo = get_32(from + AT_MO);
	}
	if (op->payload) {
		s->payload = from + op->bytes;
		s->bytes = (uint32_t)(bytes - op->bytes);
	}
}

/* The end of the payload has an address, in the buffer or in the message. */
static enum iwarp_error check_wrap(const struct iwarp_segment *s)
{
	if (!iwarp_opcodes[s->opcode].payload || !s->bytes)
		return IWARP_OK;
	if (iwarp_opcodes[s->opcode].tagged)
		return s->to + (s->bytes - 1) < s->to ? IWARP_DDP_TO_WRAP : IWARP_OK;
	return s->mo > UINT32_MAX - s->bytes ? IWARP_DDP_MO : IWARP_OK;
}

static enum iwarp_error get_read(const uint8_t *from, struct iwarp_segment *s)
{
	s->read.sink_stag = get_32(from);
	s->read.sink_to = get_64(from + 4);
	s->read.bytes = get_32(from + 12);
	s->read.source_stag = get_32(from + 16);
	s->read.source_to = get_64(from + 20);
	if (s->read.bytes && s->read.source_to + (s->read.bytes - 1) < s->read.source_to)
		return IWARP_RDMAP_TO_WRAP;
	return IWARP_OK;
}

static enum iwarp_error get_atomic(const uint8_t *from, struct iwarp_segment *s)
{
	s->atomic.operation = get_32(from) & ATOMIC_OPERATION;
	s->atomic.request = get_32(from + 4);
	s->atomic.stag = get_32(from + 8);
	s->atomic.to = get_64(from + 12);
	s->atomic.add_swap = get_64(from + 20);
	s->atomic.add_swap_mask = get_64(from + 28);
	s->atomic.compare = get_64(from + 36);
	s->atomic.compare_mask = get_64(from + 44);
	return operation_known(s->atomic.operation) ? IWARP_OK : IWARP_RDMAP_ATOMIC;
}

static enum iwarp_error get_message(const uint8_t *from, size_t bytes, struct iwarp_segment *s)
{
	switch (s->opcode) {
	case IWARP_READ_REQUEST:
		return get_read(from, s);
	case IWARP_TERMINATE:
		return iwarp_terminate_get(from, bytes, &s->terminate);
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		s->immediate = get_64(from);
		return IWARP_OK;
	case IWARP_ATOMIC_REQUEST:
		return get_atomic(from, s);
	case IWARP_ATOMIC_RESPONSE:
		s->atomic_response.request = get_32(from);
		s->atomic_response.original = get_64(from + 4);
		return IWARP_OK;
	default:
		return check_wrap(s);
	}
}

enum iwarp_error iwarp_segment_decode(const uint8_t *from, size_t there, size_t bytes,
				      struct iwarp_segment *segment, size_t *header_bytes)
{
	enum iwarp_error error = there < iwarp_segment_need(from, there, bytes) ?
					 IWARP_DDP_SHORT : check_ddp(from, bytes);
	size_t ddp;

	if (!error)
		error = check_rdmap(from, bytes);
	if (error)
		return error;
	get_ddp(from, bytes, segment);
	ddp = ddp_bytes(from);
	*header_bytes = segment->payload ? ddp : bytes;
	return get_message(from + ddp, bytes - ddp, segment);
}

/* ---- which segment a TERMINATE is about ---- */

void iwarp_terminate_fill(struct iwarp_terminate *t, enum iwarp_error error,
			  const uint8_t *from, size_t there, size_t bytes)
{
	uint32_t control = iwarp_error_control(error);

	memset(t, 0, sizeof(*t));
	t->layer = control >> 28 & 15;
	t->type = control >> 24 & 15;
	t->code = control >> 16 & 255;
	if (!(control & IWARP_TERMINATE_D) || !from || there < CONTROL_BYTES ||
	    there < ddp_bytes(from))
		return;
	t->has_length = t->has_ddp = true;
	t->segment_bytes = (uint16_t)bytes;
	t->ddp_bytes = (uint8_t)ddp_bytes(from);
	memcpy(t->ddp, from, t->ddp_bytes);
	if (t->layer != IWARP_LAYER_RDMAP || (from[0] & TAGGED) ||
	    (from[1] & OPCODE) != IWARP_READ_REQUEST ||
	    there < U(IWARP_READ_REQUEST_BYTES))
		return;
	t->has_rdmap = true;
	t->rdmap_bytes = IWARP_READ_REQUEST_BYTES;
	memcpy(t->rdmap, from + IWARP_UNTAGGED_BYTES, IWARP_READ_REQUEST_BYTES);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The peer's requests of an iWARP connection; see responder.h. */
#include "engine/iwarp/responder.h"

#include <arpa/inet.h>
#include <string.h>

#include "util/container_of.h"

enum { ATOMIC_BYTES = 8 };

void iwarp_responder_open(struct iwarp_responder *rs, const struct iwarp_responder_params *p)
{
	memset(rs, 0, sizeof(*rs));
	rs->p = *p;
	rs->p.ird = MIN(p->ird, IWARP_READS_MAX);
	rs->send_msn = rs->read_msn = rs->response_msn = 1;
}

/* ---- what a segment needs ---- */

/* Is it the SEND that begins the connection, which takes no receive? */
static bool is_rtr(const struct iwarp_responder *rs, const struct iwarp_segment *s)
{
	return rs->p.rtr == IWARP_RTR_SEND && s->msn == 1 && s->last && !s->bytes &&
	       !rs->sending;
}

static void look_send(const struct iwarp_responder *rs, const struct iwarp_segment *s,
		      struct iwarp_look *look)
{
	if (s->msn != rs->send_msn) {
		look->error = IWARP_DDP_MSN;
		return;
	}
	if (s->mo != (rs->sending ? rs->at : 0)) {
		look->error = IWARP_DDP_MO;
		return;
	}
	if (rs->sending && s->opcode != rs->send_opcode) {
		look->error = IWARP_RDMAP_OPCODE;
		return;
	}
	if (is_rtr(rs, s))
		return;
	look->at = s->mo;
	look->bytes = s->bytes;
	if (!rs->sending)
		look->needs |= WORK_NEED_RECEIVE;
	if (s->bytes)
		look->needs |= WORK_NEED_PLACE;
	if (!s->last)
		return;
	look->needs |= WORK_NEED_COMPLETE;
	look->stag = s->invalidate_stag;
	if (iwarp_opcodes[s->opcode].invalidates)
		look->needs |= WORK_NEED_INVALIDATE;
}

static void look_write(const struct iwarp_segment *s, struct iwarp_look *look)
{
	look->stag = s->stag;
	look->to = s->to;
	look->bytes = s->bytes;
	if (s->bytes)
		look->needs = WORK_NEED_PLACE;
}

static void look_immediate(const struct iwarp_responder *rs, const struct iwarp_segment *s,
			   struct iwarp_look *look)
{
	if (!rs->p.extended)
		look->error = IWARP_RDMAP_OPCODE;
	else if (s->msn != rs->send_msn)
		look->error = IWARP_DDP_MSN;
	else if (rs->sending)
		look->error = IWARP_RDMAP_OPCODE;
	else if (rs->writing)
		look->error = IWARP_RDMAP_STREAM;
	else
		look->needs = WORK_NEED_RECEIVE | WORK_NEED_COMPLETE;
}

/* Requests of queue 1: in order, and as many as were granted. */
static enum iwarp_error look_queue(const struct iwarp_responder *rs, uint32_t msn)
{
	if (msn != rs->read_msn)
		return IWARP_DDP_MSN;
	return rs->taken - rs->answered >= rs->p.ird ? IWARP_DDP_NO_BUFFER : IWARP_OK;
}

static void look_read(const struct iwarp_responder *rs, const struct iwarp_segment *s,
		      struct iwarp_look *look)
{
	look->error = look_queue(rs, s->msn);
	if (look->error || !s->read.bytes)
		return;
	if (s->read.sink_to + (s->read.bytes - 1) < s->read.sink_to) {
		look->error = IWARP_RDMAP_TO_WRAP;
		return;
	}
	look->needs = WORK_NEED_READ;
	look->stag = s->read.source_stag;
	look->to = s->read.source_to;
	look->bytes = s->read.bytes;
}

/* Verbs have no masks. */
static bool is_plain(const struct iwarp_segment *s, bool swaps)
{
	uint64_t mask = swaps ? UINT64_MAX : 0;

	return s->atomic.add_swap_mask == mask && (!swaps || s->atomic.compare_mask == mask);
}

static void look_atomic(const struct iwarp_responder *rs, const struct iwarp_segment *s,
			struct iwarp_look *look)
{
	bool swaps = s->atomic.operation == IWARP_COMPARE_SWAP;

	if (!rs->p.extended) {
		look->error = IWARP_RDMAP_OPCODE;
		return;
	}
	look->error = look_queue(rs, s->msn);
	if (!look->error && !is_plain(s, swaps))
		look->error = IWARP_RDMAP_ATOMIC;
	if (look->error)
		return;
	look->needs = WORK_NEED_ATOMIC;
	look->stag = s->atomic.stag;
	look->to = s->atomic.to;
	look->bytes = ATOMIC_BYTES;
	look->swaps = swaps;
	look->compare_add = swaps ? s->atomic.compare : s->atomic.add_swap;
	look->swap = swaps ? s->atomic.add_swap : 0;
}

void iwarp_look(const struct iwarp_responder *rs, const struct iwarp_segment *segment,
		struct iwarp_look *look)
{
	*look = (struct iwarp_look){ 0 };
	switch (segment->opcode) {
	case IWARP_SEND:
	case IWARP_SEND_SE:
	case IWARP_SEND_INVALIDATE:
	case IWARP_SEND_SE_INVALIDATE:
		look_send(rs, segment, look);
		break;
	case IWARP_WRITE:
		look_write(segment, look);
		break;
	case IWARP_READ_REQUEST:
		look_read(rs, segment, look);
		break;
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		look_immediate(rs, segment, look);
		break;
	case IWARP_ATOMIC_REQUEST:
		look_atomic(rs, segment, look);
		break;
	default:
		look->error = IWARP_RDMAP_OPCODE;
		break;
	}
	if (rs->failed && !look->error)
		look->error = IWARP_RDMAP_STREAM;
}

/* ---- what was done ---- */

/* The rule that a refusal says was broken. Keys of a WRITE are DDP's, those of other requests
 * RDMAP's; rights are always RDMAP's. */
static enum iwarp_error rule_of(enum iwarp_answer answer, bool tagged)
{
	switch (answer) {
	case IWARP_DONE: return IWARP_OK;
	case IWARP_NO_RECEIVE: return IWARP_DDP_NO_BUFFER;
	case IWARP_NO_ROOM: return IWARP_DDP_TOO_LONG;
	case IWARP_NO_STAG: return tagged ? IWARP_DDP_STAG : IWARP_RDMAP_STAG;
	case IWARP_NO_BOUNDS: return tagged ? IWARP_DDP_BOUNDS : IWARP_RDMAP_BOUNDS;
	case IWARP_NO_STREAM: return tagged ? IWARP_DDP_STAG_STREAM : IWARP_RDMAP_STAG_STREAM;
	case IWARP_NO_ACCESS: return IWARP_RDMAP_ACCESS;
	case IWARP_NOT_INVALIDATED: return IWARP_RDMAP_INVALIDATE;
	case IWARP_NOT_ALIGNED: return IWARP_RDMAP_PROTECTION;
	case IWARP_LOCAL: break;
	}
	return IWARP_RDMAP_CATASTROPHIC;
}

static struct iwarp_taken take_send(struct iwarp_responder *rs, const struct iwarp_segment *s,
				    const struct iwarp_look *look)
{
	struct iwarp_taken taken = { .bytes = s->mo + s->bytes };

	rs->sending = !s->last;
	rs->send_opcode = s->opcode;
	rs->at = taken.bytes;
	if (rs->sending)
		return taken;
	rs->send_msn++;
	rs->written = 0;
	taken.complete = look->needs & WORK_NEED_COMPLETE;
	taken.solicited = iwarp_opcodes[s->opcode].solicited;
	taken.invalidated = iwarp_opcodes[s->opcode].invalidates;
	taken.imm = s->invalidate_stag;
	return taken;
}

static struct iwarp_taken take_immediate(struct iwarp_responder *rs,
					 const struct iwarp_segment *s)
{
	struct iwarp_taken taken = {
		.complete = true, .immediate = true, .bytes = rs->written,
		.solicited = iwarp_opcodes[s->opcode].solicited,
		.imm = htonl((uint32_t)(s->immediate >> 32)),
	};

	rs->send_msn++;
	rs->written = 0;
	return taken;
}

static void take_write(struct iwarp_responder *rs, const struct iwarp_segment *s)
{
	rs->written = (rs->writing ? rs->written : 0) + s->bytes;
	rs->writing = !s->last;
}

static struct iwarp_inbound_read *take_request(struct iwarp_responder *rs)
{
	rs->read_msn++;
	return &rs->reads[rs->taken++ % IWARP_READS_MAX];
}

static void take_read(struct iwarp_responder *rs, const struct iwarp_segment *s)
{
	*take_request(rs) = (struct iwarp_inbound_read){
		.length = s->read.bytes,
		.sink_stag = s->read.sink_stag, .sink_to = s->read.sink_to,
		.source_stag = s->read.source_stag, .source_to = s->read.source_to,
	};
}

static void take_atomic(struct iwarp_responder *rs, const struct iwarp_segment *s,
			uint64_t original)
{
	*take_request(rs) = (struct iwarp_inbound_read){
		.atomic = true, .request = s->atomic.request, .original = original,
	};
}

struct iwarp_taken iwarp_take(struct iwarp_responder *rs, const struct iwarp_segment *segment,
			      const struct iwarp_look *look, enum iwarp_answer answer,
			      uint64_t original)
{
	struct iwarp_taken taken = { .error = look->error };

	if (!taken.error)
		taken.error = rule_of(answer, iwarp_opcodes[segment->opcode].tagged);
	if (taken.error) {
		rs->failed = true;
		return taken;
	}
	switch (segment->opcode) {
	case IWARP_WRITE:
		take_write(rs, segment);
		return taken;
	case IWARP_READ_REQUEST:
		take_read(rs, segment);
		return taken;
	case IWARP_ATOMIC_REQUEST:
		take_atomic(rs, segment, original);
		return taken;
	case IWARP_IMMEDIATE:
	case IWARP_IMMEDIATE_SE:
		return take_immediate(rs, segment);
	default:
		return take_send(rs, segment, look);
	}
}

/* ---- responses ---- */

bool iwarp_respond_next(const struct iwarp_responder *rs, struct iwarp_tx *tx)
{
	const struct iwarp_inbound_read *r = &rs->reads[rs->answered % IWARP_READS_MAX];
	struct iwarp_segment *s = &tx->segment;

	if (rs->answered == rs->taken)
		return false;
	*tx = (struct iwarp_tx){ .segment.last = true };
	if (r->atomic) {
		s->opcode = IWARP_ATOMIC_RESPONSE;
		s->msn = rs->response_msn;
		s->atomic_response.request = r->request;
		s->atomic_response.original = r->original;
		return true;
	}
	s->opcode = IWARP_READ_RESPONSE;
	s->stag = r->sink_stag;
	s->to = r->sink_to + rs->sent;
	s->bytes = MIN(r->length - rs->sent, rs->p.mulpdu - IWARP_TAGGED_BYTES);
	s->last = rs->sent + s->bytes == r->length;
	if (s->bytes)
		tx->source = IWARP_FROM_MEMORY;
	tx->stag = r->source_stag;
	tx->to = r->source_to + rs->sent;
	return true;
}

void iwarp_responded(struct iwarp_responder *rs, const struct iwarp_tx *tx)
{
	if (tx->segment.opcode == IWARP_ATOMIC_RESPONSE)
		rs->response_msn++;
	rs->sent += tx->segment.bytes;
	if (!tx->segment.last)
		return;
	rs->sent = 0;
	rs->answered++;
}

enum iwarp_error iwarp_respond_failed(struct iwarp_responder *rs, enum iwarp_answer answer)
{
	rs->answered = rs->taken;
	rs->sent = 0;
	rs->failed = true;
	return rule_of(answer, false);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What became of an event; see outcome.h. */
#include "transport/packet/event/outcome.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"
#include "transport/carrier/carrier.h"
#include "transport/packet/frame/frame.h"
#include "util/container_of.h"
#include "wire/ib/header.h"

void packet_event_record_begin(struct packet_event_record *r, const struct packet_event_rule *rule,
			       const struct packet_event_packet *packet, uint32_t number,
			       uint8_t pending, uint64_t now_ns)
{
	*r = (struct packet_event_record){
		.packet = *packet, .line = rule->line, .number = number,
		.action = rule->action, .delay_ns = rule->delay_ns, .at_ns = now_ns,
		.pending = pending,
		/* Nothing answers a datagram or a CNP. */
		.open = packet->service != PACKET_UD && packet->class != PACKET_EVENT_CNP,
	};
}

static void react(struct packet_event_record *r, enum packet_event_reaction reaction,
		  uint64_t now_ns)
{
	if (!r->reaction)
		r->reaction_ns = now_ns - r->at_ns;
	r->reaction |= (uint8_t)reaction;
}

static void make_progress(struct packet_event_record *r, uint64_t now_ns)
{
	r->progressed = true;
	r->progress_ns = now_ns - r->at_ns;
	r->open = false;
}

static void see_request(struct packet_event_record *r, const struct packet_event_packet *p,
			uint64_t now_ns)
{
	if (p->service == PACKET_UC) {
		if (p->begins && !p->lost && p->direction == r->packet.direction)
			make_progress(r, now_ns);
		return;
	}
	if (!p->times)
		return;
	r->sent_again++;
	if (!(r->reaction & ~PACKET_EVENT_NOTIFIED))
		react(r, r->pending ? r->pending :
			 r->beyond  ? PACKET_EVENT_IMPLIED_NAK :
				      PACKET_EVENT_TIMEOUT, now_ns);
}

enum packet_event_reaction packet_event_reaction_of(uint8_t syndrome)
{
	if ((syndrome & RC_SYN_KIND) == RC_SYN_RNR)
		return PACKET_EVENT_RNR_NAK;
	return syndrome == RC_SYN_SEQUENCE ? PACKET_EVENT_SEQUENCE_NAK : PACKET_EVENT_REFUSED;
}

/* Does an answer that covers the PSN of the packet show progress? An answer that came late or was
 * lost has to pass once more, if those behind it need it. */
static bool covers(const struct packet_event_record *r, const struct packet_event_packet *p,
		   uint64_t now_ns)
{
	if (r->packet.request || r->packet.class == PACKET_EVENT_ACK ||
	    r->packet.class == PACKET_EVENT_NAK)
		return true;
	if (r->action == PACKET_EVENT_MARK || r->action == PACKET_EVENT_DUPLICATE)
		return true;
	return p->psn == r->packet.psn || r->sent_again ||
	       (r->action == PACKET_EVENT_DELAY && now_ns - r->at_ns >= r->delay_ns);
}

static void see_answer(struct packet_event_record *r, const struct packet_event_packet *p,
		       uint64_t now_ns)
{
	int32_t ahead = rc_psn_diff(p->psn, r->packet.psn);

	if (p->lost)
		return;
	if (p->class == PACKET_EVENT_NAK)
		react(r, packet_event_reaction_of(p->syndrome), now_ns);
	else if (ahead < 0)
		return;
	else if (covers(r, p, now_ns))
		make_progress(r, now_ns);
	else
		r->beyond |= ahead > 0;
}

void packet_event_record_see(struct packet_event_record *r, const struct packet_event_packet *p,
			     uint64_t now_ns)
{
	/* Requests of the packet's half of the connection go this way. */
	const uint8_t requests = r->packet.request ? r->packet.direction : !r->packet.direction;

	if (p->class == PACKET_EVENT_CNP) {
		if (p->direction != r->packet.direction && r->action == PACKET_EVENT_MARK)
			react(r, PACKET_EVENT_NOTIFIED, now_ns);
	} else if (p->request && p->direction == requests) {
		see_request(r, p, now_ns);
	} else if (!p->request && p->direction != requests) {
		see_answer(r, p, now_ns);
	}
}

/* ---- as text ---- */

static const char *const reactions[] = {
	"sequence-nak", "rnr-nak", "refused", "timeout", "implied-nak", "cnp",
};

/* Names of the operations of a BTH (enum ib_operation). */
static const char *const operations[IB_OPERATION_MASK + 1] = {
	[IB_SEND_FIRST] = "send-first",
	[IB_SEND_MIDDLE] = "send-middle",
	[IB_SEND_LAST] = "send-last",
	[IB_SEND_LAST_IMM] = "send-last-immediate",
	[IB_SEND_ONLY] = "send-only",
	[IB_SEND_ONLY_IMM] = "send-only-immediate",
	[IB_WRITE_FIRST] = "write-first",
	[IB_WRITE_MIDDLE] = "write-middle",
	[IB_WRITE_LAST] = "write-last",
	[IB_WRITE_LAST_IMM] = "write-last-immediate",
	[IB_WRITE_ONLY] = "write-only",
	[IB_WRITE_ONLY_IMM] = "write-only-immediate",
	[IB_READ_REQUEST] = "read-request",
	[IB_READ_RESPONSE_FIRST] = "read-response-first",
	[IB_READ_RESPONSE_MIDDLE] = "read-response-middle",
	[IB_READ_RESPONSE_LAST] = "read-response-last",
	[IB_READ_RESPONSE_ONLY] = "read-response-only",
	[IB_ACKNOWLEDGE] = "acknowledge",
	[IB_ATOMIC_ACKNOWLEDGE] = "atomic-acknowledge",
	[IB_COMPARE_SWAP] = "compare-swap",
	[IB_FETCH_ADD] = "fetch-add",
	[IB_SEND_LAST_INVALIDATE] = "send-last-invalidate",
	[IB_SEND_ONLY_INVALIDATE] = "send-only-invalidate",
	[IB_FLUSH] = "flush",
	[IB_ATOMIC_WRITE] = "atomic-write",
};

static const char *opcode_name(uint8_t opcode)
{
	const char *name = operations[opcode & IB_OPERATION_MASK];

	return opcode == IB_OPCODE_CNP ? "cnp" : name ? name : "unknown";
}

/* Where the next text goes, behind what snprintf() wrote at `at` of `bytes`. */
static size_t behind(size_t bytes, size_t at, int written)
{
	return written < 0 ? at : MIN(at + (size_t)written, bytes - 1);
}

static size_t tell_reaction(const struct packet_event_record *r, char *line, size_t bytes,
			    size_t at)
{
	const char *before = " reaction=";

	for (unsigned i = 0; i < ARRAY_SIZE(reactions); i++)
		if (r->reaction & (1u << i)) {
			at = behind(bytes, at, snprintf(line + at, bytes - at, "%s%s", before,
							reactions[i]));
			before = ",";
		}
	if (!r->reaction)
		return behind(bytes, at, snprintf(line + at, bytes - at, " reaction=none"));
	return behind(bytes, at, snprintf(line + at, bytes - at, " reaction_us=%" PRIu64,
					  r->reaction_ns / 1000));
}

static size_t tell_packet(const struct packet_event_record *r, uint64_t at_ns, char *line,
			  size_t bytes)
{
	const struct packet_event_packet *p = &r->packet;
	int n = snprintf(line, bytes,
			 "line=%" PRIu32 " action=%s qp=0x%" PRIx32 " direction=%s packet=%" PRIu32
			 " psn=%" PRIu32 " opcode=%s again=%u at_us=%" PRIu64,
			 r->line, packet_event_actions[r->action], p->qpn,
			 p->direction == CARRIER_OUT ? "out" : "in", r->number, p->psn,
			 opcode_name(p->opcode), p->times, at_ns / 1000);

	return behind(bytes, 0, n);
}

void packet_event_record_tell(const struct packet_event_record *r, uint64_t since_ns, char *line,
			      size_t bytes)
{
	size_t at;

	if (!bytes)
		return;
	at = tell_packet(r, r->at_ns - since_ns, line, bytes);
	at = tell_reaction(r, line, bytes, at);
	at = behind(bytes, at, snprintf(line + at, bytes - at, " sent_again=%" PRIu32,
					r->sent_again));
	if (r->progressed)
		snprintf(line + at, bytes - at, " progress_us=%" PRIu64, r->progress_ns / 1000);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Both ends of the set-up of MPA; see setup.h. */
#include "engine/iwarp/setup.h"

#include <errno.h>
#include <string.h>

#include "util/container_of.h"

static void finish(struct iwarp_setup *s)
{
	s->state = IWARP_SETUP_DONE;
	s->deadline_ns = 0;
}

static void fail(struct iwarp_setup *s, int result)
{
	s->state = IWARP_SETUP_FAILED;
	s->result = result;
	s->deadline_ns = 0;
	s->out_sent = s->out_bytes;
}

/* The frame becomes the output. False: a value does not fit. */
static bool put_frame(struct iwarp_setup *s, const struct iwarp_mpa *mpa)
{
	size_t bytes = iwarp_mpa_encode(mpa, s->out);

	s->out_bytes = (uint16_t)bytes;
	s->out_sent = 0;
	return bytes != 0;
}

static bool put_request(struct iwarp_setup *s)
{
	const struct iwarp_setup_params *p = &s->p;
	bool enhanced = p->revision == 2, asks = enhanced && p->peer_to_peer;

	return put_frame(s, &(struct iwarp_mpa){
		.markers = p->markers, .crc = p->crc, .revision = p->revision,
		.enhanced = enhanced, .peer_to_peer = asks,
		.rtr_send = asks && (p->rtr & IWARP_RTR_SEND),
		.rtr_write = asks && (p->rtr & IWARP_RTR_WRITE),
		.rtr_read = asks && (p->rtr & IWARP_RTR_READ),
		.ird = p->ird, .ord = p->ord,
		.private_data = p->private_data, .private_bytes = p->private_bytes,
	});
}

int iwarp_setup_open(struct iwarp_setup *s, const struct iwarp_setup_params *p, uint64_t now_ns)
{
	memset(s, 0, sizeof(*s));
	s->p = *p;
	s->p.ird = MIN(p->ird, p->ird_max);
	s->p.ord = MIN(p->ord, p->ord_max);
	if (p->initiator && !s->p.ord)
		s->p.rtr &= (uint8_t)~IWARP_RTR_READ;
	s->terms.initiator = p->initiator;
	s->state = p->initiator ? IWARP_SETUP_REQUESTING : IWARP_SETUP_LISTENING;
	s->deadline_ns = p->wait_ns ? now_ns + p->wait_ns : 0;
	if (!p->ird_max || p->ird_max > IWARP_MPA_DEPTH_MAX || !p->ord_max ||
	    p->ord_max > IWARP_MPA_DEPTH_MAX)
		return -EINVAL;
	if (p->initiator && (!put_request(s) || (p->peer_to_peer && !s->p.rtr)))
		return -EINVAL;
	s->p.private_data = NULL;
	return 0;
}

const uint8_t *iwarp_setup_output(const struct iwarp_setup *s, size_t *bytes)
{
	*bytes = s->out_bytes - s->out_sent;
	return s->out + s->out_sent;
}

void iwarp_setup_sent(struct iwarp_setup *s, size_t bytes)
{
	s->out_sent = (uint16_t)(s->out_sent + bytes);
	if (s->state != IWARP_SETUP_REPLYING || s->out_sent < s->out_bytes)
		return;
	if (s->reply_result)
		fail(s, s->reply_result);
	else
		finish(s);
}

/* ---- terms ---- */

static uint8_t rtr_of(const struct iwarp_mpa *mpa)
{
	return (uint8_t)((mpa->rtr_write ? IWARP_RTR_WRITE : 0) |
			 (mpa->rtr_read ? IWARP_RTR_READ : 0) |
			 (mpa->rtr_send ? IWARP_RTR_SEND : 0));
}

/* The first of several; 0: there is none. */
static uint8_t rtr_first(uint8_t options)
{
	return (uint8_t)(options & -options);
}

static void agree(struct iwarp_setup *s)
{
	s->terms.markers_in = s->p.markers;
	s->terms.markers_out = s->peer.markers;
	s->terms.crc = s->p.crc || s->peer.crc;
}

/* ---- the responder ---- */

/* `result`: of the set-up, when the reply is sent. */
static bool reply(struct iwarp_setup *s, const struct iwarp_mpa *mpa, int result)
{
	if (!put_frame(s, mpa))
		return false;
	s->state = IWARP_SETUP_REPLYING;
	s->reply_result = result;
	return true;
}

/* What this end does not do. The reply has no M, or it would be wanted. */
static void refuse(struct iwarp_setup *s, uint8_t revision)
{
	reply(s, &(struct iwarp_mpa){ .reply = true, .reject = true, .revision = revision },
	      -EPROTO);
}

static void take_request(struct iwarp_setup *s)
{
	if (s->peer.markers && !s->p.sends_markers) {
		refuse(s, s->peer.revision);
		return;
	}
	s->state = IWARP_SETUP_DECIDING;
	s->deadline_ns = 0;
}

static void negotiate_accepted(struct iwarp_setup *s, uint16_t ird, uint16_t ord)
{
	struct iwarp_terms *t = &s->terms;

	agree(s);
	t->ird = MIN(ird, s->p.ird_max);
	t->ord = MIN(ord, s->p.ord_max);
	if (!s->peer.enhanced)
		return;
	t->ird = MAX(t->ird, MIN(s->peer.ord, s->p.ird_max));
	t->ord = MIN(t->ord, s->peer.ird);
	if (!s->peer.peer_to_peer)
		return;
	t->rtr = rtr_first(rtr_of(&s->peer) & s->p.rtr);
	if (!t->rtr)
		t->rtr = IWARP_RTR_WRITE;
	if (t->rtr == IWARP_RTR_READ)
		t->ird = MAX(t->ird, 1);
}

int iwarp_setup_accept(struct iwarp_setup *s, uint16_t ird, uint16_t ord,
		       const uint8_t *private_data, uint16_t private_bytes)
{
	const struct iwarp_terms before = s->terms;

	negotiate_accepted(s, ird, ord);
	if (reply(s, &(struct iwarp_mpa){
		.reply = true, .markers = s->p.markers, .crc = s->terms.crc,
		.revision = s->peer.revision, .enhanced = s->peer.enhanced,
		.peer_to_peer = s->terms.rtr != 0,
		.rtr_send = s->terms.rtr == IWARP_RTR_SEND,
		.rtr_write = s->terms.rtr == IWARP_RTR_WRITE,
		.rtr_read = s->terms.rtr == IWARP_RTR_READ,
		.ird = s->terms.ird, .ord = s->terms.ord,
		.private_data = private_data, .private_bytes = private_bytes,
	}, 0))
		return 0;
	s->terms = before;
	return -EINVAL;
}

int iwarp_setup_reject(struct iwarp_setup *s, const uint8_t *private_data,
		       uint16_t private_bytes)
{
	return reply(s, &(struct iwarp_mpa){
		.reply = true, .reject = true, .crc = s->peer.crc, .revision = s->peer.revision,
		.enhanced = s->peer.enhanced, .ird = s->peer.ord, .ord = s->peer.ird,
		.private_data = private_data, .private_bytes = private_bytes,
	}, -ECONNREFUSED) ? 0 : -EINVAL;
}

/* ---- the initiator ---- */

static void negotiate_reply(struct iwarp_setup *s)
{
	struct iwarp_terms *t = &s->terms;

	agree(s);
	t->ird = s->p.ird;
	t->ord = s->p.ord;
	if (!s->peer.enhanced)
		return;
	t->ird = MAX(t->ird, MIN(s->peer.ord, s->p.ird_max));
	t->ord = MIN(t->ord, s->peer.ird);
	if (s->p.peer_to_peer && s->peer.peer_to_peer)
		t->rtr = rtr_first(rtr_of(&s->peer) & s->p.rtr &
				   (t->ord ? ~0 : ~IWARP_RTR_READ));
}

static void take_reply(struct iwarp_setup *s)
{
	const struct iwarp_mpa *peer = &s->peer;

	if (peer->reject) {
		fail(s, -ECONNREFUSED);
		return;
	}
	if (peer->markers && !s->p.sends_markers) {
		fail(s, -EPROTO);
		return;
	}
	if (s->p.revision == 2 && !peer->enhanced) {
		fail(s, -ECONNRESET);
		return;
	}
	negotiate_reply(s);
	finish(s);
	if (peer->enhanced && peer->ord > s->terms.ird)
		s->terminate = IWARP_MPA_IRD;
	else if (s->p.peer_to_peer && peer->peer_to_peer && !s->terms.rtr)
		s->terminate = IWARP_MPA_RTR;
	if (s->terminate)
		fail(s, s->terminate == IWARP_MPA_IRD ? -ENOMEM : -EPROTO);
}

/* ---- bytes ---- */

static void take_broken(struct iwarp_setup *s, enum iwarp_error error)
{
	s->broken = error;
	/* Linux's siw rejects this one, and closes without a reply on the others. */
	if (error == IWARP_MPA_ENHANCED && !s->p.initiator)
		refuse(s, 2);
	else
		fail(s, -EPROTO);
}

static void take_frame(struct iwarp_setup *s, const uint8_t **data, size_t *bytes)
{
	size_t whole = IWARP_MPA_HEADER_BYTES;

	while (*bytes) {
		size_t n = MIN(*bytes, whole - s->in_bytes);
		enum iwarp_error error;

		memcpy(s->in + s->in_bytes, *data, n);
		s->in_bytes = (uint16_t)(s->in_bytes + n);
		*data += n;
		*bytes -= n;
		error = iwarp_mpa_decode(s->in, s->in_bytes, s->p.initiator, &s->peer, &whole);
		if (error) {
			take_broken(s, error);
			return;
		}
		if (s->in_bytes < whole)
			continue;
		if (s->p.initiator)
			take_reply(s);
		else
			take_request(s);
		return;
	}
}

void iwarp_setup_take(struct iwarp_setup *s, const uint8_t **data, size_t *bytes)
{
	if (!*bytes)
		return;
	switch ((enum iwarp_setup_state)s->state) {
	case IWARP_SETUP_REQUESTING:
		/* A reply to half a request. */
		if (s->out_sent < s->out_bytes)
			fail(s, -EPROTO);
		else
			take_frame(s, data, bytes);
		break;
	case IWARP_SETUP_LISTENING:
		take_frame(s, data, bytes);
		break;
	case IWARP_SETUP_DECIDING:
	case IWARP_SETUP_REPLYING:
		fail(s, -EPROTO);
		break;
	case IWARP_SETUP_DONE:
	case IWARP_SETUP_FAILED:
		break;
	}
}

void iwarp_setup_ended(struct iwarp_setup *s)
{
	if (s->state < IWARP_SETUP_DONE)
		fail(s, -ECONNRESET);
}

void iwarp_setup_timer(struct iwarp_setup *s, uint64_t now_ns)
{
	if (s->deadline_ns && now_ns >= s->deadline_ns && s->state < IWARP_SETUP_DONE)
		fail(s, -ETIMEDOUT);
}

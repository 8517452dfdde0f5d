/* SPDX-License-Identifier: BSD-2-Clause */
/* RMPP: the header, the sender, the receiver; see rmpp.h. */
#include "wire/mad/rmpp.h"

#include <errno.h>
#include <string.h>

enum { AT_METHOD = 3, FIRST_WINDOW = 1 };

#define OF struct mad_rmpp
static const struct wire_field rmpp_rows[] = {
	WIRE_BITS(OF, version, 0, 0, 8),
	WIRE_BITS(OF, type, 1, 0, 8),
	WIRE_BITS(OF, resp_time, 2, 0, 5),
	WIRE_BITS(OF, flags, 2, 5, 3),
	WIRE_BITS(OF, status, 3, 0, 8),
	WIRE_BITS(OF, segment, 4, 0, 32),
	WIRE_BITS(OF, length, 8, 0, 32),
};
WIRE_LAYOUT(mad_rmpp, "RMPP header", rmpp_rows);

static size_t data_bytes(const struct mad_rmpp_config *config)
{
	return MAD_RMPP_CLASS_BYTES - config->class_bytes;
}

static bool config_valid(const struct mad_rmpp_config *config)
{
	return config->window && config->class_bytes < MAD_RMPP_CLASS_BYTES;
}

static uint64_t later(uint64_t now_ns, uint64_t ns)
{
	return ns > UINT64_MAX - now_ns ? UINT64_MAX : now_ns + ns;
}

static void header_put(uint8_t *packet, uint8_t type, uint8_t flags, uint8_t status,
		       uint32_t segment, uint32_t length)
{
	const struct mad_rmpp rmpp = {
		.version = MAD_RMPP_VERSION,
		.type = type,
		.resp_time = MAD_RMPP_NO_RESP_TIME,
		.flags = MAD_RMPP_ACTIVE | flags,
		.status = status,
		.segment = segment,
		.length = length,
	};

	mad_rmpp_pack(&rmpp, packet + MAD_RMPP_AT);
}

/* ---- sender ---- */

int mad_rmpp_send_begin(struct mad_rmpp_sender *s, const struct mad_rmpp_config *config,
			const uint8_t head[MAD_BYTES], const uint8_t *data, size_t bytes,
			uint64_t now_ns)
{
	size_t segments;

	/* The payload length of the first segment counts the headers of all, in 32 bits. */
	if (!config_valid(config) || bytes / data_bytes(config) >= UINT32_MAX / MAD_RMPP_CLASS_BYTES)
		return -EINVAL;
	segments = (bytes + data_bytes(config) - 1) / data_bytes(config);
	*s = (struct mad_rmpp_sender){
		.config = *config,
		.data = data,
		.bytes = bytes,
		.segments = segments ? (uint32_t)segments : 1,
		.next = 1,
		.window_last = FIRST_WINDOW,
		.due_ns = UINT64_MAX,
		.end_ns = later(now_ns, config->total_ns),
	};
	memcpy(s->head, head, MAD_RMPP_CLASS_AT + config->class_bytes);
	return 0;
}

/* Ends the transaction; the receiver is told by an ABORT. */
static void send_fail(struct mad_rmpp_sender *s, uint8_t status)
{
	s->state = MAD_RMPP_FAILED;
	s->status = status;
	s->abort_pending = true;
}

static uint32_t send_limit(const struct mad_rmpp_sender *s)
{
	return s->window_last < s->segments ? s->window_last : s->segments;
}

static void segment_put(const struct mad_rmpp_sender *s, uint32_t segment, uint8_t *out)
{
	const size_t each = data_bytes(&s->config), at = (segment - 1) * each;
	const size_t count = s->bytes - at < each ? s->bytes - at : each;
	const bool first = segment == 1, last = segment == s->segments;
	uint32_t length = 0;

	if (first)
		length = s->segments * s->config.class_bytes + (uint32_t)s->bytes;
	if (last)
		length = s->config.class_bytes + (uint32_t)count;
	memcpy(out, s->head, MAD_BYTES);
	header_put(out, MAD_RMPP_DATA,
		   (uint8_t)((first ? MAD_RMPP_FIRST : 0) | (last ? MAD_RMPP_LAST : 0)), MAD_RMPP_OK,
		   segment, length);
	if (count)
		memcpy(out + MAD_RMPP_CLASS_AT + s->config.class_bytes, s->data + at, count);
}

/* No ACK has come in time: repeats the segments behind the last one that was acknowledged. There
 * are none if that ACK gave no new window; then the sender waits once more. */
static void send_again(struct mad_rmpp_sender *s, uint64_t now_ns)
{
	if (++s->tries > s->config.retries)
		send_fail(s, MAD_RMPP_TOO_MANY_RETRIES);
	s->next = s->acked + 1;
	s->due_ns = later(now_ns, s->config.timeout_ns);
}

bool mad_rmpp_send_next(struct mad_rmpp_sender *s, uint64_t now_ns, uint8_t out[MAD_BYTES])
{
	if (s->state == MAD_RMPP_RUNNING && now_ns >= s->end_ns)
		send_fail(s, MAD_RMPP_TOO_LONG);
	else if (s->state == MAD_RMPP_RUNNING && s->next > send_limit(s) && now_ns >= s->due_ns)
		send_again(s, now_ns);
	if (s->abort_pending) {
		s->abort_pending = false;
		memcpy(out, s->head, MAD_BYTES);
		header_put(out, MAD_RMPP_ABORT, 0, s->status, 0, 0);
		return true;
	}
	if (s->state != MAD_RMPP_RUNNING || s->next > send_limit(s))
		return false;
	segment_put(s, s->next, out);
	if (s->next > s->sent)
		s->sent = s->next;
	if (++s->next > send_limit(s))
		s->due_ns = later(now_ns, s->config.timeout_ns);
	return true;
}

uint64_t mad_rmpp_send_due_ns(const struct mad_rmpp_sender *s)
{
	if (s->abort_pending)
		return 0;
	if (s->state != MAD_RMPP_RUNNING)
		return UINT64_MAX;
	if (s->next <= send_limit(s))
		return 0;
	return s->due_ns < s->end_ns ? s->due_ns : s->end_ns;
}

static void ack_received(struct mad_rmpp_sender *s, const struct mad_rmpp *ack, uint64_t now_ns)
{
	if (ack->status)
		send_fail(s, MAD_RMPP_BAD_STATUS);
	else if (ack->segment > s->sent)
		send_fail(s, MAD_RMPP_SEGMENT_TOO_BIG);
	else if (ack->length < ack->segment)
		send_fail(s, MAD_RMPP_WINDOW_TOO_SMALL);
	if (s->state != MAD_RMPP_RUNNING || ack->segment < s->acked)
		return;
	if (ack->segment > s->acked || ack->length > s->window_last) {
		s->tries = 0;
		s->due_ns = later(now_ns, s->config.timeout_ns);
	}
	s->acked = ack->segment;
	if (s->next <= s->acked)
		s->next = s->acked + 1;
	if (ack->length > s->window_last)
		s->window_last = ack->length;
	if (s->acked == s->segments)
		s->state = MAD_RMPP_DONE;
}

void mad_rmpp_send_receive(struct mad_rmpp_sender *s, const uint8_t packet[MAD_BYTES],
			   uint64_t now_ns)
{
	struct mad_rmpp rmpp;

	if (s->state != MAD_RMPP_RUNNING)
		return;
	mad_rmpp_unpack(packet + MAD_RMPP_AT, &rmpp);
	if (rmpp.version != MAD_RMPP_VERSION) {
		send_fail(s, MAD_RMPP_BAD_VERSION);
		return;
	}
	switch (rmpp.type) {
	case MAD_RMPP_ACK:
		ack_received(s, &rmpp, now_ns);
		break;
	case MAD_RMPP_STOP:
	case MAD_RMPP_ABORT:
		s->state = MAD_RMPP_FAILED;
		s->status = rmpp.status;
		break;
	default:
		send_fail(s, MAD_RMPP_BAD_TYPE);
		break;
	}
}

/* ---- receiver ---- */

int mad_rmpp_receive_begin(struct mad_rmpp_receiver *r, const struct mad_rmpp_config *config,
			   uint8_t *buffer, size_t capacity, uint64_t now_ns)
{
	if (!config_valid(config))
		return -EINVAL;
	*r = (struct mad_rmpp_receiver){
		.config = *config,
		.buffer = buffer,
		.capacity = capacity,
		.expected = 1,
		.window_last = FIRST_WINDOW,
		.end_ns = later(now_ns, config->total_ns),
	};
	return 0;
}

/* The packet, with its headers and without data, back to its sender. */
static bool reply_make(const struct mad_rmpp_receiver *r, const uint8_t *packet, uint8_t *reply)
{
	memset(reply, 0, MAD_BYTES);
	memcpy(reply, packet, MAD_RMPP_CLASS_AT + r->config.class_bytes);
	reply[AT_METHOD] ^= MAD_RESPONSE;
	if (r->state == MAD_RMPP_FAILED)
		header_put(reply,
			   r->status == MAD_RMPP_NO_RESOURCES ? MAD_RMPP_STOP : MAD_RMPP_ABORT, 0,
			   r->status, 0, 0);
	else
		header_put(reply, MAD_RMPP_ACK, 0, MAD_RMPP_OK, r->expected - 1, r->window_last);
	return true;
}

static void receive_fail(struct mad_rmpp_receiver *r, uint8_t status)
{
	r->state = MAD_RMPP_FAILED;
	r->status = status;
}

/* Which rule a DATA packet breaks. */
static uint8_t data_fault(const struct mad_rmpp_receiver *r, const struct mad_rmpp *data)
{
	if (data->status)
		return MAD_RMPP_BAD_STATUS;
	if (!(data->flags & MAD_RMPP_FIRST) != (data->segment != 1))
		return MAD_RMPP_BAD_FIRST;
	if (data->flags & MAD_RMPP_LAST &&
	    (data->length < r->config.class_bytes || data->length > MAD_RMPP_CLASS_BYTES))
		return MAD_RMPP_BAD_LENGTH;
	return MAD_RMPP_OK;
}

/* The next segment. Returns whether an ACK is due: behind the last segment of the window. */
static bool segment_take(struct mad_rmpp_receiver *r, const struct mad_rmpp *data,
			 const uint8_t *packet)
{
	const bool last = data->flags & MAD_RMPP_LAST;
	const size_t bytes = last ? data->length - r->config.class_bytes : data_bytes(&r->config);

	if (bytes > r->capacity - r->bytes || r->expected == UINT32_MAX) {
		receive_fail(r, MAD_RMPP_NO_RESOURCES);
		return true;
	}
	if (bytes)
		memcpy(r->buffer + r->bytes, packet + MAD_RMPP_CLASS_AT + r->config.class_bytes,
		       bytes);
	r->bytes += bytes;
	if (last)
		r->state = MAD_RMPP_DONE;
	else if (r->expected != r->window_last)
		return r->expected++, false;
	r->window_last = r->config.window > UINT32_MAX - r->expected ?
				 UINT32_MAX : r->expected + r->config.window;
	r->expected++;
	return true;
}

static bool data_received(struct mad_rmpp_receiver *r, const struct mad_rmpp *data,
			  const uint8_t *packet, uint64_t now_ns, uint8_t *reply)
{
	uint8_t fault;

	if (!(data->flags & MAD_RMPP_ACTIVE))
		return false;
	if (r->state == MAD_RMPP_RUNNING) {
		fault = now_ns >= r->end_ns ? MAD_RMPP_TOO_LONG : data_fault(r, data);
		if (fault)
			receive_fail(r, fault);
	}
	if (r->state == MAD_RMPP_FAILED || (data->segment < r->expected && data->segment))
		return reply_make(r, packet, reply);
	if (r->state == MAD_RMPP_DONE || data->segment != r->expected)
		return false;
	return segment_take(r, data, packet) && reply_make(r, packet, reply);
}

bool mad_rmpp_receive(struct mad_rmpp_receiver *r, const uint8_t packet[MAD_BYTES],
		      uint64_t now_ns, uint8_t reply[MAD_BYTES])
{
	struct mad_rmpp rmpp;

	mad_rmpp_unpack(packet + MAD_RMPP_AT, &rmpp);
	if (r->state != MAD_RMPP_RUNNING && rmpp.type != MAD_RMPP_DATA)
		return false;
	if (rmpp.version != MAD_RMPP_VERSION) {
		if (r->state == MAD_RMPP_RUNNING)
			receive_fail(r, MAD_RMPP_BAD_VERSION);
		return reply_make(r, packet, reply);
	}
	switch (rmpp.type) {
	case MAD_RMPP_DATA:
		return data_received(r, &rmpp, packet, now_ns, reply);
	case MAD_RMPP_ACK: /* of a change of direction, which there is not */
		return false;
	case MAD_RMPP_STOP:
	case MAD_RMPP_ABORT:
		receive_fail(r, rmpp.status);
		return false;
	default:
		receive_fail(r, MAD_RMPP_BAD_TYPE);
		return reply_make(r, packet, reply);
	}
}

uint64_t mad_rmpp_receive_due_ns(const struct mad_rmpp_receiver *r)
{
	return r->state == MAD_RMPP_RUNNING ? r->end_ns : UINT64_MAX;
}

void mad_rmpp_receive_expire(struct mad_rmpp_receiver *r, uint64_t now_ns)
{
	if (r->state == MAD_RMPP_RUNNING && now_ns >= r->end_ns)
		receive_fail(r, MAD_RMPP_TOO_LONG);
}

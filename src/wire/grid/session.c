/* SPDX-License-Identifier: BSD-2-Clause */
/* See session.h. */
#include "wire/grid/session.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"

#define TRANSPORT_LENGTH 1    /* of the header of the transport protocol, behind this byte */
#define TRANSPORT_DATA 0x40   /* a unit of data */
#define COMMON_HEADER 0x80
#define PADDING 0xaf
#define SIGNATURE 0x85
#define PART_HEADER 6

/* What a reader has not read. */
struct rest {
	const uint8_t *at;
	size_t len;
	bool short_of; /* there was less than it needed */
};

static const uint8_t *take(struct rest *r, size_t count)
{
	static const uint8_t zeros[4];
	const uint8_t *at = r->at;

	if (r->len < count) {
		r->short_of = true;
		r->len = 0;
		return zeros;
	}
	r->at += count;
	r->len -= count;
	return at;
}

static uint32_t take_32(struct rest *r)
{
	return get_32(take(r, 4));
}

static uint16_t take_16(struct rest *r)
{
	return get_16(take(r, 2));
}

/* `count` bytes; they may be more than the zeros of take() are. */
static struct ber take_bytes(struct rest *r, size_t count)
{
	struct ber b = { r->at, count };

	take(r, count);
	return r->short_of ? (struct ber){ NULL, 0 } : b;
}

/* Some senders leave it out. */
static const char *take_transport(struct rest *r)
{
	uint8_t length = r->len ? *r->at : 0;

	if (length >= SESSION_TUNNELED)
		return NULL;
	take(r, 1);
	if (!length || length > r->len || *r->at != TRANSPORT_DATA)
		return "its transport header is not that of data";
	take(r, length);
	return NULL;
}

static const char *take_header(struct rest *r, struct session *s)
{
	uint8_t common;

	s->kind = *take(r, 1);
	take(r, 1); /* the length of the header, which senders count differently */
	common = *take(r, 1);
	take(r, 1);
	take_32(r); /* the length of all, likewise */
	s->number = take_32(r);
	s->version = take_16(r);
	if (r->short_of)
		return "it is shorter than a session header";
	if (s->kind < SESSION_TUNNELED || s->kind > SESSION_MANAGEMENT || common != COMMON_HEADER)
		return "it has no session header";
	if (s->version != 1 && s->version != 2)
		return "the version of its session header is none of 1 and 2";
	s->key_time = take_32(r);
	s->next_key_minutes = (int16_t)take_16(r);
	if (s->version == 1) {
		s->encryption = *take(r, 1);
		s->authentication = *take(r, 1);
	}
	s->key_id = take_32(r);
	if (s->version == 2)
		s->vector = take_bytes(r, *take(r, 1));
	return r->short_of ? "it is shorter than a session header" : NULL;
}

/* Padding and a signature, of which each may be missing. */
static const char *take_trailer(struct rest *r, struct session *s)
{
	if (r->len && *r->at == PADDING) {
		take(r, 1);
		take_bytes(r, *take(r, 1));
	}
	if (r->len && *r->at == SIGNATURE) {
		take(r, 1);
		s->signature = take_bytes(r, *take(r, 1));
	}
	return r->short_of ? "its padding or signature is longer than the datagram" :
	       r->len	   ? "bytes are left behind it" : NULL;
}

const char *session_decode(const uint8_t *data, size_t len, struct session *s)
{
	struct rest r = { data, len, false };
	const char *why = take_transport(&r);
	uint32_t length;

	*s = (struct session){ 0 };
	if (!why)
		why = take_header(&r, s);
	if (why)
		return why;
	length = take_32(&r);
	if (r.short_of || length > r.len)
		return "its payloads are longer than the datagram";
	s->payloads = take_bytes(&r, length);
	return take_trailer(&r, s);
}

const char *session_security(const struct session *s)
{
	if (s->encryption || s->vector.len)
		return "it is encrypted";
	if (s->authentication || s->signature.len)
		return "it is signed";
	return NULL;
}

/*
 * The length of the body is that of its only BER item, which senders state with or without the two
 * bytes of the length itself.
 */
int session_next(struct ber *payloads, struct session_part *p)
{
	struct rest r = { payloads->at, payloads->len, false };
	struct ber_item item;
	struct ber body;
	uint16_t stated;
	size_t len;

	if (!r.len)
		return 0;
	p->type = *take(&r, 1);
	p->simulation = *take(&r, 1);
	p->appid = take_16(&r);
	stated = take_16(&r);
	body = (struct ber){ r.at, r.len };
	if (r.short_of || ber_next(&body, &item) != 1)
		return -EPROTO;
	len = (size_t)(body.at - r.at);
	if (stated != len && stated != len + 2)
		return -EPROTO;
	p->body = (struct ber){ r.at, len };
	*payloads = body;
	return 1;
}

uint8_t *session_wrap(const struct session *s, const struct session_part *p, uint8_t *body,
		      size_t *len)
{
	uint8_t head[SESSION_HEAD_MAX], *at = head, *content, *all, *number;
	size_t size;

	*at++ = TRANSPORT_LENGTH;
	*at++ = TRANSPORT_DATA;
	*at++ = s->kind;
	all = at++;
	*at++ = COMMON_HEADER;
	content = at++;
	at += 4; /* the length of all, below */
	number = at;
	at = put_32(at, s->number);
	at = put_16(at, s->version);
	at = put_32(at, s->key_time);
	at = put_16(at, (uint16_t)s->next_key_minutes);
	if (s->version == 1)
		at = put_16(at, 0); /* no algorithms */
	at = put_32(at, s->key_id);
	if (s->version == 2)
		*at++ = 0; /* no initialization vector */
	*content = (uint8_t)(at - content - 1);
	*all = (uint8_t)(at - all - 1);
	at = put_32(at, (uint32_t)(PART_HEADER + *len));
	*at++ = p->type;
	*at++ = p->simulation;
	at = put_16(at, p->appid);
	at = put_16(at, (uint16_t)*len);
	put_32(content + 1, (uint32_t)((size_t)(at - number) + *len));
	size = (size_t)(at - head);
	*len += size;
	return memcpy(body - size, head, size);
}

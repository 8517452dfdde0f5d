/* SPDX-License-Identifier: BSD-2-Clause */
/* See packet.h. MQTT 3.1.1 and MQTT 5 (OASIS), sections 2 and 3. */
#include "gateway/node/mqtt/packet.h"

#include <errno.h>
#include <string.h>

#include "util/container_of.h"
#include "wire/bytes.h"

#define LENGTH_MAX 4 /* bytes of a number of variable length */

enum property {
	SESSION_EXPIRY = 0x11,
	SERVER_KEEPALIVE = 0x13,
	RECEIVE_MAX = 0x21,
	QOS_MAX = 0x24,
	MAY_RETAIN = 0x25,
	PACKET_MAX = 0x27,
};

/* ---- reading ---- */

struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

static const uint8_t *take(struct cursor *c, size_t len)
{
	const uint8_t *at = c->at;

	if (c->bad || (size_t)(c->end - at) < len) {
		c->bad = true;
		return NULL;
	}
	c->at += len;
	return at;
}

static unsigned take_8(struct cursor *c)
{
	const uint8_t *at = take(c, 1);

	return at ? *at : 0;
}

static unsigned take_16(struct cursor *c)
{
	const uint8_t *at = take(c, 2);

	return at ? get_16(at) : 0;
}

static uint32_t take_32(struct cursor *c)
{
	const uint8_t *at = take(c, 4);

	return at ? get_32(at) : 0;
}

static uint32_t take_length(struct cursor *c)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < LENGTH_MAX; i++) {
		unsigned byte = take_8(c);

		v |= (byte & 127) << 7 * i;
		if (!(byte & 128))
			return v;
	}
	c->bad = true;
	return 0;
}

/* How the value of a property is written; 0: there is no such property. */
static char form_of(uint32_t property)
{
	static const char forms[] = {
		[0x01] = '1', [0x02] = '4', [0x03] = 't', [0x08] = 't', [0x09] = 't', [0x0b] = 'v',
		[SESSION_EXPIRY] = '4', [0x12] = 't', [SERVER_KEEPALIVE] = '2', [0x15] = 't',
		[0x16] = 't', [0x17] = '1', [0x18] = '4', [0x19] = '1', [0x1a] = 't', [0x1c] = 't',
		[0x1f] = 't', [RECEIVE_MAX] = '2', [0x22] = '2', [0x23] = '2', [QOS_MAX] = '1',
		[MAY_RETAIN] = '1', [0x26] = 'p', [PACKET_MAX] = '4', [0x28] = '1', [0x29] = '1',
		[0x2a] = '1',
	};

	return property < sizeof(forms) ? forms[property] : 0;
}

static uint32_t take_value(struct cursor *c, char form)
{
	switch (form) {
	case '1':
		return take_8(c);
	case '2':
		return take_16(c);
	case '4':
		return take_32(c);
	case 'v':
		return take_length(c);
	case 'p':
		take(c, take_16(c));
		break;
	case 't':
		break;
	default:
		c->bad = true;
	}
	take(c, take_16(c));
	return 0;
}

static void keep(struct mqtt_packet *p, uint32_t property, uint32_t v, struct cursor *c)
{
	switch (property) {
	case SERVER_KEEPALIVE:
		p->keepalive_s = v;
		break;
	case RECEIVE_MAX:
		p->id_count_max = v;
		c->bad |= !v;
		break;
	case QOS_MAX:
		p->qos_max = v;
		break;
	case MAY_RETAIN:
		p->may_retain = v;
		break;
	case PACKET_MAX:
		p->size_max = v;
		c->bad |= !v;
		break;
	}
}

static void take_properties(struct cursor *c, struct mqtt_packet *p)
{
	uint32_t len = take_length(c);
	const uint8_t *at = take(c, len);
	struct cursor inside = { at, at ? at + len : NULL, !at };

	while (!inside.bad && inside.at < inside.end) {
		uint32_t property = take_length(&inside);

		keep(p, property, take_value(&inside, form_of(property)), &inside);
	}
	c->bad |= inside.bad;
}

static void read_publish(struct cursor *c, struct mqtt_packet *p, uint8_t first, bool v5)
{
	unsigned topic = take_16(c);

	take(c, topic);
	p->qos = first >> 1 & 3;
	p->retain = first & 1;
	if (p->qos)
		p->id = (uint16_t)take_16(c);
	if (v5)
		take_properties(c, p);
	/* The node allows no topic aliases, so each message has its topic. */
	c->bad |= !topic || p->qos == 3 || (p->qos && !p->id);
	p->data = c->at;
	p->len = (size_t)(c->end - c->at);
}

/* A code and properties, which may be missing. */
static void read_code(struct cursor *c, struct mqtt_packet *p)
{
	if (c->at < c->end)
		p->code = (uint8_t)take_8(c);
	if (c->at < c->end)
		take_properties(c, p);
}

static void read_body(struct cursor *c, struct mqtt_packet *p, uint8_t first, bool v5)
{
	switch (p->type) {
	case MQTT_CONNACK:
		p->session = take_8(c) & 1;
		p->code = (uint8_t)take_8(c);
		/* A broker that does not know version 5 says so without properties. */
		if (v5 && c->at < c->end)
			take_properties(c, p);
		break;
	case MQTT_PUBLISH:
		read_publish(c, p, first, v5);
		break;
	case MQTT_PUBACK:
	case MQTT_PUBREC:
	case MQTT_PUBREL:
	case MQTT_PUBCOMP:
		p->id = (uint16_t)take_16(c);
		c->bad |= !p->id;
		if (v5)
			read_code(c, p);
		break;
	case MQTT_SUBACK:
		p->id = (uint16_t)take_16(c);
		if (v5)
			take_properties(c, p);
		p->data = c->at;
		p->len = (size_t)(c->end - c->at);
		break;
	case MQTT_PINGRESP:
		break;
	case MQTT_DISCONNECT:
		c->bad |= !v5;
		read_code(c, p);
		break;
	default:
		c->bad = true;
	}
}

int mqtt_head_read(struct mqtt_head *h, const uint8_t *at, size_t len)
{
	struct cursor c = { at + MIN(len, (size_t)1), at + len, false };

	if (!len)
		return 0;
	*h = (struct mqtt_head){ .first = at[0], .body = take_length(&c) };
	h->size = (unsigned)(c.at - at);
	return !c.bad ? 1 : len > LENGTH_MAX ? -EPROTO : 0;
}

int mqtt_packet_read(struct mqtt_packet *p, const struct mqtt_head *h, const uint8_t *body,
		     bool v5)
{
	struct cursor c = { body, body + h->body, false };

	*p = (struct mqtt_packet){ .type = mqtt_type_of(h), .id_count_max = UINT16_MAX,
				   .qos_max = 2, .size_max = UINT32_MAX, .may_retain = true };
	read_body(&c, p, h->first, v5);
	return c.bad ? -EPROTO : 0;
}

int mqtt_publish_id(const struct mqtt_head *h, const uint8_t *body, size_t len, uint16_t *id)
{
	struct cursor c = { body, body + MIN(len, (size_t)h->body), false };
	bool has_id = h->first & 6;

	take(&c, take_16(&c));
	*id = (uint16_t)(has_id ? take_16(&c) : 0);
	if (c.bad)
		return len < h->body ? 0 : -EPROTO;
	return has_id && !*id ? -EPROTO : 1;
}

const char *mqtt_code_text(uint8_t code, bool v5)
{
	static const char *const old[] = {
		"it is accepted", "it does not know this version of MQTT", "the client_id is refused",
		"it is not available", "user or password are wrong", "not authorized",
	};
	static const char *const texts[] = {
		[0x01] = "malformed packet", [0x02] = "protocol error",
		[0x03] = "an error of its implementation",
		[0x04] = "it does not know this version of MQTT", [0x05] = "the client_id is refused",
		[0x06] = "user or password are wrong", [0x07] = "not authorized",
		[0x08] = "it is not available", [0x09] = "it is busy", [0x0a] = "it bans this client",
		[0x0b] = "it shuts down", [0x0c] = "bad way to authenticate",
		[0x0d] = "nothing came for longer than keepalive",
		[0x0e] = "another client has taken the session", [0x0f] = "the topic filter is refused",
		[0x10] = "the topic is refused", [0x11] = "the packet's id is in use",
		[0x12] = "the packet's id is unknown", [0x13] = "too many messages at a time",
		[0x15] = "the packet is too large", [0x16] = "too many messages", [0x17] = "quota exceeded",
		[0x18] = "an administrator's action", [0x19] = "the message has not the right format",
		[0x1a] = "it keeps no messages (retain)", [0x1b] = "it does not take this QoS",
		[0x1c] = "use another server", [0x1d] = "the server has moved",
		[0x1f] = "too many connections at a time", [0x20] = "the time of the connection is over",
		[0x22] = "wildcards are not allowed",
	};
	const char *text = NULL;

	if (!v5)
		return code < ARRAY_SIZE(old) ? old[code] : "not allowed";
	if (code >= MQTT_REFUSED && code - MQTT_REFUSED < (int)ARRAY_SIZE(texts))
		text = texts[code - MQTT_REFUSED];
	return text ? text : "without a reason";
}

/* ---- writing ---- */

static void put_byte(struct stream_buffer *b, unsigned v)
{
	b->at[b->end++] = (char)v;
}

static void put_word(struct stream_buffer *b, unsigned v)
{
	put_byte(b, v >> 8);
	put_byte(b, v);
}

static void put_length(struct stream_buffer *b, uint64_t v)
{
	for (; v > 127; v >>= 7)
		put_byte(b, (unsigned)v | 128);
	put_byte(b, (unsigned)v);
}

static void put_bytes(struct stream_buffer *b, const void *data, size_t len)
{
	memcpy(b->at + b->end, data, len);
	b->end += len;
}

/* NULL: nothing. */
static void put_text(struct stream_buffer *b, const char *text)
{
	if (!text)
		return;
	put_word(b, (unsigned)strlen(text));
	put_bytes(b, text, strlen(text));
}

static size_t text_size(const char *text)
{
	return text ? 2 + strlen(text) : 0;
}

/* The head, and room for what follows it. */
static int put_head(struct stream_buffer *b, unsigned first, uint64_t body)
{
	if (stream_buffer_reserve(b, body + 1 + LENGTH_MAX))
		return -ENOMEM;
	put_byte(b, first);
	put_length(b, body);
	return 0;
}

static unsigned connect_flags(const struct mqtt_connect *c)
{
	return (c->user ? 0x80u : 0) | (c->password ? 0x40u : 0) | (c->clean ? 0x02u : 0) |
	       (c->will_topic ? 0x04u | c->will_qos << 3 | (c->will_retain ? 0x20u : 0) : 0);
}

int mqtt_put_connect(struct stream_buffer *b, const struct mqtt_connect *c)
{
	const char *id = c->id ? c->id : "";
	/* Length of properties, and the expiry of the session. */
	size_t properties = !c->v5 ? 0 : c->clean ? 1 : 6;
	size_t body = 10 + properties + text_size(id) + text_size(c->will_topic) +
		      (c->v5 && c->will_topic) + text_size(c->will) + text_size(c->user) +
		      text_size(c->password);

	if (put_head(b, MQTT_CONNECT << 4, body))
		return -ENOMEM;
	put_text(b, "MQTT");
	put_byte(b, c->v5 ? 5 : 4);
	put_byte(b, connect_flags(c));
	put_word(b, c->keepalive_s);
	if (c->v5)
		put_byte(b, c->clean ? 0 : 5);
	if (c->v5 && !c->clean) {
		put_byte(b, SESSION_EXPIRY);
		put_word(b, c->expiry_s >> 16);
		put_word(b, c->expiry_s);
	}
	put_text(b, id);
	if (c->v5 && c->will_topic)
		put_byte(b, 0);
	put_text(b, c->will_topic);
	put_text(b, c->will);
	put_text(b, c->user);
	put_text(b, c->password);
	return 0;
}

static uint64_t publish_body(const struct mqtt_publish *p)
{
	return text_size(p->topic) + (p->qos ? 2u : 0) + p->v5 + (uint64_t)p->len;
}

uint64_t mqtt_publish_size(const struct mqtt_publish *p)
{
	uint64_t body = publish_body(p), size = body + 2;

	for (; body > 127; body >>= 7)
		size++;
	return size;
}

int mqtt_put_publish(struct stream_buffer *b, const struct mqtt_publish *p)
{
	unsigned first = MQTT_PUBLISH << 4 | (p->again ? 8u : 0) | p->qos << 1 | p->retain;

	if (put_head(b, first, publish_body(p)))
		return -ENOMEM;
	put_text(b, p->topic);
	if (p->qos)
		put_word(b, p->id);
	if (p->v5)
		put_byte(b, 0);
	put_bytes(b, p->data, p->len);
	return 0;
}

int mqtt_put_subscribe(struct stream_buffer *b, uint16_t id, const char *const topics[],
		       unsigned count, unsigned qos, bool v5)
{
	size_t body = 2 + (size_t)v5;

	for (unsigned i = 0; i < count; i++)
		body += text_size(topics[i]) + 1;
	if (put_head(b, MQTT_SUBSCRIBE << 4 | 2, body))
		return -ENOMEM;
	put_word(b, id);
	if (v5)
		put_byte(b, 0);
	for (unsigned i = 0; i < count; i++) {
		put_text(b, topics[i]);
		put_byte(b, qos);
	}
	return 0;
}

int mqtt_put_answer(struct stream_buffer *b, enum mqtt_type type, uint16_t id)
{
	if (put_head(b, type << 4 | (type == MQTT_PUBREL ? 2u : 0), 2))
		return -ENOMEM;
	put_word(b, id);
	return 0;
}

int mqtt_put_empty(struct stream_buffer *b, enum mqtt_type type)
{
	return put_head(b, type << 4, 0);
}

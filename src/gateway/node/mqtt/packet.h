/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of MQTT 3.1.1 and 5, as a client reads and writes them. No descriptors, no clock. Of the
 * properties of version 5 it keeps those of a CONNACK that bound what the client may send; all
 * others are checked and passed over.
 */
#ifndef GATEWAY_NODE_MQTT_PACKET_H
#define GATEWAY_NODE_MQTT_PACKET_H

#include "gateway/stream/stream.h"

#include <stdint.h>

/* Bytes behind the head of a packet, at most. */
#define MQTT_BODY_MAX 268435455
#define MQTT_TEXT_MAX 65535

enum mqtt_type {
	MQTT_CONNECT = 1, MQTT_CONNACK, MQTT_PUBLISH, MQTT_PUBACK, MQTT_PUBREC, MQTT_PUBREL,
	MQTT_PUBCOMP, MQTT_SUBSCRIBE, MQTT_SUBACK, MQTT_PINGREQ = 12, MQTT_PINGRESP,
	MQTT_DISCONNECT,
};

/* Codes from this one on are refusals. */
#define MQTT_REFUSED 0x80
#define MQTT_NO_READER 0x10

struct mqtt_head {
	uint8_t first;       /* type and flags */
	uint32_t body;       /* bytes that follow */
	unsigned size;       /* of the head */
};

struct mqtt_packet {
	enum mqtt_type type;
	unsigned qos;
	bool retain;
	uint16_t id;
	uint8_t code;        /* of CONNACK, PUBACK to PUBCOMP, DISCONNECT */
	bool session;        /* CONNACK: the broker has kept it */
	/* Of a PUBLISH the message; of a SUBACK the codes. Borrowed. */
	const uint8_t *data;
	size_t len;
	/* Of a CONNACK */
	unsigned id_count_max, qos_max, keepalive_s; /* the last: 0: as the client said */
	uint32_t size_max;
	bool may_retain;
};

static inline enum mqtt_type mqtt_type_of(const struct mqtt_head *h)
{
	return h->first >> 4;
}

/* 1; 0: it has not come completely; -EPROTO. */
int mqtt_head_read(struct mqtt_head *h, const uint8_t *at, size_t len);
/* Reads the h->body bytes behind the head. 0, or -EPROTO: no packet that a broker sends. */
int mqtt_packet_read(struct mqtt_packet *p, const struct mqtt_head *h, const uint8_t *body,
		     bool v5);
/* The id (0: none) of a PUBLISH of whose body `len` bytes have come. 1, 0 or -EPROTO, as above. */
int mqtt_publish_id(const struct mqtt_head *h, const uint8_t *body, size_t len, uint16_t *id);
/* The meaning of a reason code, as a text. */
const char *mqtt_code_text(uint8_t code, bool v5);

struct mqtt_connect {
	bool v5, clean;
	uint16_t keepalive_s;
	uint32_t expiry_s;           /* of the session, unless `clean` */
	/* NULL: without. */
	const char *id, *user, *password, *will_topic, *will;
	unsigned will_qos;
	bool will_retain;
};

/* A message for one topic; `id` with QoS above 0. */
struct mqtt_publish {
	bool v5, retain, again;      /* again: it was sent before */
	unsigned qos;
	uint16_t id;
	const char *topic;
	const void *data;
	size_t len;
};

/* They add a packet, of texts of MQTT_TEXT_MAX bytes at most. 0 or -ENOMEM. */
int mqtt_put_connect(struct stream_buffer *b, const struct mqtt_connect *c);
int mqtt_put_publish(struct stream_buffer *b, const struct mqtt_publish *p);
int mqtt_put_subscribe(struct stream_buffer *b, uint16_t id, const char *const topics[],
		       unsigned count, unsigned qos, bool v5);
/* PUBACK, PUBREC, PUBREL, PUBCOMP. */
int mqtt_put_answer(struct stream_buffer *b, enum mqtt_type type, uint16_t id);
/* PINGREQ, DISCONNECT. */
int mqtt_put_empty(struct stream_buffer *b, enum mqtt_type type);
/* Bytes of such a PUBLISH. */
uint64_t mqtt_publish_size(const struct mqtt_publish *p);

#endif

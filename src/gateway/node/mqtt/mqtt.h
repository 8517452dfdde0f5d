/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `mqtt`, for its own files: mqtt.c has the settings, connect.c connects, turn.c sends
 * and takes messages, packet.c has the packets. */
#ifndef GATEWAY_NODE_MQTT_MQTT_H
#define GATEWAY_NODE_MQTT_MQTT_H

#include <stdint.h>

#include "gateway/node/mqtt/packet.h"
#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "gateway/outside/outside_stream.h"
#include "util/container_of.h"

#define MQTT_TOPICS_MAX 64

enum {
	MQTT_RETAINED = OUTSIDE_FIGURES,
	MQTT_UNHEARD,
};

enum mqtt_phase { MQTT_CONNECTING, MQTT_SUBSCRIBING, MQTT_UP };

/* The state of a packet identifier. */
enum {
	MQTT_ID_FREE,
	MQTT_ID_SENT,
	MQTT_ID_RELEASED,           /* QoS 2: the broker has the message, and not its PUBREL */
	MQTT_ID_OLD = 0x80,         /* beside one of both: of the connection before this one */
};

struct mqtt_node {
	struct outside outside;     /* first */

	/* Settings */
	const char *host, *username, *password, *password_file, *client_id;
	int64_t port, qos, keepalive_s, session_expiry_s, in_message_max;
	bool retain, clean_session, skip_retained;
	int version;                /* 0: 3.1.1, 1: 5 */
	json_t *subscribe, *publish, *will_cfg, *ssl;
	struct outside_tls tls;
	struct {
		const char *topic, *payload;
		int64_t qos;
		bool retain;
	} will;
	const char *sub[MQTT_TOPICS_MAX], *pub[MQTT_TOPICS_MAX];
	unsigned sub_count, pub_count;
	char target[300];

	/* From start to stop: the session */
	uint8_t out_ids[UINT16_MAX + 1];
	uint8_t in_ids[(UINT16_MAX + 1) / 8]; /* QoS 2: a bit for each message whose PUBREL is due */
	uint16_t last_id;

	/* State of the connection */
	enum mqtt_phase phase;
	struct stream stream;
	struct outside_input in;
	size_t skip;                /* bytes of a packet that is not read */
	uint16_t sub_id;
	unsigned in_flight, in_flight_max; /* numbers in use, and how many the broker allows */
	uint32_t size_max;          /* of a packet that it takes */
	uint64_t keepalive_ns, sent_ns;
	uint64_t ping_ns;           /* since when an answer is due; 0: none */
};

static inline struct mqtt_node *mqtt_of(struct outside *o)
{
	return container_of(o, struct mqtt_node, outside);
}

/* connect.c */
int mqtt_open(struct outside *o);
void mqtt_close(struct outside *o);
/* A session begins; `kept`: or goes on. */
void mqtt_start_session(struct mqtt_node *m, bool kept);
/* The last one of `count` numbers in a row that are free; 0: there are none. */
uint16_t mqtt_take_ids(struct mqtt_node *m, unsigned count);
/* The broker's answers: 0 or a negative errno with the reason. */
int mqtt_connected(struct mqtt_node *m, const struct mqtt_packet *p);
int mqtt_subscribed(struct mqtt_node *m, const struct mqtt_packet *p);
int mqtt_refused(struct mqtt_node *m, const char *what, uint8_t code);
/* Returns -EPROTO. */
int mqtt_nonsense(struct mqtt_node *m, const char *what);

/* turn.c */
int mqtt_send(struct outside *o, struct outbox_message *msg);
int mqtt_turn(struct outside *o);
unsigned mqtt_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);

#endif

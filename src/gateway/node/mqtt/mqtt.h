/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `mqtt`, for its own files: mqtt.c has the settings and the messages, connect.c the
 * connection. */
#ifndef GATEWAY_NODE_MQTT_MQTT_H
#define GATEWAY_NODE_MQTT_MQTT_H

#include <mosquitto.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define MQTT_TOPICS_MAX 64

enum {
	MQTT_RETAINED = OUTSIDE_FIGURES,
	MQTT_UNHEARD,
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

	/* From start to stop */
	struct mosquitto *client;
	bool connected_once;
	unsigned subscribed;        /* topics that the broker has confirmed */
	unsigned received;          /* messages */
	int refused;                /* a negative errno: the broker refuses us */
	char last_error[200];       /* that the library has logged */
};

static inline struct mqtt_node *mqtt_of(struct outside *o)
{
	return container_of(o, struct mqtt_node, outside);
}

/* connect.c */
int mqtt_open(struct outside *o);
void mqtt_close(struct outside *o);
int mqtt_turn(struct outside *o);
unsigned mqtt_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
/* Ends what mqtt_open() keeps from connection to connection. */
void mqtt_forget(struct mqtt_node *m);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `influxdb`, for its own files: influxdb.c has the settings, line.c the text of
 * samples, write.c the requests of HTTP, udp.c the datagrams.
 */
#ifndef GATEWAY_NODE_INFLUXDB_INFLUXDB_H
#define GATEWAY_NODE_INFLUXDB_INFLUXDB_H

#include "gateway/outside/http/outside_http.h"
#include "util/container_of.h"

#define INFLUX_BATCH_MAX 100000
#define INFLUX_TARGET 300

enum influx_transport { INFLUX_UDP, INFLUX_HTTP };
enum influx_precision { INFLUX_NS, INFLUX_US, INFLUX_MS, INFLUX_S };

enum {
	INFLUX_REQUESTS = OUTSIDE_FIGURES,
	INFLUX_LATER,
	INFLUX_LEFT_OUT,
};

struct influx_message {
	uint64_t tag;
	size_t len;
	unsigned samples;
};

struct influx_node {
	struct outside outside;     /* first */

	/* Settings */
	const char *server, *key, *url, *database, *retention, *username, *password,
		*password_file, *org, *bucket, *token, *token_file, *sequence;
	int transport, version;     /* version 0: 1, 1: 2 */
	int precision;              /* enum influx_precision */
	int64_t batch_max;
	double timeout_s;
	json_t *tags, *ssl;
	struct outside_tls tls;
	char *series;               /* the key with the tags, as lines begin */
	char target[INFLUX_TARGET];

	/* From start to stop, of UDP */
	int fd;
	bool is_full;               /* the socket takes no more now */
	unsigned last_samples;      /* of the last datagram */

	/* Of HTTP: lines of messages that are sent, or will be by the next request */
	struct outside_http http;
	struct outside_http_call call;
	char write_url[OUTSIDE_HTTP_URL];
	char *text;
	size_t text_size, text_len, text_first; /* the first byte that is not confirmed */
	struct influx_message *messages;
	unsigned count, first;      /* messages, and the first that is not confirmed */
	unsigned part;              /* messages of the request */
	size_t part_len;
	unsigned part_max;          /* after an error, fewer messages at a time */
	bool is_checked;            /* the server has taken the first, empty request */
	uint64_t later_ns;          /* not before that time */
};

static inline struct influx_node *influx_of(struct outside *o)
{
	return container_of(o, struct influx_node, outside);
}

/* line.c */
/* The beginning of all lines, from `key` and `tags`. 0, -EINVAL after config_fail() or
 * -ENOMEM. */
int influx_series_make(struct influx_node *x, struct config *c, json_t *cfg);
/* Whether the protocol can hold a name of a field or tag. */
bool influx_name_is_good(const char *name);
/* As outside_ops.print(). */
int influx_print(struct outside *o, char *buf, size_t size, size_t *used,
		 struct sample *const smps[], unsigned cnt);

/* udp.c, write.c */
extern const struct outside_ops influx_udp_ops, influx_http_ops;

#endif

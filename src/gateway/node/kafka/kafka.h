/* SPDX-License-Identifier: BSD-2-Clause */
/* Node-type `kafka`, for its own files: kafka.c has the settings and the messages that are
 * written, client.c the clients of librdkafka, connect.c what is asked of the brokers and what
 * comes from them. */
#ifndef GATEWAY_NODE_KAFKA_KAFKA_H
#define GATEWAY_NODE_KAFKA_KAFKA_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>

#include "gateway/outside/outside.h"
#include "gateway/outside/settings.h"
#include "util/container_of.h"

#define KAFKA_TOPICS_MAX 64

enum {
	KAFKA_PARTITIONS = OUTSIDE_FIGURES,
	KAFKA_ASSIGNMENTS,
};

enum kafka_protocol { KAFKA_PLAINTEXT, KAFKA_SSL, KAFKA_SASL_PLAINTEXT, KAFKA_SASL_SSL };

/* One of librdkafka, which has threads and connections of its own. */
struct kafka_client {
	rd_kafka_t *rk;             /* NULL: there is none */
	rd_kafka_queue_t *queue;    /* of what it tells us */
	bool down;                  /* it has said that no broker is connected */
};

struct kafka_node {
	struct outside outside;     /* first */

	/* Settings */
	const char *server, *client_id, *produce, *key, *group_id;
	double timeout_s;           /* 0: connect_timeout holds */
	int64_t partition;          /* -1: the library chooses */
	int protocol, acks, reset;  /* places in their lists of names */
	bool idempotence;
	json_t *consume, *ssl, *sasl_cfg, *properties, *in_properties, *out_properties;
	struct outside_tls tls;
	struct {
		const char *mechanisms, *username, *password, *password_file;
	} sasl;
	const char *topics[KAFKA_TOPICS_MAX];
	unsigned topic_count;
	char target[300];

	/* Of a producer that the library repeats for, and of one whose messages are to be sent
	 * again by gateway/outside. */
	const struct outside_ops *ops, *again_ops;

	/* From start to stop */
	struct kafka_client producer, consumer;
	rd_kafka_topic_t *topic;    /* of the producer */
	int event_fd;               /* readable when a client has something to tell */
	bool more;                  /* the last turn has not taken everything */
	bool assigned;              /* the consumer knows its partitions */
	bool subscribed;
	bool disturbed;             /* a connection of the producer has broken */
	bool fatal;                 /* the producer cannot go on */
	bool silent;                /* what the producer tells does not count any more */
	int refused;                /* a negative errno: a broker refuses us */
	char last_error[200];
	atomic_int distrust;        /* why a certificate was refused, an error of OpenSSL; 0: none was */
};

extern const char *const kafka_protocols[], *const kafka_acks[], *const kafka_resets[];

static inline struct kafka_node *kafka_of(struct outside *o)
{
	return container_of(o, struct kafka_node, outside);
}

static inline bool kafka_has_tls(const struct kafka_node *m)
{
	return m->protocol == KAFKA_SSL || m->protocol == KAFKA_SASL_SSL;
}

static inline bool kafka_has_sasl(const struct kafka_node *m)
{
	return m->protocol == KAFKA_SASL_PLAINTEXT || m->protocol == KAFKA_SASL_SSL;
}

/* client.c */
/* The properties of `given`, NULL or a group, are put into `conf`. 0, or -EINVAL after
 * config_fail(); with `c` NULL they are known to be right. */
int kafka_properties(rd_kafka_conf_t *conf, struct config *c, const json_t *at, const char *key,
		     const json_t *given);
/* Makes the clients that the node needs and that are not there. 0, or a negative errno with the
 * reason in o->why. */
int kafka_make_clients(struct kafka_node *m);
void kafka_end_producer(struct kafka_node *m);
/* With `leave` the group is told, if a broker answers soon. */
void kafka_end_consumer(struct kafka_node *m, bool leave);

/* connect.c */
int kafka_open(struct outside *o);
void kafka_close(struct outside *o);
int kafka_turn(struct outside *o);
unsigned kafka_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns);
/* Callbacks of the library, from calls that serve its queues; kafka_on_certificate() from the
 * library's own threads. */
void kafka_note_error(struct kafka_node *m, const char *reason);
void kafka_on_error(rd_kafka_t *rk, int err, const char *reason, void *arg);
int kafka_on_certificate(rd_kafka_t *rk, const char *broker, int32_t id, int *error, int depth,
			 const char *certificate, size_t size, char *why, size_t why_size,
			 void *arg);
void kafka_on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *arg);
void kafka_on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t err,
			rd_kafka_topic_partition_list_t *partitions, void *arg);

#endif

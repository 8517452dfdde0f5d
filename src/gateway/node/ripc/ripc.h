/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ripc node-type: samples in short messages of libbusbar-ripc. Private to this folder.
 *
 * ripc.c   configuration, life, and the callbacks of the node-type
 * read.c   samples of received messages
 * write.c  samples into messages, and the thread that looks for the service they go to
 */
#ifndef GATEWAY_NODE_RIPC_H
#define GATEWAY_NODE_RIPC_H

#include <busbar/ripc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "gateway/part/backoff.h"
#include "gateway/part/fault.h"
#include "gateway/part/socket_wait.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"

#define RIPC_DEFAULT_FORMAT "villas.binary"
/* No short message is longer. */
#define RIPC_SHORT_BYTES_MAX 2048

struct ripc_side {
	const char *name;
	int64_t id;
	json_t *format;
};

struct ripc_rx {
	struct ripc_message message;
	bool held;              /* there is one, from item and position on */
	unsigned item;
	size_t position;
	struct timespec received;
	char line[RIPC_SHORT_BYTES_MAX + 1]; /* one without its end, with it */
};

struct ripc_tx {
	char *room;
	size_t size_max;        /* of a message */
	/* The thread that looks for the service. */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ending, tried;     /* lock; tried: the first attempt is over */
	atomic_bool found;      /* `to` has got a message */
	uint32_t to;            /* of the writer and the thread, by turns (found) */
	struct backoff backoff; /* of the thread */
	char said[256];         /* why it was not found, last */
};

struct ripc_node {
	struct node *node;
	const char *address, *resolver, *secret_file;
	int64_t resolver_port, resolve_timeout_ms, connect_timeout_ms;
	int short_by;
	json_t *format;
	struct ripc_side in, out;
	int64_t reconnect_interval_ms;

	struct format *reader, *writer;

	/* From start to stop. */
	struct ripc *instance;
	struct ripc_service *service;
	int fd;                  /* of the service */
	struct socket_wait wait;
	struct fault_counters faults;
	struct ripc_rx rx;
	struct ripc_tx tx;
};

/* read.c */
int ripc_node_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);
void ripc_node_sleep(struct node *n, uint64_t until_ns);
int ripc_node_poll_fds(struct node *n, int fds[], int max);

/* write.c */
int ripc_tx_start(struct ripc_node *r); /* logs; 0 or a negative errno */
void ripc_tx_stop(struct ripc_node *r);
int ripc_node_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `c37.118`: synchrophasors by IEEE C37.118.2. `in` is a client that reads a device,
 * `out` a server that sends samples to clients; both may be in one node. Each has a thread of its
 * own for its sockets. Private to this folder.
 */
#ifndef GATEWAY_NODE_C37_NODE_H
#define GATEWAY_NODE_C37_NODE_H

#include "gateway/node/c37.118/c37_figures.h"
#include "gateway/node/c37.118/c37_layout.h"
#include "gateway/node/c37.118/c37_source.h"
#include "gateway/part/inbox.h"
#include "gateway/part/peers.h"
#include "gateway/plugin/node.h"

#define C37_ADDRESS_MAX 300
#define C37_PORT 4712 /* of TCP */

enum c37_transport { C37_TCP, C37_UDP, C37_BOTH };
enum c37_slow { C37_SLOW_DISCONNECT, C37_SLOW_SKIP };

struct c37_config_in {
	const char *address, *data_address;
	int64_t idcode, queuelen, values, reconnect_ms;
	int transport;
	bool cfg3, header, status, drop_invalid;
	double timeout_s, wait_s, tolerance_s;
	json_t *streams;
	char full_address[C37_ADDRESS_MAX]; /* with the port */
};

struct c37_config_out {
	const char *address, *header, *udp_address;
	int64_t idcode, time_base, max_clients, queue_bytes, time_quality, part_size;
	int64_t data_port;
	double data_rate, config_s;
	bool testing;
	int slow;
	json_t *pmus, *destinations, *peers_cfg;
	struct peers peers;
	char full_address[C37_ADDRESS_MAX];
};

struct c37_client;
struct c37_join;
struct c37_node;
struct c37_server;

/* A device that is read: the only one, or one of in.streams. */
struct c37_stream {
	struct c37_node *node;
	struct c37_config_in in;
	unsigned number, first, values; /* of in.streams: its values in a sample */
	struct c37_client *client;      /* from start to stop */
};

struct c37_node {
	struct inbox inbox; /* first */
	struct node *node;
	struct c37_config_in in;
	struct c37_config_out out;
	struct c37_stream *streams;
	unsigned stream_count;
	struct c37_source source;
	bool reads, writes;       /* the configuration has the group */
	bool typed;               /* in.signals stand in the configuration */

	/* From start to stop. */
	struct fault_counters faults;
	struct c37_join *join;    /* of in.streams */
	atomic_uint running;      /* streams that send data */
	struct c37_server *server;
};

/* c37_client.c */
int c37_client_start(struct c37_stream *s);
void c37_client_stop(struct c37_stream *s);

/* c37_join.c */
int c37_join_start(struct c37_node *c);
void c37_join_stop(struct c37_node *c);
/* A data frame that fits has come. Values that had no room; any thread. */
unsigned c37_join_put(struct c37_stream *stream, const struct c37_layout *layout,
		      const struct c37_frame *f, int64_t time_ns);
/* The device sends data from now on, or does not. */
void c37_join_set(struct c37_stream *stream, bool running);

/* c37_server.c. write: as struct node_type; interrupt: ends a write that waits. */
int c37_server_start(struct c37_node *c);
void c37_server_stop(struct c37_node *c);
int c37_server_write(struct c37_node *c, struct sample *smps[], unsigned cnt);
void c37_server_interrupt(struct c37_node *c);

#endif

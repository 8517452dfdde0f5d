/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node-type iec60870-5-104: a slave (controlled station) or a master. Private to this folder.
 *
 * points.c values.c   which information object each signal is, and its value
 * flow.c              what waits to be sent, of a connection and of a redundancy group
 * connection.c        one connection: the link of wire/grid on a socket
 * slave.c master.c    what ASDUs of the other end mean, and what is written
 * run.c               the thread: sockets, time-outs
 * station.c           settings and callbacks of the node-type
 *
 * The thread and the path that writes share the connections under `lock`. The path that reads
 * takes samples from the inbox.
 */
#ifndef GATEWAY_NODE_IEC60870_5_104_STATION_H
#define GATEWAY_NODE_IEC60870_5_104_STATION_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/node/iec60870-5-104/flow.h"
#include "gateway/node/iec60870-5-104/points.h"
#include "gateway/part/backoff.h"
#include "gateway/part/fault.h"
#include "gateway/part/inbox.h"
#include "gateway/part/peers.h"
#include "gateway/part/socket_address.h"
#include "gateway/plugin/node.h"
#include "gateway/stream/stream_server.h"
#include "wire/grid/iec104_link.h"

enum station_mode { STATION_SLAVE, STATION_MASTER };

enum station_figure {
	STATION_CONNECTIONS = FAULT_KINDS,
	STATION_STARTED,
	STATION_CONNECTED,
	STATION_BREACHES,
	STATION_TURNED_AWAY,
	STATION_RECEIVED,
	STATION_SENT,
	STATION_UNKNOWN,
	STATION_INVALID,
	STATION_INCOMPLETE,
	STATION_COMMANDS,
	STATION_REFUSED,
	STATION_INTERROGATIONS,
	STATION_FREEZES,
	STATION_SWITCHES,
	STATION_CLOCK_OFFSET,
	STATION_FIGURES,
};

struct station;
struct station_connection;

/* A command that a master has selected; until_ns 0: none. */
struct station_selection {
	uint64_t until_ns;
	struct iec104_object object;
};

/* The slave to which a connection of a master leads. */
#define STATION_TARGETS 8
struct station_remote {
	char address[SOCKET_ADDRESS_MAX + 32]; /* host and port */
	struct backoff retry;
	bool said_unreachable;
	struct socket_address targets[STATION_TARGETS];
	unsigned target_count, target_next;
};

struct station_connection {
	struct stream_client base; /* first */
	struct station *station;
	struct station_remote *remote; /* of a master */
	bool connecting;        /* a master's, until until_ns */
	uint64_t until_ns;
	bool shut;              /* nothing more is sent; the peer is to close */
	struct iec104_link link;
	uint64_t *sent_ns;      /* of the link */
	struct station_flow flow;
	struct station_selection *selected; /* of each point of `in`; slave */
};

/* A redundancy group of a slave: masters, by their addresses. */
struct station_redundancy {
	struct peers peers;
	struct station_group group;
};

/* What slave and master do differently. With the lock. */
struct station_role {
	void (*asdu)(struct station_connection *c, const uint8_t *asdu, size_t len);
	void (*changed)(struct station_connection *c); /* started, stopped or lost */
	/* What is due by time; the next time. */
	uint64_t (*tick)(struct station *s, uint64_t now_ns);
};

/* A counter of a slave: what was frozen, and the number at which it counts from 0. */
struct station_counter {
	uint32_t base;
	bool is_frozen;
	uint8_t sequence;       /* of the readings that were frozen */
	struct iec104_object frozen;
};

/* Samples that a master gives as commands, one after the other. */
struct station_orders {
	struct iec104_object *objects; /* [size][points of out] */
	unsigned size, head, count;
	bool active;            /* the first one is being carried out ... */
	uint8_t *steps;         /* ... so far, of each point: enum in master.c */
	unsigned open;          /* points that are not done */
	bool refused;
	uint64_t until_ns;
};

struct station {
	struct inbox inbox; /* first */
	/* Settings */
	int mode;
	const char *address;
	int64_t port, common_address, originator, low_size, high_size, clients_max;
	double t0_s, t1_s, t2_s, t3_s, select_s, command_s, command_age_s, reconnect_s;
	int64_t k, w;
	json_t *peers_cfg;
	bool interrogation, counter_interrogation, clock_synchronization, counter_reset;
	json_t *groups_cfg, *counter_groups_cfg;
	uint32_t groups, counter_groups; /* master: one bit each; 0: all values at once */
	int counter_freeze;
	double counter_interval_s;
	bool out_sequence, in_sequence, complete;
	int64_t queuelen;
	struct iec104_settings link;
	struct points in, out;
	struct peers peers;
	json_t *redundancy_cfg, *standby_cfg;
	struct station_redundancy *redundancy;
	unsigned redundancy_count;

	struct node *node;
	const struct station_role *role;
	struct fault_counters faults;

	pthread_mutex_t lock;   /* with those below */
	struct stream_server server; /* its clients are these connections */
	struct station_connection *connections;
	unsigned started;
	struct station_remote *remotes; /* master: of each connection */
	unsigned remote_count;
	struct station_connection *was_active; /* master: that was started last */
	struct iec104_object *last;   /* slave: of each point of `out`, as written last */
	struct station_counter *counters; /* likewise */
	struct iec104_object *readings; /* of an answer */
	uint64_t counters_ns;         /* master: when it asks for counters again */
	struct station_orders orders; /* master */
	union signal_data *values;    /* of a sample of `in` */
	bool *seen;                   /* master: that have come since the last one */
	unsigned seen_count;
	bool asleep;                  /* the thread wants to be woken */
	bool ending;

	/* Of the thread. */
	pthread_t thread;
	bool has_thread;
	enum node_state shown;
	int wake_fd;
	uint64_t end_ns;        /* when it gives up what waits; 0: the node is not to stop */
};

/* connection.c; with the lock */
int station_connections_new(struct station *s); /* logs */
void station_connections_free(struct station *s);
/* Of a socket that is connected. */
void station_connection_begin(struct station_connection *c, uint64_t now_ns);
/* Closes it and counts what it had not sent. `why` for the log. */
void station_connection_end(struct station_connection *c, const char *why);
/* Reads, carries out what is due, sends what has room. False: it has to be closed, for the reason
 * *why. */
bool station_connection_turn(struct station_connection *c, bool readable, uint64_t now_ns,
			     const char **why);
/* Whether it takes what the peer sends now. */
bool station_connection_reads(const struct station_connection *c);
/* What poll() waits for. */
short station_connection_events(const struct stream_client *k);
/* Whether nothing waits to be sent. */
bool station_connection_is_empty(const struct station_connection *c);
/* Wakes the thread, after something was queued. */
void station_wake(struct station *s);
/* Hands a sample of s->values to the path. False: it has no room, or there is no path. */
bool station_deliver(struct station *s, const struct timespec *origin);

static inline bool station_connection_is_started(const struct station_connection *c)
{
	return c->base.stream.fd >= 0 && !c->connecting && !c->link.why &&
	       c->link.state == IEC104_STARTED;
}

/* slave.c, master.c */
extern const struct station_role station_slave, station_master;
int station_slave_write(struct station *s, struct sample *smps[], unsigned cnt);
int station_master_write(struct station *s, struct sample *smps[], unsigned cnt);
/* Forgets the commands that were not carried out. With the lock. */
void station_master_forget(struct station *s, const char *why);
/* Starts the data transfer of a connection, if no other one has it. With the lock. */
void station_master_choose(struct station *s, uint64_t now_ns);

/* run.c */
void *station_run(void *station);

#endif

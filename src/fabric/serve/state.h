/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the fabric's process share: its structures, and nothing else. One thread uses
 * them. The files, from the bottom: pool (buffers), out (messages to a client), owner (which client
 * has a queue pair, a group, a flow), send (packets into the engine), mads (MADs of clients),
 * arrive (packets at hosts), nodes (MADs of the nodes' agents), packet (packets of clients), build
 * (the topology becomes an engine), manager (fabric/manager at a host), show and control (questions), client (a connection), serve (the loop).
 */
#ifndef FABRIC_SERVE_STATE_H
#define FABRIC_SERVE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "engine/fabric/fabric.h"
#include "fabric/serve/serve.h"
#include "fabric/topology/topology.h"
#include "plug/plug.h"
#include "util/list.h"
#include "util/wheel.h"

#define SERVE_CLIENTS_MAX 1024
#define SERVE_CLIENTS_OWN 16      /* of these: places that users whom --allow-user names do not take */
#define SERVE_APART_MAX 32        /* of such a user: connections that are not plugged into a host */
#define SERVE_STRANGERS_MAX 32    /* of these: of users who may not plug in, until they have been told */
#define SERVE_ACCEPT_BATCH 16     /* connections that are taken in a turn */
#define SERVE_CLIENTS_OF_HOST_MAX 128
#define SERVE_AGENTS_MAX 32       /* of a client */
#define SERVE_QPS_MAX 65536       /* of a client */
#define SERVE_QPS_OF_HOST_MAX 262144 /* of its clients together */
#define SERVE_GROUPS_MAX 1024     /* of a client */
#define SERVE_FLOWS_MAX 256       /* of a client; packets of further queue pairs share one */
#define SERVE_PENDING_MAX 1024    /* of a client: MADs that wait for an answer */
#define SERVE_PENDING_OF_HOST_MAX 8192 /* of its clients together */
#define SERVE_WAITING_MAX 64      /* of a client: packets that the engine has no room for */
#define SERVE_OUT_MESSAGES 1024   /* of a client: that wait for its socket, a power of two */
#define SERVE_OUT_PACKETS 896     /* of these: packets and MADs; others are lost */
#define SERVE_OUT_SCARCE 64       /* of these, while half of all buffers is in use */
#define SERVE_BUFFERS_MAX 131072
#define SERVE_BUFFERS_SPARE 8192  /* of these: for answers and MADs, when clients are not read any more */
#define SERVE_INSIDE_MAX 8192     /* packets of a host's processes in the engine */
#define SERVE_INSIDE_SHARE 65536  /* of all hosts with processes, in equal parts */
#define SERVE_INSIDE_MIN 64
#define SERVE_BUCKETS 65536       /* a power of two */
#define SERVE_LOOPED_MAX 4096     /* packets of hosts to themselves in a turn */
#define SERVE_HELLO_NS UINT64_C(5000000000)

/* A message as it comes from and goes to a client; for a packet also the `data` of the engine. */
struct serve_buffer {
	struct serve_buffer *next; /* of those that are free; of packets looped back at a host */
	uint32_t references;
	uint32_t flow;         /* that a congestion notification is for; 0: it is none */
	uint32_t host;         /* where it entered the fabric, an index into hosts */
	uint16_t bytes;        /* of the message: head and body */
	bool inside;           /* it counts as one of its host's in the engine */
	struct plug_head head;
	uint8_t body[PLUG_PACKET_BYTES]; /* behind `head` without a gap */
};
_Static_assert(offsetof(struct serve_buffer, body) ==
		       offsetof(struct serve_buffer, head) + sizeof(struct plug_head),
	       "a message is one piece");

struct serve_pool {
	struct serve_buffer *free;
	struct serve_buffer **chunks;
	uint32_t chunk_count, made, used;
};

enum serve_refused { /* packets of a client that are not believed */
	SERVE_BAD_LENGTH,
	SERVE_BAD_HEADER,   /* no IBA transport, another version, a reserved opcode */
	SERVE_BAD_SLID,
	SERVE_BAD_DLID,
	SERVE_BAD_PKEY,
	SERVE_BAD_QP,       /* a source queue pair of another, or QP0 */
	SERVE_BAD_STATE,    /* the port is not active */
	SERVE_BAD_MAD,
	SERVE_REFUSED_KINDS,
};

struct serve_counts {
	uint64_t taken, delivered;  /* packets and MADs from and to the client */
	uint64_t slow;              /* lost: the client did not read */
	uint64_t refused[SERVE_REFUSED_KINDS];
};

/* A port of an adapter. */
struct serve_host {
	uint32_t node;
	uint8_t port;
	struct list in_writable;    /* the engine has room again */
	struct plug_port state;
	struct list clients, waiting; /* flows with packets that wait */
	unsigned client_count, qp_count, pending_count, inside;
	uint64_t no_owner, partition, malformed, notified; /* packets that arrived: lost; FECNs answered */
};

/* A queue pair number, or a member of a group, in a bucket and in the list of its client. */
struct serve_owner {
	struct list in_bucket, in_client;
	struct serve_client *client;
	struct serve_host *host;
	uint32_t number;   /* QP number; of a group: its MLID */
	bool is_group;
	uint8_t mgid[16];
};

/* Packets of one queue pair of a client, which the engine delays by themselves. */
struct serve_flow {
	struct list in_bucket, in_client, in_waiting;
	struct serve_client *client;
	uint64_t key, used_ns;
	uint32_t number;   /* of the engine; 0: the port's own */
	uint8_t sl;
	struct fabric_packet *first, **last; /* that wait for room */
};

struct serve_agent {
	bool open;
	uint32_t tid;      /* the upper half of its transaction ids */
	struct plug_agent what;
};

/* A request of a client that waits for its answer. */
struct serve_pending {
	struct list in_client;
	struct wheel_timer timer;
	struct serve_client *client;
	uint32_t retries;
	uint64_t tid;
	struct plug_mad to;
	uint8_t mad[PLUG_MAD_BYTES];
};

enum serve_stage {
	SERVE_NEW,     /* has not said hello */
	SERVE_PLUGGED,
	SERVE_ASKING,  /* a client for control */
	SERVE_ENDING,  /* once what is written is gone */
	SERVE_GONE,    /* its descriptor is closed; freed at the end of the turn */
};

struct serve_client {
	struct list entry, in_host, in_dirty;
	struct serve *serve;
	struct wheel_timer timer;   /* for the hello */
	int fd;
	uint32_t number;
	pid_t pid;
	uid_t uid;
	bool may_plug_in, may_change; /* may_change: cables, and whether the fabric runs */
	uint8_t stage, purpose;
	uint8_t polled;             /* EPOLLIN and EPOLLOUT as epoll has them */
	bool blocked;               /* its socket takes nothing */
	bool overrun;               /* even answers found no place: it ends at once */
	bool reregister;            /* the manager asks it to register again: not yet told */
	bool port_dirty;            /* the state of the port has changed */
	char program[32];
	struct serve_host *host;    /* NULL: none */
	struct serve_buffer *out[SERVE_OUT_MESSAGES];
	uint32_t out_head, out_tail;
	struct list qps, groups, flows, pending;
	unsigned qp_count, group_count, flow_count, pending_count, waiting;
	struct serve_flow rest;     /* of queue pairs beyond SERVE_FLOWS_MAX */
	struct serve_agent agents[SERVE_AGENTS_MAX];
	uint32_t capability;        /* bits that it has set */
	struct serve_counts counts;
	char *text;                 /* the answer to a question, of which text_at bytes are gone */
	size_t text_bytes, text_at;
	uint32_t question;
};

struct fabric_agents;
struct serve_manager;

struct serve {
	struct serve_settings set;
	const struct topology *topology;
	struct fabric *fabric;
	struct fabric_agents *agents;
	struct serve_manager *manager; /* NULL: a client manages the subnet */
	struct serve_host *hosts;
	uint32_t *host_of_node;     /* the first port's; UINT32_MAX: a switch */
	uint32_t host_count;
	struct serve_pool pool;
	struct list clients, dirty, gone;
	unsigned client_count, stranger_count, used_hosts; /* hosts with clients */
	uint32_t next_client, next_tid;
	struct list qps[SERVE_BUCKETS], groups[SERVE_BUCKETS], flows[SERVE_BUCKETS];
	struct serve_buffer *looped, **looped_last; /* packets that a host has sent to itself */
	struct wheel wheel, hellos; /* timers of requests; of clients */
	uint64_t now_ns, origin_ns;
	uint64_t deadlock_ns;       /* when circles of waiting lanes are looked for next */
	uint64_t deadlocks;         /* circles that were found, again and again while they last */
	uint64_t listener_rests_ns; /* no connection is taken before; 0: it does not rest */
	int epoll_fd, listener, signal_fd, wake_fd;
	bool stopping, ready;
	uint64_t active_ns, awake_ns; /* the last message; for how long it does not sleep then */
	struct list writable;       /* hosts */
	uint64_t drops[FABRIC_DROP_MANAGEMENT + 1];
	struct serve_counts gone_counts;   /* of clients that have ended */
	uint64_t mads_lost;         /* of agents and clients: no buffer, or the engine had no room */
	uint64_t no_buffer;         /* packets of clients: all buffers are in use */
};

#endif

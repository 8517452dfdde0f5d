/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The infiniband node-type: samples over a queue pair that the RDMA connection
 * manager sets up. Private to this folder.
 *
 * infiniband.c  keys and the callbacks of the node-type
 * check.c       checks of the settings
 * device.c      adapter, protection domain, addresses, queue pairs
 * cm.c          the management thread
 * connect.c     what it does: connecting, reconnecting
 * accept.c      and answering those who call
 * callers.c     which calls may take a place
 * lookup.c      whether the peer of a UD or UC node is still there
 * channel.c     the channel from the side of that thread
 * read.c sleep.c write.c registered.c   the data path
 * budget.c stamped.c   the same with time stamps, for nodes with the key `budget`
 *
 * It uses only the public headers of libibverbs and librdmacm, and so runs on
 * any adapter.
 */
#ifndef GATEWAY_NODE_INFINIBAND_H
#define GATEWAY_NODE_INFINIBAND_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/plugin/node.h"
#include "gateway/node/infiniband/callers.h"
#include "gateway/node/infiniband/channel.h"
#include "gateway/node/infiniband/registered.h"
#include "gateway/part/backoff.h"
#include "gateway/part/peers.h"
#include "gateway/part/socket_address.h"
#include "util/clock.h"

#define MS (NSEC_PER_SEC / 1000)
/* Addresses of a name that are tried; more are left out. */
#define IB_ADDRESSES_MAX 8

enum ib_mode {
	IB_RC,
	IB_UC,
	IB_UD,
};

/* Where the connection stands; only the management thread knows and changes. */
enum ib_phase {
	IB_IDLE,       /* no connection; maybe listening, maybe about to retry */
	IB_RESOLVING,  /* own attempt, address and route */
	IB_CONNECTING, /* own attempt, request sent */
	IB_ACCEPTING,  /* the peer's attempt, answered */
	IB_CONNECTED,
	IB_FAILED,     /* for good */
};

/* How a reader waits. */
enum ib_polling {
	IB_POLLING_AUTO,     /* the path waits: node.h, sleep */
	IB_POLLING_BUSY,     /* polls for ever */
	IB_POLLING_ADAPTIVE, /* polls for a while, then sleeps */
	IB_POLLING_EVENT,    /* sleeps at once */
};

/* An address without its port, or "a peer". */
struct ib_host_text {
	char text[INET6_ADDRSTRLEN];
};

struct ib_config_in {
	const char *address;
	const json_t *peers;        /* as configured */
	int polling;                /* enum ib_polling */
	int64_t spin_us;
	int64_t max_wrs, cq_size;
	int64_t buffer_subtraction; /* 0: chosen by check */
};

struct ib_config_out {
	const char *address;
	int64_t resolution_timeout_ms;
	int64_t max_wrs, cq_size;
	int64_t max_inline_data;
	int64_t periodic_signaling; /* 0: chosen by check */
	int64_t reconnect_interval_ms;
	bool send_inline, use_fallback;
};

struct infiniband {
	struct node *node;
	/* Configuration. */
	int transport_mode, port_space; /* of the services in infiniband.c */
	const char *budget_path;        /* NULL: no time stamps */
	struct ib_config_in in;
	struct ib_config_out out;
	enum ib_mode mode;
	enum rdma_port_space space;
	struct peers peers;             /* who may call */

	/* From prepare to destroy. */
	struct rdma_event_channel *events;
	struct rdma_cm_id *device_id;   /* keeps the adapter chosen */
	struct ibv_context **devices;   /* the same, when it was the first */
	struct ibv_context *verbs;
	struct ib_registrar registrar;  /* with the protection domain */
	struct ibv_mr *grh_mr;
	uint8_t grh[IB_GRH_SIZE];       /* headers of UD messages, which nobody reads */
	size_t mtu;                     /* bytes; UD */
	struct socket_address local;
	struct socket_address remotes[IB_ADDRESSES_MAX]; /* of out.address, in the order of preference */
	unsigned remotes_found;                     /* 0: there is no out.address */
	unsigned remote_at;                         /* the one that is called */
	bool has_local;

	/* From start to stop; those of the connection only in the thread. */
	struct ib_channel *channel;
	struct ib_budget *budget;       /* NULL: none */
	struct ibv_comp_channel *recv_events; /* NULL: reading never sleeps */
	pthread_t thread;
	int wake_fd;                    /* eventfd of the thread */
	atomic_bool stop;
	atomic_bool failed;
	sem_t first_attempt;            /* posted when its outcome is known, and later */
	enum ib_phase phase;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *conn;
	uint64_t accepted_ns;           /* IB_ACCEPTING: since when the peer may confirm */
	struct callers callers;         /* hosts that did not confirm */
	struct ibv_cq *recv_cq, *send_cq;
	struct ibv_ah *ah;
	struct backoff retry;           /* none planned: it is not going to */
	bool said_unreachable;          /* since the last connection */
	uint64_t lost_at_ns;            /* 0: never, or it is back */
	bool probing;                   /* does the peer still live? */
	/* The same of UD: lookup.c. */
	struct rdma_cm_id *lookup;      /* under way */
	uint64_t lookup_since_ns;
	uint64_t lookup_at_ns;          /* the next one; 0: none */
	uint32_t remote_qpn;
	/* And of UC: since when somebody calls, and what had arrived then. */
	uint64_t doubt_since_ns, doubt_received;
	bool no_inline;                 /* the adapter does not offer it */
};

/* check.c */
extern const char *const ib_polling_names[];
/* As check() of a node-type. */
int ib_check(struct node *n, struct config *c, json_t *cfg);

/* device.c */
/* Has the librdmacm that this process runs with the means for UC? */
bool ib_uc_available(void);
/* An identifier for the node's service on ib->events. 0, or -1 with errno. */
int ib_id_create(struct infiniband *ib, struct rdma_cm_id **id);
/* Makes an identifier on which the peer's address is being resolved. 0, or -1 with errno; *id
 * stays NULL when there is none. */
int ib_call(struct infiniband *ib, struct rdma_cm_id **id);
/* The next step of a call. NULL, or why it fails. */
const char *ib_resolve_route(struct infiniband *ib, struct rdma_cm_id *id);
const char *ib_mode_name(enum ib_mode mode);
/* Adapter, protection domain and what depends on them; logs errors. */
int ib_device_open(struct infiniband *ib);
void ib_device_close(struct infiniband *ib);
/* A queue pair on ib->conn; opens the channel for receiving. Logs errors. */
int ib_qp_create(struct infiniband *ib);
/* Closes the channel and takes the queue pair away again, if there is one. */
void ib_qp_destroy(struct infiniband *ib);

bool ib_peer_may_call(const struct infiniband *ib, const struct rdma_cm_id *caller);
/* The address of the other end; zero when it is none of IP. */
struct caller_ip ib_peer_ip(const struct rdma_cm_id *id);

/* connect.c: by the management thread only */
/* 0, also when it listens already. Logs errors. */
int ib_listen(struct infiniband *ib);
void ib_listen_end(struct infiniband *ib);
void ib_connection_attempt(struct infiniband *ib);
/* Ends and destroys whatever connection there is. */
void ib_connection_drop(struct infiniband *ib);
/* The connection broke, or an attempt for one failed. */
void ib_lost(struct infiniband *ib, const char *why);
/* There will never be a connection (any more). */
void ib_give_up(struct infiniband *ib);
/* The host at the other end, for messages. */
struct ib_host_text ib_host_of(struct rdma_cm_id *id);
struct rdma_conn_param ib_conn_param(void);
/* Gives the reader time to post receive requests, so that the first samples of the peer find a
 * place. */
void ib_wait_filled(struct infiniband *ib);
void ib_connected(struct infiniband *ib);
/* Remembers the host whose call was accepted, if it has not confirmed it. The call ends. */
void ib_note_unconfirmed(struct infiniband *ib);
/* An event of the connection or of an attempt. */
void ib_conn_event(struct infiniband *ib, struct rdma_cm_event *e);
/*
 * Checks between events. They return why the connection or the attempt is to end, NULL: it is not.
 * ib_break_check(): the data path met an error. ib_probe_check(): a peer that is doubted does not
 * answer.
 */
const char *ib_break_check(struct infiniband *ib);
const char *ib_probe_check(struct infiniband *ib);

/* accept.c: likewise */
/* Answers one who calls; takes the identifier over. */
void ib_request(struct infiniband *ib, struct rdma_cm_id *id);
/* When the time ends that a caller has to confirm; 0: none has to. */
uint64_t ib_accept_until_ns(const struct infiniband *ib);
/* As the checks above: a caller has not confirmed in time. */
const char *ib_accept_check(struct infiniband *ib);

/* lookup.c: likewise */
/* Is the caller the peer of the present UC connection, which has been silent since it first
 * called again? */
bool ib_peer_is_back(struct infiniband *ib, struct rdma_cm_id *caller);
void ib_lookup_schedule(struct infiniband *ib);
void ib_lookup_drop(struct infiniband *ib);
/* Begins a lookup when it is time. As the checks above. */
const char *ib_lookup_check(struct infiniband *ib);
/* An event of the lookup. Likewise. */
const char *ib_lookup_event(struct infiniband *ib, const struct rdma_cm_event *e);

/* cm.c */
int ib_cm_start(struct infiniband *ib);
void ib_cm_stop(struct infiniband *ib);

#endif

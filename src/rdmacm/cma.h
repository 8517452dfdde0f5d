/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of librdmacm.so.1: identifiers, event channels, devices, links.
 *
 * Threads: the application's, and the progress thread that serves links and
 * timers. An identifier's `lock` guards its fields; it is never held across a
 * verb that may wait for the progress thread (ibv_modify_qp to RTR shakes hands
 * with the peer), nor across unwatching a descriptor from an application thread.
 * Locks nest listener -> its unclaimed child -> event channel; those of route.c
 * and device.c are taken inside of them, with nothing inside.
 */
#ifndef RDMACM_CMA_H
#define RDMACM_CMA_H

#include <errno.h>
#include <infiniband/ib.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/progress.h"
#include "rdmacm/cm_machine.h"
#include "rdmacm/cm_table.h"
#include "util/abstract.h"
#include "util/container_of.h"
#include "util/list.h"
#include "wire/cm.h"

#define CMA_HOP_LIMIT 64
/* 4.096 us * 2^13 = 34 ms; the ACK timeout is twice that. */
#define CMA_PACKET_LIFETIME 13
/* The ACK timeout has 5 bits. */
#define CMA_PACKET_LIFETIME_MAX 30
#define CMA_EXPORT __attribute__((visibility("default")))

/* The public rule: -1 with errno, from 0 or a negative errno. */
static inline int cma_result(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* ---- settings (id.c) ---- */

struct cma_settings {
	uint64_t timeout_ms; /* until a peer that does not answer is given up */
};

extern struct cma_settings cma_settings;

/* ---- devices (device.c) ---- */

struct cma_id;

struct cma_device {
	struct list entry;
	struct ibv_context *verbs;
	struct ibv_pd *pd;   /* default protection domain */
	struct ibv_xrcd *xrcd; /* default XRC domain, once somebody needs it */
	uint64_t guid;       /* network order */
	uint8_t max_responder_resources, max_initiator_depth;
	uint8_t port_count;
	struct list ids;     /* bound to it; under the lock of device.c */
	bool removed;        /* it failed, another one took its place; likewise */
};

/* Where a local address lives. */
struct cma_gid_place {
	struct cma_device *device;
	uint8_t port_num;
	uint8_t index;
	uint8_t mtu;         /* enum ibv_mtu, active */
	union ibv_gid gid;
};

/* Opens the devices on first use. 0, -ENODEV when there are none, and none of
 * the system's either. */
int cma_devices_init(void);
/* NULL with errno. */
struct ibv_xrcd *cma_device_xrcd(struct cma_device *d);
bool cma_devices_present(void); /* of ours */
/* 0 or -ENODEV: no device has a GID for `addr`. */
int cma_device_find(const struct sockaddr *addr, struct cma_gid_place *place);
/* From here on the identifier learns of the device's removal; its lock is held.
 * 0, or -ENODEV: it was removed meanwhile. */
int cma_device_join(struct cma_device *d, struct cma_id *id);
/* Afterwards it does not, and none is being told. Without the lock. */
void cma_device_leave(struct cma_id *id);

/* ---- addresses (addr.c) ---- */

/* 0 for families that are not served. */
socklen_t cma_addr_len(const struct sockaddr *addr);
bool cma_addr_is_any(const struct sockaddr *addr);
bool cma_addr_is_multicast(const struct sockaddr *addr);
bool cma_addr_is_loopback(const struct sockaddr *addr);
bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b);
uint16_t cma_addr_port(const struct sockaddr *addr);
void cma_addr_set_port(struct sockaddr *addr, uint16_t port);
void cma_addr_set_loopback(struct sockaddr *addr);
/* Copies; an IPv4 address mapped into IPv6 becomes IPv4. */
void cma_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);
void cma_addr_to_gid(const struct sockaddr *addr, union ibv_gid *gid);
void cma_addr_to_bytes(const struct sockaddr *addr, uint8_t bytes[16]);
void cma_addr_from_bytes(struct sockaddr_storage *addr, int ip_version,
			 const uint8_t bytes[16], uint16_t port);
/* AF_IB; a service identifier of 0 is none yet. */
void cma_addr_from_gid(struct sockaddr_storage *addr, const union ibv_gid *gid,
		       uint64_t service_id);
/*
 * Gives an AF_IB address whose service identifier leaves the port space open that
 * of `ps`. 0, or -EPROTONOSUPPORT: it is of another one, or of none of IP.
 */
int cma_addr_settle(struct sockaddr *addr, enum rdma_port_space ps);
/* That of the service identifier, else `ps`. */
uint16_t cma_addr_port_space(const struct sockaddr *addr, enum rdma_port_space ps);
/* Of a link-local address of this host: its interface, where it is missing. */
void cma_addr_find_scope(struct sockaddr *addr);
/* Is it an address of this network namespace? 0, -EADDRNOTAVAIL or other. */
int cma_addr_check_local(const struct sockaddr *addr);
/* The source address that the routing table gives for `dst`. */
int cma_addr_source(const struct sockaddr *dst, struct sockaddr_storage *src);
#define CMA_ADDR_TEXT 64
const char *cma_addr_text(const struct sockaddr *addr, char text[CMA_ADDR_TEXT]);

/* ---- event channels (channel.c) ---- */

struct cma_channel {
	struct rdma_event_channel pub;
	pthread_mutex_t lock;
	struct list events;
	int count_fd; /* one count per event; pub.fd itself, or watched by it */
	/* The system library's, once an identifier needs it (forward.h). */
	_Atomic(struct rdma_event_channel *) system;
	atomic_uint turn;
};

struct cma_event {
	struct rdma_cm_event pub;
	struct list entry;
	struct cma_id *owner; /* whose destruction waits for the ack */
	uint32_t group_serial; /* of MULTICAST_JOIN */
	struct rdma_cm_event *system; /* what it is a translation of */
	uint8_t private_data[CM_DREP_PRIVATE];
};

static inline struct cma_channel *cma_channel_of(struct rdma_event_channel *c)
{
	return container_of(c, struct cma_channel, pub);
}

static inline struct cma_event *cma_event_of(struct rdma_cm_event *e)
{
	return container_of(e, struct cma_event, pub);
}

int cma_channel_create(struct cma_channel **out);
void cma_channel_destroy(struct cma_channel *ch);
/* NULL when out of memory (logged). */
struct cma_event *cma_event_new(struct cma_id *owner, struct rdma_cm_id *id,
				enum rdma_cm_event_type type, int status);
/* Queues on the owner's channel; the owner's lock is held. */
void cma_event_post(struct cma_event *ev);
int cma_event_report(struct cma_id *id, enum rdma_cm_event_type type, int status);
/* Takes the queued events of `owner` out of `ch`, in order, into `out`. */
void cma_channel_take(struct cma_channel *ch, struct cma_id *owner,
		      struct list *out);
void cma_channel_put(struct cma_channel *ch, struct list *events);
bool cma_channel_has_event(struct cma_channel *ch, struct cma_id *owner);

/* ---- identifiers (id.c) ---- */

enum cma_phase {
	CMA_UNBOUND,
	CMA_BOUND,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
};

/* What both sides agreed on, or are about to. */
struct cma_conn {
	uint32_t local_qpn, remote_qpn;
	uint32_t local_psn, remote_psn;
	uint32_t remote_qkey;
	uint8_t path_mtu;            /* enum ibv_mtu */
	uint8_t ack_timeout;         /* 4.096 us * 2^n */
	uint8_t retry_count;
	uint8_t rnr_retry;           /* of our sends, as the peer asked */
	uint8_t rnr_retry_asked;     /* of the peer's sends */
	uint8_t responder_resources; /* reads we answer at a time */
	uint8_t initiator_depth;     /* reads we issue at a time */
	uint8_t flow_control;
	uint8_t srq;
	uint8_t reject_reason;       /* instead of the step's, if not 0 */
	uint8_t private_len;
	uint8_t private_data[CM_DREP_PRIVATE]; /* to be sent next */
};

struct cma_id {
	struct rdma_cm_id pub;
	pthread_mutex_t lock;
	pthread_cond_t acked;
	atomic_uint reported;        /* events handed to the application */
	unsigned completed;          /* of these, acknowledged */
	bool sync;                   /* the channel is the identifier's own */
	bool connect_failed;         /* CONNECT_ERROR reported: say no more */

	struct cma_device *device;
	struct list device_entry;    /* of device.c */
	atomic_bool removed;         /* the device was; only to be destroyed */
	enum cma_phase phase;
	uint8_t sgid_index, active_mtu;
	bool reuse_addr, v6_only;
	int ack_timeout;             /* -1: default */
	uint8_t tos;
	int port_fd;                 /* holds the port's name; listens */

	struct cm_machine cm;
	struct cma_link *link;       /* carries the messages */
	struct list link_entry;      /* those of a link, and of the process: */
	struct cm_entry route;       /* of the lock of link.c */
	bool link_retry;             /* the listener was busy or not there */
	uint64_t patience_ns;        /* until when one may still appear */
	struct progress_timer timer;
	uint64_t armed_ns;           /* when the timer runs; 0: it does not */
	struct cma_conn conn;
	struct ibv_ece local_ece, remote_ece;

	/* listener */
	struct list unclaimed;       /* children whose request waits */
	struct list listen_entry;    /* of link.c */
	unsigned unclaimed_count, backlog;
	bool paused;                 /* does not accept just now */
	/* child */
	struct cma_id *listener;     /* while unclaimed */
	struct list sibling;

	/* QP state changes; the progress thread only ever tries it. */
	pthread_mutex_t qp_lock;
	uint32_t qpn;                /* of the QP that was made with it */
	bool qp_error_due;

	/* multicast groups (multicast.c) */
	struct list groups;
	uint32_t group_serial;

	/* Its counterpart in the system's library, alone or beside (forward.h). */
	struct rdma_cm_id *shadow;
	bool shadow_beside;

	/* endpoint (ep.c) */
	struct ibv_qp_init_attr *qp_init_attr;
	void *connect_data;
	size_t connect_len;
};

static inline struct cma_id *cma_id_of(struct rdma_cm_id *id)
{
	return container_of(id, struct cma_id, pub);
}

/* An identifier without IP addresses has the whole of the private data. */
static inline size_t cma_id_private_lead(const struct cma_id *id)
{
	return id->pub.route.addr.src_addr.sa_family == AF_IB ? 0 :
								CM_IP_HEADER_SIZE;
}

static inline bool cma_id_is_datagram(const struct cma_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

/* May identifiers of this port space have queue pairs of this type? */
bool cma_service_exists(enum rdma_port_space ps, enum ibv_qp_type type);
int cma_id_create(struct rdma_event_channel *channel, void *context,
		  enum rdma_port_space ps, enum ibv_qp_type qp_type,
		  struct cma_id **out);
void cma_id_free(struct cma_id *id); /* one that nobody knows of (any more) */
/* Ends the connection, stops callbacks and drops queued events. */
void cma_id_shut(struct cma_id *id);
/* 0 or -ENODEV: the device has just been removed. The lock is held. */
int cma_id_bind_device(struct cma_id *id, const struct cma_gid_place *place);
/* The device fails: ends the connection, tells the program. Progress thread. */
void cma_id_remove(struct cma_id *id);
/* Moves to `ch`; `sync` says whose the channel is. The lock is held. */
void cma_id_move(struct cma_id *id, struct cma_channel *ch, bool sync);
/* Synchronous mode: waits for the event of the call just made. */
int cma_id_complete(struct cma_id *id);
/* An event is done with: its program acknowledged it, or never got it. */
void cma_event_complete(struct cma_id *owner);
/* The event that leaves the channel: returns false to drop it. */
bool cma_event_deliver(struct cma_event *ev);

/* ---- routes (resolve.c) ---- */

int cma_bind(struct cma_id *id, const struct sockaddr *addr);
/* The path record of the identifier's addresses; 0 or -ENOMEM. */
int cma_route_fill(struct cma_id *id);
/* The caller's path instead, RDMA_OPTION_IB_PATH; the lock is held. 0, or
 * -EINVAL: not now, or none of `paths` is of these addresses. */
int cma_route_set(struct cma_id *id, const struct ibv_path_data *paths,
		  size_t count);

/* ---- ports: names in the abstract namespace (port.c) ---- */

/* Takes the port of src_addr, or a free one; 0, -EADDRINUSE or other. */
int cma_port_take(struct cma_id *id);
void cma_port_release(struct cma_id *id);
/* The names under which a listener for `dst` may be found, best first. */
#define CMA_PORT_NAMES 3
int cma_port_names(enum rdma_port_space ps, const struct sockaddr *dst,
		   struct abstract_name names[CMA_PORT_NAMES]);

/* ---- links: the host-local carrier (link.c, port.c) ---- */

struct cma_link;

/* Connects to the listener of dst_addr; 0, -ECONNREFUSED, -EAGAIN or other. */
int cma_link_connect(struct cma_id *id);
int cma_link_listen(struct cma_id *id);
/* The other way round: on the progress thread, with the lock. */
void cma_link_unlisten(struct cma_id *id);
/* Nothing happens without a link. */
void cma_link_send(struct cma_link *link, const struct cm_mad *mad);
/* From now on messages of the link reach the identifier; its lock is held. 0, or
 * -ECONNRESET: the link has just ended. */
int cma_link_attach(struct cma_id *id, struct cma_link *link);
/* After each change of the machine: its identifiers, and its deadline. */
void cma_link_update(struct cma_id *id);
void cma_link_init(struct cma_id *id);
/* Stops callbacks and lets go of everything; without the lock. */
void cma_link_close(struct cma_id *id);

/* ---- connections: what messages mean (conn.c, request.c) ---- */

/* The lock is held by all of these. `mad`: the message, if the input is one. */
int cma_conn_input(struct cma_id *id, enum cm_input input,
		   const struct cm_mad *mad);
/* The machine's deadline is there. */
void cma_conn_tick(struct cma_id *id, uint64_t now_ns);
/* A child for a request; 0, or the enum cm_reason for which it is refused. */
int cma_conn_request(struct cma_id *listener, const struct cm_mad *mad,
		     struct cma_link *link);
/* Is the request for a port of this listener? How well: 0 is not at all. */
unsigned cma_conn_matches(const struct cma_id *listener,
			  const struct cm_mad *mad);
uint32_t cma_random(uint32_t mask);

/* ---- multicast groups (multicast.c) ---- */

/* The program takes a MULTICAST_JOIN; returns false to drop it. */
bool cma_group_deliver(struct cma_event *ev);
/* Takes the QP out of all groups; without the lock. */
void cma_groups_detach(struct cma_id *id);
/* The identifier's end. */
void cma_groups_free(struct cma_id *id);

/* ---- queue pairs (qp.c) ---- */

/* The identifier's QP, if there is one; without the lock. */
int cma_qp_attach(struct cma_id *id, const union ibv_gid *gid);
void cma_qp_detach(struct cma_id *id, const union ibv_gid *gid);

/* Completion queues with channels, for the sides that the caller left out. */
int cma_cqs_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
int cma_cq_create_recv(struct rdma_cm_id *id, uint32_t size);
void cma_cqs_destroy(struct rdma_cm_id *id);

int cma_qp_connect(struct cma_id *id); /* INIT, RTR, RTS; without the lock */
void cma_qp_fail(struct cma_id *id);   /* error state; without the lock */
/* On the progress thread, with the lock: now, or by whoever is at the QP. */
void cma_qp_fail_soon(struct cma_id *id);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internal declarations of librdmacm.so.1: identifiers, event channels, devices,
 * links.
 *
 * Threads: those of the application, and the progress thread, which serves links
 * and timers. An identifier's `lock` guards its fields. It is never held during a
 * verb that may wait for the progress thread (ibv_modify_qp() to RTR may exchange
 * messages with the peer), nor while an application thread unwatches a descriptor.
 * Lock order: listener, its unclaimed child, event channel. The locks of route.c
 * and device.c are taken inside of these, and no lock inside of them.
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

#include "hca/run/progress.h"
#include "engine/cm/machine.h"
#include "engine/cm/table.h"
#include "util/abstract.h"
#include "util/container_of.h"
#include "util/list.h"
#include "wire/cm.h"

#define CMA_HOP_LIMIT 64
/* 4.096 us * 2^16 = 0.27 s, as in Linux; the ACK timeout is twice that. Inside of a host, where
 * nothing is lost, the timeout covers the time in which a peer gets no processor. */
#define CMA_PACKET_LIFETIME 16
/* The longest round trip of messages inside of a host: 67 ms. */
#define CMA_TRIP_LOCAL 14
/* The field of the ACK timeout, which is one more, has 5 bits. */
#define CMA_PACKET_LIFETIME_MAX 30
#define CMA_EXPORT __attribute__((visibility("default")))

/* Converts 0 or a negative errno to the public convention: -1 and errno. */
static inline int cma_result(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* ---- settings (id.c) ---- */

struct cma_settings {
	uint64_t timeout_ms; /* after which an unanswered request has failed */
};

extern struct cma_settings cma_settings;

/* ---- devices (device.c) ---- */

struct cma_id;

struct cma_device {
	struct list entry;
	struct ibv_context *verbs;
	struct ibv_pd *pd;   /* default protection domain */
	struct ibv_xrcd *xrcd; /* default XRC domain, made on first use */
	uint64_t guid;       /* network order */
	uint8_t max_responder_resources, max_initiator_depth;
	uint8_t port_count;
	bool datagrams, multicast; /* some adapters have none */
	struct list ids;     /* identifiers bound to it; under the lock of device.c */
	bool removed;        /* it failed and was replaced; under the lock of device.c */
};

/* Device, port and GID table entry of a local address. */
struct cma_gid_place {
	struct cma_device *device;
	uint8_t port_num;
	uint8_t index;
	uint8_t mtu;         /* enum ibv_mtu, active */
	uint32_t interface;  /* index of the interface that has the address */
	union ibv_gid gid;
};

/* Opens soft0 devices on first use and replaces failed ones. 0; -ENODEV: there are
 * neither devices of ours nor of the system's library; or another error. */
int cma_devices_init(void);
/* The device's default XRC domain; NULL with errno. */
struct ibv_xrcd *cma_device_xrcd(struct cma_device *d);
bool cma_devices_present(void); /* is a device of ours open? */
bool cma_devices_have_datagrams(void); /* does one of them have UD? */
/* 0 or -ENODEV: no device has a GID for `addr`. */
int cma_device_find(const struct sockaddr *addr, struct cma_gid_place *place);
/* Enters the identifier, whose lock is held, in the device's list: cma_id_remove() is
 * called for it if the device fails. 0, or -ENODEV: the device has failed already. */
int cma_device_join(struct cma_device *d, struct cma_id *id);
/* Takes the identifier out of the list; afterwards cma_id_remove() is not running for
 * it and will not be called. The identifier's lock is not held. */
void cma_device_leave(struct cma_id *id);

/* ---- addresses (addr.c) ---- */

/* 0 for an unsupported family. */
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
/* An AF_IB address; service_id 0: no service is chosen yet (mask 0). */
void cma_addr_from_gid(struct sockaddr_storage *addr, const union ibv_gid *gid,
		       uint64_t service_id);
/*
 * Sets the port space of an AF_IB address to `ps` if its service identifier leaves
 * the port space open. 0, or -EPROTONOSUPPORT: it has another port space, or one
 * that is not of IP. Other families: 0.
 */
int cma_addr_settle(struct sockaddr *addr, enum rdma_port_space ps);
/* For AF_IB the port space in the service identifier, else `ps`. */
uint16_t cma_addr_port_space(const struct sockaddr *addr, enum rdma_port_space ps);
/* Sets sin6_scope_id of a link-local address of this host, if it is 0. */
void cma_addr_find_scope(struct sockaddr *addr);
/* 0; -EADDRNOTAVAIL: `addr` is not of this network namespace; or another error. */
int cma_addr_check_local(const struct sockaddr *addr);
/* The source address that the routing table gives for `dst`. 0 or negative errno. */
int cma_addr_source(const struct sockaddr *dst, struct sockaddr_storage *src);
#define CMA_ADDR_TEXT 64
const char *cma_addr_text(const struct sockaddr *addr, char text[CMA_ADDR_TEXT]);

/* ---- event channels (channel.c) ---- */

struct cma_channel {
	struct rdma_event_channel pub;
	pthread_mutex_t lock;
	struct list events;
	int count_fd; /* one count per event; is pub.fd, or watched by it */
	/* The channel of the system's library, made on first use (forward.h). */
	_Atomic(struct rdma_event_channel *) system;
	atomic_uint turn;
};

struct cma_event {
	struct rdma_cm_event pub;
	struct list entry;
	struct cma_id *owner; /* its destruction waits until the event is acknowledged */
	uint32_t group_serial; /* of the group, for MULTICAST_JOIN */
	struct rdma_cm_event *system; /* the system library's event, if it is of a shadow */
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
/* NULL: out of memory (logged). */
struct cma_event *cma_event_new(struct cma_id *owner, struct rdma_cm_id *id,
				enum rdma_cm_event_type type, int status);
/* Queues on the owner's channel; the owner's lock is held. */
void cma_event_post(struct cma_event *ev);
int cma_event_report(struct cma_id *id, enum rdma_cm_event_type type, int status);
/* Moves the queued events of `owner` from `ch` to `out`, in order. */
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

/* The values of a connection: agreed, or to be offered with the next message. */
struct cma_conn {
	uint32_t local_qpn, remote_qpn;
	/* The Starting PSNs of the messages of this side and of the peer: who sends one says
	 * with which packet the other has to begin (IBA volume 1, 12.7). */
	uint32_t local_psn, remote_psn;
	uint32_t remote_qkey;
	uint8_t path_mtu;            /* enum ibv_mtu */
	uint8_t ack_timeout;         /* 4.096 us * 2^n */
	uint8_t retry_count;
	uint8_t rnr_retry;           /* of this side's sends; the peer asked for it */
	uint8_t rnr_retry_asked;     /* of the peer's sends */
	uint8_t responder_resources; /* concurrent RDMA READs of the peer */
	uint8_t initiator_depth;     /* concurrent RDMA READs of this side */
	uint8_t flow_control;
	uint8_t srq;
	uint8_t reject_reason;       /* of a REJ; 0: the step's own reason */
	uint8_t private_len;
	uint8_t private_data[CM_DREP_PRIVATE]; /* of the next message */
};

struct cma_id {
	struct rdma_cm_id pub;
	pthread_mutex_t lock;
	pthread_cond_t acked;
	atomic_uint reported;        /* number of events that the application took */
	unsigned completed;          /* number of these that it acknowledged */
	bool sync;                   /* synchronous: the channel is the identifier's own */
	bool connect_failed;         /* CONNECT_ERROR was reported: nothing follows */

	struct cma_device *device;
	struct list device_entry;    /* in cma_device.ids */
	atomic_bool removed;         /* the device failed: most calls are -ENODEV */
	enum cma_phase phase;
	uint8_t sgid_index, active_mtu;
	uint32_t interface;          /* that has the source address */
	bool network;                /* its messages go through queue pair 1 */
	struct cma_service *service; /* served to other hosts because of it, or NULL */
	bool reuse_addr, v6_only;
	int ack_timeout;             /* -1: default */
	uint8_t tos;
	int port_fd;                 /* socket bound to the port's name; listens */

	struct cm_machine cm;
	struct cma_link *link;       /* carries the messages */
	struct list link_entry;      /* in cma_link.ids; under the lock of route.c */
	struct cm_entry route;       /* under the lock of route.c */
	bool link_retry;             /* there was no listener, or it was busy: try again */
	uint64_t listener_until_ns;        /* until then, if there was none */
	struct progress_timer timer;
	uint64_t armed_ns;           /* deadline of `timer`; 0: not armed */
	struct cma_conn conn;
	struct ibv_ece local_ece, remote_ece;

	/* listener */
	struct list unclaimed;       /* children whose request the program has not taken */
	struct list listen_entry;    /* in the list of listeners of route.c */
	unsigned unclaimed_count, backlog;
	bool paused;                 /* accepts no callers until the timer expires */
	/* child */
	struct cma_id *listener;     /* while unclaimed */
	struct list sibling;

	/* Held while the QP changes its state; the progress thread only tries it. */
	pthread_mutex_t qp_lock;
	uint32_t qpn;                /* of the QP that rdma_create_qp() made */
	bool qp_error_due;           /* the holder of qp_lock moves the QP to error */

	/* multicast groups (multicast.c) */
	struct list groups;
	uint32_t group_serial;

	/* The identifier of the system's library that does the work (forward.h). */
	struct rdma_cm_id *shadow;
	bool shadow_beside;          /* this identifier is bound as well */

	/* endpoint (ep.c) */
	struct ibv_qp_init_attr *qp_init_attr;
	void *connect_data;
	size_t connect_len;
};

static inline struct cma_id *cma_id_of(struct rdma_cm_id *id)
{
	return container_of(id, struct cma_id, pub);
}

/* Length of the IP addresses in front of a request's private data; AF_IB has none. */
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
/* Frees the memory; no list and no other thread knows the identifier. */
void cma_id_free(struct cma_id *id);
/* Ends the connection, stops callbacks, drops queued events. No lock is held. */
void cma_id_shut(struct cma_id *id);
/* 0 or -ENODEV: the device has failed. The identifier's lock is held. */
int cma_id_bind_device(struct cma_id *id, const struct cma_gid_place *place);
/* The device failed: ends the connection and reports DEVICE_REMOVAL. On the progress
 * thread, without the lock. */
void cma_id_remove(struct cma_id *id);
/* Moves the identifier and its queued events to `ch`; `sync`: the channel belongs to
 * the identifier. The lock is held. */
void cma_id_move(struct cma_id *id, struct cma_channel *ch, bool sync);
/* Synchronous identifiers: waits for the event that follows the call. 0, or the
 * event's failure as a negative errno. Asynchronous ones: 0 at once. */
int cma_id_complete(struct cma_id *id);
/* Counts an event as acknowledged: by the program, or because it was not reported. */
void cma_event_complete(struct cma_id *owner);
/* Does what an event implies when the program takes it (QP states, groups), and may
 * change its type. False: it is not reported. */
bool cma_event_deliver(struct cma_event *ev);

/* ---- routes (resolve.c) ---- */

int cma_bind(struct cma_id *id, const struct sockaddr *addr);
/* Makes the path record of the identifier's addresses; 0 or -ENOMEM. */
int cma_route_fill(struct cma_id *id);
/* Takes the caller's path instead (RDMA_OPTION_IB_PATH); the lock is held. 0, or
 * -EINVAL: wrong phase, or none of `paths` has the identifier's GIDs. */
int cma_route_set(struct cma_id *id, const struct ibv_path_data *paths,
		  size_t count);

/* ---- ports: names in the abstract namespace (port.c) ---- */

/* Takes the port of src_addr, or a free one if it is 0; 0, -EADDRINUSE or another. */
int cma_port_take(struct cma_id *id);
void cma_port_release(struct cma_id *id);
/* The names under which a listener for `dst` may be found, in order of preference. */
#define CMA_PORT_NAMES 3
int cma_port_names(enum rdma_port_space ps, const struct sockaddr *dst,
		   struct abstract_name names[CMA_PORT_NAMES]);

/* ---- links: the host-local carrier (link.c, port.c) ---- */

struct cma_link;

/* Connects to the listener of dst_addr. 0; -ECONNREFUSED: there is none; -EACCES:
 * BUSBAR_PEERS forbids it; -EAGAIN: try again; or another error. */
int cma_link_connect(struct cma_id *id);
int cma_link_listen(struct cma_id *id);
/* Stops listening. On the progress thread, with the lock. */
void cma_link_unlisten(struct cma_id *id);
/* `link` may be NULL: the message is dropped. */
void cma_link_send(struct cma_link *link, const struct cm_mad *mad);
/* Messages of the link that belong to the identifier reach it from now on; its lock
 * is held. 0, or -ECONNRESET: the link has ended. */
int cma_link_attach(struct cma_id *id, struct cma_link *link);
/* To be called after each change of `id->cm`: updates its table entry and the timer. */
void cma_link_update(struct cma_id *id);
void cma_link_init(struct cma_id *id);
/* Stops callbacks, leaves the link, releases the port. Without the lock. */
void cma_link_close(struct cma_id *id);

/* ---- links: between hosts (network.c) ---- */

struct hca_gsi_address;
struct cma_service;

/* Begins to receive messages of other hosts, once. 0, or why there is no way to them. */
int cma_network_open(void);
/* Gives the identifier, which has both GIDs, a link to the destination. */
int cma_network_connect(struct cma_id *id);
/* A listener receives requests of other hosts, if a transport leads to any. 0; -EADDRINUSE:
 * another process does for this port and address; or another error. */
int cma_network_listen(struct cma_id *id);
void cma_network_unlisten(struct cma_id *id);
/* Its listener's requests reach this process until the child's is settled. Both are locked. */
void cma_network_serve_child(struct cma_id *child, const struct cma_id *listener);
/* The way of a link between hosts, from here to the peer; NULL: it is of link.c. */
const struct hca_gsi_address *cma_link_way(const struct cma_link *link);
/* The largest path MTU (enum ibv_mtu) whose packets an interface sends. */
uint8_t cma_network_mtu(uint32_t interface);

/* ---- connections: inputs of the machine and their effects (conn.c, request.c) ---- */

/* The identifier's lock is held in this group. `mad`: the message of a CM_GOT_...
 * input, else NULL. 0 or the error of cm_machine_ask() or cm_machine_receive(). */
int cma_conn_input(struct cma_id *id, enum cm_input input,
		   const struct cm_mad *mad);
/* The timer has expired. */
void cma_conn_tick(struct cma_id *id, uint64_t now_ns);
/* Makes a child for a request; 0, or the enum cm_reason of the refusal. */
int cma_conn_request(struct cma_id *listener, const struct cm_mad *mad,
		     struct cma_link *link);
/* A datagram's destination of that GID, as programs are told it; `id` has its source. */
void cma_ud_fill(struct rdma_ud_param *ud, const struct cma_id *id,
		 const union ibv_gid *to, uint32_t qpn, uint32_t qkey);
/* How well the listener's address matches the request; 0: not at all. */
unsigned cma_conn_matches(const struct cma_id *listener,
			  const struct cm_mad *mad);
uint32_t cma_random(uint32_t mask);

/* ---- multicast groups (multicast.c) ---- */

/* The program takes a MULTICAST_JOIN event: attaches the QP. False: the group was
 * left meanwhile, the event is not reported. */
bool cma_group_deliver(struct cma_event *ev);
/* Detaches the QP from all groups; without the lock. */
void cma_groups_detach(struct cma_id *id);
/* Frees all groups of an identifier that is destroyed. */
void cma_groups_free(struct cma_id *id);

/* ---- queue pairs (qp.c) ---- */

/* Attach or detach the identifier's QP, if there is one; without the lock. */
int cma_qp_attach(struct cma_id *id, const union ibv_gid *gid);
void cma_qp_detach(struct cma_id *id, const union ibv_gid *gid);

/* Makes the completion queues, with channels, that the caller did not give. */
int cma_cqs_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr);
int cma_cq_create_recv(struct rdma_cm_id *id, uint32_t size);
void cma_cqs_destroy(struct rdma_cm_id *id);

int cma_qp_connect(struct cma_id *id); /* INIT, RTR, RTS; without the lock */
void cma_qp_fail(struct cma_id *id);   /* to the error state; without the lock */
/* The same on the progress thread, with the lock: at once, or by the thread that
 * holds qp_lock when it releases it. */
void cma_qp_fail_soon(struct cma_id *id);

#endif

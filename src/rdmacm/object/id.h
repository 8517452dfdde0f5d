/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers: the structure.
 *
 * Threads: those of the application, and the progress thread, which serves links
 * and timers. An identifier's `lock` guards its fields. It is never held during a
 * verb that may wait for the progress thread (ibv_modify_qp() to RTR may exchange
 * messages with the peer), nor while an application thread unwatches a descriptor.
 * Lock order: listener, its unclaimed child, event channel. The locks of cm/route.c
 * and device/device.c are taken inside of these, and no lock inside of them.
 */
#ifndef RDMACM_OBJECT_ID_H
#define RDMACM_OBJECT_ID_H

#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rdmacm/device/device.h"
#include "rdmacm/object/connector.h"
#include "util/container_of.h"
#include "util/list.h"
#include "wire/cm.h"

enum cma_phase {
	CMA_UNBOUND,
	CMA_BOUND,
	CMA_ADDR_RESOLVED,
	CMA_ROUTE_RESOLVED,
};

/* Lengths are in a byte, as in struct rdma_conn_param. */
#define CMA_PRIVATE_MAX 255
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
	uint8_t private_data[CMA_PRIVATE_MAX]; /* of the next message */
};

struct cma_id {
	struct rdma_cm_id pub;
	pthread_mutex_t lock;
	pthread_cond_t acked;
	atomic_uint reported;        /* number of events that the application took */
	unsigned completed;          /* number of these that it acknowledged */
	bool sync;                   /* synchronous: the channel is the identifier's own */

	struct cma_device *device;
	struct cma_device_user device_user;
	atomic_bool removed;         /* the device failed: most calls are -ENODEV */
	enum cma_phase phase;
	uint8_t sgid_index, active_mtu;
	uint32_t interface;          /* that has the source address */
	bool network;                /* the way to the peer is that to another host */
	bool reuse_addr, v6_only;
	int ack_timeout;             /* -1: default */
	uint8_t tos;
	int port_fd;                 /* socket bound to the port's name; listens */

	/* That of the device; NULL: bound to none. */
	const struct cma_connector *connector;
	void *sides[CMA_CONNECTORS]; /* what a connector keeps of it, or NULL */
	bool begun;                  /* listens, or has or had a connection: nothing else may begin */
	struct cma_conn conn;
	struct ibv_ece local_ece, remote_ece;

	/* listener */
	struct list unclaimed;       /* children whose request the program has not taken */
	unsigned unclaimed_count, backlog;
	/* child */
	struct cma_id *listener;     /* while unclaimed */
	struct list sibling;

	/* Held while the QP changes its state; the progress thread only tries it. */
	pthread_mutex_t qp_lock;
	uint32_t qpn;                /* of the QP that rdma_create_qp() made */
	bool qp_error_due;           /* the holder of qp_lock moves the QP to error */

	/* multicast groups (qp/group.c) */
	struct list groups;
	uint32_t group_serial;

	/* The identifier of the system's library that does the work (forward/forward.h). */
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

static inline bool cma_id_is_datagram(const struct cma_id *id)
{
	return id->pub.qp_type == IBV_QPT_UD;
}

#endif

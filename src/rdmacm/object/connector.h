/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ways to make connections. An identifier uses the connector of the device that it is bound to;
 * one that listens on a wildcard address uses all. What it means to the peer, messages, retries
 * and time-outs, is the connector's; parameters, events, the identifier's destruction and who
 * may call what are not.
 *
 * A connector reads the values to be offered from cma_id.conn and writes those that are agreed
 * on to it. It reports by cma_event_post(); what an event does when the program takes it is
 * cma_event.deliver. A request of a peer is a new identifier (cma_id_create()) in the listener's
 * list `unclaimed`, with a CONNECT_REQUEST that cma_request_deliver() delivers.
 */
#ifndef RDMACM_OBJECT_CONNECTOR_H
#define RDMACM_OBJECT_CONNECTOR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

struct cma_id;

enum cma_connector_number {
	CMA_CONNECTOR_CM, /* messages of connection management, as InfiniBand and RoCE (cm/cm.h) */
	CMA_CONNECTOR_MPA, /* TCP connections, as iWARP (mpa/mpa.h) */
	CMA_CONNECTORS
};

/* Messages with private data of the program. */
enum cma_message {
	CMA_REQUEST,
	CMA_REPLY,
	CMA_REJECTION,
};

/* Results are 0 or a negative errno. The identifier's lock is held unless it says otherwise; a
 * function is called after open() has succeeded. */
struct cma_connector {
	enum ibv_transport_type transport; /* of the devices that it serves */

	/* How an address is reached that is `local`, of this host, or of another one, and prepares
	 * for it. 0: inside of the host; 1: as another host; -ENETUNREACH: no device leads there;
	 * or another error. Of no identifier. */
	int (*find_way)(bool local);
	/* Makes cma_id.sides[] of the connector. */
	int (*open)(struct cma_id *id);
	/* The most bytes of private data. */
	size_t (*room)(const struct cma_id *id, enum cma_message message);

	/* The result is reported by an event. */
	int (*connect)(struct cma_id *id);
	/* For cma_id.backlog requests; the identifier has its port. */
	int (*listen)(struct cma_id *id);
	/* May the request be accepted? */
	int (*accept_check)(const struct cma_id *id);
	/* Without the lock. Connects the queue pair, too, if the identifier has it. */
	int (*accept)(struct cma_id *id);
	/* `for_ece`: because of the peer's extended capabilities. */
	int (*reject)(struct cma_id *id, bool for_ece);
	/* The program has made its queue pair ready after a CONNECT_RESPONSE. */
	int (*establish)(struct cma_id *id);
	/* A message came over the connection before it was established. */
	int (*notify)(struct cma_id *id);
	/* Without the lock. Posted work of the queue pair is flushed when it returns. -EALREADY: the
	 * connection has ended before. */
	int (*disconnect)(struct cma_id *id);
	/* The attributes with which a queue pair goes to attr->qp_state. */
	int (*qp_attr)(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask);

	/* The device has failed: ends the connection, as if the identifier were destroyed, and
	 * listening. On the progress thread. */
	void (*remove)(struct cma_id *id);
	/* The identifier is destroyed: ends the connection and listening. Afterwards nothing is
	 * reported and no callback runs. Without the lock. */
	void (*close)(struct cma_id *id);
	/* Frees what open() made. No other thread knows the identifier. */
	void (*free)(struct cma_id *id);
};

/* Filled in by the connectors when the library is loaded. */
extern const struct cma_connector *cma_connectors[CMA_CONNECTORS];

/* Makes the identifier's side of the connector, if it has none. */
int cma_connector_open(struct cma_id *id, enum cma_connector_number number);
/* Opens the connector of the device and makes it the identifier's. */
int cma_connector_choose(struct cma_id *id, const struct ibv_device *device);
/* find_way() of the first connector that has one. */
int cma_connectors_find_way(bool local);

#endif

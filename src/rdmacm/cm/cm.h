/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections by messages of connection management (struct cma_connector): the machine of
 * engine/cm, with links, a table of connections, a timer and effects.
 *
 * From the ground up: service.c (which requests of other hosts come here), route.c (to which
 * identifier a message belongs), side.c (what an identifier has), message.c (messages from values
 * and values from messages), attr.c, conn.c (steps of the machine and their effects), orphan.c,
 * request.c, receive.c (messages that came), call.c (calling and listening), connector.c.
 *
 * The identifier's lock is held in all functions, unless they say otherwise.
 */
#ifndef RDMACM_CM_CM_H
#define RDMACM_CM_CM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/cm/machine.h"
#include "engine/cm/table.h"
#include "hca/run/progress.h"
#include "rdmacm/event/event.h"
#include "rdmacm/link/link.h"

struct cma_service;

/* What an identifier has here. */
struct cma_side {
	struct cma_id *id;
	struct cm_machine cm;
	struct cma_link *link;       /* carries the messages */
	struct list link_entry;      /* in cma_link.ids; under the lock of route.c */
	struct list listen_entry;    /* in the list of listeners of route.c */
	struct cm_entry route;       /* under the lock of route.c */
	struct cma_service *service; /* served to other hosts because of it, or NULL */
	struct progress_timer timer;
	uint64_t armed_ns;           /* deadline of `timer`; 0: not armed */
	uint64_t listener_until_ns;  /* until then it tries again, if there was no listener */
	bool link_retry;             /* there was no listener, or it was busy: try again */
	bool connect_failed;         /* CONNECT_ERROR was reported: nothing follows */
	bool paused;                 /* a listener: accepts no callers until the timer expires */
};

/* NULL: the identifier has never been bound to a device of this connector, nor listened. */
static inline struct cma_side *cma_side_of(const struct cma_id *id)
{
	return id->sides[CMA_CONNECTOR_CM];
}

/* Length of the IP addresses in front of a request's private data; AF_IB has none. */
static inline size_t cma_private_lead(const struct cma_id *id)
{
	return id->pub.route.addr.src_addr.sa_family == AF_IB ? 0 :
								CM_IP_HEADER_SIZE;
}

/* ---- service.c ---- */

/* A listener receives requests of other hosts, if a transport leads to any. 0; -EADDRINUSE:
 * another process does for this port and address; or another error. */
int cma_service_listen(struct cma_side *s);
/* Gives the service back, if there is one. */
void cma_service_give(struct cma_side *s);
/* Its listener's requests reach this process until the child's is settled. Both are locked. */
void cma_service_share(struct cma_side *child, const struct cma_side *listener);
/* Gives back a service that is not needed any more in the machine's state. */
void cma_service_update(struct cma_side *s);

/* ---- route.c ---- */

/* Messages of the link that belong to the identifier reach it from now on. 0, or
 * -ECONNRESET: the link has ended. */
int route_attach(struct cma_side *s, struct cma_link *link);
/* Updates the table after a change of the machine. */
void route_update(struct cma_side *s);
void route_listen(struct cma_side *listener);
/* Of one that has just failed to listen: waits for nobody. */
void route_unlisten(struct cma_side *listener);
/* Takes it out of all lists. Afterwards no callback of a link or of a listener's
 * socket runs for it: waits for one that runs on another thread. Without the lock, or on the
 * progress thread. */
void route_forget(struct cma_side *s);
/* Calls fn for those with connections; if another thread is in the way, for none. fn
 * must not wait for locks. */
void route_each(void (*fn)(struct cma_side *s));
/* On the progress thread, without the lock: what they return is not forgotten until
 * route_release(). */
/* That to which the message belongs. With `stale`: the one whose connection a REQ makes
 * stale. Or NULL. */
struct cma_side *route_lookup(struct cma_link *link, const struct cm_mad *mad, bool stale);
/* The listener for which match(listener, mad) is highest, or NULL: for all it is 0. */
struct cma_side *route_lookup_listener(const struct cm_mad *mad,
				     unsigned (*match)(const struct cma_id *listener,
						       const struct cm_mad *mad));
/* The link ends. Then takes one after the other off it; NULL: none is left. */
void route_end(struct cma_link *link);
struct cma_side *route_pop(struct cma_link *link);
void route_release(void);

/* ---- side.c ---- */

/* 0 or -ENOMEM. `expired` is the function of the timer. */
int cma_side_open(struct cma_id *id, void (*expired)(struct progress_timer *t));
/* To be called after each change of the machine: updates its table entry and the timer. */
void cma_side_update(struct cma_side *s);
/* Stops callbacks, leaves the link. Without the lock. */
void cma_side_close(struct cma_side *s);

/* ---- message.c ---- */

/* The response time of each side, as n of 4.096 us * 2^n. */
uint8_t cma_response_code(void);
/* Builds the message of the application's request. False: the machine builds it. */
bool cma_message_make(const struct cma_id *id, enum cm_input input, struct cm_mad *mad);
/* Takes the values of the peer's message. */
void cma_message_learn(struct cma_id *id, const struct cm_mad *mad);
/* Tells the program the values of the peer's message. */
void cma_message_tell(struct cma_event *ev, const struct cma_id *id, const struct cm_mad *mad);

/* ---- attr.c ---- */

/* The attributes with which the QP goes to attr->qp_state. 0 or -EINVAL. */
int cma_attr_get(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask);

/* ---- conn.c ---- */

#define CM_RETRIES 15

/* `mad`: the message of a CM_GOT_... input, else NULL. 0 or the error of cm_machine_ask() or
 * cm_machine_receive(). */
int cma_conn_input(struct cma_id *id, enum cm_input input,
		   const struct cm_mad *mad);
/* The timer has expired. */
void cma_conn_tick(struct cma_id *id, uint64_t now_ns);

/* ---- request.c ---- */

/* Makes a child of a locked listener for a request; 0, or the enum cm_reason of the refusal. */
int cma_conn_request(struct cma_id *listener, const struct cm_mad *mad,
		     struct cma_link *link);
/* How well the listener's address matches the request; 0: not at all. */
unsigned cma_conn_matches(const struct cma_id *listener,
			  const struct cm_mad *mad);

/* ---- orphan.c ---- */

/*
 * The identifier is destroyed. If the peer may still need answers, a copy of its machine stays
 * and gives them until it is CM_DONE; the identifier's own is CM_DONE afterwards. Only for links
 * of the network.
 */
void orphan_adopt(struct cma_side *s);
/* Hands a message to the orphan it belongs to; false: it has none. On the progress thread. */
bool orphan_message(struct cma_link *link, const struct cm_mad *mad);

/* ---- call.c ---- */

/* Gives the identifier a link to the listener of dst_addr. 0; -ECONNREFUSED: there is none;
 * -EACCES: BUSBAR_PEERS forbids it; -EAGAIN: try again; or another error. */
int cma_call(struct cma_id *id);
int cma_call_listen(struct cma_id *id);
/* On the progress thread. */
void cma_call_unlisten(struct cma_id *id);
/* The function of a side's timer. */
void cma_call_expired(struct progress_timer *t);

#endif

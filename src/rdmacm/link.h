/* SPDX-License-Identifier: BSD-2-Clause */
/* Between link.c (sockets), network.c (other hosts) and route.c (whose messages they are). */
#ifndef RDMACM_LINK_H
#define RDMACM_LINK_H

#include "hca/path/gsi.h"
#include "rdmacm/cma.h"

struct cma_link {
	struct list entry;       /* in the list of all links; route.c's lock */
	struct list ids;         /* identifiers that use it; route.c's lock */
	atomic_uint refs;        /* one while it is open, one for each user */
	bool gone;               /* it has ended; route.c's lock */
	pid_t pid;               /* the peer's process; 0: the link is not shared */
	uid_t uid;               /* the caller's; on the calling side our own */
	bool is_refused;         /* the caller may not talk to us */
	uint64_t peer;           /* number of the other end in the table of route.c */
	bool is_network;         /* of network.c: without descriptor, queue and process */
	struct hca_gsi_address way; /* is_network: from here to the peer */

	pthread_mutex_t lock;    /* guards the next three */
	int fd;                  /* -1: closed */
	struct list waiting;     /* messages that the socket had no room for */
	unsigned waiting_count;

	/* This side called, or the peer has sent a message. Before that the peer may
	 * close the socket, because it has another link already. */
	atomic_bool in_use;
	struct progress_timer silence; /* ends the link if it is not in use */
};

void link_hold(struct cma_link *link);
void link_put(struct cma_link *link);

/* ---- route.c ---- */

/* A link is made, or has ended: its identifiers then get CM_PEER_GONE. */
void route_add(struct cma_link *link);
void route_gone(struct cma_link *link);
/* Number of links with that user. */
unsigned route_links_of(uid_t uid);
/* The open link to that process, with a reference for the caller, or NULL. */
struct cma_link *route_to_process(pid_t pid);
/* Hands a message to its connection or listener. On the progress thread. */
void route_message(struct cma_link *link, const struct cm_mad *mad);
/* Rejects a request of a caller that may not talk to us. On the progress thread. */
void route_refuse(struct cma_link *link, const struct cm_mad *mad);
/* Updates the table after a change of the machine; the identifier's lock is held. */
void route_update(struct cma_id *id);
void route_listen(struct cma_id *listener);
/* Of one that has just failed to listen, and whose lock is held: waits for nobody. */
void route_unlisten(struct cma_id *listener);
/* Takes `id` out of all lists. Afterwards no callback of a link or of a listener's
 * socket runs for it; waits for one that runs on another thread. */
void route_forget(struct cma_id *id);
/* Calls fn for the identifiers with connections; if another thread is in the way, for none. fn
 * must not wait for locks. */
void route_each(void (*fn)(struct cma_id *id));
/* In a forked child: empties the lists and calls fn for each link of the parent. */
void route_forked(void (*fn)(struct cma_link *link));

#endif

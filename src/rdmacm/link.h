/* SPDX-License-Identifier: BSD-2-Clause */
/* Between link.c (sockets) and route.c (whose messages they are). */
#ifndef RDMACM_LINK_H
#define RDMACM_LINK_H

#include "rdmacm/cma.h"

struct cma_link {
	struct list entry;       /* of all links; route.c's lock */
	struct list ids;         /* those that use it; route.c's lock */
	atomic_uint refs;        /* its being open, and each that uses it */
	bool gone;               /* route.c's lock */
	pid_t pid;               /* of the peer; 0: not to be shared */
	uid_t uid;               /* of a caller */
	bool is_refused;         /* a caller that may not talk to us */

	pthread_mutex_t lock;    /* the three below */
	int fd;                  /* -1: gone */
	struct list waiting;     /* messages that the socket had no room for */
	unsigned waiting_count;

	/* Ours, or the peer has said something: else it may only be looking whose
	 * port it is, and close the socket again. */
	atomic_bool in_use;
	struct progress_timer silence; /* until it is */
};

void link_hold(struct cma_link *link);
void link_put(struct cma_link *link);

/* ---- route.c ---- */

/* A link is there, or has ended: its identifiers learn it. */
void route_add(struct cma_link *link);
void route_gone(struct cma_link *link);
/* How many callers there are of that user. */
unsigned route_links_of(uid_t uid);
/* The open link to that process, held, or NULL. */
struct cma_link *route_to_process(pid_t pid);
/* On the progress thread. */
void route_message(struct cma_link *link, const struct cm_mad *mad);
/* Likewise of one that may not send any. */
void route_refuse(struct cma_link *link, const struct cm_mad *mad);
/* What has changed of the machine; the identifier's lock is held. */
void route_update(struct cma_id *id);
void route_listen(struct cma_id *listener);
/* Afterwards no callback of a link or of a listener's socket concerns `id`. */
void route_forget(struct cma_id *id);
/* In a forked child: forgets the parent's; calls fn for each link. */
void route_forked(void (*fn)(struct cma_link *link));

#endif

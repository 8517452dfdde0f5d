/* SPDX-License-Identifier: BSD-2-Clause */
/* Links, which carry messages to a peer: over a socket of this host, or as datagrams to another
 * host. */
#ifndef RDMACM_LINK_LINK_H
#define RDMACM_LINK_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hca/path/gsi.h"
#include "hca/run/progress.h"
#include "util/abstract.h"
#include "util/list.h"
#include "wire/cm.h"

struct cma_link {
	struct list entry;       /* in the list of all links of host.c */
	struct list ids;         /* that use it; under the lock of who reads the messages */
	atomic_uint refs;        /* one while it is open, one for each user */
	bool gone;               /* it has ended; under the same lock */
	pid_t pid;               /* the peer's process; 0: the link is not shared */
	uid_t uid;               /* the caller's; on the calling side our own */
	bool is_refused;         /* the caller may not talk to us */
	uint64_t peer;           /* number of the other end in tables of connections */
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

/* Who reads the messages. On the progress thread. */
struct link_reader {
	void (*message)(struct cma_link *link, const struct cm_mad *mad);
	/* Of a caller that may not talk to us. */
	void (*refused)(struct cma_link *link, const struct cm_mad *mad);
	/* The link has ended. */
	void (*gone)(struct cma_link *link);
};

/* A message that the socket had no room for. */
struct link_waiting {
	struct list entry;
	uint8_t bytes[CM_MAD_SIZE];
};

/* ---- any link (link.c) ---- */

/* With one reference; NULL: out of memory. */
struct cma_link *link_new(void);
void link_hold(struct cma_link *link);
void link_put(struct cma_link *link);
/* The way of a link between hosts, from here to the peer; NULL: it is of host.c. */
const struct hca_gsi_address *link_way(const struct cma_link *link);

/* Set once, before there are links. */
extern const struct link_reader *link_reader;

/* ---- inside of the host (host.c) ---- */

/* Over any link. `link` may be NULL: the message is dropped. */
void link_send(struct cma_link *link, const struct cm_mad *mad);
/* A link, held for the caller, to the process that listens under the first of the names
 * which has one. 0; -ECONNREFUSED: nobody listens; -EACCES: BUSBAR_PEERS forbids it; -EAGAIN: try
 * again; or another error. */
int link_call(const struct abstract_name *names, int count, struct cma_link **out);
/* Makes a link of a descriptor that a listener accepted, or closes it. On the progress thread. */
void link_accept(int fd);

/* ---- between hosts (network.c) ---- */

/* Begins to receive messages of other hosts, once. 0, or why there is no way to them. */
int link_network_open(void);
bool link_network_is_open(void);
/* Makes a link for the way, held once for the caller, or NULL. */
struct cma_link *link_network(const struct hca_gsi_address *way);
/* Sends an encoded message. */
void link_network_send(struct cma_link *link, const uint8_t *bytes);
#endif

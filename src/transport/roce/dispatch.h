/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which process of the host a CM message from the network is for. One process receives what
 * comes to queue pair 1 of the host's addresses; the others get theirs from it, over Unix
 * sockets under two kinds of names (util/abstract.h, SOCK_SEQPACKET):
 *
 *   busbar.roce.cm.<slot>                     1 to 63, one for each process with connections
 *   busbar.roce.service.<id, hex>.<address>   a GID in hex, "any4", "any6" or "any"
 *
 * For each message the receiver of the network connects to the name of its owner, asks the
 * kernel who that is, sends the message with its addresses, and closes. The owner asks the
 * kernel who relays. Both must permit it by hca/share/peers.h. Requests for a service that
 * nobody here may be given are rejected as a host without that service would do, and
 * messages to slots of nobody are answered as those of unknown connections.
 *
 * A request for a service that nobody serves waits half a second for it, as one inside of the
 * host does for a while (rdmacm/cm/connector.c). Where kernels make connections a caller needs some time before its
 * request leaves, and programs rely on it: perftest's server closes its listener and opens
 * it again while its client connects a second time.
 *
 * What a name's holder sent is checked like what came from the network; it is not
 * relayed again.
 */
#ifndef TRANSPORT_ROCE_DISPATCH_H
#define TRANSPORT_ROCE_DISPATCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "hca/path/gsi.h"
#include "hca/run/progress.h"
#include "util/list.h"

/* ---- the messages between processes; pure ---- */

#define ROCE_RELAY_BYTES 296

void roce_relay_encode(const struct hca_gsi_address *from,
		       const uint8_t mad[HCA_GSI_MAD_BYTES],
		       uint8_t out[ROCE_RELAY_BYTES]);
/* 0, or -EBADMSG: it is none, or an address cannot be one. Does not look at the MAD. */
int roce_relay_decode(const void *bytes, size_t len, struct hca_gsi_address *from,
		      uint8_t mad[HCA_GSI_MAD_BYTES]);

/* ---- one process ---- */

struct roce_dispatch_ops {
	/* A message for this process. On the progress thread, without locks. */
	void (*deliver)(const struct hca_gsi_address *from, const uint8_t *mad);
	/* Sends an answer; the same contract as hca_gsi_ops.send. */
	int (*send)(const struct hca_gsi_address *to, const uint8_t *mad);
};

/* How many sockets may still be connected for messages of some senders. */
#define ROCE_EFFORTS 16u
struct roce_effort {
	uint64_t at_ns; /* when it grew last */
	unsigned left;
	bool said;      /* the shortage is logged; cleared when half is there again */
};

struct roce_dispatch {
	const struct roce_dispatch_ops *ops;
	pthread_mutex_t lock;    /* of the next six; never held while ops are called */
	struct list listeners;   /* sockets with names */
	struct list closed;      /* those that are closed, until the sweeper frees them */
	struct list callers;     /* accepted, whose message has not come */
	unsigned caller_count;
	struct list held;        /* requests that wait for a listener; `lock`, too */
	unsigned held_count;
	struct roce_effort efforts[ROCE_EFFORTS]; /* of the progress thread alone */
	uint32_t salt;
	struct progress_timer sweeper;
	struct progress_timer patience;
	_Atomic unsigned slot;   /* 0: this process has none */
};

void roce_dispatch_init(struct roce_dispatch *d, const struct roce_dispatch_ops *ops);
/* Takes a slot: its number, -EUSERS: all are taken, -EALREADY, or another negative errno. The
 * progress thread runs. */
int roce_dispatch_open(struct roce_dispatch *d);
/* Gives the slot and all services back; afterwards deliver() is not running and not called.
 * Not on the progress thread. */
void roce_dispatch_close(struct roce_dispatch *d);
/* 0; -EADDRINUSE: another process has it, or this one already; or another negative errno.
 * Requests that wait for it are delivered. */
int roce_dispatch_serve(struct roce_dispatch *d, const struct hca_gsi_service *service);
/* Any thread. Requests that other processes have relayed already may be lost. */
void roce_dispatch_unserve(struct roce_dispatch *d,
			   const struct hca_gsi_service *service);
/*
 * A message came from the network: delivers it, relays it, answers it or drops it. On the
 * progress thread, without locks; not only between open and close. Anything that is no CM
 * message of HCA_GSI_MAD_BYTES is dropped.
 */
void roce_dispatch_arrived(struct roce_dispatch *d, const struct hca_gsi_address *from,
			   const void *bytes, size_t len);
/* The same for a message that another process relayed: it is for this process, or answered. */
void roce_dispatch_take(struct roce_dispatch *d, const struct hca_gsi_address *from,
			const uint8_t mad[HCA_GSI_MAD_BYTES]);
/* In a forked child: closes the parent's sockets. Waits for no lock. */
void roce_dispatch_forked(struct roce_dispatch *d);

#endif

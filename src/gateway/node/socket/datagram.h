/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket of a node of datagrams and its buffers. Private to this folder. */
#ifndef GATEWAY_NODE_SOCKET_DATAGRAM_H
#define GATEWAY_NODE_SOCKET_DATAGRAM_H

#include <sys/socket.h>

#include "gateway/node/socket/socket.h"
#include "util/clock.h"

#define RX_BATCH 32
#define TX_BATCH 64
#define DATAGRAM_MAX 65536u
#define TX_ARENA (256u << 10)
#define CONTROL_SIZE 64 /* of a time stamp and a counter */

struct datagram_message {
	struct message message;
	const struct socket_address *from;
};

struct datagram_rx {
	struct mmsghdr headers[RX_BATCH];
	struct iovec pieces[RX_BATCH];
	struct socket_address from[RX_BATCH];
	_Alignas(8) char control[RX_BATCH][CONTROL_SIZE];
	char *buffers;             /* RX_BATCH times DATAGRAM_MAX + 1 */
	struct datagram_message messages[RX_BATCH];
	unsigned next, count;      /* of messages that hold something yet */
	unsigned want;             /* how many to ask for; grows with success */
	bool drained;              /* the last one brought less than asked for */
	uint32_t overruns;         /* the kernel's counter */
};

#define SOURCES_MAX 64

/* A sender, and the format's memory of it. */
struct datagram_source {
	struct socket_address address;
	struct format *reader;
	uint64_t used;             /* the table's clock when it last sent */
	bool proven;               /* samples have come of it */
};

/* Of the reader. */
struct datagram_sources {
	struct datagram_source *at, *last; /* last: who sent last */
	unsigned size, count;      /* size 0: the format keeps nothing */
	uint64_t clock;
	bool said_full;
};

struct datagram_tx {
	struct mmsghdr headers[TX_BATCH];
	struct iovec pieces[TX_BATCH];
	unsigned samples[TX_BATCH];
	unsigned count;
	char *arena;
	size_t used, size_max;
	unsigned stuck;            /* the peer took nothing for a long time: this
				    * many it has to take before it is waited
				    * for again */
};

struct datagram {
	int fd;
	char *unlink_path;         /* ours, of layer unix */
	bool accept_others;        /* eth: frames to other hosts, on loopback */
	struct datagram_rx rx;
	struct datagram_sources sources;
	struct datagram_tx tx;
};

/* sources.c */
int sources_open(struct socket_node *s); /* 0 or a negative errno */
void sources_close(struct socket_node *s);
/* The reader for what comes from there. */
struct format *sources_reader(struct socket_node *s,
			      const struct socket_address *from);
/* Samples have come of who was asked for last. */
static inline void sources_prove(struct datagram_sources *t)
{
	if (t->last)
		t->last->proven = true;
}

#endif

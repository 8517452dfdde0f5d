/* SPDX-License-Identifier: BSD-2-Clause */
/* What a node of datagrams has beside struct socket_node. Private to this folder. */
#ifndef GATEWAY_NODE_SOCKET_DATAGRAM_H
#define GATEWAY_NODE_SOCKET_DATAGRAM_H

#include "gateway/node/socket/socket.h"
#include "gateway/part/datagrams.h"

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
	unsigned size, count;
	uint64_t clock;
	bool said_full;
};

struct socket_datagrams {
	struct datagram_reader *reader; /* NULL: nothing is read ... */
	struct datagram_writer *writer; /* ... or written */
	struct datagram_sources sources;
	char *unlink_path;         /* ours, of layer unix */
	bool accept_others;        /* eth: frames to other hosts, on loopback */
};

/* sources.c */
/* 0 or a negative errno. */
int sources_open(struct socket_node *s);
void sources_close(struct socket_node *s);
/* scan() of a struct datagram_reader. */
unsigned sources_scan(struct socket_ends *e, struct datagram *d, struct sample *smps[],
		      unsigned cnt);

/* unix_path.c: makes room at the address of a socket of layer unix. 0 or a negative errno;
 * logs the cause. */
int unix_path_clear(const struct socket_ends *e);

#endif

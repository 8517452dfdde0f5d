/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading and writing the datagrams of a node's socket (socket_ends.h), many with one system
 * call, in buffers that are allocated before.
 */
#ifndef GATEWAY_PART_DATAGRAMS_H
#define GATEWAY_PART_DATAGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "gateway/part/message.h"
#include "gateway/part/socket_ends.h"

#define DATAGRAM_RX_BATCH 32
#define DATAGRAM_TX_BATCH 64
#define DATAGRAM_MAX 65536u
#define DATAGRAM_CONTROL_SIZE 64 /* of a time stamp and a counter */

/* One that has come. */
struct datagram {
	struct message message;
	const struct socket_address *from;
	unsigned source;             /* of the owner */
};

struct datagram_reader {
	struct socket_ends *ends;
	/* Cuts what stands before the samples. False: the datagram is not wanted. NULL: all
	 * are wanted, and hold nothing else. */
	bool (*take)(struct socket_ends *e, struct datagram *d);
	/* Calls message_scan() with a format of the sender's own. NULL: all senders share
	 * the format of the node. */
	unsigned (*scan)(struct socket_ends *e, struct datagram *d, struct sample *smps[],
			 unsigned cnt);

	struct mmsghdr headers[DATAGRAM_RX_BATCH];
	struct iovec pieces[DATAGRAM_RX_BATCH];
	struct socket_address from[DATAGRAM_RX_BATCH];
	_Alignas(8) char control[DATAGRAM_RX_BATCH][DATAGRAM_CONTROL_SIZE];
	char *buffers;               /* DATAGRAM_RX_BATCH times DATAGRAM_MAX + 1 */
	struct datagram datagrams[DATAGRAM_RX_BATCH];
	unsigned next, count;        /* of datagrams that hold something yet */
	unsigned want;               /* how many to ask for; grows with success */
	bool drained;                /* the last call brought less than asked for */
	uint32_t overruns;           /* the kernel's counter */
};

/* NULL: no memory. */
struct datagram_reader *datagram_reader_new(struct socket_ends *e);
void datagram_reader_free(struct datagram_reader *r); /* NULL allowed */
/* As read() of a node (node.h). */
int datagram_read(struct datagram_reader *r, struct sample *smps[], unsigned cnt);

struct datagram_writer {
	struct socket_ends *ends;
	size_t head;                 /* bytes before the samples, which the owner fills */
	size_t size_max, pack_max;   /* bytes of a datagram: of any, and of one into which
				      * several samples are put together */
	unsigned samples_max;        /* that are put together */
	bool drop;                   /* a peer that takes nothing is not waited for, else ... */
	uint64_t patience_ns;        /* ... for so long, and after that ... */
	unsigned stuck_max;          /* ... only when it has taken so many again */
	const char *limit;           /* "a datagram has at most" */
	const char *size_key;        /* the key that sets pack_max */
	/* Notes the first sample of datagram `i`. NULL: not needed. */
	void (*add)(struct socket_ends *e, unsigned i, const struct sample *first);
	/* In place of datagram_send(), with its result; `first` is 0 once in each batch. NULL:
	 * datagram_send(). */
	unsigned (*send)(struct socket_ends *e, unsigned first);

	struct mmsghdr headers[DATAGRAM_TX_BATCH];
	struct iovec pieces[DATAGRAM_TX_BATCH];
	unsigned samples[DATAGRAM_TX_BATCH];
	unsigned count;
	char *arena;
	size_t used;
	unsigned stuck;              /* so many the peer has to take first */
};

/* For datagrams to e->remote. NULL: no memory. The caller sets the members above the blank
 * line; those that are 0 need not be. */
struct datagram_writer *datagram_writer_new(struct socket_ends *e);
void datagram_writer_free(struct datagram_writer *w); /* NULL allowed */
/* As write() of a node. */
int datagram_write(struct datagram_writer *w, struct sample *smps[], unsigned cnt);
/* Sends those from `first` on. The number that went; 0: the loss of the first one has been
 * counted. */
unsigned datagram_send(struct datagram_writer *w, unsigned first);
/* Sends one whose samples were accepted earlier. */
void datagram_send_late(struct datagram_writer *w, char *buf, size_t len);

#endif

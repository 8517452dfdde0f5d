/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of iWARP for the adapter's tests. */
#ifndef ADAPTER_STREAM_H
#define ADAPTER_STREAM_H

#include "pair.h"

/* QP `i` of both sides, which are in INIT, to RTS. ADAPTER_STREAM: "crc", "markers" or both: what
 * the streams have. */
void stream_connect(struct pair *p, int i);

/* ---- in the process of the side ---- */
/* Two connected sockets on the loopback interface; the test fails if there are none. Any thread. */
void stream_sockets(int fd[2]);
struct stream_how {
	bool initiator, crc, markers;
	bool old;    /* revision 1, in which the initiator's first message begins */
	int rtr;     /* enum iwarp_rtr; 0: a WRITE */
	int room;    /* of the socket's buffers; 0: as usual */
	int refused; /* enum iwarp_error: the set-up ends with this; 0: well */
};
/* Connects queue pairs of these numbers, which are in INIT; `a` is the initiator. */
void stream_join(struct side *a, uint32_t qpn_a, struct side *b, uint32_t qpn_b,
		 const struct stream_how *how);
/* Queue pair `i`, which is in INIT, gets `fd`. 0 or an errno. */
int stream_attach(struct end *e, int i, int fd, const struct stream_how *how);
/* busbar_stream_close(). 0 or an errno. */
int stream_close(struct end *e, int i);
/* How many connections of this process have ended, as their managers are told. */
unsigned stream_ends(void);

#endif

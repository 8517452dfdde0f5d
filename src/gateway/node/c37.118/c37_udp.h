/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a server sends by UDP: to destinations that the configuration names, unasked, and to clients
 * that ask by UDP. Anybody can write any address into a datagram, and one command would send a
 * stream without end to it. So only addresses of out.peers are answered, and a host that says that
 * nobody listens gets no more.
 *
 * All functions but c37_udp_open() and c37_udp_close() are called with the lock of the server.
 */
#ifndef GATEWAY_NODE_C37_UDP_H
#define GATEWAY_NODE_C37_UDP_H

#include "gateway/node/c37.118/c37_node.h"
#include "gateway/part/socket_address.h"

/* IPv4 has room for so much in a datagram. */
#define C37_DATAGRAM_MAX 65507
#define C37_DESTINATIONS_MAX 64

struct c37_udp {
	struct c37_node *node;
	int fd;                     /* where commands come; -1: none */
	int fds[C37_DESTINATIONS_MAX];
	unsigned destinations;
	struct socket_address *clients; /* that asked for data */
	unsigned client_max, client_count;
	uint64_t config_ns;         /* when destinations get the configuration next */
	uint8_t *datagram;          /* C37_FRAME_MAX */
};

/* 0 or a negative errno; logs. */
int c37_udp_open(struct c37_udp *u, struct c37_node *c);
void c37_udp_close(struct c37_udp *u);

static inline unsigned c37_udp_receivers(const struct c37_udp *u)
{
	return u->destinations + u->client_count;
}

/* A data frame to all of them. */
void c37_udp_send(struct c37_udp *u, const uint8_t *frame, size_t len);
/* Takes what has come at u->fd, and answers; `answer` has room for C37_ANSWER_MAX bytes. */
void c37_udp_take(struct c37_udp *u, uint8_t *answer);
/* Sends the configuration to destinations when it is due. When it is due next; UINT64_MAX: there
 * are none. */
uint64_t c37_udp_tick(struct c37_udp *u, uint64_t now_ns, uint8_t *answer);

/* A socket for data to port `port` of the host of a connection. A negative errno: none. */
int c37_udp_connect(const struct socket_address *host, uint16_t port);
/* Sends a frame by such a socket; counts. */
void c37_udp_send_to(struct c37_node *c, int fd, const uint8_t *frame, size_t len);

#endif

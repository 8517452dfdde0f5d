/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets for routed GOOSE and sampled values: UDP over IPv4 or IPv6, to one host or a group. The
 * datagrams are those of wire/grid/session.h.
 */
#ifndef GATEWAY_PART_ROUTED_H
#define GATEWAY_PART_ROUTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "gateway/part/socket_address.h"

#define ROUTED_BYTES_MAX 65507 /* of a datagram */

struct routed {
	int fd;             /* -1: closed; readable when a datagram has come */
	uint32_t overruns;  /* the kernel's counter */
	uint32_t said;      /* of these, what routed_overruns() has returned */
};

/* The address in numbers, of IPv4 or IPv6. False: it is none. */
bool routed_parse(const char *text, uint16_t port, struct socket_address *out);

struct routed_settings {
	struct socket_address local;
	const char *interface;  /* for groups; NULL: the kernel chooses */
	const struct socket_address *groups; /* to join; they are of the family of `local` */
	unsigned group_count;
	int ttl;                /* of what is sent to groups; 0: the socket only receives */
};

/* Opens the socket. 0 or a negative errno, with the reason in why[SOCKET_WHY_MAX]. */
int routed_open(struct routed *r, const struct routed_settings *s, char *why);
void routed_close(struct routed *r); /* without effect if it is closed */

struct routed_datagram {
	struct socket_address from;
	size_t len;
	bool truncated;            /* it was longer than the buffer */
	struct timespec received;  /* by the kernel's clock */
};

/* Takes a datagram, without waiting. 0; -EAGAIN: none has come; or another negative errno. */
int routed_receive(struct routed *r, void *buffer, size_t size, struct routed_datagram *d);
/* Sends one, without waiting. 0 or a negative errno. */
int routed_send(const struct routed *r, const struct socket_address *to, const void *data,
		size_t len);
/* Datagrams that the kernel had no room for since the last call, as far as it has said so. */
unsigned routed_overruns(struct routed *r);

#endif

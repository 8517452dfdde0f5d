/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is at the other end of a TCP connection. */
#ifndef GATEWAY_HTTP_PEER_H
#define GATEWAY_HTTP_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The owner of the socket at the other end, and the marks that distinguish that socket from a
 * later one with the same addresses. */
struct http_owner {
	uid_t uid;
	uint32_t inode;
	uint64_t cookie; /* 0 where the kernel gives none */
};

struct http_peer {
	unsigned char address[16]; /* IPv6, or IPv4 mapped to it */
	bool is_local;             /* over the loopback interface */
	bool has_owner;            /* and the kernel says whose process it is */
	struct http_owner owner;
	bool has_certificate;      /* TLS has verified one; the caller sets it */
	unsigned token;            /* number, from 1, of the last valid token it has shown; 0: none */
	char text[64];             /* address and port, for messages */
};

/* Whether p->address is one of IPv4. */
bool http_peer_is_ipv4(const struct http_peer *p);
/* Fills *p from connection `fd`; with `owner` the kernel is asked for the owner, too. Members that
 * cannot be found out for sure stay empty. */
void http_peer_read(int fd, bool owner, struct http_peer *p);
/* Asks for the owner again. From now on it is unknown unless a process still has the same
 * socket. */
void http_peer_verify(int fd, struct http_peer *p);

#endif

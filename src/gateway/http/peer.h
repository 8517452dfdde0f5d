/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is at the other end of a TCP connection. */
#ifndef GATEWAY_HTTP_PEER_H
#define GATEWAY_HTTP_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The process's socket at the other end: whose it is, and what tells it from a later one that
 * has the same addresses. */
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
	unsigned token;            /* the last right one that it has shown; 0: none */
	char text[64];             /* address and port, for messages */
};

/* Whether p->address is one of IPv4. */
bool http_peer_is_ipv4(const struct http_peer *p);
/* Fills *p from connection `fd`; with `owner` the kernel is asked for that, too. What it does
 * not tell, or not for sure, stays unknown. */
void http_peer_read(int fd, bool owner, struct http_peer *p);
/* Asks for the owner again: unknown from now on unless it is the same socket, which a process
 * still has. */
void http_peer_verify(int fd, struct http_peer *p);

#endif

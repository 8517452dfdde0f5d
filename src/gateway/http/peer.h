/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is at the other end of a TCP connection. */
#ifndef GATEWAY_HTTP_PEER_H
#define GATEWAY_HTTP_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct http_peer {
	unsigned char address[16]; /* IPv6, or IPv4 mapped to it */
	bool is_local;             /* over the loopback interface */
	bool has_uid;              /* and the kernel says whose process it is */
	uid_t uid;
	bool has_certificate;      /* TLS has verified one; the caller sets it */
	char text[64];             /* address and port, for messages */
};

/* Whether p->address is one of IPv4. */
bool http_peer_is_ipv4(const struct http_peer *p);
/* Fills *p from connection `fd`; unknown where the kernel does not tell. */
void http_peer_read(int fd, struct http_peer *p);

#endif

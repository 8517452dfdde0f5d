/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets under names of the abstract namespace (unix(7)), which serves as the host's
 * registry: bind() takes a name atomically, a name belongs to a network namespace and a
 * type of socket, and it ends with the last descriptor of its socket, however its process
 * ended.
 *
 * Anybody can take any name. Whoever connects to one asks the kernel who holds it
 * (SO_PEERCRED; hca/share/peers.h) before it believes anything.
 *
 * All descriptors are O_NONBLOCK and close-on-exec. Nothing here logs or takes a lock.
 */
#ifndef UTIL_ABSTRACT_H
#define UTIL_ABSTRACT_H

#include <sys/socket.h>
#include <sys/un.h>

struct abstract_name {
	struct sockaddr_un address;
	socklen_t len;
};

/* The name, printed as by printf(3); 0 or -ENAMETOOLONG. */
int abstract_name(struct abstract_name *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A socket of that type (SOCK_DGRAM: nobody can ask whose its name is; SOCK_SEQPACKET)
 * for abstract_take(), or a negative errno. */
int abstract_socket(int type);
/* Binds the socket to the name; 0, -EADDRINUSE: it is taken, by whomever, or another
 * negative errno, after which the socket can be bound to another name. */
int abstract_take(int fd, const struct abstract_name *name);
/* Both, and listen() if `backlog` is not 0; the descriptor or a negative errno, as above. */
int abstract_open(const struct abstract_name *name, int type, int backlog);

/* A SOCK_SEQPACKET socket that is connected to the one that listens under the name; or a
 * negative errno. -ECONNREFUSED: the name is nobody's, or of a socket of another type or
 * that does not listen, which is none of ours. -EAGAIN: its backlog is full. */
int abstract_connect(const struct abstract_name *name);

#endif

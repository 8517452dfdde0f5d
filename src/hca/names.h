/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names in the abstract namespace of Unix sockets, the host's registry: a bound
 * name is held by one socket, belongs to a network namespace and ends with its
 * process.
 */
#ifndef HCA_NAMES_H
#define HCA_NAMES_H

#include <sys/socket.h>

/* Binds a name to a new datagram socket; its descriptor, -EADDRINUSE when it is
 * taken, or another negative errno. */
int hca_name_bind(const char *name);
/* The same of a socket that listens, so that others can ask whose it is. */
int hca_name_listen(const char *name);
/* Whose such a name is: 0, or a negative errno (-ECONNREFUSED: nobody's, or of a
 * socket that does not listen). */
int hca_name_holder(const char *name, struct ucred *cred);
/*
 * Calls fn(rest, arg) for the names of this network namespace that start with
 * `prefix`, with what follows it; a name may come several times. 0, or a
 * negative errno when the kernel does not tell them.
 */
int hca_names_each(const char *prefix, void (*fn)(const char *rest, void *arg),
		   void *arg);

#endif

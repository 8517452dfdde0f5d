/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's names in the abstract namespace of Unix sockets (util/abstract.h), the
 * host's registry of processes:
 *
 *   busbar.qpn.<block>         the control socket of a block of QP numbers
 *   busbar.mcast...            a process that uses multicast
 *   busbar.xrcd...             an XRC domain (xrcd.c)
 *   busbar.cm...               a port of librdmacm (rdmacm/port.c)
 */
#ifndef HCA_NAMES_H
#define HCA_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define HCA_NAME_OF_BLOCKS "busbar.qpn."

/* Takes a name with a new datagram socket; its descriptor, -EADDRINUSE when it is
 * taken, or another negative errno. */
int hca_name_bind(const char *name);
/* The same of a socket that listens, so that others can ask whose it is. */
int hca_name_listen(const char *name);
/* Whose such a name is: 0, or a negative errno (-ECONNREFUSED: nobody's, or of a
 * socket that does not listen). */
int hca_name_holder(const char *name, struct ucred *cred);

/* The control socket of a block of QP numbers: one that listens under the block's name,
 * or one connected to its holder; or a negative errno (-EADDRINUSE; -ECONNREFUSED:
 * nobody of ours has it). */
int hca_block_bind(uint32_t block);
int hca_block_connect(uint32_t block);

struct hca_name_seen {
	const char *rest; /* of the name; for the time of the call */
	uint64_t inode;   /* of the socket: tells a holder from its successor */
	bool listens;
};
/*
 * Calls fn(seen, arg) for the names of this network namespace that start with
 * `prefix`; a name may come several times. 0, or a negative errno when the kernel does
 * not tell them (logged). Who holds the names is not said, and nobody is believed.
 */
int hca_names_each(const char *prefix,
		   void (*fn)(const struct hca_name_seen *seen, void *arg),
		   void *arg);

#endif

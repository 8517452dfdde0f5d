/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's names in the abstract namespace of Unix sockets (util/abstract.h), the
 * host's registry of processes:
 *
 *   busbar.qpn.<block>         the control socket of a block of QP numbers
 *   busbar.mcast...            a process that uses multicast
 *   busbar.xrcd...             an XRC domain (xrcd.c)
 *   busbar.cm...               a port of librdmacm (rdmacm/id/port.c)
 *   busbar.roce.<port>...      a UDP port that processes share, and its slots (transport/)
 *   busbar.roce.cm..., busbar.roce.service...
 *                              connections and ports of other hosts' callers (transport/)
 */
#ifndef HCA_NAMES_H
#define HCA_NAMES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define HCA_NAME_OF_BLOCKS "busbar.qpn."

/* Binds a new datagram socket to a name. Its descriptor; -EADDRINUSE: the name is taken; or
 * another negative errno. */
int hca_name_bind(const char *name);
/* The same with a listening socket, so that other processes can ask for its holder. */
int hca_name_listen(const char *name);
/* The holder of such a name: 0, or a negative errno (-ECONNREFUSED: it has no holder, or
 * the holder's socket does not listen). */
int hca_name_holder(const char *name, struct ucred *cred);

/* The control socket of a block of QP numbers: one that listens under the block's name,
 * or one connected to its holder. Or a negative errno (-EADDRINUSE: it is taken;
 * -ECONNREFUSED: no process has it). */
int hca_block_bind(uint32_t block);
int hca_block_connect(uint32_t block);
/* The same, patiently: a socket that many call takes no more at that moment, so it is called
 * again for up to 20 ms. */
int hca_block_call(uint32_t block);

/* The identity of the process at the other end of a Unix socket. False: unknown. */
bool hca_peer_cred(int fd, struct ucred *cred);

struct hca_name_seen {
	const char *rest; /* of the name, after the prefix; valid during the call */
	uint64_t inode;   /* of the socket; differs if another process takes the name */
	bool listens;
};
/*
 * Calls fn(seen, arg) for the names in this network namespace that begin with `prefix`: once
 * for each socket, also for one that ends meanwhile. 0, or a negative errno (logged, if the
 * kernel does not list them). The list does not tell the holders of the names.
 */
int hca_names_each(const char *prefix,
		   void (*fn)(const struct hca_name_seen *seen, void *arg),
		   void *arg);

#endif

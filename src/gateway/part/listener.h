/* SPDX-License-Identifier: BSD-2-Clause */
/* The listening TCP socket of a node, and the connections that it takes. */
#ifndef GATEWAY_PART_LISTENER_H
#define GATEWAY_PART_LISTENER_H

#include <stdbool.h>

#include "gateway/part/fault.h"
#include "gateway/part/socket_address.h"

/* Listens at `own`, which `key` of the configuration of `node` names. `prepare`, NULL allowed,
 * sets further options and logs. The descriptor, which does not block, or a negative errno;
 * logs. */
int listener_open(const struct socket_address *own, const char *node, const char *key,
		  int (*prepare)(void *arg, int fd), void *arg);

/* Takes a connection. The descriptor, which does not block; -EAGAIN: none has come; or another
 * negative errno, noted in `f`: there are no descriptors or memory, and the caller should wait
 * a moment (LISTENER_PAUSE_NS). */
#define LISTENER_PAUSE_NS 50000000
int listener_accept(int listener, struct socket_address *peer, struct fault_counters *f);

/* For a connection whose peer may be silent for long: sends without delay, and ends when the host
 * of the peer does not answer for about 30 s. */
void listener_watch_peer(int fd, const char *node);

#endif

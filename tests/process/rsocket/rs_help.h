/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the process tests of the rsockets. Uses the public API only; CHECK, CASE and
 * the main program are those of the connection manager's tests.
 */
#ifndef RS_HELP_H
#define RS_HELP_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/socket.h>

#include "../rdmacm/cm_help.h"

/* A listener on 127.0.0.1 at a free port; `prepare` sets its options, or NULL. */
int rs_listener(uint16_t *port, void (*prepare)(int fd));

struct rs_pair {
	int listener, caller, callee;
};

/* Two connected sockets in one thread; they block. */
void rs_pair_make(struct rs_pair *p, void (*prepare)(int fd));
void rs_pair_free(struct rs_pair *p);

/* rpoll() of one socket: its events, 0: the time is over. */
int rs_poll(int fd, short events, int timeout_ms);
void rs_nonblock(int fd, bool on);
int rs_get_int(int fd, int level, int name);
void rs_set_int(int fd, int level, int name, int value);

/* Writes or reads all `len` bytes, on a blocking socket. */
void rs_write_all(int fd, const void *buf, size_t len);
void rs_read_all(int fd, void *buf, size_t len);

/* Byte number `at` of a test stream: differs from its neighbours, repeats late. */
static inline uint8_t rs_byte(uint64_t at)
{
	return (uint8_t)(at * 0x9e3779b97f4a7c15u >> 56);
}

#endif

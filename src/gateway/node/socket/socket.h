/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket node-type: samples over UDP, raw IP, Ethernet frames, Unix datagrams
 * and TCP. Private to this folder.
 *
 * socket.c      configuration and the callbacks of the node-type
 * netem.c       emulation of a bad network
 * datagram.c    sockets of datagrams
 * unix_path.c   the place of a Unix socket in the file system
 * sources.c     what is kept of each sender of datagrams
 * tcp.c         connections of TCP, their start and end
 * tcp_connect.c the thread that connects, accepts and closes
 * tcp_read.c tcp_write.c
 */
#ifndef GATEWAY_NODE_SOCKET_H
#define GATEWAY_NODE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/node/socket/netem.h"
#include "gateway/part/socket_ends.h"
#include "gateway/part/socket_option.h"

enum socket_framing { FRAMING_AUTO, FRAMING_NONE, FRAMING_LENGTH };
enum socket_full { FULL_BLOCK, FULL_DROP };
enum socket_stamp { STAMP_NOW, STAMP_KERNEL };

struct socket_config_in {
	int stamp;
	int64_t spin_us, max_connections, idle_timeout_ms;
};

struct socket_config_out {
	json_t *netem_cfg;
	int full;
	bool pack;
	int64_t fwmark, datagram_size, reconnect_interval_ms, slow_timeout_ms;
	struct netem_settings netem;
};

/* Figures of the node-type, behind the kinds of faults. */
enum { SOCKET_CONNECTIONS = FAULT_KINDS, SOCKET_CONNECTED, SOCKET_UNREACHABLE };

struct socket_node {
	struct socket_ends ends;        /* the first member: socket_ends.h */
	int framing;
	struct socket_config_in in;
	struct socket_config_out out;

	/* From start to stop. */
	struct netem *netem;
	struct socket_datagrams *datagram; /* one of the two */
	struct tcp *tcp;
};

/* 0 or a negative errno; logs the cause. */
static inline int socket_set_mark(const struct socket_node *s, int fd)
{
	uint32_t mark = (uint32_t)s->out.fwmark;

	if (s->out.fwmark < 0)
		return 0;
	return socket_option_set(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark),
				 s->ends.node->name, "out.fwmark");
}

/* datagram.c. 0 or a negative errno; after an error datagram_stop() is to be called. */
int datagram_start(struct socket_node *s);
void datagram_stop(struct socket_node *s);
/* The bytes that a datagram of its layer has at most, as far as that is known. */
size_t datagram_max(const struct socket_node *s);

/* tcp.c, likewise */
int tcp_start(struct socket_node *s);
void tcp_stop(struct socket_node *s);
/* Does the format tell where a sample ends in a stream? */
bool tcp_delimits(const struct format_type *type);
/* tcp_read.c */
int tcp_read(struct socket_node *s, struct sample *smps[], unsigned cnt);
/* tcp_write.c */
int tcp_write(struct socket_node *s, struct sample *smps[], unsigned cnt);

#endif

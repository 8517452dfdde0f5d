/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The socket node-type: samples over UDP, raw IP, Ethernet frames, Unix datagrams
 * and TCP. Private to this folder.
 *
 * socket.c         configuration and the callbacks of the node-type
 * netem.c          emulation of a bad network
 * datagram_open.c  sockets of datagrams: options, multicast, binding
 * receive.c        reading datagrams
 * sources.c        what is kept of each sender of datagrams
 * datagram.c       writing datagrams
 * tcp.c         connections of TCP, their start and end
 * tcp_connect.c the thread that connects, accepts and clears away
 * tcp_read.c tcp_write.c
 */
#ifndef GATEWAY_NODE_SOCKET_H
#define GATEWAY_NODE_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/plugin/format.h"
#include "gateway/plugin/node.h"
#include "gateway/part/socket_address.h"
#include "gateway/part/fault.h"
#include "gateway/part/message.h"
#include "gateway/part/multicast.h"
#include "gateway/node/socket/netem.h"
#include "gateway/part/socket_wait.h"

#define SOCKET_DEFAULT_FORMAT "villas.binary"

/* How long a peer that takes no datagram may hold up a write. */
#define SOCKET_STUCK_NS (2 * NSEC_PER_SEC)
/* A blocked write looks around this often. */
#define SOCKET_BLOCK_MS 20
/* A write gives up when it was asked to this often: once may have been meant
 * for the reader of the same node. */
#define SOCKET_INTERRUPTS 3

enum socket_framing { FRAMING_AUTO, FRAMING_NONE, FRAMING_LENGTH };
enum socket_full { FULL_BLOCK, FULL_DROP };
enum socket_stamp { STAMP_NOW, STAMP_KERNEL };

struct socket_config_in {
	const char *address;
	json_t *format, *multicast_cfg;
	bool verify_source;
	int polling, stamp;
	int64_t spin_us, buffer_size, max_connections, idle_timeout_ms;
	struct multicast multicast;
};

struct socket_config_out {
	const char *address;
	json_t *format, *multicast_cfg, *netem_cfg;
	int full;
	bool pack;
	int64_t fwmark, buffer_size, datagram_size, reconnect_interval_ms,
		slow_timeout_ms;
	struct multicast multicast;
	struct netem_settings netem;
};

struct datagram;
struct tcp;

/* Figures of the node-type, behind the kinds of faults. */
enum { SOCKET_CONNECTIONS = FAULT_KINDS, SOCKET_CONNECTED, SOCKET_UNREACHABLE };

struct socket_node {
	struct node *node;
	int layer, framing;
	json_t *format;
	bool verify_source;
	struct socket_config_in in;
	struct socket_config_out out;
	json_t *in_format, *out_format; /* what holds, NULL: the default */
	struct config *config;

	struct format *reader, *writer;
	struct socket_address local, remote;
	bool has_local, has_remote;

	/* From start to stop. */
	struct socket_wait wait;
	struct fault_counters faults;
	struct netem *netem;
	struct datagram *datagram;      /* one of the two */
	struct tcp *tcp;
	atomic_uint write_interrupts;
};

/* Names the options that the kernel refuses; logs. 0 or a negative errno. */
int socket_set_mark(struct socket_node *s, int fd);

/*
 * Resolves in.address and out.address so that one socket serves both. Logs what
 * is wrong with a key of the configuration.
 */
int socket_resolve(struct socket_node *s);

/* datagram_open.c */
int datagram_start(struct socket_node *s);
void datagram_stop(struct socket_node *s);
/* receive.c */
int datagram_read(struct socket_node *s, struct sample *smps[], unsigned cnt);
int datagram_poll_fds(struct socket_node *s, int fds[], int max);
/* datagram.c */
int datagram_write(struct socket_node *s, struct sample *smps[], unsigned cnt);
void datagram_send_delayed(void *node, char *buf, size_t len);

/* tcp.c */
int tcp_start(struct socket_node *s);
void tcp_stop(struct socket_node *s);
/* Does the format tell where a sample ends in a stream? */
bool tcp_delimits(const struct format_type *type);
/* tcp_read.c */
int tcp_read(struct socket_node *s, struct sample *smps[], unsigned cnt);
int tcp_poll_fds(struct socket_node *s, int fds[], int max);
/* tcp_write.c */
int tcp_write(struct socket_node *s, struct sample *smps[], unsigned cnt);
void tcp_send_delayed(void *node, char *buf, size_t len);

#endif

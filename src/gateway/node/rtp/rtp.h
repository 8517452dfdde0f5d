/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node-type rtp: samples in RTP packets over UDP (RFC 3550). Private to this folder.
 *
 * rtp.c            settings and callbacks of the node-type
 * rtp_open.c       addresses and sockets
 * rtp_send.c       samples to packets, as many as the sending rate admits
 * rtp_receive.c    packets to samples
 * rtcp.c           the thread that sends and receives reports
 * rtp_session.c    the state that these share
 * rtp_source.c rtp_rate.c rtcp_interval.c rtp_packet.c rtcp_packet.c
 *                  the rules of RFC 3550, without sockets and clocks
 */
#ifndef GATEWAY_NODE_RTP_H
#define GATEWAY_NODE_RTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/node/rtp/rtp_rate.h"
#include "gateway/node/rtp/rtp_session.h"
#include "gateway/part/datagrams.h"

enum rtp_figure {
	RTP_FIGURE_LOSS_FRACTION = FAULT_KINDS,
	RTP_FIGURE_PKTS_LOST,
	RTP_FIGURE_JITTER,
	RTP_FIGURE_RTT,
	RTP_FIGURE_IN_LOST,
	RTP_FIGURE_IN_JITTER,
	RTP_FIGURE_REPEATED,
	RTP_FIGURE_LATE,
	RTP_FIGURE_STRAY,
	RTP_FIGURE_LOOPED,
	RTP_FIGURE_COLLISIONS,
	RTP_FIGURE_SOURCES,
	RTP_FIGURE_PACKETS_RECEIVED,
	RTP_FIGURE_PACKETS_SENT,
	RTP_FIGURE_THROTTLED,
	RTP_FIGURE_RATE,
	RTP_FIGURE_RTCP_RECEIVED,
	RTP_FIGURE_RTCP_IGNORED,
	RTP_FIGURE_RTCP_SENT,
	RTP_FIGURES,
};

struct rtp_config_rtcp {
	bool enabled;
	int mode, throttle;
	double interval_s;
	int64_t bandwidth;
	const char *cname;
};

struct rtp_config_aimd {
	struct rtp_rate rate;
	double rate_init;
	const char *log;
	int throttle;
};

struct rtp_sender;
struct rtcp;

struct rtp_node {
	struct socket_ends ends;        /* the first member: socket_ends.h */
	json_t *rtcp_cfg, *aimd_cfg, *netem, *fwmark;
	int64_t payload_type, clock_rate, packet_size;
	struct rtp_config_rtcp rtcp_settings;
	struct rtp_config_aimd aimd;

	/* From start to stop. */
	struct rtp_session session;
	struct datagram_reader *receiver;
	/* A format that keeps something between messages keeps it of each source. */
	struct format *readers[RTP_PEERS];
	struct rtp_sender *sender;
	struct rtcp *rtcp;              /* NULL: without reports */
	_Atomic uint64_t step;          /* of rtp_gate_admits(); 0: all samples go */
};

/* Which samples are held back, if any: enum rtp_throttle. */
static inline int rtp_throttle(const struct rtp_node *r)
{
	return r->aimd.throttle;
}

/* rtp_open.c; each logs the cause. 0 or a negative errno. */
int rtp_open(struct rtp_node *r);
/* The socket of the reports, and where they go. */
int rtp_open_rtcp(struct rtp_node *r, int *fd, struct socket_address *remote);
/* Does `from` have the address of the peer? `port_more`: its port is that much higher; -1:
 * any port. Notes it as foreign if not. */
bool rtp_is_peer(struct rtp_node *r, const struct socket_address *from, int port_more);

/* rtp_receive.c */
int rtp_receiver_open(struct rtp_node *r);
void rtp_receiver_close(struct rtp_node *r);

/* rtp_send.c */
int rtp_sender_open(struct rtp_node *r);
void rtp_sender_close(struct rtp_node *r);
int rtp_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release);

/* rtcp.c */
int rtcp_open(struct rtp_node *r);
void rtcp_close(struct rtp_node *r); /* says BYE */
/* A packet with the own SSRC has come from there: counts it, and says BYE for an SSRC that
 * was given up, if the node reports. Any thread. */
void rtcp_note_collision(struct rtp_node *r, enum rtp_verdict v,
			 const struct socket_address *from);

#endif

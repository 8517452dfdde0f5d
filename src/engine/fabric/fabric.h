/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An InfiniBand subnet as links, lanes, buffers and switches (IBA volume 1, chapters 7 and 18), in
 * virtual time. The engine moves packets: it serialises them onto links, spends and returns the
 * credits of lanes, maps service levels to lanes, arbitrates between lanes, forwards by the tables of
 * switches, counts, marks congestion and delays the flows that cause it (annex A10). It reads no
 * management datagram: agents (src/fabric/agent) do, and set what the functions below set.
 *
 * Pure: no clock, socket, thread or lock; all random numbers come from `seed`. One thread at a
 * time calls the functions of a fabric. Memory is allocated when nodes and links are added and when
 * limits are set, never per packet. The same calls with the same times give the same events.
 *
 * Times are picoseconds (a byte on a link of 4x EDR takes 80). A node is a number from 0; its ports
 * count from 1; port 0 of a switch is its management port.
 *
 * Functions that can fail return 0 or a negative errno; a node or port that does not exist: -EINVAL.
 */
#ifndef ENGINE_FABRIC_FABRIC_H
#define ENGINE_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fabric;
struct fabric_event;
struct fabric_lane_at;

#define FABRIC_LANES 16
#define FABRIC_LANE_MANAGEMENT 15
#define FABRIC_PORTS_MAX 254 /* of a node */
#define FABRIC_LID_PERMISSIVE 0xffffu
#define FABRIC_LID_MULTICAST 0xc000u
#define FABRIC_BLOCK_BYTES 64 /* of credits and of arbitration weights */
#define FABRIC_NEVER UINT64_MAX
#define FABRIC_DELAY_PS_MAX UINT64_C(1000000000000) /* of a cable, of a switch: a second */
#define FABRIC_FLOW_PACKETS 64 /* that wait in a flow, or without one for each lane of a port */

enum fabric_kind {
	FABRIC_HOST,   /* a channel adapter: packets begin and end at its ports */
	FABRIC_SWITCH,
};

/* What the owner pays for at most; 0: the default in brackets. */
struct fabric_limits {
	uint32_t nodes;    /* 4096 */
	uint32_t links;    /* 65536 */
	uint32_t packets;  /* that exist at a time, 1 << 20 */
	uint32_t flows;    /* of all adapters, 1 << 18 */
};

enum fabric_packet_flags {
	FABRIC_FECN = 1 << 0,  /* set by a switch port in the congested state */
	FABRIC_BECN = 1 << 1,  /* set by the receiving adapter's answer */
	FABRIC_CORRUPT = 1 << 2, /* a bit error changed it: the next receiver drops it */
	FABRIC_MAY_MARK = 1 << 3, /* it has a BTH: FECN may be set */
};

/*
 * A packet as the engine sees it; its bytes are the owner's (`data`). From fabric_packet() until
 * fabric_packet_free(); fabric_send() passes it to the engine, deliver() and drop() pass it back to
 * the owner. A multicast packet is copied by the engine with the owner's share().
 */
struct fabric_packet {
	struct fabric_packet *next; /* for whoever has the packet */
	void *data;
	uint64_t number;     /* in the order of sending, from 1: set by the engine */
	uint64_t sent_ps;    /* when fabric_send() took it */
	uint32_t bytes;      /* from the LRH to the VCRC */
	uint32_t flow;       /* of the sender: fabric_flow_open(); 0: none */
	uint16_t slid, dlid;
	uint16_t pkey;
	uint8_t sl;
	uint8_t lane;        /* on the link that it is on, or came from */
	uint8_t flags;       /* enum fabric_packet_flags */
	uint16_t hops;       /* links that it has passed */
};

enum fabric_drop {
	FABRIC_DROP_NO_ROUTE,   /* no entry, or the entry leads to a port that is down */
	FABRIC_DROP_LINK_DOWN,  /* it was on a link, or waited for one, that went down */
	FABRIC_DROP_CORRUPT,
	FABRIC_DROP_TOO_LONG,   /* longer than the link's MTU */
	FABRIC_DROP_LIFETIME,   /* it waited at the head of a queue for longer than HOQLife, or has passed
				 * more links than there are nodes: the tables lead it in a circle */
	FABRIC_DROP_LANE,       /* its service level maps to lane 15 or to a lane that is not in use */
	FABRIC_DROP_STATE,      /* the port's state does not permit data packets */
	FABRIC_DROP_PARTITION,  /* P_Key enforcement of a switch port */
	FABRIC_DROP_MANAGEMENT, /* the management buffer of a port is full (VL15 has no credits) */
};

/* What the owner offers; called from fabric_run() alone, except drop(), deliver() and link(), which
 * fabric_send() and the functions that cut links or change ports call, too, and drop(), to which
 * fabric_close() gives the packets that are inside. deliver(), drop(), writable() and link() may call any
 * function of the fabric but fabric_run() and fabric_close(); the others only those that read. */
struct fabric_ops {
	/* A packet has come completely: at a port of an adapter; or at the management port of a
	 * switch, by its table (dlid) or as the permissive LID (directed route). `port`: where it
	 * came in; 0: from the switch's own fabric_send(). The packet is the owner's now. */
	void (*deliver)(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p);
	/* A packet is lost. It is the owner's now. */
	void (*drop)(void *arg, uint32_t node, uint8_t port, struct fabric_packet *p,
		     enum fabric_drop why);
	/* Another reference to `data`, for the copy of a multicast packet. NULL: data is copied as a
	 * pointer. */
	void *(*share)(void *arg, void *data);
	/* The port, or a flow of it, had no room (fabric_send() returned -EAGAIN), and half of its room
	 * is free again. For what a switch sends: port 0. NULL: not called. */
	void (*writable)(void *arg, uint32_t node, uint8_t port);
	/* The physical link of a port has come up or gone down. NULL: not called. */
	void (*link)(void *arg, uint32_t node, uint8_t port, bool up);
	/* Data waits for credits in a cycle of lanes: `count` entries, each waits for the next, the
	 * last for the first. Called once for each cycle found (fabric_find_deadlock()). NULL: not
	 * called. */
	void (*deadlock)(void *arg, const struct fabric_lane_at *cycle, size_t count);
	/* The port of a switch has marked a packet (FABRIC_EVENT_MARKED). May only read. NULL: not
	 * called. */
	void (*marked)(void *arg, uint32_t node, uint8_t port, const struct fabric_packet *p);
	/* Each event, for traces and tests: NULL costs nothing. */
	void (*event)(void *arg, const struct fabric_event *e);
	void *arg;
};

/* An output lane of a port. */
struct fabric_lane_at {
	uint32_t node;
	uint8_t port, lane;
};

enum fabric_event_kind {
	FABRIC_EVENT_SENT,    /* the first byte leaves the port */
	FABRIC_EVENT_ARRIVED, /* the last byte has come to the port; a switch that cuts through tells
			       * it with the header: at_ps is ahead of the present time */
	FABRIC_EVENT_DROPPED,
	FABRIC_EVENT_MARKED,
};

struct fabric_event {
	uint64_t at_ps;
	const struct fabric_packet *packet;
	uint32_t node;
	uint8_t kind, port, lane, why;
};

/* 0 with *out, or -ENOMEM. */
int fabric_open(const struct fabric_limits *limits, const struct fabric_ops *ops, uint64_t seed,
		struct fabric **out);
void fabric_close(struct fabric *f);

/* ---- what there is ---- */

/* The node's number, or -EINVAL, -ENOSPC, -ENOMEM. All ports are without a link. */
int fabric_add_node(struct fabric *f, enum fabric_kind kind, uint8_t ports);

struct fabric_link {
	uint64_t bps;      /* data rate: width x lane rate x encoding */
	uint64_t delay_ps; /* of the cable, one way */
	double bit_error_rate; /* 0: none */
	uint16_t mtu;      /* payload that both ends support, 256 to 4096 */
	uint8_t lanes;     /* data lanes that both ends support: 1, 2, 4, 8 or 15 */
	uint32_t buffer_bytes; /* of each lane at each receiver; at least one packet of `mtu` */
};

/* Joins two ports; -EEXIST: one of them has a link; -ENOSPC: the limit. The link is up at once, and both
 * ports are FABRIC_PORT_INIT, with all lanes and the MTU of the link, all service levels on lane 0, and all
 * data lanes with the same weight in the table of low priority. */
int fabric_add_link(struct fabric *f, uint32_t node_a, uint8_t port_a, uint32_t node_b,
		    uint8_t port_b, const struct fabric_link *link);
/* The physical link goes down (packets on it and in both its output queues are dropped; credits start
 * anew) or comes up (its ports are FABRIC_PORT_INIT). A packet whose header has passed the switch at the end
 * of the link is not cut. */
int fabric_set_link(struct fabric *f, uint32_t node, uint8_t port, bool up);
/* The data rate on which the ends agreed, both ways. -EBUSY: the link is up. */
int fabric_set_rate(struct fabric *f, uint32_t node, uint8_t port, uint64_t bps);
int fabric_set_bit_error_rate(struct fabric *f, uint32_t node, uint8_t port, double rate);
/* The other end of the link; -ENOLINK: it has none. */
int fabric_peer(const struct fabric *f, uint32_t node, uint8_t port, uint32_t *peer, uint8_t *peer_port);
bool fabric_link_is_up(const struct fabric *f, uint32_t node, uint8_t port);

/* Properties of a switch. */
struct fabric_switch {
	uint64_t latency_ps;   /* from the arrival of the header to the departure at an idle port */
	bool store_and_forward; /* else cut-through */
	bool virtual_output_queues; /* else one queue for each input lane: its head may block others */
};
/* -EBUSY: the kind of queues changes while there are packets. */
int fabric_set_switch(struct fabric *f, uint32_t node, const struct fabric_switch *s);

/* ---- what management sets ---- */

enum fabric_port_state { /* as in PortInfo */
	FABRIC_PORT_DOWN = 1,
	FABRIC_PORT_INIT = 2,   /* management packets alone */
	FABRIC_PORT_ARMED = 3,  /* data may arrive */
	FABRIC_PORT_ACTIVE = 4,
};

struct fabric_arbitration {
	uint8_t lane, weight; /* weight in blocks of 64 bytes; 0: the entry is skipped */
};
#define FABRIC_ARBITRATION_ENTRIES 64

struct fabric_port_setting {
	uint8_t state;           /* enum fabric_port_state */
	uint8_t lanes;           /* operational data lanes: 1, 2, 4, 8, 15 */
	uint8_t high_limit;      /* 255: no limit */
	uint8_t hoq_life;        /* 4.096 us x 2^n, 0 to 19; from 20 on: no limit */
	uint16_t mtu;            /* payload */
	bool enforce_in, enforce_out; /* P_Keys of data packets, switches alone */
};
/* A port whose link is down stays FABRIC_PORT_DOWN. -EINVAL: more lanes or MTU than the link has. Packets
 * that may not leave any more are dropped. hoq_life is obeyed by switches alone. */
int fabric_set_port(struct fabric *f, uint32_t node, uint8_t port, const struct fabric_port_setting *s);
int fabric_get_port(const struct fabric *f, uint32_t node, uint8_t port, struct fabric_port_setting *s);
/* `high`: the table of high priority. `count` up to FABRIC_ARBITRATION_ENTRIES, from entry `first`. */
int fabric_set_arbitration(struct fabric *f, uint32_t node, uint8_t port, bool high, unsigned first,
			   const struct fabric_arbitration *entries, unsigned count);
int fabric_get_arbitration(const struct fabric *f, uint32_t node, uint8_t port, bool high, unsigned first,
			   struct fabric_arbitration *entries, unsigned count);
/* For packets from `in` (0 at an adapter, and for a switch's own) to `out`. */
int fabric_set_sl_to_lane(struct fabric *f, uint32_t node, uint8_t in, uint8_t out, const uint8_t lanes[16]);
int fabric_get_sl_to_lane(const struct fabric *f, uint32_t node, uint8_t in, uint8_t out, uint8_t lanes[16]);
/* Entries `first` to `first + count - 1` of the linear forwarding table: a port, 255: none. */
int fabric_set_forwarding(struct fabric *f, uint32_t node, uint16_t first, const uint8_t *ports,
			  unsigned count);
int fabric_get_forwarding(const struct fabric *f, uint32_t node, uint16_t first, uint8_t *ports,
			  unsigned count);
/* Highest LID that is forwarded (LinearFDBTop); at first 0xbfff. */
int fabric_set_forwarding_top(struct fabric *f, uint32_t node, uint16_t top);
/* 32 blocks of 16 ports (`position` 0 to 15): masks of 32 entries from multicast LID 0xc000 + first. */
int fabric_set_multicast(struct fabric *f, uint32_t node, uint16_t first, uint8_t position,
			 const uint16_t masks[32]);
int fabric_get_multicast(const struct fabric *f, uint32_t node, uint16_t first, uint8_t position,
			 uint16_t masks[32]);
/* P_Keys that enforce_in and enforce_out compare with; bit 15: full member. */
int fabric_set_pkeys(struct fabric *f, uint32_t node, uint8_t port, const uint16_t *pkeys, unsigned count);

/* Congestion of a switch (annex A10): one threshold for all ports, or one of a port's own. */
struct fabric_congestion_switch {
	uint8_t threshold;     /* 0: no marking; 1 (late) to 15 (early) */
	uint16_t marking_rate; /* packets that are left out between two marks */
	uint16_t packet_bytes; /* shorter packets are not marked */
	bool victim_mask;      /* mark also when the port only lacks credits */
};
/* `port` 0: all ports of the node. */
int fabric_set_congestion_switch(struct fabric *f, uint32_t node, uint8_t port,
				 const struct fabric_congestion_switch *c);
struct fabric_congestion_host {
	uint16_t timer;        /* units of 1.024 us; 0: the index does not fall */
	uint8_t increase, trigger, minimum;
	uint16_t limit;        /* highest index of the table in use; the table has limit + 1 entries */
};
/* For service level `sl` of an adapter's port; NULL: no rate control. */
int fabric_set_congestion_host(struct fabric *f, uint32_t node, uint8_t port, uint8_t sl,
			       const struct fabric_congestion_host *c);
/* Entry: bits 14..15 a shift, 0..13 a multiplier: delay = (multiplier >> shift) x the packet's time
 * on the link. Entries from `first` on. */
int fabric_set_congestion_table(struct fabric *f, uint32_t node, uint8_t port, uint16_t first,
				const uint16_t *entries, unsigned count);
/* A BECN came for the flow, from the owner that reads the packets of the receiver. */
void fabric_becn(struct fabric *f, uint32_t flow);

/* ---- counters, as PortCountersExtended and PortXmitWait count ---- */

struct fabric_counters {
	uint64_t xmit_words, rcv_words;   /* 4 bytes each, LRH to ICRC as the specification counts:
					   * without VCRC; no management packets of lane 15 left out */
	uint64_t xmit_packets, rcv_packets;
	uint64_t unicast_xmit, unicast_rcv, multicast_xmit, multicast_rcv;
	uint64_t xmit_wait;               /* ticks of 22 ns with data and without credits */
	uint64_t xmit_discards, rcv_errors, symbol_errors, link_downed, link_recovery;
	uint64_t rcv_constraint, xmit_constraint; /* P_Keys */
	uint64_t rcv_switch_relay;        /* no route */
	uint64_t management_dropped;      /* VL15Dropped */
	uint64_t marked;                  /* FECN set */
};
int fabric_get_counters(const struct fabric *f, uint32_t node, uint8_t port, struct fabric_counters *c);
int fabric_clear_counters(struct fabric *f, uint32_t node, uint8_t port);

struct fabric_lane_state {
	uint32_t queued_bytes;   /* in the output queue, or in input buffers for this output */
	uint32_t credit_blocks;  /* that the peer still gives */
	bool congested;
};
int fabric_get_lane(const struct fabric *f, uint32_t node, uint8_t port, uint8_t lane,
		    struct fabric_lane_state *s);

/* ---- packets ---- */

/* A packet, zero; NULL: the limit is reached. */
struct fabric_packet *fabric_packet(struct fabric *f);
void fabric_packet_free(struct fabric *f, struct fabric_packet *p);

/* A sender of an adapter's port (a queue pair, or all of a service level), which keeps its order and
 * is delayed by itself; its number, not 0, or 0: the limit is reached. */
uint32_t fabric_flow_open(struct fabric *f, uint32_t node, uint8_t port, uint8_t sl);
/* Packets that wait in it still leave. */
void fabric_flow_close(struct fabric *f, uint32_t flow);
/* How many packets the flow takes before fabric_send() returns -EAGAIN. */
unsigned fabric_flow_room(const struct fabric *f, uint32_t flow);

/* The node sends the packet out of `port`; a switch from its management port, `port` 0: to where its
 * table leads. A packet on lane 15 has `lane` set so; others get theirs from `sl`. The packet is
 * the engine's now, unless -EAGAIN: the flow, or the port for packets without one, has as many waiting
 * as it may (writable() comes), or -EINVAL. */
int fabric_send(struct fabric *f, uint32_t node, uint8_t port, struct fabric_packet *p);

/* ---- time ---- */

uint64_t fabric_now_ps(const struct fabric *f);
/* When the next event is; FABRIC_NEVER: nothing will happen by itself. */
uint64_t fabric_next_ps(const struct fabric *f);
/* Carries out all events up to and including `until_ps`, at most `events` of them (0: any number). How many
 * it carried out. Packets that tables send in circles travel for ever, so there may always be a next
 * event. The time of a fabric ends after 2^64 ps, which is 213 days. */
uint64_t fabric_run(struct fabric *f, uint64_t until_ps, uint64_t events);
/* Looks for cycles of lanes that wait for each other's credits and have not moved for `still_ps`; calls
 * deadlock() for each. How many. */
unsigned fabric_find_deadlock(struct fabric *f, uint64_t still_ps);
/* Packets that the engine holds: in queues, in buffers, on links. */
uint64_t fabric_packets_inside(const struct fabric *f);

#endif

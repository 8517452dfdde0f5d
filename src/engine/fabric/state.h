/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structures of a fabric, for its own files. A packet waits in a source: the queue of an input
 * lane of a switch, of a flow of an adapter, or of packets that a node sends by itself. A source
 * whose first packet may leave is in the list of requests of the output lane that the packet leaves
 * by. The output port takes one source after the other.
 */
#ifndef ENGINE_FABRIC_STATE_H
#define ENGINE_FABRIC_STATE_H

#include <stdlib.h>
#include <string.h>

#include "engine/fabric/fabric.h"
#include "engine/fabric/queue.h"
#include "util/list.h"
#include "util/prng.h"

#define FABRIC_NO_PORT 255      /* in forwarding tables */
#define FABRIC_LRH_BYTES 8      /* a switch decides when it has these */
#define FABRIC_FLOW_CONTROL_BYTES 8
/* Flow control packets of a lane that are on a cable at a time. */
#define FABRIC_FLOW_CONTROL_MAX 4
/* Headers and ICRC that a packet may have besides its payload; the VCRC comes on top. */
#define FABRIC_OVERHEAD_BYTES 124
#define FABRIC_VCRC_BYTES 2
/* Management packets that wait in the input buffer of a switch port at most. */
#define FABRIC_MANAGEMENT_PACKETS 64

enum fabric_due_kind {
	FABRIC_DUE_PACKET,    /* a packet comes to its next stage */
	FABRIC_DUE_OUTPUT,    /* an output port may be free again */
	FABRIC_DUE_CREDIT,    /* a flow control packet arrives */
	FABRIC_DUE_REFRESH,   /* a flow control packet has to be sent */
	FABRIC_DUE_LIFETIME,  /* the head of an output lane may be too old */
	FABRIC_DUE_FLOW,      /* a flow may send again */
};

enum fabric_stage {
	FABRIC_STAGE_FREE = 0,
	FABRIC_STAGE_OWNER,  /* the owner has it */
	FABRIC_STAGE_WAITS,  /* in a source */
	FABRIC_STAGE_HEADER, /* on a link: its header comes to a switch that cuts through */
	FABRIC_STAGE_TAIL,   /* on a link: its last byte comes */
	FABRIC_STAGE_READY,  /* in a switch, which looks where it goes */
	FABRIC_STAGE_OUT,    /* on its way to the owner's deliver() or drop() */
	FABRIC_STAGE_HOLDER, /* no packet: holds the buffer of a multicast packet for its copies */
};

struct fabric_lane;
struct fabric_port;

/* What belongs to one cache line is said below, as most of the time of a large subnet goes by waiting for
 * memory. A packet with what the engine knows of it: */
struct fabric_item {
	struct fabric_packet packet;
	struct fabric_due due;
	/* The second line. */
	uint64_t tail_ps;         /* when the last byte comes, or came, to `in` */
	struct fabric_port *in;   /* the port that it came to; a sender: its port */
	struct fabric_port *out;  /* of the same node, when it is known */
	struct fabric_item *holder; /* that gives the buffer back; NULL: this packet */
	uint16_t blocks;          /* of the buffer of `in` that it takes up */
	uint16_t refs;            /* of a holder */
	uint8_t in_lane, out_lane;
	uint8_t stage;            /* enum fabric_stage */
	uint8_t why;              /* enum fabric_drop, on its way to drop() */
	bool lost;                /* goes to drop() */
} cache_aligned;

_Static_assert(offsetof(struct fabric_item, tail_ps) == CACHE_LINE && sizeof(struct fabric_item) == 2 * CACHE_LINE,
	       "lines of a packet");

struct fabric_source {
	struct list request;      /* in the requests of an output lane; empty: not there */
	struct fabric_packet *head, **tail;
	uint32_t count;
	uint32_t ready_count;     /* packets from the head on that all go to one output lane */
	bool sending;             /* the last packet that was taken out has not left completely */
	bool is_flow;
	bool full;                /* a packet was refused: tell when there is room */
	struct fabric_lane *lane; /* where they go; where it requests, if it does */
};

struct fabric_flow {
	struct fabric_source source;
	struct fabric_due due;
	struct fabric_port *port;  /* NULL: not open */
	struct fabric_flow *next;  /* not open */
	uint64_t not_before_ps;
	uint64_t tick;             /* of the timer, when `index` was right */
	uint32_t number;
	uint16_t index;            /* CCTI */
	uint8_t sl;
	bool closed;               /* ends when its last packet has left */
};

struct fabric_flow_control { /* a packet on the cable to the other end */
	struct fabric_due due;
	uint16_t fctbs; /* 12 bits; and LOST */
	uint16_t fccl;
};
#define FABRIC_FLOW_CONTROL_LOST 0x8000u

struct fabric_lane {
	struct fabric_port *port;
	struct fabric_lane *peer; /* the same lane at the other end */
	struct list requests;     /* of sources, at the output */
	uint8_t number;
	bool starved;             /* output: the head lacked credits since the last packet left */
	bool congested;           /* output */
	/* Flow control packets about the input lane, which leave by the same port. */
	bool flow_control_due;
	uint8_t flow_control_used; /* bits of those on the cable */
	bool has_outputs;         /* `by_output` is not NULL */
	uint16_t sent_blocks;     /* output: TBS, 12 bits */
	uint16_t limit_blocks;    /* output: CL, 12 bits */
	uint16_t received_blocks; /* input: ABR, 12 bits */
	uint16_t told;            /* input: FCCL of the last flow control packet */
	uint16_t unmarked;        /* output: packets since the last mark */
	uint32_t free_blocks;     /* input: FB */
	uint32_t queued_bytes;    /* that will leave here */
	uint32_t ready_bytes;     /* of these, without those that wait behind packets for other lanes */
	/* The second line. */
	struct fabric_source in cache_aligned;
	uint64_t head_ps;         /* since when the first request is the first */
	/* The third line. */
	struct fabric_flow_control flow_control[FABRIC_FLOW_CONTROL_MAX];
	uint64_t flow_control_ps; /* when the last one was sent */
	struct fabric_due refresh;
	/* What few packets need. */
	struct fabric_due lifetime;
	struct fabric_source *by_output; /* virtual output queues, one for each port; or NULL */
	uint64_t starved_ps;      /* since when `starved` */
	uint32_t mark;            /* of the search for deadlocks */
} cache_aligned;
_Static_assert(offsetof(struct fabric_lane, flow_control) == 2 * CACHE_LINE &&
	       offsetof(struct fabric_lane, lifetime) == 3 * CACHE_LINE, "lines of a lane");

struct fabric_weights { /* where a port is in one of its two tables */
	uint8_t count;            /* behind it are entries of weight 0 */
	uint8_t current;
	struct fabric_arbitration entry; /* the current one */
	int32_t left_bytes;       /* of its weight */
};

struct fabric_throttle { /* annex A10, at a port of an adapter */
	struct fabric_congestion_host setting[16];
	uint16_t used;            /* bits of service levels */
	uint32_t table_count;
	uint16_t *table;
};

struct fabric_node {
	uint32_t number;
	uint8_t kind;
	uint8_t ports;
	struct fabric_switch sw;
	struct fabric_port *port; /* ports + 1; that of number 0 has no link */
	/* Of a switch. */
	uint32_t forwarding_count, multicast_count;
	uint16_t forwarding_top;
	uint8_t *forwarding;
	uint16_t (*multicast)[16]; /* by multicast LID and position */
	uint8_t (*sl_to_lane)[16]; /* by input port x (ports + 1) + output port; NULL: all 0 */
};

struct fabric_port {
	struct fabric_node *node;
	struct fabric_port *peer;  /* NULL: no link */
	struct fabric_lane *lanes; /* link_lanes + 1; the last is lane 15 */
	uint8_t number;
	uint8_t link_lanes;
	bool up;
	bool woken;                /* in the fabric's list of ports to look at */
	bool is_switch;            /* as in `node` */
	bool peer_cuts;            /* the peer is a switch that cuts through */
	uint16_t requested;        /* bits of lanes with requests */
	uint16_t flow_control_due; /* bits of lanes */
	struct fabric_port_setting setting;
	struct fabric_port *next_woken;
	uint64_t bps;
	/* The second line: the link, in the direction away from here. */
	uint64_t byte_ps;          /* 0: no whole number */
	uint64_t delay_ps;
	uint64_t busy_ps;          /* something is being sent until then: */
	struct fabric_due due;
	struct fabric_source *sending;
	struct fabric_port *sending_in; /* whose buffer becomes free */
	struct fabric_item *sending_holder;
	uint16_t sending_blocks;
	uint8_t sending_lane;
	bool low_turn;             /* of arbitration */
	int32_t high_left_bytes;
	/* The third line. */
	struct fabric_weights weights[2]; /* [1]: of high priority */
	uint64_t wait_since_ps;    /* FABRIC_NEVER: data does not wait */
	double bit_error_rate;
	struct fabric_congestion_switch marking;
	uint32_t buffer_blocks;    /* of each lane, here and at the peer */
	struct fabric_throttle *throttle;
	/* The fourth line; the counters that each packet raises come first. */
	struct fabric_counters counters cache_aligned;
	uint64_t wait_ps;
	uint64_t refresh_ps;
	uint16_t mtu;
	bool writable;             /* in the list of ports to report as writable */
	struct fabric_port *next_writable;
	/* Partitions. */
	uint16_t *pkeys;
	uint32_t pkey_count;
	/* Packets without a flow, by lane: of adapters and of port 0. */
	struct fabric_source *own;
	struct fabric_arbitration entries[2][FABRIC_ARBITRATION_ENTRIES]; /* as `weights` */
} cache_aligned;
_Static_assert(offsetof(struct fabric_port, byte_ps) == CACHE_LINE &&
	       offsetof(struct fabric_port, weights) == 2 * CACHE_LINE &&
	       offsetof(struct fabric_port, counters) == 3 * CACHE_LINE, "lines of a port");

struct fabric {
	uint64_t now_ps;
	struct fabric_queue queue;
	struct fabric_ops ops;
	struct fabric_limits limits;
	struct prng prng;
	uint32_t node_count, link_count, lane_count;
	struct fabric_node **nodes;
	struct fabric_item *items;
	struct fabric_packet *free_items;
	uint32_t items_used;       /* items that have been in use */
	uint32_t flows_used;
	struct fabric_flow *flows; /* number 0 is not used */
	struct fabric_flow *free_flows;
	uint64_t inside, number;
	struct fabric_port *woken, **woken_tail;
	struct fabric_port *writable, **writable_tail;
	struct fabric_packet *out, **out_tail; /* for deliver() and drop() */
	bool running, reporting;
	struct fabric_lane **scratch; /* lane_count, for cycles */
	struct fabric_lane_at *cycle;
};

/* Zeros for structures that begin at a cache line; NULL: no memory. */
static inline void *fabric_aligned_zero(size_t bytes)
{
	void *memory = aligned_alloc(CACHE_LINE, bytes);

	return memory ? memset(memory, 0, bytes) : NULL;
}

static inline struct fabric_item *fabric_item_of(struct fabric_packet *p)
{
	return (struct fabric_item *)(void *)((char *)p - offsetof(struct fabric_item, packet));
}

static inline struct fabric_node *fabric_node_at(const struct fabric *f, uint32_t node)
{
	return node < f->node_count ? f->nodes[node] : NULL;
}

/* NULL: does not exist. */
static inline struct fabric_port *fabric_port_at(const struct fabric *f, uint32_t node, uint8_t port)
{
	struct fabric_node *n = fabric_node_at(f, node);

	return n && port <= n->ports && (port > 0 || n->kind == FABRIC_SWITCH) ? &n->port[port] : NULL;
}

/* Of a port with a link; `lane` is one of its data lanes or 15. */
static inline struct fabric_lane *fabric_lane_of(const struct fabric_port *o, uint8_t lane)
{
	return &o->lanes[lane == FABRIC_LANE_MANAGEMENT ? o->link_lanes : lane];
}

static inline uint64_t fabric_bytes_ps(const struct fabric_port *o, uint32_t bytes)
{
	return o->byte_ps ? bytes * o->byte_ps
			  : (bytes * UINT64_C(8000000000000) + o->bps - 1) / o->bps;
}

static inline uint16_t fabric_blocks(uint32_t bytes)
{
	return (uint16_t)((bytes + FABRIC_BLOCK_BYTES - 1) / FABRIC_BLOCK_BYTES);
}

/* May packets of this lane arrive at, or leave by, the port? */
static inline bool fabric_port_receives(const struct fabric_port *o, uint8_t lane)
{
	return o->up && o->setting.state >=
			(lane == FABRIC_LANE_MANAGEMENT ? FABRIC_PORT_INIT : FABRIC_PORT_ARMED);
}

static inline bool fabric_port_sends(const struct fabric_port *o, uint8_t lane)
{
	return o->up && o->setting.state >=
			(lane == FABRIC_LANE_MANAGEMENT ? FABRIC_PORT_INIT : FABRIC_PORT_ACTIVE);
}

/* The port looks for something to send when the present event has been carried out. */
static inline void fabric_port_wake(struct fabric *f, struct fabric_port *o)
{
	if (o->woken)
		return;
	o->woken = true;
	o->next_woken = NULL;
	*f->woken_tail = o;
	f->woken_tail = &o->next_woken;
}

#endif

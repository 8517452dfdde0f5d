/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simulated network of adapters: what the files of sim_network share. Every adapter is
 * one end of the simulated network, some with a filter of faults over it; connections
 * (RC, UC) are pairs of queue pairs, each a requester and a responder of engine/rc with
 * the simplest glue that keeps its contracts. All from one seed.
 */
#ifndef TESTS_UNIT_ENGINE_NETWORK_H
#define TESTS_UNIT_ENGINE_NETWORK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rc/requester.h"
#include "engine/rc/responder.h"
#include "transport/carrier/fault.h"
#include "transport/carrier/sim.h"
#include "util/wheel.h"

enum {
	ENTRIES = 16,      /* of a send queue */
	MESSAGES_MAX = 64, /* of a queue pair */
	LONGEST = 6000,
	SLOT = 512,        /* a place that one WRITE has for itself */
	SHARED_PLACE = 8192, /* that WRITEs overwrite */
	SEEN_MAX = 4096,   /* FETCH_ADDs on the counter of an adapter */
	GOOD_KEY = 77,
};

/* What an address of a peer's memory means: the upper half of 64 bits. */
enum space { SPACE_SLOTS, SPACE_SHARED, SPACE_FIXED, SPACE_COUNTER, SPACE_ADAPTER };

/* Messages that shall fail, and how. */
enum poison {
	POISON_NONE,
	POISON_ACCESS,    /* REM_ACCESS_ERR */
	POISON_INVALID,   /* REM_INV_REQ_ERR */
	POISON_OPERATION, /* REM_OP_ERR */
	POISON_LOCAL,     /* the answer cannot be placed: LOC_PROT_ERR */
};

struct message {
	uint8_t op, flags, poison;
	uint32_t length;
	uint64_t remote_addr, compare_add, swap;
	uint64_t old;             /* what an atomic has to find */
	const uint8_t *bytes;     /* of SEND and WRITE; what a READ has to bring */
	bool completed;
};

struct qp;

struct adapter {
	struct carrier *carrier;  /* the end, or the filter over it */
	bool filtered, cut;
	struct wheel_timer timer; /* when the carrier wants to be polled */
	struct wheel_timer change; /* the filter's parameters */
	uint64_t counter;         /* of atomics of all queue pairs */
	bool seen[SEEN_MAX];      /* old values that were brought */
};

struct work {
	struct rc_wqe wqe;
	uint32_t number;          /* of the message */
};

struct qp {
	struct adapter *adapter;
	struct qp *peer;
	uint32_t index;
	bool reliable, error, parted, tells_credit;
	bool full;                /* the carrier was, and has not said yet that it is not */
	struct rc_requester rq;
	struct rc_responder rs;
	struct work ring[ENTRIES];
	uint8_t (*landing)[LONGEST]; /* of READ, one an entry */
	uint64_t old[ENTRIES];
	struct message *messages; /* that it sends */
	uint32_t count, posted, completed;
	enum ibv_wc_status ended; /* SUCCESS: no error */
	/* Receiving: the peer's messages. */
	uint32_t executed;
	uint8_t *slots, *shared, *shadow;
	uint32_t receives;
	bool has_receive;
	uint8_t receive[LONGEST];
	uint64_t counter;         /* of atomics of the peer alone */
	uint64_t post_at_ns, receive_at_ns;
	struct wheel_timer timer;
	bool dirty;
	struct qp *next_dirty;
};

struct world {
	uint64_t seed;
	struct prng dice;
	struct carrier_sim *sim;
	struct clock_source clock;
	struct wheel wheel;
	struct adapter *adapters;
	struct qp *qps;
	unsigned adapter_count, qp_count;
	unsigned unfinished;      /* queue pairs */
	uint32_t mtu;
	uint64_t timeout_ns;
	bool calm;                /* nothing happens to packets */
	uint64_t line_bps;        /* of the ports that mark packets; 0: there are none */
	unsigned not_now;         /* of 1000 calls end with RC_NOT_NOW */
	struct qp *dirty;
	bool trace;               /* SIM_NETWORK_TRACE is set: all packets are printed */
	/* Figures. */
	uint64_t messages, packets, damaged, atomics, rnr, gone_back, cnps;
	uint64_t errors[16];      /* by completion status */
	uint64_t timeouts;        /* of those whose peer is there */
	uint64_t unlucky;         /* gave up though the peer was there */
};

extern struct world world;

void network_fail(const char *what, const struct qp *qp);

static inline void network_check(bool good, const char *what, const struct qp *qp)
{
	if (!good)
		network_fail(what, qp);
}

static inline uint64_t network_now(void)
{
	return clock_source_now_ns(&world.clock);
}

static inline uint64_t dice(uint64_t n)
{
	return prng_below(&world.dice, n);
}

void network_trace(const char *what, const struct qp *qp, const struct rc_packet *p,
		   uint32_t number);

/* network_frame.c: from packets to bytes and back. Classes of carriers. */
enum { CLASS_REQUEST, CLASS_UNRELIABLE, CLASS_ANSWER };

struct frame {
	uint64_t sum;             /* of all that follows and the payload */
	uint32_t to, number;
	uint32_t bytes;
	uint8_t class, zero[3];
	struct rc_packet packet;
};

/* 0, or -EAGAIN. */
int network_emit(struct qp *qp, const struct rc_packet *packet, uint32_t number,
		 const uint8_t *payload);
/* NULL: damaged. */
const struct frame *network_frame(const struct carrier_unit *unit);
unsigned network_classify(void *arg, const struct carrier_unit *packet);
void network_frame_init(void);
/* LONGEST bytes that belong to the number. */
const uint8_t *network_bytes(uint64_t number);

/* network_plan.c: what is sent, and how it has to end. */
void network_plan(struct qp *qp);
enum ibv_wc_status network_poison_status(const struct message *m);
/* The message has completed with success. */
void network_check_completed(struct qp *qp, const struct work *w, uint32_t slot);
/* The peer's message has been carried out: next in its order. */
void network_check_executed(struct qp *qp, uint32_t number, const struct rc_packet *p,
			    const struct rc_taken *taken);
/* When all has ended. */
void network_check_end(struct qp *qp);

/* network_qp.c: the glue. */
void network_qp_run(struct qp *qp);     /* posts, sends, answers; arms its timer */
void network_qp_arrive(struct qp *qp, const struct frame *f, const uint8_t *payload,
		       bool marked);
void network_qp_timer(struct qp *qp);
void network_qp_touch(struct qp *qp);   /* network_qp_run() is to be called */

#endif

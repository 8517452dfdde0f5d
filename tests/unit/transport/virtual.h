/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter in virtual time (src/virtual): pairs of queue pairs, what is posted on them and what
 * completes. Time passes only in virtual_step(), which jumps to the next packet or timer.
 */
#ifndef VIRTUAL_H
#define VIRTUAL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/rc/rules.h"
#include "virtual/clock.h"
#include "virtual/fail.h"
#include "virtual/net.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum {
	SIDES = 8,
	SIDE_BYTES = 1 << 20, /* of the memory of a side, all of it registered */
	DONE_MAX = 4096,
};

/* Printed with a failure, so that the case can be run again. */
extern const char *virtual_case;
extern uint64_t virtual_seed;

/* ---- virtual_side.c ---- */
struct done {
	struct ibv_wc wc;
	uint64_t at_ns;
	unsigned number; /* among those of the side, from 0 */
};

struct side {
	struct virtual_host *host;
	struct side *peer;
	struct ibv_cq *cq[2]; /* of sends, of receives */
	struct ibv_qp *qp;
	struct ibv_srq *srq; /* or NULL */
	bool shares;         /* it is another side's */
	uint8_t *memory;
	bool polls; /* polls all the time; else it sleeps until there is a completion */
	struct done done[2][DONE_MAX];
	unsigned count[2];
};
enum { SENDS, RECEIVES };

/* Zero fields mean: timeout 10 (4.2 ms), 16 READs, an MTU of 1024, RC, 128 entries. */
struct options {
	uint8_t timeout, no_timeout, retry_cnt, rnr_retry, min_rnr_timer, max_rd_atomic;
	enum ibv_mtu mtu;
	enum ibv_qp_type type;
	uint32_t psn, send_wr, recv_wr, inline_bytes;
	int skew;        /* the second one expects a sequence number so much higher */
	bool srq;        /* receives are posted to a shared queue */
	struct side *share; /* to that of this side, instead of one for each */
	bool only_first; /* the second one stays in INIT, for side_connect() */
	bool one_queue;  /* sends and receives complete to the same queue */
};

extern struct side sides[SIDES];
/* Two queue pairs that are connected, of the hosts `a` and `b`: sides[first] and the next. */
void sides_open(unsigned first, unsigned a, unsigned b, const struct options *o);
void side_connect(struct side *s, const struct options *o);
void side_destroy(struct side *s);
void sides_close(void);
enum ibv_qp_state side_state(const struct side *s);
void side_error(struct side *s);
/* To RESET and INIT; then side_connect(). */
void side_reset(struct side *s);

/* Is the memory of sides that are opened next registered on demand? */
extern bool virtual_on_demand;
void side_prefetch(struct side *s, uint32_t at, uint32_t bytes);

struct request {
	enum ibv_wr_opcode opcode;
	uint64_t id;
	uint32_t at, bytes, to; /* in the memory of this side and of the peer */
	uint32_t imm;
	uint64_t compare_add, swap;
	unsigned flags;
};
int side_try(struct side *s, const struct request *r);
void side_post(struct side *s, const struct request *r);
void side_send(struct side *s, uint64_t id, uint32_t bytes);
void side_receive(struct side *s, uint64_t id, uint32_t at, uint32_t bytes);
uint8_t pattern(uint64_t seed, uint64_t at);
void side_fill(struct side *s, uint32_t at, uint32_t bytes, uint64_t seed);
void side_check(const struct side *s, uint32_t at, uint32_t bytes, uint64_t seed);

/* To the next packet or timer, `until_ns` at most, then takes what has completed. */
void virtual_step(uint64_t until_ns);
void play_until(uint64_t ns);
/* Until the side has `count` completions, which have to come before the time. */
void play(const struct side *s, int queue, unsigned count, uint64_t within_ns);
/* Where one polls: the time between two polls. 0: whenever something comes. */
extern uint64_t virtual_poll_ns;

/* ---- virtual_lose.c ---- */
/* A timer runs this late at most, by its wheel and by the delay of the network. */
#define LATE_NS (20 * US)
#define DELAY_NS (2 * US)

/* Of the pair; it begins anew with each lose(). */
extern struct net {
	unsigned skip, lose;   /* of the packets that `is` picks */
	bool (*is)(const struct packet_seen *p);
	unsigned requests;     /* packets of virtual_hosts[0], which have left */
	unsigned answers;      /* of virtual_hosts[1] */
	unsigned naks;         /* of them those for a gap */
	uint64_t at_ns[64];    /* when the first of `requests` left */
} net;
bool is_request(const struct packet_seen *p);
bool is_answer(const struct packet_seen *p);
bool is_any(const struct packet_seen *p);
/* The first so many are lost; UINT32_MAX: all. And: behind `skip` that get through. */
void lose(unsigned count, bool (*is)(const struct packet_seen *p));
void lose_behind(unsigned skip, unsigned count, bool (*is)(const struct packet_seen *p));
/* sides[0] on virtual_hosts[0] and sides[1] on virtual_hosts[1]. */
void pair_start(const struct options *o);
void pair_end(void);
void expect_within(uint64_t took_ns, uint64_t least_ns, uint64_t most_ns);
void expect_done(const struct side *s, int queue, unsigned i, uint64_t id,
		 enum ibv_wc_status status);

/* ---- virtual_play.c: work against a model; virtual_random.c: any work ---- */
struct plan {
	unsigned pairs, hosts, train;
	uint32_t buffer_bytes;
	uint32_t messages;      /* of each side */
	struct options options;
	struct carrier_sim_params net;
	uint64_t poll_ns;
	bool polls[SIDES];
	bool naps;              /* they cease to poll now and then, all together */
	/* From then on, and for that time, nothing gets through; 0: it does. */
	uint64_t cut_ns, cut_for_ns; /* UINT64_MAX: for ever */
	bool may_fail;          /* so much is lost that retries may be used up */
};
struct played {
	uint64_t fingerprint;   /* of all completions and their times */
	uint64_t messages, received, atomics, failed, took_ns;
};
/* Plays it and checks each message. */
struct played virtual_play(const struct plan *plan, uint64_t seed);
/* A plan by its seed; and many of them. */
struct plan virtual_plan(uint64_t seed);
int virtual_random(uint64_t seed, uint64_t runs);

/* ---- virtual_times.c, virtual_ends.c, virtual_order.c, virtual_paging.c, virtual_events.c ---- */
struct virtual_test {
	const char *name;
	void (*fn)(void);
};
extern const struct virtual_test virtual_times[], virtual_ends[], virtual_order[],
	virtual_paging[], virtual_events[];

#endif

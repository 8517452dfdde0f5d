/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model of what two sides and their queue pairs do: for each work request what
 * it does to memory, and which completions it causes, in which order.
 *
 * The model knows the rules only, nothing of the adapter. It is told what was
 * posted (model_posted, model_recv_posted) and what was polled
 * (model_completed), keeps a copy of both sides' memory (`shadow`), and fails
 * the test at the first difference. It does no verbs; random.c does, through
 * act.h.
 *
 * What is done to memory on behalf of one direction of one pair of queue pairs
 * touches that pair's areas only, and a work request's own slot until it is
 * complete; so the order within a direction is all that matters. The one word
 * that all directions add to is an exception, and sums do not mind the order.
 *
 * A new operation is an entry of model_ops (model_ops.c).
 */
#ifndef ADAPTER_MODEL_H
#define ADAPTER_MODEL_H

#include "pair.h"

enum {
	RC_PAIRS = 15,
	UC_PAIRS = 4,
	UD_PAIRS = 5,
	PAIRS = RC_PAIRS + UC_PAIRS + UD_PAIRS,
	SLOTS = 8,          /* for sends, and for receives, of a queue pair */
	SEND_SGES = 4,
	INLINE_BYTES = 128,
	WORDS = 8,          /* for atomic operations of a pair */
	WORKS = 64,         /* of one direction on their way */
	CQS = 6,
	GRH = 40,
	SHARED_WORD = 0,    /* offset of the word that all pairs add to */
	FIRST_AREA = 4096,
};

/* The fixed properties of pair number `q`, the same on both sides. */
struct pair_kind {
	enum ibv_qp_type type;
	uint32_t room;      /* bytes of a slot and of the target */
	uint32_t send_wr;
	uint8_t rnr_retry;  /* 7: waits for receives */
	bool srq, extended;
	int cq[2];
	/* Offsets in the buffer of either side. */
	uint64_t out, in, target, words, end;
};

const struct pair_kind *pair_kind(int q);
/* How many pairs there are: the device may have connections only. */
int model_pairs(void);

struct model;
struct work;

/* An operation: what it needs, what it does. */
struct model_op {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum ibv_wc_opcode wc_opcode;
	unsigned services;  /* 1 << enum ibv_qp_type */
	unsigned weight;    /* how often */
	bool message;       /* takes a receive */
	bool imm;           /* which then has the immediate data */
	bool reads_remote;  /* what comes after must be fenced to change that */
	bool remote;        /* has an address at the peer */
	bool local_write;   /* its buffers are for the result: never inline */
	bool no_result;     /* its result cannot be predicted */
	/* Picks length, remote offset and operands. */
	void (*choose)(struct model *m, struct work *w);
	/* Does to the shadows what the operation does. */
	void (*apply)(struct model *m, struct work *w);
};

extern const struct model_op model_ops[];
extern const int model_op_count;
const struct model_op *model_op_named(const char *name);

/* A posted send. */
struct work {
	const struct model_op *op;
	int s, q;           /* by side s on pair q */
	uint64_t seq;       /* of its direction */
	int slot;           /* of OUT */
	struct send_req r;
	uint32_t length;
	uint64_t to;        /* offset at the peer */
	uint8_t *data;      /* as it was when posted */
	int to_s, to_q;     /* who receives a message */
	bool chained;       /* sends what is in its slot when its turn comes */
	bool applied;
	bool lost;          /* a datagram that will not be received */
	enum ibv_wc_status expect;
	bool or_unanswered; /* the answer may be lost: IBV_WC_RETRY_EXC_ERR is right, too */
	int users;
};

struct receive {
	uint64_t wr_id;
	int q, slot;        /* whose IN slot */
	int num_sge;
	struct ibv_sge sge[SEND_SGES];
	enum ibv_wc_status expect;
};

/* What side s does on pair q. */
struct flow {
	struct work *sent[WORKS]; /* not known to be complete, oldest first */
	int sent_count;
	struct work *due[WORKS];  /* messages for this queue pair */
	int due_count;
	struct receive recvs[SLOTS];
	int recv_count;
	int out_used[SLOTS];      /* by how many requests */
	bool in_used[SLOTS];
	uint64_t seq;
	uint32_t rkey, lkey;      /* of this side's areas */
	uint64_t iova;            /* of the target and the words */
	bool broken;              /* completions may be errors */
};

struct model {
	struct side *side[2];
	uint8_t *shadow[2];
	uint64_t bytes;
	struct flow flow[2][PAIRS];
	struct receive srq[2][PAIRS * SLOTS];
	int srq_count[2];
	uint32_t qpn[2][PAIRS];
	uint32_t shared_rkey[2];
	uint64_t random, next_id;
	/* Completion events: armed, what may come, what must. */
	struct model_cq {
		enum { UNARMED, ARMED_NEXT, ARMED_SOLICITED } armed;
		bool fresh;       /* what is polled now came after the arming */
		int possible, owed;
	} cq[2][CQS];
	uint64_t operations, sends, completions, resets, errors, checks, events;
};

void model_init(struct model *m, struct side *a, struct side *b, uint64_t seed);
void model_free(struct model *m);
uint32_t dice(struct model *m, uint32_t n);

/* Fills a range of a side's memory and of its shadow with a new pattern. */
void model_fill(struct model *m, int s, uint64_t offset, uint64_t length);
/* For a WRITE of an unreliable connection or over a stream, no completion says when the data are
 * there: waits for the contents of the shadows. */
void model_arrives(struct model *m, int q);
/* Fails the test unless this range of a side's memory is equal to the shadow. */
void model_check(struct model *m, int s, uint64_t offset, uint64_t length,
		 const char *what);
/* All of it. */
void model_check_all(struct model *m);

/* A request of the kind that side s may post on q now, made up; NULL: none. Its
 * slot is filled. */
struct work *model_work(struct model *m, int s, int q,
			const struct model_op *op);
/* A request that sends the result of `first`, which was posted just now. */
struct work *model_chain(struct model *m, const struct work *first,
			 const struct model_op *op);
void model_drop(struct work *w); /* that is not posted */
/* It was posted. */
void model_posted(struct model *m, struct work *w);
/* A receive in a free slot; false: there is none. */
bool model_receive(struct model *m, int s, int q, struct receive *r);
void model_recv_posted(struct model *m, int s, int q, const struct receive *r);
/* Receives that messages on their way do not take. */
int model_credits(const struct model *m, int s, int q);
void model_completed(struct model *m, int s, int cq, const struct ibv_wc *wc);
/* Nothing is on its way on the pair, in either direction. */
bool model_idle(const struct model *m, int q);
/* Both queue pairs were reset: forgets what was on its way. */
void model_reset(struct model *m, int q);

#endif

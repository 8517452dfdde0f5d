/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `busbar exec --verdict` knows of one process: how it posted, what it fetched, what its
 * first error was and what followed. libbusbar-verdict.so writes these facts into a file that
 * process and `busbar exec` have in memory, so they outlive the process however it ends. The judge
 * (judge.h) reads them.
 *
 * All times are nanoseconds of CLOCK_MONOTONIC; 0: it did not happen. Before the first error they
 * come from the coarse clock, a few milliseconds behind.
 */
#ifndef VERDICT_FACTS_H
#define VERDICT_FACTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The variable that names the folder of the files to the library. */
#define VERDICT_ENV "BUSBAR_VERDICT"
#define VERDICT_MAGIC UINT32_C(0x62627631)

enum {
	VERDICT_QPS = 512,     /* queue pairs that are followed at the same time */
	VERDICT_REQUESTS = 64, /* the last requests of a queue pair that are known */
	VERDICT_NAME = 64,
	VERDICT_NO_CM_EVENT = 0xffff, /* rdma_connect() itself failed */
};

/* Where a program learns of an error. */
enum verdict_channel {
	VERDICT_COMPLETION,
	VERDICT_FLUSH,      /* IBV_WC_WR_FLUSH_ERR, of a queue pair that nobody was seen to end */
	VERDICT_EVENT,      /* asynchronous event */
	VERDICT_REFUSAL,    /* ibv_post_send() failed */
	VERDICT_CONNECTION, /* rdma_cm could not connect */
	VERDICT_CHANNELS,
};

struct verdict_request {
	uint64_t wr_id, remote_addr, bytes;
	uint32_t opcode; /* enum ibv_wr_opcode */
	bool signaled;
};

struct verdict_error {
	_Atomic uint64_t at_ns;
	uint32_t qp; /* its number; 0: of no queue pair */
	/* By channel: enum ibv_wc_status, enum ibv_event_type, errno, enum rdma_cm_event_type. */
	uint32_t code;
	uint32_t vendor;
	int32_t detail; /* rdma_cm: the status of the event, or the errno of the call */
	bool receive;       /* the completion was of a receive */
	bool request_known;
	struct verdict_request request; /* wr_id also where the request is not known */
	uint64_t good_ns;   /* the last good completion of the queue pair before it */
	uint32_t others;    /* other queue pairs that existed */
};

enum verdict_reaction {
	VERDICT_NO_REACTION,
	VERDICT_DESTROYED,
	VERDICT_MOVED, /* to RESET, ERR or SQD */
	VERDICT_DISCONNECTED,
};

struct verdict_qp {
	_Atomic uint32_t number;  /* 0: the place was never used */
	_Atomic uint64_t gone_ns; /* it was destroyed; another one may take the place */
	uint64_t context;         /* its device; numbers of two devices may be the same */
	uint64_t send_cq, receive_cq;
	_Atomic uint32_t peer;    /* number of the queue pair that it is connected to; 0: not known */
	_Atomic uint64_t life_ns; /* it was made, moved to RESET, or connected by rdma_cm */
	_Atomic uint64_t ended_ns; /* the program, or the peer by rdma_cm, ended it */
	/* Positions of requests, counted from 1: the last that was posted, that was and that will
	 * have a completion. */
	_Atomic uint64_t posted, done, signaled;
	_Atomic uint64_t received, receives; /* completed, and posted */
	_Atomic uint64_t good_ns; /* the last good completion */
	struct verdict_request requests[VERDICT_REQUESTS];
};

enum verdict_end {
	VERDICT_RUNS, /* or it was ended by a signal */
	VERDICT_EXITS,
};

struct verdict_facts {
	uint32_t magic;
	_Atomic uint32_t pid;
	char program[VERDICT_NAME];
	uint64_t start_ns;
	/* ---- the end ---- */
	_Atomic uint32_t end; /* enum verdict_end */
	_Atomic int32_t exit_status;
	_Atomic uint64_t end_ns;
	/* ---- always ---- */
	_Atomic uint64_t progress_ns; /* the last good completion, post or change of a queue pair */
	_Atomic uint32_t not_followed; /* queue pairs for which there was no place */
	_Atomic uint64_t flushes;      /* of queue pairs that were ended before */
	_Atomic uint64_t events, cm_events; /* that were read */
	_Atomic uint64_t peer_left_ns;      /* RDMA_CM_EVENT_DISCONNECTED was read first */
	_Atomic uint64_t receives_lost;     /* posted, not completed, and the queue pair destroyed */
	/* A queue pair that was found broken when it was destroyed or at the program's end. */
	_Atomic uint32_t unfetched_qp;
	_Atomic uint64_t unfetched_ns, unfetched_requests;
	/* ---- the first error ---- */
	_Atomic uint64_t since_ns; /* the first of `errors` */
	_Atomic uint32_t broken;   /* number of its queue pair */
	_Atomic uint64_t broken_context;
	struct verdict_error errors[VERDICT_CHANNELS];
	/* Completions, of them flushes, that the call that fetched the first bad one had behind it. */
	_Atomic uint32_t behind, flushes_behind;
	/* ---- since then ---- */
	_Atomic uint32_t reaction; /* enum verdict_reaction */
	_Atomic uint64_t reacted_ns;
	_Atomic uint64_t posts_broken, flushes_broken;
	_Atomic uint64_t repeats, repeat_ns;
	_Atomic uint32_t repeat_qp;
	_Atomic int64_t others_open; /* requests of other queue pairs that wait for completion */
	_Atomic uint64_t others_good, others_last_ns, others_gap_ns;
	_Atomic uint64_t others_after_ns; /* the last good completion of another queue pair */
	_Atomic uint64_t flowed, flowed_ns; /* good completions of queue pairs that began later */
	struct verdict_qp qps[VERDICT_QPS];
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the fuzzer of a link share. */
#ifndef FUZZ_SHM_LINK_H
#define FUZZ_SHM_LINK_H

#include <stdint.h>
#include <stdbool.h>
#include <infiniband/verbs.h>

#include "hca/hca.h"
#include "hca/share/process.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/link/state.h"

enum {
	BLOCK = 15000,      /* the peer's queue pair numbers */
	QPS = 5,            /* RC, RC, UC, UD, RC on a shared queue */
	SHARED = 4,         /* the last */
	XRC = QPS,          /* no QP: receives of the XRC shared queue */
	OWNERS = QPS + 1,   /* of receives */
	RECVS = 4,          /* posted at a time */
	RECV_BYTES = 20000, /* room of one */
	GAP = 512,          /* canaries around each */
	COUNTER = GAP,      /* where ATOMICs may */
	WINDOW = 1024,      /* where WRITEs may, and READs */
	WINDOW_BYTES = 512,
	FIRST = 2048,
	STEP = RECV_BYTES + GAP,
	ARENA = FIRST + (OWNERS * RECVS + 1) * STEP,
	OUT = ARENA - STEP, /* what we send, and results of ours */
	CANARY = 0xa5,
	UD = 3,             /* which of the QPs */
	QKEY = 0x42,
	DEPTH = 64,
};

struct fuzz_link {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq, *xrc;
	struct ibv_xrcd *xrcd;
	uint32_t xrc_number;
	struct ibv_qp *qp[QPS];
	struct ibv_mr *mr, *counter, *window;
	struct ibv_ah *ah;
	struct shm_link *link;
	struct hca_segment *segment; /* the peer's own mappings */
	struct shm_area *area;
	uint32_t pos;                /* of the peer's next slot */
	uint8_t arena[ARENA];
	bool dirty[OWNERS * RECVS];  /* may have been written */
	unsigned posted[OWNERS];
};

extern struct fuzz_link f;
extern const union ibv_gid group; /* that the UD queue pair is in */

/* ---- shm_link.c: the input ---- */
uint8_t byte(void);
uint32_t word(void);
/* Mostly a number at the edge of something. */
uint32_t length(void);
uint32_t peer_qpn(int i);
void poll_all(void);

/* ---- shm_link_peer.c: one step each ---- */
void peer_slot(void);
void peer_marks(void);
void peer_tables(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected RC queue pairs of one process and the link between them, built by hand:
 * `a` sends, `b` receives. Built anew for each run.
 */
#ifndef INTERLEAVE_WORLD_H
#define INTERLEAVE_WORLD_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/hca.h"
#include "hca/memory/key.h"
#include "hca/object/context.h"
#include "hca/object/cq.h"
#include "hca/object/pd.h"
#include "hca/object/qp.h"
#include "hca/share/process.h"
#include "transport/shm/link/state.h"

#define WORLD_BLOCK 1u
#define WORLD_A ((WORLD_BLOCK << HCA_QPN_BLOCK_BITS) + 0)
#define WORLD_B ((WORLD_BLOCK << HCA_QPN_BLOCK_BITS) + 1)
#define WORLD_PSN 0xfffffeu /* wraps around */
#define WORLD_KEY (1u << 8 | 1)
#define WORLD_BYTES 64u

struct world {
	struct hca_qp a, b;
	struct hca_cq a_cq, b_cq;
	struct shm_link to_b, of_b; /* the ends of a and of b */
	struct hca_context context;
	struct hca_pd pd;
	uint8_t sent[WORLD_BYTES], buffer[WORLD_BYTES], memory[WORLD_BYTES];
};

extern struct world world;
extern struct hca_segment *world_segment;

void world_make(enum ibv_qp_state b_state);
/* Single steps of the two programs. */
void world_post_recv(void);
void world_send(void);
/* b takes messages; a looks for promises or acknowledgements. */
void world_receive(void);
void world_take_promises(void);
void world_harvest(void);
/* Runs the timer of b's error state, if it is armed. */
void world_run_close(void);

/* Number of successful completions so far. */
unsigned world_sent(void);
unsigned world_received(void);

#endif

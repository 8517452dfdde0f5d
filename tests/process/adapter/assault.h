/* SPDX-License-Identifier: BSD-2-Clause */
/* One side repeats an RDMA operation until it is refused, while the other takes its
 * memory away. */
#ifndef ADAPTER_ASSAULT_H
#define ADAPTER_ASSAULT_H

#include "pair.h"

struct assault {
	enum ibv_wr_opcode opcode;
	uint64_t local;    /* offset in the side's buffer */
	uint32_t lkey;     /* 0: of the side's first region */
	uint64_t remote_addr;
	uint32_t rkey, length;
	int result;        /* enum ibv_wc_status of the error that ended it */
};

/* For side_start() with a struct assault: 0, or negative when nothing was refused. */
int assault_until_refused(struct end *e, void *arg);
/* Until a byte that the adapter writes has the value; fails in time. */
void assault_wait(const volatile uint8_t *at, uint8_t value);

#endif

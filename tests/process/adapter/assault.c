/* SPDX-License-Identifier: BSD-2-Clause */
/* See assault.h. */
#include "assault.h"

int assault_until_refused(struct end *e, void *arg)
{
	struct assault *as = arg;
	struct ibv_sge sge = { (uintptr_t)e->buffer + as->local, as->length,
			       as->lkey ? as->lkey : e->mr[0]->lkey };
	struct ibv_send_wr wr = { .opcode = as->opcode, .sg_list = &sge,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = as->remote_addr;
	wr.wr.rdma.rkey = as->rkey;
	while (now_ms() < end) {
		if (ibv_post_send(e->qp[0], &wr, &bad))
			return -1;
		while (ibv_poll_cq(e->cq[SEND_CQ], 1, &wc) == 0)
			if (now_ms() > end)
				return -2;
		if (wc.status) {
			as->result = (int)wc.status;
			return 0;
		}
	}
	return -3;
}

/* Looks on purpose at memory that is being written. */
__attribute__((no_sanitize("thread"))) void
assault_wait(const volatile uint8_t *at, uint8_t value)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (*at != value)
		if (now_ms() > end)
			fail("the byte 0x%02x was not written", value);
}

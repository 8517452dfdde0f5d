/* SPDX-License-Identifier: BSD-2-Clause */
/* A library to preload, which counts what it hears, and hides completions whose number says so. At
 * the end it writes a line. ways.c, which knows what it posted, writes the same. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>

#include "preload/data.h"

static _Atomic uint64_t posted, signaled, bytes, sum, refused, seen, hidden, made, gone;

/* Everything that is told of a request, in a number. */
static uint64_t digest(const struct preload_request *r)
{
	uint64_t n = (unsigned)r->opcode + r->wr_id * 3 + r->remote_addr * 5 + r->rkey * UINT64_C(7);

	for (int i = 0; i < r->sge_count; i++)
		n += r->sge[i].addr * 11 + r->sge[i].length * UINT64_C(13) + r->sge[i].lkey * UINT64_C(17);
	return n;
}

static void on_posting(struct ibv_qp *qp, const struct preload_request *r)
{
	posted++;
	signaled += r->signaled;
	bytes += r->bytes;
	sum += digest(r);
}

static void on_refused(struct ibv_qp *qp, const struct preload_request *r, int error)
{
	refused += error > 0;
	signaled -= r->signaled;
	bytes -= r->bytes;
	sum -= digest(r);
}

static bool on_completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	bool hide = wc->wr_id >> 32;

	if (!wc->qp_num)
		printf("a completion without a queue pair\n");
	hidden += hide;
	seen += !hide;
	return !hide;
}

static void on_made(struct ibv_qp *qp, bool completes_all)
{
	made++;
}

static void on_goes(struct ibv_qp *qp)
{
	gone++;
}

static void on_asks(const struct ibv_qp_init_attr *attr, struct ibv_qp_cap *cap)
{
	cap->max_send_wr += 5;
}

__attribute__((constructor)) static void at_load(void)
{
	static const struct preload_listener listener = {
		.posting = on_posting,
		.refused = on_refused,
		.completion = on_completion,
		.qp_asks = on_asks,
		.qp_made = on_made,
		.qp_goes = on_goes,
	};

	preload_listen(&listener);
}

__attribute__((destructor)) static void at_end(void)
{
	/* Other processes of the tree have it, too. */
	if (!made)
		return;
	fprintf(stderr, HEARD_NAME ": %ju posted, %ju refused, %ju signaled, %ju bytes, sum %jx, %ju seen, %ju queue pairs, %ju gone\n",
		(uintmax_t)posted, (uintmax_t)refused, (uintmax_t)signaled, (uintmax_t)bytes,
		(uintmax_t)sum, (uintmax_t)seen, (uintmax_t)made, (uintmax_t)gone);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How completion queues are made, with places beside those that the program asked for. */
#include "preload/cq.h"

#include <limits.h>

#include "preload/hear.h"
#include "preload/listener.h"
#include "preload/real.h"
#include "preload/record.h"
#include "preload/saved.h"

#define PRELOAD_EXPORT __attribute__((visibility("default")))

PRELOAD_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
					    struct ibv_comp_channel *channel, int vector);
PRELOAD_EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe);
PRELOAD_EXPORT int ibv_destroy_cq(struct ibv_cq *cq);

static void made(struct ibv_cq *cq, struct ibv_cq_ex *ex, uint32_t more)
{
	struct cq_record *r = cq ? cq_record_make(cq) : NULL;

	if (!r)
		return;
	atomic_store(&r->more, more);
	r->tells_qp = !ex || ex->read_qp_num;
	hear_cq(cq, ex);
}

/* How many more than the program's. */
static int more_than(int cqe)
{
	uint32_t more = cqe > 0 ? preload_listener.cq_asks((uint32_t)cqe) : 0;

	return more < (uint32_t)(INT_MAX - cqe) ? (int)more : 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *(*real)(struct ibv_context *, int, void *, struct ibv_comp_channel *, int) =
		real_find("ibv_create_cq", "IBVERBS_1.1");
	int more = more_than(cqe);
	struct ibv_cq *cq = more ? real(context, cqe + more, cq_context, channel, vector) : NULL;

	if (!cq) {
		more = 0;
		cq = real(context, cqe, cq_context, channel, vector);
	}
	made(cq, NULL, (uint32_t)more);
	return cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	int (*real)(struct ibv_cq *, int) = real_find("ibv_resize_cq", "IBVERBS_1.1");
	struct cq_record *r = cq_record_of(cq);
	int more = r ? more_than(cqe) : 0;
	int ret;

	if (!more)
		return real(cq, cqe);
	ret = real(cq, cqe + more);
	if (!ret) {
		atomic_store(&r->more, (uint32_t)more);
		return 0;
	}
	ret = real(cq, cqe);
	if (!ret)
		atomic_store(&r->more, 0);
	return ret;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	int (*real)(struct ibv_cq *) = real_find("ibv_destroy_cq", "IBVERBS_1.1");
	int ret;

	hear_goes(cq);
	ret = real(cq);
	if (ret)
		hear_stays(cq);
	return ret;
}

/* The listener has to know of which queue pair a completion is. */
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *(*real)(struct ibv_context *, struct ibv_cq_init_attr_ex *) =
		saved_find(context)->verbs.create_cq_ex;
	const uint64_t own_flags = attr->wc_flags;
	const uint32_t own_cqe = attr->cqe;
	uint32_t more = own_cqe && own_cqe < INT_MAX ? (uint32_t)more_than((int)own_cqe) : 0;
	struct ibv_cq_ex *cq;

	attr->wc_flags |= IBV_WC_EX_WITH_QP_NUM;
	attr->cqe += more;
	cq = real(context, attr);
	attr->wc_flags = own_flags;
	attr->cqe = own_cqe;
	if (!cq) {
		more = 0;
		cq = real(context, attr);
	}
	if (!cq)
		return NULL;
	made(ibv_cq_ex_to_cq(cq), cq, more);
	return cq;
}

bool preload_take_cqe(const struct ibv_cq *cq)
{
	struct cq_record *r = cq_record_of(cq);

	if (!r || !r->tells_qp)
		return false;
	if (atomic_fetch_add(&r->taken, 1) < atomic_load(&r->more))
		return true;
	atomic_fetch_sub(&r->taken, 1);
	return false;
}

void preload_give_cqe(const struct ibv_cq *cq)
{
	struct cq_record *r = cq_record_of(cq);

	if (r && atomic_load(&r->taken))
		atomic_fetch_sub(&r->taken, 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * undrained: connections end on an adapter that never completes what is posted behind the error of
 * its queue pair, as Linux' siw. The test stands between the library and the adapter: it takes such
 * work requests and drops them.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "instance.h"

enum { FROM = 1, TO = 2, ROUNDS = 3 };

static int (*send_below)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static int (*receive_below)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);
static atomic_uint dropped;

static bool drops(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || attr.qp_state != IBV_QPS_ERR)
		return false;
	atomic_fetch_add(&dropped, 1);
	return true;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	return drops(qp) ? 0 : send_below(qp, wr, bad);
}

static int post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	return drops(qp) ? 0 : receive_below(qp, wr, bad);
}

/* In the place of the one of librdmacm. */
int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	int (*below)(struct rdma_cm_id *, struct ibv_pd *, struct ibv_qp_init_attr *);
	struct ibv_context_ops *ops = &pd->context->ops;
	int ret;

	*(void **)&below = dlsym(RTLD_NEXT, "rdma_create_qp");
	CHECK(below);
	ret = below(id, pd, init);
	if (!ret && ops->post_send != post_send) {
		send_below = ops->post_send;
		receive_below = ops->post_recv;
		ops->post_send = post_send;
		ops->post_recv = post_receive;
	}
	return ret;
}

static void exchange(struct ripc_service *from, struct ripc_service *to)
{
	uint8_t byte = 1;
	struct ripc_item item = { &byte, 1 };
	struct ripc_message m;

	CHECK(!ripc_send_short(from, TO, &item, 1, NULL, 0));
	CHECK(!ripc_receive(to, &m, LIMIT_MS));
	ripc_release(&m);
}

/* Each round opens new instances, so that buffers of the last one may be where these are. */
static void closes_in_time(void)
{
	struct ripc *a = open_instance((struct ripc_config){ 0 });
	struct ripc *b = open_instance((struct ripc_config){ 0 });
	struct ripc_service *from, *to;

	CHECK(!ripc_service_open(a, FROM, NULL, &from));
	CHECK(!ripc_service_open(b, TO, NULL, &to));
	exchange(from, to);
	alarm(LIMIT_MS / 1000);
	ripc_close(a);
	ripc_close(b);
	alarm(0);
}

int main(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		closes_in_time();
	CHECK(atomic_load(&dropped));
	return 0;
}

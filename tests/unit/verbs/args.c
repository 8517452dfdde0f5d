/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NULL and invalid arguments of public functions of the real library: they must fail with
 * an error and not crash. Invalid masks, sizes and numbers are passed with valid objects;
 * invalid pointers are not passed, because no library can detect them. Skipped without a
 * device.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

static int failed;
static const char *volatile doing = "start";

#define CHECK(what)                                                          \
	do {                                                                 \
		doing = #what;                                               \
		if (!(what)) {                                               \
			printf("%s:%d: not so: %s (errno %d)\n", __FILE__,   \
			       __LINE__, #what, errno);                      \
			failed = 1;                                          \
		}                                                            \
	} while (0)

/* A positive errno / -1 / NULL, and errno set by the call itself. */
#define IS_ERRNO(call) ({ int r_ = (call); r_ > 0 && r_ < 4096; })
#define IS_MINUS1(call) ({ errno = 0; (call) == -1 && errno > 0; })
#define IS_NULL(call) ({ errno = 0; (call) == NULL && errno > 0; })

static void on_crash(int sig)
{
	static const char text[] = "crashed in: ";
	ssize_t n = write(1, text, sizeof(text) - 1);

	n += write(1, doing, strlen(doing));
	n += write(1, "\n", 1);
	_exit(n >= 0 ? 1 : 1);
}

static uint64_t random_state = 0x9e3779b97f4a7c15;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void random_fill(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = (uint8_t)(random_next() >> 32);
}

static void null_arguments(void)
{
	ibv_free_device_list(NULL);
	ibv_ack_cq_events(NULL, 1);
	ibv_ack_async_event(NULL);
	ibv_unimport_pd(NULL);
	ibv_unimport_mr(NULL);
	ibv_unimport_dm(NULL);
	CHECK(IS_NULL(ibv_get_device_name(NULL)));
	CHECK(ibv_get_device_guid(NULL) == 0);
	CHECK(IS_MINUS1(ibv_get_device_index(NULL)));
	CHECK(IS_NULL(ibv_open_device(NULL)));
	CHECK(IS_MINUS1(ibv_close_device(NULL)));
	CHECK(IS_NULL(ibv_import_device(-1)));
	CHECK(IS_NULL(ibv_import_pd(NULL, 0)));
	CHECK(IS_NULL(ibv_import_mr(NULL, 0)));
	CHECK(IS_NULL(ibv_import_dm(NULL, 0)));
	CHECK(IS_ERRNO(ibv_query_device(NULL, NULL)));
	CHECK(IS_ERRNO((ibv_query_port)(NULL, 1, NULL)));
	CHECK(IS_MINUS1(ibv_query_gid(NULL, 1, 0, NULL)));
	CHECK(IS_ERRNO(_ibv_query_gid_ex(NULL, 1, 0, NULL, 0, 0)));
	CHECK(_ibv_query_gid_table(NULL, NULL, 1, 0, 0) < 0);
	CHECK(IS_MINUS1(ibv_query_pkey(NULL, 1, 0, NULL)));
	CHECK(IS_MINUS1(ibv_get_pkey_index(NULL, 1, 0xffff)));
	CHECK(IS_NULL(ibv_alloc_pd(NULL)));
	CHECK(IS_ERRNO(ibv_dealloc_pd(NULL)));
	CHECK(IS_NULL(ibv_reg_mr(NULL, NULL, 0, 0)));
	CHECK(IS_NULL(ibv_reg_mr_iova(NULL, NULL, 0, 0, 0)));
	CHECK(IS_NULL(ibv_reg_mr_iova2(NULL, NULL, 0, 0, 0)));
	CHECK(IS_NULL(ibv_reg_dmabuf_mr(NULL, 0, 0, 0, -1, 0)));
	CHECK(ibv_rereg_mr(NULL, 0, NULL, NULL, 0, 0) ==
	      IBV_REREG_MR_ERR_INPUT);
	CHECK(IS_ERRNO(ibv_dereg_mr(NULL)));
	CHECK(IS_NULL(ibv_create_comp_channel(NULL)));
	CHECK(IS_ERRNO(ibv_destroy_comp_channel(NULL)));
	CHECK(IS_NULL(ibv_create_cq(NULL, 1, NULL, NULL, 0)));
	CHECK(IS_ERRNO(ibv_resize_cq(NULL, 1)));
	CHECK(IS_ERRNO(ibv_destroy_cq(NULL)));
	CHECK(IS_MINUS1(ibv_get_cq_event(NULL, NULL, NULL)));
	CHECK(IS_MINUS1(ibv_get_async_event(NULL, NULL)));
	CHECK(IS_NULL(ibv_create_qp(NULL, NULL)));
	CHECK(IS_ERRNO(ibv_modify_qp(NULL, NULL, 0)));
	CHECK(IS_ERRNO(ibv_query_qp(NULL, NULL, 0, NULL)));
	CHECK(IS_ERRNO(ibv_destroy_qp(NULL)));
	CHECK(ibv_qp_to_qp_ex(NULL) == NULL);
	CHECK(IS_ERRNO(ibv_query_ece(NULL, NULL)));
	CHECK(IS_ERRNO(ibv_set_ece(NULL, NULL)));
	CHECK(ibv_query_qp_data_in_order(NULL, IBV_WR_SEND, ~0u) == 0);
	CHECK(IS_ERRNO(ibv_attach_mcast(NULL, NULL, 0)));
	CHECK(IS_ERRNO(ibv_detach_mcast(NULL, NULL, 0)));
	CHECK(IS_NULL(ibv_create_srq(NULL, NULL)));
	CHECK(IS_ERRNO(ibv_modify_srq(NULL, NULL, 0)));
	CHECK(IS_ERRNO(ibv_query_srq(NULL, NULL)));
	CHECK(IS_ERRNO(ibv_destroy_srq(NULL)));
	CHECK(IS_NULL(ibv_create_ah(NULL, NULL)));
	CHECK(IS_ERRNO(ibv_destroy_ah(NULL)));
	CHECK(IS_MINUS1(ibv_init_ah_from_wc(NULL, 1, NULL, NULL, NULL)));
	CHECK(IS_NULL(ibv_create_ah_from_wc(NULL, NULL, NULL, 1)));
	CHECK(ibv_resolve_eth_l2_from_gid(NULL, NULL, NULL, NULL) < 0);
}

/* With a valid context and NULL for the other arguments. */
static void null_results(struct ibv_context *ctx, struct ibv_pd *pd,
			 struct ibv_qp *qp)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr ah;

	CHECK(IS_ERRNO(ibv_query_device(ctx, NULL)));
	CHECK(IS_ERRNO((ibv_query_port)(ctx, 1, NULL)));
	CHECK(IS_MINUS1(ibv_query_gid(ctx, 1, 0, NULL)));
	CHECK(IS_ERRNO(ibv_query_gid_ex(ctx, 1, 0, NULL, 0)));
	CHECK(ibv_query_gid_table(ctx, NULL, 5, 0) < 0);
	CHECK(IS_MINUS1(ibv_query_pkey(ctx, 1, 0, NULL)));
	CHECK(IS_MINUS1(ibv_get_async_event(ctx, NULL)));
	CHECK(IS_NULL(ibv_create_qp(pd, NULL)));
	CHECK(IS_NULL(ibv_create_srq(pd, NULL)));
	CHECK(IS_NULL(ibv_create_ah(pd, NULL)));
	CHECK(IS_NULL(ibv_create_ah_from_wc(pd, NULL, NULL, 1)));
	CHECK(IS_NULL(ibv_create_ah_from_wc(pd, &wc, NULL, 1)));
	CHECK(IS_MINUS1(ibv_init_ah_from_wc(ctx, 1, &wc, NULL, &ah)));
	CHECK(IS_ERRNO(ibv_modify_qp(qp, NULL, IBV_QP_STATE)));
	CHECK(IS_ERRNO(ibv_query_qp(qp, NULL, 0, NULL)));
	CHECK(IS_ERRNO(ibv_attach_mcast(qp, NULL, 0)));
	CHECK(IS_ERRNO(ibv_query_ece(qp, NULL)));
}

static void numbers_out_of_range(struct ibv_context *ctx)
{
	static const int ports[] = { 0, 2, 255 };
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	for (size_t i = 0; i < 3; i++) {
		uint8_t p = (uint8_t)ports[i];

		CHECK(IS_ERRNO(ibv_query_port(ctx, p, &port)));
		CHECK(IS_ERRNO((ibv_query_port)(ctx, p, (void *)&port)));
		CHECK(IS_MINUS1(ibv_query_gid(ctx, p, 0, &gid)));
		CHECK(IS_ERRNO(ibv_query_gid_ex(ctx, p, 0, &entry, 0)));
		CHECK(IS_MINUS1(ibv_query_pkey(ctx, p, 0, &pkey)));
	}
	CHECK(IS_MINUS1(ibv_query_gid(ctx, 1, -1, &gid)));
	CHECK(IS_MINUS1(ibv_query_gid(ctx, 1, INT_MAX, &gid)));
	CHECK(IS_ERRNO(ibv_query_gid_ex(ctx, 1, UINT32_MAX, &entry, 0)));
	CHECK(IS_ERRNO(ibv_query_gid_ex(ctx, UINT32_MAX, 0, &entry, 0)));
	CHECK(IS_ERRNO(ibv_query_gid_ex(ctx, 1, 0, &entry, 1)));
	CHECK(IS_MINUS1(ibv_query_pkey(ctx, 1, -1, &pkey)));
	CHECK(IS_MINUS1(ibv_query_pkey(ctx, 1, INT_MAX, &pkey)));
	CHECK(IS_MINUS1(ibv_get_pkey_index(ctx, 1, 0x1234)));
}

static void queues_of_impossible_size(struct ibv_context *ctx, struct ibv_cq *cq)
{
	CHECK(IS_NULL(ibv_create_cq(ctx, 0, NULL, NULL, 0)));
	CHECK(IS_NULL(ibv_create_cq(ctx, -1, NULL, NULL, 0)));
	CHECK(IS_NULL(ibv_create_cq(ctx, INT_MAX, NULL, NULL, 0)));
	CHECK(IS_NULL(ibv_create_cq(ctx, 1, NULL, NULL, -1)));
	CHECK(IS_NULL(ibv_create_cq(ctx, 1, NULL, NULL, INT_MAX)));
	CHECK(IS_ERRNO(ibv_resize_cq(cq, 0)));
	CHECK(IS_ERRNO(ibv_resize_cq(cq, -1)));
	CHECK(IS_ERRNO(ibv_resize_cq(cq, INT_MAX)));
}

static void memory_that_cannot_be(struct ibv_pd *pd)
{
	static char memory[4096];
	struct ibv_mr *mr;

	/* Remote write and atomic access need local write access. */
	CHECK(IS_NULL(ibv_reg_mr(pd, memory, 64, IBV_ACCESS_REMOTE_WRITE)));
	CHECK(IS_NULL(ibv_reg_mr(pd, memory, 64, IBV_ACCESS_REMOTE_ATOMIC)));
	CHECK(IS_NULL(ibv_reg_mr(pd, memory, SIZE_MAX, 0)));
	CHECK(IS_NULL(ibv_reg_mr(pd, memory, 64, 1 << 19)));
	CHECK(IS_NULL(ibv_reg_mr_iova(pd, memory, 64, UINT64_MAX - 8, 0)));
	CHECK(IS_NULL(ibv_reg_dmabuf_mr(pd, 0, 64, 0, -1, 0)));

	mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(mr != NULL);
	if (!mr)
		return;
	CHECK(ibv_rereg_mr(mr, 1 << 30, NULL, NULL, 0, 0) < 0);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0) < 0);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 0,
			   0) < 0);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_REMOTE_WRITE) < 0);
	CHECK(mr->length == sizeof(memory) && mr->addr == memory);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static void qps_that_cannot_be(struct ibv_pd *pd, struct ibv_cq *cq)
{
	const struct ibv_qp_init_attr good = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 4, 4, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_init_attr bad = good;

	bad.send_cq = NULL;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	bad = good;
	bad.recv_cq = NULL;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	bad = good;
	bad.qp_type = (enum ibv_qp_type)77;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	bad = good;
	bad.cap.max_send_wr = UINT32_MAX;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	bad = good;
	bad.cap.max_recv_wr = UINT32_MAX;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	bad = good;
	bad.cap.max_send_sge = UINT32_MAX;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	bad = good;
	bad.cap.max_inline_data = UINT32_MAX;
	CHECK(IS_NULL(ibv_create_qp(pd, &bad)));
	CHECK(bad.cap.max_inline_data == UINT32_MAX);
}

static void srqs_that_cannot_be(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr bad = { .attr = { UINT32_MAX, 1, 0 } };
	struct ibv_srq_init_attr good = { .attr = { 8, 1, 0 } };
	struct ibv_srq_attr attr = { .srq_limit = UINT32_MAX };
	struct ibv_srq *srq;

	CHECK(IS_NULL(ibv_create_srq(pd, &bad)));
	bad.attr = (struct ibv_srq_attr){ 8, UINT32_MAX, 0 };
	CHECK(IS_NULL(ibv_create_srq(pd, &bad)));
	srq = ibv_create_srq(pd, &good);
	if (!srq && errno == EOPNOTSUPP)
		return; /* a device without shared receive queues */
	CHECK(srq != NULL);
	if (!srq)
		return;
	CHECK(IS_ERRNO(ibv_query_srq(srq, NULL)));
	CHECK(IS_ERRNO(ibv_modify_srq(srq, NULL, IBV_SRQ_LIMIT)));
	CHECK(IS_ERRNO(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT)));
	CHECK(IS_ERRNO(ibv_modify_srq(srq, &attr, 1 << 20)));
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(ibv_destroy_srq(srq) == 0);
}

static void addresses_that_cannot_be(struct ibv_pd *pd, struct ibv_qp *qp)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 99 };
	union ibv_gid gid = { .raw = { 0xfe, 0x80 } };

	CHECK(IS_NULL(ibv_create_ah(pd, &attr)));
	attr.port_num = 1;
	attr.grh.sgid_index = 255;
	CHECK(IS_NULL(ibv_create_ah(pd, &attr)));
	/* The QP is not UD, and the GID is no multicast address. */
	CHECK(IS_ERRNO(ibv_attach_mcast(qp, &gid, 0)));
	CHECK(IS_ERRNO(ibv_detach_mcast(qp, &gid, 0)));
}

/*
 * Random masks and attributes: the call succeeds or fails, and the QP can be queried and
 * destroyed afterwards. States are small numbers, so that some calls succeed.
 */
static void random_modification(struct ibv_pd *pd, struct ibv_cq *cq)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC,
						  IBV_QPT_UD };

	for (int round = 0; round < 300 && !failed; round++) {
		struct ibv_qp_init_attr init = {
			.send_cq = cq,
			.recv_cq = cq,
			.cap = { 4, 4, 1, 1, 0 },
			.qp_type = types[round % 3],
		};
		struct ibv_qp *qp = ibv_create_qp(pd, &init);

		/* A QP type that the adapter lacks fails with EOPNOTSUPP. */
		if (!qp && errno == EOPNOTSUPP)
			continue;
		CHECK(qp != NULL);
		if (!qp)
			return;
		for (int step = 0; step < 20; step++) {
			struct ibv_qp_attr attr;
			int mask = (int)random_next();
			int ret;

			random_fill(&attr, sizeof(attr));
			attr.qp_state = (enum ibv_qp_state)(random_next() % 9);
			if (random_next() & 1)
				mask &= (1 << 21) - 1;
			if (random_next() & 1)
				mask = IBV_QP_STATE;
			doing = "ibv_modify_qp with random attributes";
			ret = ibv_modify_qp(qp, &attr, mask);
			CHECK(ret >= 0 && ret < 4096);
			CHECK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
			CHECK((unsigned)attr.qp_state <= IBV_QPS_ERR);
		}
		CHECK(ibv_destroy_qp(qp) == 0);
	}
}

static int with_context(struct ibv_context *ctx)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 64, NULL, NULL, 0);

	init.send_cq = init.recv_cq = cq;
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;

	CHECK(qp != NULL);
	if (!qp)
		return 1;
	null_results(ctx, pd, qp);
	numbers_out_of_range(ctx);
	queues_of_impossible_size(ctx, cq);
	memory_that_cannot_be(pd);
	qps_that_cannot_be(pd, cq);
	srqs_that_cannot_be(pd);
	addresses_that_cannot_be(pd, qp);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(ibv_destroy_cq(cq) == EBUSY);
	CHECK(ibv_destroy_qp(qp) == 0);
	random_modification(pd, cq);
	CHECK(ibv_destroy_cq(cq) == 0);
	CHECK(ibv_dealloc_pd(pd) == 0);
	return failed;
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;

	signal(SIGSEGV, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGABRT, on_crash);
	setvbuf(stdout, NULL, _IONBF, 0);
	alarm(50); /* a call that hangs is a failure, too */

	null_arguments();
	list = ibv_get_device_list(NULL);
	if (!list || !list[0]) {
		printf("no device\n");
		return failed ? 1 : 77;
	}
	ctx = ibv_open_device(list[0]);
	CHECK(ctx != NULL);
	ibv_free_device_list(list);
	if (!ctx)
		return 1;
	with_context(ctx);
	CHECK(ibv_close_device(ctx) == 0);
	return failed;
}

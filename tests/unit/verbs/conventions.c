/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each public function converts the adapter's result to the convention of its manual page.
 * Linked with a fake adapter that returns what the test sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>

#include "fake_hca.h"

#define CTX (&fake_hca.context)
#define PD (&fake_hca.pd)
#define CQ (&fake_hca.cq)
#define QP (&fake_hca.qp)
#define SRQ (&fake_hca.srq)

static struct {
	struct ibv_device_attr device;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	struct ibv_qp_attr qp;
	struct ibv_qp_init_attr init;
	struct ibv_srq_attr srq;
	struct ibv_srq_init_attr srq_init;
	struct ibv_ah_attr ah;
	struct ibv_wc wc;
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;
	__be16 pkey;
} arg;

/* "0, or the value of errno" */
#define ERRNO_CALLS(X)                                                       \
	X(query_device, ibv_query_device(CTX, &arg.device))                  \
	X(query_port, (ibv_query_port)(CTX, 1, (void *)&arg.port))           \
	X(query_gid_ex, _ibv_query_gid_ex(CTX, 1, 0, &arg.entry, 0,          \
					  sizeof(arg.entry)))                \
	X(dealloc_pd, ibv_dealloc_pd(PD))                                    \
	X(dereg_mr, ibv_dereg_mr(&fake_hca.mr))                              \
	X(destroy_comp_channel, ibv_destroy_comp_channel(&fake_hca.channel)) \
	X(resize_cq, ibv_resize_cq(CQ, 10))                                  \
	X(destroy_cq, ibv_destroy_cq(CQ))                                    \
	X(modify_qp, ibv_modify_qp(QP, &arg.qp, 0))                          \
	X(query_qp, ibv_query_qp(QP, &arg.qp, 0, &arg.init))                 \
	X(destroy_qp, ibv_destroy_qp(QP))                                    \
	X(attach_mcast, ibv_attach_mcast(QP, &arg.gid, 0))                   \
	X(detach_mcast, ibv_detach_mcast(QP, &arg.gid, 0))                   \
	X(modify_srq, ibv_modify_srq(SRQ, &arg.srq, 0))                      \
	X(query_srq, ibv_query_srq(SRQ, &arg.srq))                           \
	X(destroy_srq, ibv_destroy_srq(SRQ))                                 \
	X(destroy_ah, ibv_destroy_ah(&fake_hca.ah))

/* "0, or -1" */
#define MINUS1_CALLS(X)                                                      \
	X(close_device, ibv_close_device(CTX))                               \
	X(query_gid, ibv_query_gid(CTX, 1, 0, &arg.gid))                     \
	X(query_pkey, ibv_query_pkey(CTX, 1, 0, &arg.pkey))                  \
	X(get_cq_event,                                                      \
	  ibv_get_cq_event(&fake_hca.channel, &arg.cq, &arg.context))        \
	X(get_async_event, ibv_get_async_event(CTX, &arg.event))             \
	X(init_ah_from_wc,                                                   \
	  ibv_init_ah_from_wc(CTX, 1, &arg.wc, NULL, &arg.ah))

/* "a pointer, or NULL" */
#define POINTER_CALLS(X)                                                     \
	X(open_device, ibv_open_device(&fake_hca.device), CTX)               \
	X(import_device, ibv_import_device(0), CTX)                          \
	X(alloc_pd, ibv_alloc_pd(CTX), PD)                                   \
	X(import_pd, ibv_import_pd(CTX, 1), PD)                              \
	X(import_mr, ibv_import_mr(PD, 1), &fake_hca.mr)                     \
	X(reg_mr, (ibv_reg_mr)(PD, &arg, 8, 0), &fake_hca.mr)                \
	X(reg_mr_iova, (ibv_reg_mr_iova)(PD, &arg, 8, 0, 0), &fake_hca.mr)   \
	X(reg_mr_iova2, ibv_reg_mr_iova2(PD, &arg, 8, 0, 0), &fake_hca.mr)   \
	X(reg_dmabuf_mr, ibv_reg_dmabuf_mr(PD, 0, 8, 0, 0, 0), &fake_hca.mr) \
	X(create_comp_channel, ibv_create_comp_channel(CTX),                 \
	  &fake_hca.channel)                                                 \
	X(create_cq, ibv_create_cq(CTX, 1, NULL, NULL, 0), CQ)               \
	X(create_qp, ibv_create_qp(PD, &arg.init), QP)                       \
	X(create_srq, ibv_create_srq(PD, &arg.srq_init), SRQ)                \
	X(create_ah, ibv_create_ah(PD, &arg.ah), &fake_hca.ah)               \
	X(create_ah_from_wc, ibv_create_ah_from_wc(PD, &arg.wc, NULL, 1),    \
	  &fake_hca.ah)

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define INT_CALL(name, call)               \
	static int call_##name(void)       \
	{                                  \
		return call;               \
	}
#define POINTER_CALL(name, call, object)   \
	static void *call_##name(void)     \
	{                                  \
		return call;               \
	}
ERRNO_CALLS(INT_CALL)
MINUS1_CALLS(INT_CALL)
POINTER_CALLS(POINTER_CALL)

#define INT_ROW(name, call) { #name, call_##name },
#define POINTER_ROW(name, call, object) { #name, call_##name, object },

static int fake_answers(void **state)
{
	fake_hca.answer = 0;
	fake_hca.calls = 0;
	memset(&arg, 0, sizeof(arg));
	errno = 0;
	return 0;
}

static void returns_the_positive_errno(void **state)
{
	static const struct {
		const char *name;
		int (*call)(void);
	} rows[] = { ERRNO_CALLS(INT_ROW) };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_hca.answer = 0;
		if (rows[i].call() != 0)
			fail_msg("%s fails", rows[i].name);
		fake_hca.answer = -EBUSY;
		errno = 0;
		if (rows[i].call() != EBUSY || errno != EBUSY)
			fail_msg("%s, errno %d", rows[i].name, errno);
	}
}

static void returns_minus_one_and_sets_errno(void **state)
{
	static const struct {
		const char *name;
		int (*call)(void);
	} rows[] = { MINUS1_CALLS(INT_ROW) };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_hca.answer = 0;
		if (rows[i].call() != 0)
			fail_msg("%s fails", rows[i].name);
		fake_hca.answer = -EIO;
		errno = 0;
		if (rows[i].call() != -1 || errno != EIO)
			fail_msg("%s, errno %d", rows[i].name, errno);
	}
}

static void returns_null_and_sets_errno(void **state)
{
	static const struct {
		const char *name;
		void *(*call)(void);
		void *object;
	} rows[] = { POINTER_CALLS(POINTER_ROW) };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake_hca.answer = 0;
		if (rows[i].call() != rows[i].object)
			fail_msg("%s gives another object", rows[i].name);
		fake_hca.answer = -ENOMEM;
		errno = 0;
		if (rows[i].call() != NULL || errno != ENOMEM)
			fail_msg("%s, errno %d", rows[i].name, errno);
	}
}

static void device_list_counts_and_fails_with_zero(void **state)
{
	int n = -1;
	struct ibv_device **list = ibv_get_device_list(&n);

	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_ptr_equal(list[0], &fake_hca.device);
	assert_null(list[1]);
	ibv_free_device_list(list);

	fake_hca.answer = -ENOMEM;
	assert_null(ibv_get_device_list(&n));
	assert_int_equal(n, 0);
	assert_int_equal(errno, ENOMEM);
}

static void refuses_a_device_of_another_owner(void **state)
{
	struct ibv_device foreign = { .name = "foreign" };

	assert_null(ibv_open_device(&foreign));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_get_device_index(&foreign), -1);
	assert_string_equal(ibv_get_device_name(&foreign), "foreign");
}

static void pkey_index_is_the_index_or_minus_one(void **state)
{
	assert_int_equal(ibv_get_pkey_index(CTX, 1, 0xffff), 5);
	fake_hca.answer = -ENOENT;
	assert_int_equal(ibv_get_pkey_index(CTX, 1, 0xffff), -1);
	assert_int_equal(errno, ENOENT);
}

static void qp_creation_gives_the_granted_capacities(void **state)
{
	arg.init.qp_type = IBV_QPT_UC;
	arg.init.sq_sig_all = 1;
	arg.init.cap.max_send_wr = 3;
	assert_non_null(ibv_create_qp(PD, &arg.init));
	assert_int_equal(arg.init.cap.max_send_wr, 4711);
	assert_int_equal(fake_hca.qp_attr.cap.max_send_wr, 3);
	assert_int_equal(fake_hca.qp_attr.qp_type, IBV_QPT_UC);
	assert_int_equal(fake_hca.qp_attr.sq_sig_all, 1);
	assert_int_equal(fake_hca.qp_attr.comp_mask, IBV_QP_INIT_ATTR_PD);
	assert_ptr_equal(fake_hca.qp_attr.pd, PD);

	/* After a failure the caller's structure is unchanged. */
	arg.init.cap.max_send_wr = 3;
	fake_hca.answer = -EINVAL;
	assert_null(ibv_create_qp(PD, &arg.init));
	assert_int_equal(arg.init.cap.max_send_wr, 3);
}

static void plain_cq_asks_for_the_standard_fields(void **state)
{
	assert_non_null(ibv_create_cq(CTX, 17, &arg, &fake_hca.channel, 0));
	assert_int_equal(fake_hca.cq_attr.cqe, 17);
	assert_int_equal(fake_hca.cq_attr.wc_flags, IBV_WC_STANDARD_FLAGS);
	assert_ptr_equal(fake_hca.cq_attr.cq_context, &arg);
	assert_ptr_equal(fake_hca.cq_attr.channel, &fake_hca.channel);
	assert_int_equal(fake_hca.cq_attr.comp_mask, 0);
}

static void registration_drops_permissions_to_be_lax(void **state)
{
	assert_non_null(ibv_reg_mr_iova2(PD, &arg, 8, 0x1234000,
					 IBV_ACCESS_LOCAL_WRITE |
						 IBV_ACCESS_RELAXED_ORDERING));
	assert_int_equal(fake_hca.mr_iova, 0x1234000);
	assert_int_equal(fake_hca.mr_access, IBV_ACCESS_LOCAL_WRITE);

	assert_non_null(ibv_reg_mr(PD, &arg, 8, 0));
	assert_int_equal(fake_hca.mr_iova, (uintptr_t)&arg);
	/* The adapter computes the address of IBV_ACCESS_ZERO_BASED. */
	assert_non_null(ibv_reg_mr(PD, &arg, 8, IBV_ACCESS_ZERO_BASED));
	assert_int_equal(fake_hca.mr_access, IBV_ACCESS_ZERO_BASED);
}

static void reregistration_keeps_the_old_region_when_it_fails(void **state)
{
	struct ibv_mr *mr = &fake_hca.mr;

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      &arg, 8, 0), 0);
	assert_int_equal(fake_hca.rereg_access, 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL,
				      NULL, 0, IBV_ACCESS_REMOTE_READ), 0);
	assert_int_equal(fake_hca.rereg_access, IBV_ACCESS_REMOTE_READ);

	fake_hca.calls = 0;
	assert_int_equal(ibv_rereg_mr(mr, 1 << 20, PD, &arg, 8, 0),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0,
				      0), IBV_REREG_MR_ERR_INPUT);
	/* Access rights without IBV_REREG_MR_CHANGE_ACCESS. */
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      &arg, 8, IBV_ACCESS_REMOTE_READ),
			 IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
				      NULL, 8, 0), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(fake_hca.calls, 0);
	fake_hca.answer = -ENOMEM;
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, PD, NULL, 0,
				      0), IBV_REREG_MR_ERR_CMD);
	assert_int_equal(errno, ENOMEM);
}

static void what_is_missing_says_so(void **state)
{
	struct ibv_ece ece = { .vendor_id = 1, .options = 2 };

	assert_int_equal(ibv_set_ece(QP, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(QP, &ece), EOPNOTSUPP);
	assert_int_equal(ece.vendor_id, 0);
	assert_int_equal(ibv_query_qp_data_in_order(QP, IBV_WR_SEND, 0), 0);
}

static void fork_needs_nothing(void **state)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

/* `grh` may be NULL only if the completion has no IBV_WC_GRH. */
static void address_needs_the_header_that_the_completion_promises(void **state)
{
	arg.wc.wc_flags = IBV_WC_GRH;
	assert_int_equal(ibv_init_ah_from_wc(CTX, 1, &arg.wc, NULL, &arg.ah),
			 -1);
	assert_int_equal(errno, EINVAL);
	assert_null(ibv_create_ah_from_wc(PD, &arg.wc, NULL, 1));
	assert_int_equal(fake_hca.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup(f, fake_answers)
		TEST(returns_the_positive_errno),
		TEST(returns_minus_one_and_sets_errno),
		TEST(returns_null_and_sets_errno),
		TEST(device_list_counts_and_fails_with_zero),
		TEST(refuses_a_device_of_another_owner),
		TEST(pkey_index_is_the_index_or_minus_one),
		TEST(qp_creation_gives_the_granted_capacities),
		TEST(plain_cq_asks_for_the_standard_fields),
		TEST(registration_drops_permissions_to_be_lax),
		TEST(reregistration_keeps_the_old_region_when_it_fails),
		TEST(what_is_missing_says_so),
		TEST(fork_needs_nothing),
		TEST(address_needs_the_header_that_the_completion_promises),
	};

	return cmocka_run_group_tests_name("verbs conventions", tests, NULL, NULL);
}

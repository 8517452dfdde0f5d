/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations, against the services of the specification (volume 1, 9.3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hca/object/opcode.h"

static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
					  IBV_QPT_XRC_SEND };

static void each_service_offers_its_operations(void **state)
{
	static const struct {
		unsigned posted;
		const char *on; /* in the order of `types` */
	} rows[] = {
		{ IBV_WR_SEND, "yyyy" },
		{ IBV_WR_SEND_WITH_IMM, "yyyy" },
		{ IBV_WR_SEND_WITH_INV, "yy--" },
		{ IBV_WR_RDMA_WRITE, "yy-y" },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, "yy-y" },
		{ IBV_WR_RDMA_READ, "y--y" },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, "y--y" },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, "y--y" },
		{ IBV_WR_ATOMIC_WRITE, "y---" },
		{ IBV_WR_LOCAL_INV, "yy--" },
		{ IBV_WR_BIND_MW, "yy--" },
		{ IBV_WR_TSO, "----" },
		{ IBV_WR_DRIVER1, "----" }, /* is the number of another in an entry */
		{ IBV_WR_ATOMIC_WRITE - 1, "----" },
		{ 31, "----" },
		{ 32, "----" },
		{ UINT32_MAX, "----" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned t = 0; t < 4; t++)
			assert_int_equal(hca_opcode_offered(hca_opcode_posted_of(types[t], 0), rows[i].posted),
					 rows[i].on[t] == 'y');
}

static void builders_offer_what_work_requests_do(void **state)
{
	(void)state;
	for (unsigned t = 0; t < 4; t++) {
		uint64_t flags = hca_opcode_flags_of(types[t], 0);
		uint32_t set = hca_opcode_set_of(flags);

		for (unsigned entry = 0; entry < HCA_OPCODES; entry++) {
			unsigned posted = entry == HCA_WR_ATOMIC_WRITE ?
						  IBV_WR_ATOMIC_WRITE : entry;

			assert_int_equal(hca_opcode_in(set, entry),
					 hca_opcode_offered(hca_opcode_posted_of(types[t], 0), posted));
		}
	}
	assert_int_equal(hca_opcode_flags_of(IBV_QPT_UD, 0),
			 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM);
	assert_int_equal(hca_opcode_set_of(IBV_QP_EX_WITH_TSO), 0);
	assert_int_equal(hca_opcode_set_of(IBV_QP_EX_WITH_ATOMIC_WRITE),
			 1u << HCA_WR_ATOMIC_WRITE);
}

static void an_operation_needs_its_right(void **state)
{
	(void)state;
	assert_int_equal(hca_opcodes[IBV_WR_SEND].right, 0);
	assert_int_equal(hca_opcodes[IBV_WR_SEND_WITH_INV].right, 0);
	assert_int_equal(hca_opcodes[IBV_WR_LOCAL_INV].right, 0);
	assert_int_equal(hca_opcodes[IBV_WR_RDMA_READ].right, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(hca_opcodes[IBV_WR_RDMA_WRITE].right, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(hca_opcodes[IBV_WR_RDMA_WRITE_WITH_IMM].right,
			 IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(hca_opcodes[HCA_WR_ATOMIC_WRITE].right, IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(hca_opcodes[IBV_WR_ATOMIC_CMP_AND_SWP].right,
			 IBV_ACCESS_REMOTE_ATOMIC);
	assert_int_equal(hca_opcodes[IBV_WR_ATOMIC_FETCH_AND_ADD].right,
			 IBV_ACCESS_REMOTE_ATOMIC);
}

static void the_questions_have_one_answer_each(void **state)
{
	(void)state;
	for (unsigned op = 0; op < HCA_OPCODES; op++) {
		bool atomic = op == IBV_WR_ATOMIC_CMP_AND_SWP ||
			      op == IBV_WR_ATOMIC_FETCH_AND_ADD;

		assert_int_equal(hca_op_is_atomic(op), atomic);
		assert_int_equal(hca_op_is_word(op),
				 atomic || op == HCA_WR_ATOMIC_WRITE);
		assert_int_equal(hca_op_takes_data(op), atomic || op == IBV_WR_RDMA_READ);
		assert_int_equal(hca_op_is_rdma(op), op == IBV_WR_RDMA_WRITE ||
						     op == IBV_WR_RDMA_WRITE_WITH_IMM ||
						     op == IBV_WR_RDMA_READ);
		assert_int_equal(hca_opcode_in(HCA_POSTED_INLINE, op),
				 op == IBV_WR_SEND || op == IBV_WR_SEND_WITH_IMM ||
				 op == IBV_WR_SEND_WITH_INV ||
				 op == IBV_WR_RDMA_WRITE ||
				 op == IBV_WR_RDMA_WRITE_WITH_IMM);
	}
	assert_true(hca_opcode_in(HCA_POSTED_INLINE, IBV_WR_ATOMIC_WRITE));
}

static void completions_name_the_operation(void **state)
{
	(void)state;
	assert_int_equal(hca_opcodes[IBV_WR_SEND_WITH_INV].completion, IBV_WC_SEND);
	assert_int_equal(hca_opcodes[IBV_WR_RDMA_WRITE_WITH_IMM].completion,
			 IBV_WC_RDMA_WRITE);
	assert_int_equal(hca_opcodes[IBV_WR_RDMA_READ].completion, IBV_WC_RDMA_READ);
	assert_int_equal(hca_opcodes[IBV_WR_ATOMIC_CMP_AND_SWP].completion,
			 IBV_WC_COMP_SWAP);
	assert_int_equal(hca_opcodes[IBV_WR_ATOMIC_FETCH_AND_ADD].completion,
			 IBV_WC_FETCH_ADD);
	assert_int_equal(hca_opcodes[IBV_WR_LOCAL_INV].completion, IBV_WC_LOCAL_INV);
	assert_int_equal(hca_opcodes[IBV_WR_BIND_MW].completion, IBV_WC_BIND_MW);
	assert_int_equal(hca_opcodes[HCA_WR_ATOMIC_WRITE].completion,
			 IBV_WC_ATOMIC_WRITE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_service_offers_its_operations),
		cmocka_unit_test(builders_offer_what_work_requests_do),
		cmocka_unit_test(an_operation_needs_its_right),
		cmocka_unit_test(the_questions_have_one_answer_each),
		cmocka_unit_test(completions_name_the_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

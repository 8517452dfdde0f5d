/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of directed routes: rules C14-9 to C14-13 of the InfiniBand architecture, and all that breaks them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/agent/smi.h"

enum { HOST = 0, SWITCH = 1 };

/* An SMP on the path 7, 5, 3 (out of the sender, then of two switches). */
static void make(uint8_t mad[MAD_BYTES], bool returning, uint8_t pointer, uint8_t count)
{
	memset(mad, 0, MAD_BYTES);
	mad[MAD_SMP_AT_DIRECTION] = returning ? MAD_SMP_D : 0;
	mad[MAD_SMP_AT_HOP_POINTER] = pointer;
	mad[MAD_SMP_AT_HOP_COUNT] = count;
	memset(mad + MAD_SMP_AT_DR_SLID, 0xff, 4);
	memcpy(mad + MAD_SMP_AT_INITIAL_PATH, (const uint8_t[]){0, 7, 5, 3}, 4);
}

static void expect(const uint8_t mad[MAD_BYTES], struct agent_step s, enum agent_way way, uint8_t port,
		   uint8_t pointer)
{
	assert_int_equal(s.way, way);
	assert_int_equal(s.port, port);
	assert_int_equal(mad[MAD_SMP_AT_HOP_POINTER], pointer);
}

static void a_request_walks_its_path_and_its_answer_walks_back(void **state)
{
	uint8_t mad[MAD_BYTES];

	(void)state;
	make(mad, false, 0, 3);
	expect(mad, agent_smi_step(mad, HOST, 7, AGENT_FROM_NODE), AGENT_OUT, 7, 1);
	expect(mad, agent_smi_step(mad, SWITCH, 20, AGENT_FROM_LINK), AGENT_OUT, 5, 2);
	expect(mad, agent_smi_step(mad, SWITCH, 21, AGENT_FROM_LINK), AGENT_OUT, 3, 3);
	expect(mad, agent_smi_step(mad, HOST, 2, AGENT_FROM_LINK), AGENT_TO_AGENT, 0, 4);
	assert_memory_equal(mad + MAD_SMP_AT_RETURN_PATH, ((const uint8_t[]){0, 20, 21, 2}), 4);
	mad[MAD_SMP_AT_DIRECTION] |= MAD_SMP_D;
	expect(mad, agent_smi_step(mad, HOST, 2, AGENT_FROM_NODE), AGENT_OUT, 2, 3);
	expect(mad, agent_smi_step(mad, SWITCH, 3, AGENT_FROM_LINK), AGENT_OUT, 21, 2);
	expect(mad, agent_smi_step(mad, SWITCH, 5, AGENT_FROM_LINK), AGENT_OUT, 20, 1);
	expect(mad, agent_smi_step(mad, HOST, 7, AGENT_FROM_LINK), AGENT_TO_PROCESS, 0, 0);
}

static void a_path_without_a_hop_stays_in_the_node(void **state)
{
	uint8_t mad[MAD_BYTES];

	(void)state;
	make(mad, false, 0, 0);
	expect(mad, agent_smi_step(mad, HOST, 1, AGENT_FROM_NODE), AGENT_TO_AGENT, 0, 1);
	mad[MAD_SMP_AT_DIRECTION] |= MAD_SMP_D;
	expect(mad, agent_smi_step(mad, HOST, 1, AGENT_FROM_NODE), AGENT_TO_PROCESS, 0, 0);
	make(mad, false, 0, 0);
	expect(mad, agent_smi_step(mad, HOST, 1, AGENT_FROM_LINK), AGENT_DISCARD, 0, 0);
}

/* By LID to a switch, two hops, by LID to another node. */
static void a_path_may_begin_and_end_with_a_route_by_lid(void **state)
{
	struct agent_step s;
	uint8_t mad[MAD_BYTES];

	(void)state;
	make(mad, false, 0, 2);
	memcpy(mad + MAD_SMP_AT_DR_SLID, (const uint8_t[]){0, 11, 0, 22}, 4);
	expect(mad, agent_smi_step(mad, SWITCH, 4, AGENT_FROM_LID), AGENT_OUT, 7, 1);
	expect(mad, agent_smi_step(mad, SWITCH, 20, AGENT_FROM_LINK), AGENT_OUT, 5, 2);
	s = agent_smi_step(mad, SWITCH, 21, AGENT_FROM_LINK);
	expect(mad, s, AGENT_BY_LID, 0, 3);
	assert_int_equal(s.lid, 22);
	expect(mad, agent_smi_step(mad, HOST, 1, AGENT_FROM_LID), AGENT_TO_AGENT, 0, 3);
	mad[MAD_SMP_AT_DIRECTION] |= MAD_SMP_D;
	expect(mad, agent_smi_step(mad, SWITCH, 9, AGENT_FROM_LID), AGENT_OUT, 21, 2);
	expect(mad, agent_smi_step(mad, SWITCH, 5, AGENT_FROM_LINK), AGENT_OUT, 20, 1);
	s = agent_smi_step(mad, SWITCH, 7, AGENT_FROM_LINK);
	expect(mad, s, AGENT_BY_LID, 0, 0);
	assert_int_equal(s.lid, 11);
	expect(mad, agent_smi_step(mad, HOST, 1, AGENT_FROM_LID), AGENT_TO_PROCESS, 0, 0);
}

static void what_breaks_a_rule_is_discarded(void **state)
{
	static const struct {
		bool returning, is_switch;
		uint8_t pointer, count, port;
		enum agent_origin origin;
	} bad[] = {
		{false, HOST, 0, 3, 6, AGENT_FROM_NODE},   /* the path begins at another port */
		{false, HOST, 1, 3, 7, AGENT_FROM_LINK},   /* an adapter does not forward */
		{false, HOST, 1, 3, 7, AGENT_FROM_NODE},   /* a process cannot start in the midst */
		{false, SWITCH, 0, 3, 7, AGENT_FROM_LINK}, /* it has not begun */
		{false, SWITCH, 4, 3, 7, AGENT_FROM_LINK}, /* beyond its end */
		{false, SWITCH, 5, 3, 7, AGENT_FROM_LINK},
		{false, SWITCH, 3, 64, 7, AGENT_FROM_LINK}, /* too long */
		{false, SWITCH, 255, 255, 7, AGENT_FROM_LINK},
		{false, SWITCH, 3, 9, 7, AGENT_FROM_LINK}, /* out of port 0 */
		{true, HOST, 2, 3, 7, AGENT_FROM_LINK},
		{true, SWITCH, 2, 3, 7, AGENT_FROM_NODE},
		{true, SWITCH, 4, 3, 7, AGENT_FROM_LINK},
		{true, SWITCH, 5, 3, 7, AGENT_FROM_LID},
		{true, HOST, 4, 3, 7, AGENT_FROM_NODE},    /* the way back is out of port 0 */
		{true, HOST, 0, 3, 7, AGENT_FROM_LINK},
		{true, HOST, 1, 3, 7, AGENT_FROM_NODE},
		{true, HOST, 200, 3, 7, AGENT_FROM_LINK},
	};
	uint8_t mad[MAD_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		make(mad, bad[i].returning, bad[i].pointer, bad[i].count);
		if (agent_smi_step(mad, bad[i].is_switch, bad[i].port, bad[i].origin).way != AGENT_DISCARD)
			fail_msg("row %zu is not discarded", i);
	}
	/* An adapter at the end of a directed part does not go on by LID. */
	make(mad, false, 3, 3);
	mad[MAD_SMP_AT_DR_DLID] = 0;
	assert_int_equal(agent_smi_step(mad, HOST, 1, AGENT_FROM_LINK).way, AGENT_DISCARD);
}

static void the_longest_path_has_63_hops(void **state)
{
	uint8_t mad[MAD_BYTES];

	(void)state;
	make(mad, false, 62, 63);
	mad[MAD_SMP_AT_INITIAL_PATH + 63] = 9;
	expect(mad, agent_smi_step(mad, SWITCH, 8, AGENT_FROM_LINK), AGENT_OUT, 9, 63);
	expect(mad, agent_smi_step(mad, SWITCH, 4, AGENT_FROM_LINK), AGENT_TO_AGENT, 0, 64);
	assert_int_equal(mad[MAD_SMP_AT_RETURN_PATH + 63], 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_walks_its_path_and_its_answer_walks_back),
		cmocka_unit_test(a_path_without_a_hop_stays_in_the_node),
		cmocka_unit_test(a_path_may_begin_and_end_with_a_route_by_lid),
		cmocka_unit_test(what_breaks_a_rule_is_discarded),
		cmocka_unit_test(the_longest_path_has_63_hops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

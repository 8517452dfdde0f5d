/* SPDX-License-Identifier: BSD-2-Clause */
/* The infiniband node-type's keys: defaults, rounding, what is refused. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/infiniband/infiniband.h"
#include "harness.h"

#define IN "in = { address = \"127.0.0.1:1337\"; "
#define OUT "out = { address = \"127.0.0.1:1338\"; "

static struct harness h;

static struct infiniband *accepted(const char *text)
{
	assert_int_equal(harness_open(&h, text), 0);
	return h.node.private_data;
}

static void refused(const char *text, const char *message)
{
	assert_int_equal(harness_open(&h, text), -EINVAL);
	if (!harness_logged(message))
		fail_msg("no line with: %s", message);
	harness_close(&h);
}

static void defaults_are_those_that_users_know(void **state)
{
	struct infiniband *ib = accepted(IN "}; " OUT "};");

	assert_int_equal(ib->mode, IB_RC);
	assert_int_equal(ib->in.max_wrs, 128);
	assert_int_equal(ib->in.cq_size, 128);
	assert_int_equal(ib->in.buffer_subtraction, 16);
	assert_int_equal(ib->in.polling, IB_POLLING_AUTO);
	assert_int_equal(ib->in.spin_us, 50);
	assert_int_equal(ib->out.resolution_timeout_ms, 1000);
	assert_int_equal(ib->out.max_wrs, 128);
	assert_int_equal(ib->out.cq_size, 128);
	assert_int_equal(ib->out.max_inline_data, 0);
	assert_true(ib->out.send_inline);
	assert_true(ib->out.use_fallback);
	assert_int_equal(ib->out.periodic_signaling, 64);
	assert_int_equal(ib->out.reconnect_interval_ms, 1000);
	assert_int_equal(h.node.type->hold_max(&h.node), 256);
	harness_close(&h);
}

static void the_benchmark_configuration_of_laboratories_is_accepted(void **state)
{
	struct infiniband *ib = accepted(
		"rdma_transport_mode = \"UD\"; "
		IN "max_wrs = 4; cq_size = 4; buffer_subtraction = 2; "
		"signals = { count = 3; type = \"float\"; }; }; "
		OUT "resolution_timeout = 1000; send_inline = true; "
		"max_inline_data = 128; use_fallback = true; max_wrs = 4096; "
		"cq_size = 4096; periodic_signaling = 2048; };");

	assert_int_equal(ib->mode, IB_UD);
	assert_int_equal(ib->in.max_wrs, 4);
	assert_int_equal(ib->out.periodic_signaling, 2048);
	harness_close(&h);
}

static void both_names_of_the_service_type_are_understood(void **state)
{
	assert_int_equal(accepted("rdma_port_space = \"RDMA_PS_UDP\"; " IN "};")
				 ->mode, IB_UD);
	harness_close(&h);
	assert_int_equal(accepted("rdma_port_space = \"RC\"; " IN "};")->mode,
			 IB_RC);
	harness_close(&h);
	refused("rdma_port_space = \"RC\"; rdma_transport_mode = \"UD\"; " IN "};",
		"contradicts");
	refused("rdma_transport_mode = \"RD\"; " IN "};",
		"none of: RC, UC, UD");
}

static void uc_has_a_port_space_that_keeps_the_type(void **state)
{
	struct infiniband *ib = accepted("rdma_transport_mode = \"UC\"; " IN "};");

	assert_int_equal(ib->mode, IB_UC);
	assert_int_equal(ib->space, RDMA_PS_IB);
	harness_close(&h);
	ib = accepted("rdma_port_space = \"RDMA_PS_IPOIB\"; "
		      "rdma_transport_mode = \"UC\"; " IN "};");
	assert_int_equal(ib->mode, IB_UC);
	assert_int_equal(ib->space, RDMA_PS_IPOIB);
	harness_close(&h);
	refused("rdma_port_space = \"RDMA_PS_IPOIB\"; "
		"rdma_transport_mode = \"UD\"; " IN "};", "contradicts");
}

static void queue_depths_are_rounded_up_to_powers_of_two(void **state)
{
	struct infiniband *ib = accepted(
		IN "max_wrs = 500; cq_size = 1000; }; "
		OUT "max_wrs = 100; cq_size = 100; };");

	assert_int_equal(ib->in.max_wrs, 512);
	assert_int_equal(ib->in.cq_size, 1000);
	assert_int_equal(ib->out.max_wrs, 128);
	assert_int_equal(ib->out.cq_size, 128);
	assert_int_equal(harness_logged("no power of two"), 2);
	harness_close(&h);
}

static bool may_call(const struct infiniband *ib, const char *from)
{
	struct rdma_cm_id id = { 0 };
	struct sockaddr_in *v4 = &id.route.addr.dst_sin;
	struct sockaddr_in6 *v6 = &id.route.addr.dst_sin6;

	if (inet_pton(AF_INET, from, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, from, &v6->sin6_addr), 1);
		v6->sin6_family = AF_INET6;
	}
	return ib_peer_may_call(ib, &id);
}

static void only_listed_hosts_and_networks_may_call(void **state)
{
	static const struct {
		const char *peers, *may, *may_not;
	} cases[] = {
		{ "10.0.0.2", "10.0.0.2", "10.0.0.3" },
		{ "10.1.0.0/16", "10.1.255.255", "10.2.0.0" },
		{ "10.1.0.0/15", "10.0.0.1", "10.2.0.0" },
		{ "10.1.0.128/25", "10.1.0.200", "10.1.0.127" },
		{ "0.0.0.0/0", "255.255.255.255", "fd00::1" },
		{ "::ffff:10.0.0.2", "10.0.0.2", "10.0.0.3" },
		{ "fd00::1", "fd00::1", "fd00::2" },
		{ "fd00:0:0:1::/64", "fd00:0:0:1:ffff::", "fd00:0:0:2::1" },
		{ "::/0", "10.0.0.1", NULL },
		{ "10.9.9.9\", \"fd00::/121", "fd00::7f", "fd00::80" },
	};
	static const char *const wrong[] = {
		"()", "( 5 )", "( \"host\" )", "( \"10.0.0.2/33\" )", "( \"10.0.0.2/\" )",
		"( \"10.0.0.2/-1\" )", "( \"10.0.0.2/8x\" )", "( \"fd00::/129\" )",
		"( \"10.0.0\" )", "( \"10.0.0.2:5\" )", "\"10.0.0.2\"", "( \"\" )",
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct infiniband *ib;

		snprintf(text, sizeof(text), IN "peers = ( \"%s\" ); };", cases[i].peers);
		ib = accepted(text);
		assert_true(may_call(ib, cases[i].may));
		assert_true(!cases[i].may_not || !may_call(ib, cases[i].may_not));
		harness_close(&h);
	}
	assert_true(may_call(accepted(IN "};"), "10.0.0.1"));
	harness_close(&h);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof(text), IN "peers = %s; };", wrong[i]);
		refused(text, "address");
	}
}

static void very_deep_queues_are_warned_of(void **state)
{
	accepted(IN "max_wrs = 16384; cq_size = 16384; };");
	assert_int_equal(harness_logged("more than 8192"), 1);
	harness_close(&h);
}

static void buffer_subtraction_has_to_leave_room_for_two_calls(void **state)
{
	refused(IN "vectorize = 10; buffer_subtraction = 19; };",
		"at least 20");
	refused(IN "max_wrs = 16; buffer_subtraction = 15; };", "less than 15");
	assert_int_equal(accepted(IN "vectorize = 10; };")
				 ->in.buffer_subtraction, 20);
	harness_close(&h);
}

static void signaling_less_often_than_every_half_queue_is_refused(void **state)
{
	refused(IN "}; " OUT "max_wrs = 4096; cq_size = 5000; periodic_signaling = 4500; };",
		"at most 2048");
}

static void an_address_is_needed_and_has_a_port(void **state)
{
	refused("in = { max_wrs = 64; };", "needs in.address");
	refused("in = { address = \"127.0.0.1\"; };", "HOST:PORT");
	refused("in = { address = \"127.0.0.1:0\"; };", "HOST:PORT");
	refused("in = { address = \"::1:1337\"; };", "HOST:PORT");
	refused("in = { address = \"host:70000\"; };", "HOST:PORT");
	accepted("in = { address = \"[::1]:1337\"; };");
	harness_close(&h);
	accepted("in = { address = \"*:1337\"; };");
	harness_close(&h);
	accepted("out = { address = \"host:1337\"; };");
	harness_close(&h);
}

static void reverse_swaps_the_addresses(void **state)
{
	struct infiniband *ib = accepted(IN "}; " OUT "};");

	assert_int_equal(h.node.type->reverse(&h.node), 0);
	assert_string_equal(ib->in.address, "127.0.0.1:1338");
	assert_string_equal(ib->out.address, "127.0.0.1:1337");
	harness_close(&h);
}

static void a_reader_may_poll_sleep_or_do_both(void **state)
{
	struct infiniband *ib = accepted(
		IN "polling = \"adaptive\"; spin = 0; };");

	assert_int_equal(ib->in.polling, IB_POLLING_ADAPTIVE);
	assert_int_equal(ib->in.spin_us, 0);
	harness_close(&h);
	ib = accepted(IN "polling = \"event\"; };");
	assert_int_equal(ib->in.polling, IB_POLLING_EVENT);
	harness_close(&h);
}

static void print_tells_the_settings(void **state)
{
	char buf[300];

	accepted(IN "max_wrs = 512; cq_size = 512; buffer_subtraction = 64; };");
	h.node.type->print(&h.node, buf, sizeof(buf));
	assert_non_null(strstr(buf, "RC"));
	assert_non_null(strstr(buf, "in.max_wrs 512 filled to 448"));
	harness_close(&h);
}

#define T(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(defaults_are_those_that_users_know),
		T(the_benchmark_configuration_of_laboratories_is_accepted),
		T(both_names_of_the_service_type_are_understood),
		T(uc_has_a_port_space_that_keeps_the_type),
		T(queue_depths_are_rounded_up_to_powers_of_two),
		T(very_deep_queues_are_warned_of),
		T(only_listed_hosts_and_networks_may_call),
		T(buffer_subtraction_has_to_leave_room_for_two_calls),
		T(signaling_less_often_than_every_half_queue_is_refused),
		T(an_address_is_needed_and_has_a_port),
		T(reverse_swaps_the_addresses),
		T(a_reader_may_poll_sleep_or_do_both),
		T(print_tells_the_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rates and names. If the system's library is installed, all values are compared with it,
 * because scripts and programs know its values.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <string.h>

static const struct {
	enum ibv_rate rate;
	int mult, mbps;
} rates[] = {
	{ IBV_RATE_2_5_GBPS, 1, 2500 },
	{ IBV_RATE_5_GBPS, 2, 5000 },
	{ IBV_RATE_10_GBPS, 4, 10000 },
	{ IBV_RATE_40_GBPS, 16, 40000 },
	{ IBV_RATE_120_GBPS, 48, 120000 },
	{ IBV_RATE_50_GBPS, 20, 53125 },
	{ IBV_RATE_400_GBPS, 160, 425000 },
	{ IBV_RATE_1200_GBPS, 480, 1275000 },
};

static void rates_convert_and_back(void **state)
{
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		assert_int_equal(ibv_rate_to_mult(rates[i].rate), rates[i].mult);
		assert_int_equal(mult_to_ibv_rate(rates[i].mult), rates[i].rate);
		assert_int_equal(ibv_rate_to_mbps(rates[i].rate), rates[i].mbps);
		assert_int_equal(mbps_to_ibv_rate(rates[i].mbps), rates[i].rate);
	}
	for (int i = IBV_RATE_2_5_GBPS; i <= IBV_RATE_1200_GBPS; i++)
		assert_int_equal(mbps_to_ibv_rate(ibv_rate_to_mbps(i)), i);
}

static void unknown_rates_are_told(void **state)
{
	static const int codes[] = { -1, IBV_RATE_MAX, 1, 25, 1 << 30 };

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		assert_int_equal(ibv_rate_to_mult((enum ibv_rate)codes[i]), -1);
		assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)codes[i]), -1);
	}
	assert_int_equal(mult_to_ibv_rate(3), IBV_RATE_MAX);
	assert_int_equal(mult_to_ibv_rate(-1), IBV_RATE_MAX);
	assert_int_equal(mult_to_ibv_rate(0), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(2501), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(-1), IBV_RATE_MAX);
}

static void every_value_has_a_name(void **state)
{
	for (int i = IBV_NODE_CA; i <= IBV_NODE_UNSPECIFIED; i++)
		assert_string_not_equal(ibv_node_type_str(i), "unknown");
	for (int i = 0; i <= IBV_PORT_ACTIVE_DEFER; i++)
		assert_string_not_equal(ibv_port_state_str(i), "unknown");
	for (int i = 0; i <= IBV_EVENT_WQ_FATAL; i++)
		assert_string_not_equal(ibv_event_type_str(i), "unknown");
	for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; i++)
		assert_string_not_equal(ibv_wc_status_str(i), "unknown");
}

static void values_outside_have_the_name_unknown(void **state)
{
	static const int values[] = { -1, -1000000, 100, 1 << 30 };

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		assert_string_equal(ibv_node_type_str(values[i]), "unknown");
		assert_string_equal(ibv_port_state_str(values[i]), "unknown");
		assert_string_equal(ibv_event_type_str(values[i]), "unknown");
		assert_string_equal(ibv_wc_status_str(values[i]), "unknown");
	}
}

static void agrees_with_the_system_library(void **state)
{
	static const struct {
		const char *name, *version;
		int (*ours)(int);
		int to;
	} numbers[] = {
		{ "ibv_rate_to_mult", "IBVERBS_1.0", (void *)ibv_rate_to_mult, 40 },
		{ "mult_to_ibv_rate", "IBVERBS_1.0", (void *)mult_to_ibv_rate, 600 },
		{ "ibv_rate_to_mbps", "IBVERBS_1.1", (void *)ibv_rate_to_mbps, 40 },
		{ "mbps_to_ibv_rate", "IBVERBS_1.1", (void *)mbps_to_ibv_rate,
		  1300000 },
	};
	static const struct {
		const char *name;
		const char *(*ours)(int);
	} names[] = {
		{ "ibv_node_type_str", (void *)ibv_node_type_str },
		{ "ibv_port_state_str", (void *)ibv_port_state_str },
		{ "ibv_event_type_str", (void *)ibv_event_type_str },
		{ "ibv_wc_status_str", (void *)ibv_wc_status_str },
	};
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib || dlvsym(lib, "busbar_progress_hold", "BUSBAR_1"))
		skip();
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		int (*theirs)(int) =
			dlvsym(lib, numbers[i].name, numbers[i].version);

		assert_non_null(theirs);
		for (int v = -2; v < numbers[i].to; v++)
			if (theirs(v) != numbers[i].ours(v))
				fail_msg("%s(%d)", numbers[i].name, v);
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *(*theirs)(int) =
			dlvsym(lib, names[i].name, "IBVERBS_1.1");

		assert_non_null(theirs);
		for (int v = -2; v < 30; v++)
			assert_string_equal(theirs(v), names[i].ours(v));
	}
	dlclose(lib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_convert_and_back),
		cmocka_unit_test(unknown_rates_are_told),
		cmocka_unit_test(every_value_has_a_name),
		cmocka_unit_test(values_outside_have_the_name_unknown),
		cmocka_unit_test(agrees_with_the_system_library),
	};

	return cmocka_run_group_tests_name("verbs tables", tests, NULL, NULL);
}

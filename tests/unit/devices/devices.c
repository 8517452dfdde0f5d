/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types whose devices busbar cannot use: what can be meant is taken, what cannot is refused,
 * and a node cannot be prepared.
 */
#include "../nodes/fixture.h"

extern const struct node_type node_ethercat, node_fpga, node_opal_async, node_opal_orchestra,
	node_uldaq;

#define ORCHESTRA "{\"domain\": \"d\", "

static const struct {
	const struct node_type *type;
	const char *text;
} good[] = {
	{ &node_ethercat, "{}" },
	{ &node_ethercat, "{\"rate\": 1000.0, \"in\": {\"num_channels\": 8, \"product_code\": 196882514}}" },
	{ &node_fpga, "{\"fpga\": \"vc707\", \"target\": \"\", \"datamover\": \"dma_0\", \"use_irqs\": false}" },
	{ &node_fpga, "{\"card\": \"c\", \"connect\": [\"0<->dma\"], \"lowLatencyMode\": true}" },
	{ &node_opal_async, "{\"id\": 1, \"in\": {\"reply\": false}}" },
	{ &node_opal_orchestra, ORCHESTRA "\"connect_timeout\": 2, \"flag_delay\": \"10us\"}" },
	{ &node_opal_orchestra, ORCHESTRA "\"connection\": {\"type\": \"dolphin\", \"node_id_framework\": 4, \"segment_id\": 1}}" },
	{ &node_opal_orchestra, ORCHESTRA "\"in\": {\"signals\": [{\"name\": \"u\", \"orchestra_type\": \"unsigned int8\", \"orchestra_index\": 2}]}}" },
	{ &node_uldaq, "{\"in\": {\"range\": \"bipolar-10\", \"input_mode\": \"single-ended\", \"sample_rate\": 5000, \"signals\": [{\"channel\": 0}]}}" },
	{ &node_uldaq, "{\"in\": {\"signals\": [{\"range\": \"unipolar-0.005\", \"input_mode\": \"differential\"}]}}" },
}, bad[] = {
	{ &node_ethercat, "{\"rate\": 0}" },
	{ &node_ethercat, "{\"in\": {\"num_channels\": 0}}" },
	{ &node_ethercat, "{\"out\": {\"position\": -1}}" },
	{ &node_ethercat, "{\"out\": {\"vendor_id\": 4294967296}}" },
	{ &node_fpga, "{\"connect\": [1]}" },
	{ &node_fpga, "{\"coalesce\": -1}" },
	{ &node_fpga, "{\"polling\": \"perhaps\"}" },
	{ &node_opal_async, "{}" },
	{ &node_opal_async, "{\"id\": -1}" },
	{ &node_opal_orchestra, "{}" },
	{ &node_opal_orchestra, ORCHESTRA "\"connect_timeout\": \"soon\"}" },
	{ &node_opal_orchestra, ORCHESTRA "\"flag_delay\": -1}" },
	{ &node_opal_orchestra, ORCHESTRA "\"connection\": {}}" },
	{ &node_opal_orchestra, ORCHESTRA "\"connection\": {\"type\": \"wire\"}}" },
	{ &node_opal_orchestra, ORCHESTRA "\"connection\": {\"type\": \"local\", \"extcom\": \"udp\"}}" },
	{ &node_opal_orchestra, ORCHESTRA "\"in\": {\"signals\": [{\"orchestra_type\": \"float\"}]}}" },
	{ &node_opal_orchestra, ORCHESTRA "\"out\": {\"signals\": [{\"orchestra_index\": -1}]}}" },
	{ &node_uldaq, "{\"interface_type\": \"serial\"}" },
	{ &node_uldaq, "{\"in\": {\"range\": \"bipolar-7\"}}" },
	{ &node_uldaq, "{\"in\": {\"range\": \"bipolar-10\", \"signals\": [{\"channel\": 0}]}}" },
	{ &node_uldaq, "{\"in\": {\"input_mode\": \"differential\", \"signals\": [{\"channel\": 0}]}}" },
	{ &node_uldaq, "{\"in\": {\"sample_rate\": 0}}" },
};

static void what_can_be_meant_is_taken_and_printed(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct made_node m;
		char buf[100];

		make_node(&m, good[i].type, good[i].text);
		memset(buf, 'x', sizeof(buf));
		m.node.type->print(&m.node, buf, sizeof(buf));
		assert_non_null(memchr(buf, '\0', sizeof(buf)));
		assert_non_null(strstr(buf, m.node.type->key_count ? m.node.type->keys[0].name : ""));
		drop_node(&m);
	}
}

static void what_cannot_be_meant_is_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct made_node m;
		int ret = try_node(&m, bad[i].type, bad[i].text);

		if (ret != -EINVAL)
			fail_msg("%s %s: %d", bad[i].type->name, bad[i].text, ret);
		assert_true(config_errors(m.config) > 0);
		drop_node(&m);
	}
}

static void no_node_can_be_prepared_and_the_reason_is_told(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct made_node m;

		make_node(&m, good[i].type, good[i].text);
		m.node.is_source = true;
		assert_int_equal(m.node.type->prepare(&m.node), -ENODEV);
		assert_int_equal(m.node.type->read(&m.node, NULL, 0, NULL), -ENODEV);
		assert_int_equal(m.node.type->write(&m.node, NULL, 0, NULL), -ENODEV);
		/* It has no start, which could not fail. */
		assert_null(m.node.type->start);
		drop_node(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_can_be_meant_is_taken_and_printed),
		cmocka_unit_test(what_cannot_be_meant_is_refused),
		cmocka_unit_test(no_node_can_be_prepared_and_the_reason_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

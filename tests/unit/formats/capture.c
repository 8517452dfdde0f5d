/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that another program sent in villas.binary, out of a capture that is
 * not part of the tree: the folder of recordings is the first argument; skipped
 * when it is not there.
 */
#include "samples.h"

#include <jansson.h>
#include <math.h>
#include <unistd.h>

#define PCAP_HEAD 24
#define RECORD_HEAD 16
#define ETHERNET_IP_UDP (14 + 20 + 8)

static const char *folder;

static json_t *golden_samples(void)
{
	char path[600];
	json_t *all, *samples;

	snprintf(path, sizeof(path), "%s/golden.json", folder);
	all = json_load_file(path, 0, NULL);
	assert_non_null(all);
	samples = json_incref(json_object_get(json_object_get(
		json_object_get(all, "villas"), "villas/lab3.pcap"), "samples"));
	json_decref(all);
	assert_int_equal(json_array_size(samples), 10);
	return samples;
}

static void assert_golden(const struct sample *s, const json_t *golden)
{
	double want = json_number_value(json_array_get(
		json_object_get(golden, "values"), 0));

	assert_int_equal(s->sequence, json_integer_value(json_object_get(golden, "sequence")));
	assert_int_equal(s->origin.tv_sec, json_integer_value(json_object_get(golden, "sec")));
	assert_int_equal(s->origin.tv_nsec, json_integer_value(json_object_get(golden, "nsec")));
	assert_int_equal(s->length, 1);
	/* The table has nine digits, which is enough for single precision. */
	assert_true((float)s->data[0].f == (float)want);
}

static void packets_of_another_program_are_read(void **state)
{
	struct made_format m = make_format("{ \"type\": \"villas.binary\" }", NULL);
	json_t *golden = golden_samples();
	static char file[65536];
	char path[600], again[100];
	struct pool pool;
	struct sample *s;
	unsigned packets = 0;
	size_t size, pos = PCAP_HEAD;
	FILE *in;

	snprintf(path, sizeof(path), "%s/villas/lab3.pcap", folder);
	in = fopen(path, "r");
	assert_non_null(in);
	size = fread(file, 1, sizeof(file), in);
	fclose(in);
	assert_int_equal(pool_init(&pool, 1, 4, &memory_heap), 0);
	s = make_sample(&pool);
	m.format->message = true;
	for (; pos + RECORD_HEAD < size; packets++) {
		const char *payload = file + pos + RECORD_HEAD + ETHERNET_IP_UDP;
		uint32_t captured;
		size_t len, used;

		memcpy(&captured, file + pos + 8, sizeof(captured));
		pos += RECORD_HEAD + captured;
		assert_true(pos <= size && captured > ETHERNET_IP_UDP);
		len = captured - ETHERNET_IP_UDP;
		assert_int_equal(m.format->type->scan(m.format, payload, len, &used, &s, 1), 1);
		assert_int_equal(used, len);
		assert_golden(s, json_array_get(golden, packets));
		/* And to the same bytes, but the first: it is an early release
		 * that had its bits in another order. */
		assert_int_equal(m.format->type->print(m.format, again, sizeof(again),
						       &used, &s, 1), 1);
		assert_int_equal(used, len);
		assert_memory_equal(again + 1, payload + 1, len - 1);
		assert_int_equal(payload[0], 0x02);
		assert_int_equal(again[0], 0x20);
	}
	assert_int_equal(packets, 10);
	sample_put(s);
	assert_int_equal(pool_destroy(&pool), 0);
	drop_format(&m);
	json_decref(golden);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_of_another_program_are_read),
	};
	char path[600];

	folder = argc > 1 ? argv[1] : "";
	snprintf(path, sizeof(path), "%s/villas/lab3.pcap", folder);
	if (access(path, R_OK)) {
		printf("skipped: no recordings in '%s'\n", folder);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}

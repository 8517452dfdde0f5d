/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of a subnet's JSON (bench/report/subnet.h): random changes to a running fabric and to an
 * experiment. What is accepted has tables whose rows have a value for each key, and the page that is made
 * of it ends its data nowhere else. Argument 1: seconds, argument 2: seed.
 */
#define MUTATE_BYTES "0123456789.,:-{}[]\"eE<\n\0\x7f\x80\xff"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/report/page.h"
#include "bench/report/subnet.h"
#include "mutate.h"
#include "util/clock.h"
#include "util/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const seeds[] = {
	"{\"name\":\"f\",\"seconds\":1.5,\"drops\":{\"no_route\":1},\"nodes\":[{\"name\":\"s\",\"kind\":\"switch\",\"ports\":"
	"[{\"port\":1,\"up\":true,\"bit_rate\":100,\"peer\":\"h\",\"peer_port\":1,\"sent_bytes\":5}]},{\"name\":\"h\",\"kind\":\"host\"}]}",
	"{\"title\":\"<\",\"end_ns\":5,\"traffic\":[{\"name\":\"a\",\"share\":0.5,\"packet_latency_ns\":{\"p99.9\":3}}],\"flows\":"
	"[{\"from\":\"h:1\",\"to\":\"i:1\",\"rate_bps\":5,\"fair_bps\":0}],\"links\":[{\"from\":\"h:1\",\"to\":\"s:1\",\"load\":1}],"
	"\"congestion\":[{\"port\":\"s:1\",\"root\":true}],\"deadlocks\":[{\"at_ns\":1,\"lanes\":[{\"port\":\"s:1\",\"lane\":0}]}],"
	"\"expect\":[{\"text\":\"x\",\"holds\":false}]}",
};

/* A file in memory. */
static char path[40];
static int fd = -1;

static bool quiet(enum log_level level, const char *line)
{
	return true;
}

static void prepare(void)
{
	if (fd >= 0)
		return;
	log_set_sink(quiet);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
}

static void check_tables(const json_t *subnet)
{
	const char *key;
	json_t *table, *row;
	size_t i;

	json_object_foreach((json_t *)subnet, key, table)
		json_array_foreach(json_object_get(table, "rows"), i, row)
			if (json_array_size(row) != json_array_size(json_object_get(table, "keys")))
				abort();
	if (!json_is_array(json_object_get(json_object_get(subnet, "links"), "rows")))
		abort();
}

static void check_page(const json_t *data)
{
	char *text = NULL;
	size_t size = 0;

	if (report_page_make(data, &text, &size) || size < report_page_head_size + report_page_tail_size)
		abort();
	if (memchr(text + report_page_head_size, '<', size - report_page_head_size - report_page_tail_size))
		abort();
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *out = json_object();
	int ret;

	prepare();
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	ret = subnet_add(out, path);
	if (ret && ret != -ENOENT)
		abort();
	if (!ret) {
		check_tables(json_array_get(json_object_get(out, "subnets"), 0));
		/* The page has a hundred times the size of the data. */
		if (size % 16 == 0)
			check_page(out);
	}
	json_decref(out);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, runs = 0, stop_ns;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : clock_monotonic_ns_slow();
	uint8_t data[2048];

	clock_init();
	random_state = seed;
	stop_ns = clock_monotonic_ns_slow() + seconds * NSEC_PER_SEC;
	for (; clock_monotonic_ns_slow() < stop_ns; runs++) {
		const char *from = seeds[runs % 2];
		size_t size = strlen(from);

		memcpy(data, from, size);
		/* The first ones as they are. */
		for (uint64_t n = runs < 2 ? 0 : 1 + random_below(4); n; n--)
			size = mutate(data, size, sizeof(data));
		LLVMFuzzerTestOneInput(data, size);
	}
	printf("seed %ju, %ju inputs\n", (uintmax_t)seed, (uintmax_t)runs);
	return runs < 10;
}
#endif

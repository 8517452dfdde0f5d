/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the time stamps that infiniband nodes leave behind (bench/node/budget.h).
 * Argument 1: seconds, argument 2: seed.
 */
#include "bench/node/budget.h"

#include <stdio.h>
#include <stdlib.h>

#include "mutate.h"
#include "util/clock.h"

#define ROWS 4
#define SIZE_MAX_BYTES 1024

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct delivery_sample samples[ROWS];

static void use(const struct bench_node_stamps *s)
{
	const struct delivery_samples sent = { .samples = samples, .count = ROWS };
	struct bench_node_budget b;

	if (bench_node_budget_fill(s, s, &sent, &sent, &b) || b.writes > ROWS)
		abort();
	bench_node_budget_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bench_node_stamps s;
	void *copy = malloc(size + 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	if (!bench_node_stamps_parse(copy, size, &s))
		use(&s);
	bench_node_stamps_free(&s);
	return 0;
}

static size_t make_good(uint8_t *data)
{
	struct ib_budget_header h = { .row_bytes = sizeof(struct ib_budget_row), .sent = ROWS,
				      .received = ROWS, .tick_hz = 1000000000 };

	memcpy(h.magic, IB_BUDGET_MAGIC, sizeof(h.magic));
	memcpy(data, &h, sizeof(h));
	for (uint64_t i = 0; i < 2 * ROWS; i++) {
		const struct ib_budget_row row = { .sequence = i % ROWS, .samples = 1,
						   .whole = i & 1, .age_ns = 100 };

		memcpy(data + sizeof(h) + i * sizeof(row), &row, sizeof(row));
	}
	return sizeof(h) + 2 * ROWS * sizeof(struct ib_budget_row);
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, runs = 0, stop_ns;
	static uint8_t data[SIZE_MAX_BYTES];

	random_state = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	for (size_t i = 0; i < ROWS; i++)
		samples[i] = (struct delivery_sample){ .sequence = i, .match = i,
						       .flags = SAMPLE_HAS_RECEIVED };
	stop_ns = clock_monotonic_ns_slow() + seconds * NSEC_PER_SEC;
	while (clock_monotonic_ns_slow() < stop_ns) {
		size_t size = make_good(data);

		/* Mostly of the same size, which is checked first. */
		for (uint64_t n = 1 + random_below(8); n > 0; n--) {
			if (random_below(8))
				data[random_below(size ? size : 1)] = (uint8_t)random_below(256);
			else
				size = mutate(data, size, sizeof(data));
		}
		LLVMFuzzerTestOneInput(data, size);
		runs++;
	}
	printf("%ju inputs\n", (uintmax_t)runs);
	return 0;
}
#endif

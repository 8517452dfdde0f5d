/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the messages that processes of a host relay to each other. Built plainly,
 * main() runs a bounded number of random mutations of valid messages (argument 1: runs,
 * argument 2: seed); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/roce/dispatch.h"
#include "wire/cm_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void deliver(const struct hca_gsi_address *from, const uint8_t *mad)
{
	struct cm_mad checked;

	if (from->interface > INT32_MAX ||
	    wire_cm_decode(mad, HCA_GSI_MAD_BYTES, &checked))
		abort();
}

static int send_answer(const struct hca_gsi_address *to, const uint8_t *mad)
{
	deliver(to, mad);
	return 0;
}

static const struct roce_dispatch_ops ops = { deliver, send_answer };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t mad[HCA_GSI_MAD_BYTES], again[ROCE_RELAY_BYTES];
	struct hca_gsi_address from;
	struct roce_dispatch d;
	int ret = roce_relay_decode(data, size, &from, mad);

	if (ret && ret != -EBADMSG)
		abort();
	if (ret)
		return 0;
	/* What was accepted says the same again. */
	roce_relay_encode(&from, mad, again);
	if (size != sizeof(again) || memcmp(data, again, size))
		abort();
	roce_dispatch_init(&d, &ops);
	atomic_store(&d.slot, 1);
	roce_dispatch_take(&d, &from, mad);
	roce_dispatch_close(&d);
	pthread_mutex_destroy(&d.lock);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	unsigned long runs = argc > 1 ? strtoul(argv[1], NULL, 0) : 100000;
	unsigned seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 1;

	printf("seed %u\n", seed);
	for (unsigned long run = 0; run < runs; run++) {
		size_t size = rand_r(&seed) % 8 ? ROCE_RELAY_BYTES :
						  (size_t)rand_r(&seed) % 400;
		struct hca_gsi_address from = { .source = { 0xfd }, .destination = { 0xfe } };
		uint8_t mad[HCA_GSI_MAD_BYTES], valid[ROCE_RELAY_BYTES];
		/* Exactly `size` bytes, so that a sanitizer sees overreading. */
		uint8_t *data = malloc(size ? size : 1);

		if (!data)
			return 1;
		for (size_t i = 0; i < sizeof(mad); i++)
			mad[i] = (uint8_t)rand_r(&seed);
		memcpy(mad, (uint8_t[]){ 1, 7, 2, 3 }, 4);
		mad[16] = 0;
		mad[17] = (uint8_t)(0x10 + rand_r(&seed) % 12);
		roce_relay_encode(&from, mad, valid);
		memset(data, 0, size);
		memcpy(data, valid, size < sizeof(valid) ? size : sizeof(valid));
		for (int flips = rand_r(&seed) % 3; size && flips > 0; flips--)
			data[(size_t)rand_r(&seed) % size] ^=
				(uint8_t)(1 << rand_r(&seed) % 8);
		LLVMFuzzerTestOneInput(data, size);
		free(data);
	}
	return 0;
}
#endif

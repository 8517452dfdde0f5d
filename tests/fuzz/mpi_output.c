/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of what programs of MPI leave for `busbar bench mpi`: rows of a table, times, marks,
 * captured packets.
 * Argument 1: seconds, argument 2: seed. With -DFUZZER and libFuzzer the first byte of an input
 * chooses what it is.
 */
#define MUTATE_BYTES "0123456789.,-+e#_t \n\r\t\0\x04\x06\xff"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/mpi/launch.h"
#include "bench/mpi/output.h"
#include "mutate.h"
#include "util/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const good[] = {
	"message_rate         1/s         3.5e+06  messages a second",
	"# t_begin t_half t_called t_done\n1000 1500 1100 1200\n2000 2500 2100 2200\n",
	"1234\n1235\n70000\n",
};
/* A section and a packet with options; little-endian. */
static const uint8_t capture[] = {
	0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0,
	6, 0, 0, 0, 112, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 56, 0, 0, 0, 200, 0, 0, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 0, 17,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0xb7, 0, 0, 0, 0, 0x04, 0,
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
	2, 0, 4, 0, 2, 0, 0, 0, 4, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 112, 0, 0, 0,
};
_Static_assert(sizeof(capture) == 28 + 112, "section and packet");
#define KINDS 4

static void use_times(const char *text, size_t size)
{
	FILE *f = size ? fmemopen((void *)text, size, "r") : NULL;
	struct mpi_times t;
	int64_t sum = 0;
	int ret;

	if (!f)
		return;
	ret = mpi_times_parse(f, &t);
	fclose(f);
	if (ret && ret != -EBADMSG)
		abort();
	if (!ret && (!t.rows || t.columns < 2 || t.columns > MPI_COLUMNS_MAX))
		abort();
	for (size_t i = 0; !ret && i < t.columns; i++)
		for (size_t row = 0; row < t.rows; row++)
			sum ^= t.values[i][row];
	mpi_times_free(&t);
	if (sum == 0x5eed)
		putchar(' ');
}

static void use_capture(const void *file, size_t size)
{
	struct mpi_packets p = { 0 };
	int ret = mpi_packets_parse(file, size, 0, UINT64_MAX, &p);

	if ((ret && ret != -EBADMSG) || p.sends > size)
		abort();
}

static void use_text(unsigned which, const char *text, size_t size)
{
	pid_t pids[4];
	struct mpi_row row;

	switch (which) {
	case 0:
		if (mpi_row_parse(text, &row) && (!*row.name || !*row.meaning))
			abort();
		break;
	case 1:
		use_times(text, size);
		break;
	case 3:
		use_capture(text, size);
		break;
	default:
		if (mpi_marks_parse(text, pids, 4) > 4)
			abort();
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* In memory of its own size, so that a sanitizer sees what is read behind it. */
	char *text = size ? malloc(size) : NULL;

	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	use_text(data[0] % KINDS, text, size - 1);
	free(text);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, runs = 0, stop_ns;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	static uint8_t data[1024];

	clock_init();
	random_state = seed;
	stop_ns = clock_monotonic_ns_slow() + seconds * NSEC_PER_SEC;
	while (clock_monotonic_ns_slow() < stop_ns) {
		unsigned which = (unsigned)random_below(KINDS);
		const void *from = which < 3 ? (const void *)good[which] : capture;
		size_t size = which < 3 ? strlen(good[which]) : sizeof(capture);

		memcpy(data + 1, from, size);
		for (uint64_t n = 1 + random_below(6); n > 0; n--)
			size = mutate(data + 1, size, sizeof(data) - 1);
		data[0] = (uint8_t)which;
		LLVMFuzzerTestOneInput(data, size + 1);
		runs++;
	}
	printf("seed %ju, %ju inputs\n", (uintmax_t)seed, (uintmax_t)runs);
	return runs < 10;
}
#endif

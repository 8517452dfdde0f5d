/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the folders that benchmarks leave behind: random changes to one of their
 * files. Argument 1: seconds, argument 2: seed. With -DFUZZER and libFuzzer the first byte
 * of an input chooses the file.
 */
#define MUTATE_BYTES "0123456789.,:-{}[]\"eE \n\0\x7f\x80\xff"
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/result/files.h"
#include "bench/result/result.h"
#include "bench/result/statistics.h"
#include "bench/result/verdicts.h"
#include "mutate.h"
#include "util/clock.h"
#include "util/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/tmp/busbar-fuzz-result-XXXXXX";
static const char *const names[] = { "cases/a/raw.bin", "cases/a/summary.json",
				     "cases/a/case.json", "run.json" };

static bool quiet(enum log_level level, const char *line)
{
	return true;
}

static void write_file(const char *name, const void *data, size_t size)
{
	char *path = files_path(dir, name);
	FILE *f = path ? fopen(path, "w") : NULL;

	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		abort();
	free(path);
}

static size_t read_file(const char *name, uint8_t *data, size_t room)
{
	char *path = files_path(dir, name);
	FILE *f = path ? fopen(path, "r") : NULL;
	size_t size;

	if (!f)
		abort();
	size = fread(data, 1, room, f);
	fclose(f);
	free(path);
	return size;
}

/* A run with one case. */
static void make_run(void)
{
	const struct result_options o = { .suite = "fuzz", .no_csv = true, .no_floor = true };
	const int64_t from[] = { 1, 2, RESULT_ABSENT }, to[] = { 10, INT64_MAX, 12 };
	const struct result_column columns[] = { { "from", "ns", from }, { "to", "ns", to } };
	/* Two latencies of one case, which a shape compares. */
	const struct result_latency latencies[] = { { "t_lat", "latency", "from", "to" },
						    { "t_lat_comp", "other", "from", "to" } };
	json_t *d = json_pack("{s:s, s:s, s:{s:s}}", "kind", "x", "scenario", "B1", "parameters",
			      "type", "RC");
	struct result_run *run;
	struct result_case *c;

	log_set_sink(quiet);
	if (!mkdtemp(dir) || result_run_open(dir, &o, &run) ||
	    result_case_begin(run, "a", d, &c) ||
	    result_case_rows(c, columns, 2, 3, latencies, 2) || result_case_end(c) ||
	    result_run_close(run))
		abort();
	json_decref(d);
}

static void use_case(struct result_read *c)
{
	const char *name;
	json_t *latency;
	int ret = result_read_rows(dir, c);

	if (ret && ret != -EBADMSG)
		abort();
	json_object_foreach(json_object_get(c->summary, "latencies"), name, latency) {
		struct statistics s;
		int64_t *values;
		size_t count;

		ret = result_read_latency(c, name, &values, &count);
		if (ret == -EBADMSG)
			continue;
		if (ret || count > c->rows)
			abort();
		statistics_of(values, count, 10, &s);
		free(values);
	}
}

static void use_run(void)
{
	struct result_folder f;
	int ret = result_folder_open(dir, &f);

	if (ret && ret != -EBADMSG)
		abort();
	if (!ret)
		json_decref(verdicts_of(&f));
	for (size_t i = 0; !ret && i < f.count; i++)
		use_case(&f.cases[i]);
	result_folder_close(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t good[4][4096];
	static size_t good_size[4];
	size_t which = size ? data[0] % 4 : 0;

	if (!good_size[0]) {
		make_run();
		for (int i = 0; i < 4; i++)
			good_size[i] = read_file(names[i], good[i], sizeof(good[i]));
	}
	if (!size)
		return 0;
	write_file(names[which], data + 1, size - 1);
	use_run();
	write_file(names[which], good[which], good_size[which]);
	return 0;
}

#ifndef FUZZER
int main(int argc, char **argv)
{
	uint64_t seconds = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, runs = 0, stop_ns;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	static uint8_t good[4][2048], data[4096];
	size_t sizes[4];

	clock_init();
	random_state = seed;
	LLVMFuzzerTestOneInput(NULL, 0);
	for (int i = 0; i < 4; i++)
		sizes[i] = read_file(names[i], good[i], sizeof(good[i]));
	stop_ns = clock_monotonic_ns_slow() + seconds * NSEC_PER_SEC;
	while (clock_monotonic_ns_slow() < stop_ns) {
		/* raw.bin is what is read byte by byte. */
		size_t which = random_below(2) ? 0 : random_below(4), size = sizes[which];

		memcpy(data + 1, good[which], size);
		for (uint64_t n = 1 + random_below(6); n > 0; n--)
			size = mutate(data + 1, size, sizeof(data) - 1);
		data[0] = (uint8_t)which;
		LLVMFuzzerTestOneInput(data, size + 1);
		runs++;
	}
	files_remove_dir(dir);
	printf("seed %ju, %ju inputs\n", (uintmax_t)seed, (uintmax_t)runs);
	return runs < 10;
}
#endif

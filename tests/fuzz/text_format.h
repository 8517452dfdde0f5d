/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzing of line formats: what any bytes must not do. A file that includes
 * this defines `format_cfgs` and `seeds` (both NULL terminated).
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address -DWITH_LIBFUZZER. Without, a
 * main() mutates the seeds for about a second; SECONDS and SEED in the
 * environment make it longer and another one. A failing input is printed.
 */
#ifndef TESTS_FUZZ_TEXT_FORMAT_H
#define TESTS_FUZZ_TEXT_FORMAT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/format.h"
#include "mutate.h"
#include "util/clock.h"

#define VALUES_MAX 32
#define SAMPLES_MAX 4
#define FORMATS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                             \
	do {                                                           \
		if (!(condition)) {                                    \
			fprintf(stderr, "failed: %s\n", #condition);   \
			print_input(data, size);                       \
			abort();                                       \
		}                                                      \
	} while (0)

static void print_input(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		fprintf(stderr, "\\x%02x", data[i]);
	fputc('\n', stderr);
}

static struct format *formats[FORMATS_MAX];
static struct sample *first[SAMPLES_MAX], *second[SAMPLES_MAX];

static struct sample *new_sample(void)
{
	struct sample *s = calloc(1, sizeof(*s) +
					     VALUES_MAX * sizeof(s->data[0]));

	if (!s)
		abort();
	s->capacity = VALUES_MAX;
	return s;
}

/* Kept until the process ends; the pointers stay reachable. */
static void set_up(void)
{
	static struct config *configs[FORMATS_MAX];
	struct signal_list *signals = signal_list_new(8, SIGNAL_FLOAT);

	for (unsigned i = 0; i < 8; i++)
		signals->signals[i].type = (enum signal_type)(i % 4);
	for (unsigned i = 0; format_cfgs[i]; i++)
		if (config_load_text("fuzz", format_cfgs[i],
				     strlen(format_cfgs[i]), &configs[i]) ||
		    format_new(&formats[i], configs[i], config_root(configs[i]),
			       NULL, signals))
			abort();
	signal_list_put(signals);
	for (unsigned i = 0; i < SAMPLES_MAX; i++) {
		first[i] = new_sample();
		second[i] = new_sample();
	}
}

/* What was understood must survive being written and read again. */
static void check_round_trip(struct format *f, int n, const uint8_t *data,
			     size_t size)
{
	static char buf[SAMPLES_MAX * (200 + VALUES_MAX * 80)];
	size_t used, taken;

	REQUIRE(f->type->print(f, buf, sizeof(buf), &used, first,
			       (unsigned)n) == n);
	REQUIRE(f->type->scan(f, buf, used, &taken, second, (unsigned)n) == n);
	REQUIRE(taken == used);
	for (int i = 0; i < n; i++) {
		const struct sample *a = first[i], *b = second[i];

		REQUIRE(a->length == b->length && a->flags == b->flags);
		REQUIRE(!(a->flags & SAMPLE_HAS_SEQUENCE) ||
			a->sequence == b->sequence);
		REQUIRE(!(a->flags & SAMPLE_HAS_ORIGIN) ||
			!memcmp(&a->origin, &b->origin, sizeof(a->origin)));
		REQUIRE(!(a->flags & SAMPLE_HAS_RECEIVED) ||
			!memcmp(&a->received, &b->received, sizeof(a->received)));
		REQUIRE(!memcmp(a->data, b->data, a->length * sizeof(a->data[0])));
	}
}

static void scan_all(struct format *f, bool repeat, const uint8_t *data,
		     size_t size)
{
	const char *at = (const char *)data;
	size_t left = size;

	if (f->type->reset)
		f->type->reset(f);
	for (;;) {
		size_t used = SIZE_MAX;
		int n = f->type->scan(f, at, left, &used, first, SAMPLES_MAX);

		REQUIRE(used <= left);
		REQUIRE(n == -EBADMSG || (n >= 0 && n <= SAMPLES_MAX));
		/* Either there is progress, or nothing more to come. */
		REQUIRE(n == 0 || used > 0);
		REQUIRE(n >= 0 || format_error(f)[0]);
		for (int i = 0; i < n; i++)
			REQUIRE(first[i]->length <= VALUES_MAX);
		if (n == 0)
			return;
		if (n > 0 && repeat)
			check_round_trip(f, n, data, size);
		at += used;
		left -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size shows every read beyond the end. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!formats[0])
		set_up();
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	for (unsigned i = 0; formats[i]; i++)
		/* Plain recordings carry less than samples can hold. */
		scan_all(formats[i], !strstr(format_cfgs[i], "plain"), copy, size);
	free(copy);
	return 0;
}

#ifndef WITH_LIBFUZZER
int main(void)
{
	const char *seconds = getenv("SECONDS"), *seed = getenv("SEED");
	uint64_t stop_ns, runs = 0;
	unsigned count = 0;

	clock_init();
	while (seeds[count])
		count++;
	random_state = seed ? strtoull(seed, NULL, 0) : 1;
	stop_ns = clock_monotonic_ns_slow() +
		  (seconds ? strtoull(seconds, NULL, 0) : 1) * NSEC_PER_SEC;
	while (clock_monotonic_ns_slow() < stop_ns) {
		uint8_t data[2048];
		const char *from = seeds[random_below(count)];
		size_t size = strlen(from);

		memcpy(data, from, size);
		for (uint64_t n = random_below(8); n > 0; n--)
			size = mutate(data, size, sizeof(data));
		LLVMFuzzerTestOneInput(data, size);
		runs++;
	}
	printf("%ju inputs\n", (uintmax_t)runs);
	return 0;
}
#endif

#endif

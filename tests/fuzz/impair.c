/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the settings of simulated faults: whatever the text, it is taken and
 * in range, or one line names what is wrong. Built plainly, main() runs mutations of
 * valid texts for a bounded time (SECONDS in the environment, 0.3 without); built with
 * -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#define MUTATE_BYTES "0123456789.,=+-e%nusmGbitkhKM \t\n\xff"
#include "mutate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "transport/carrier/impair.h"

#define HOUR_NS (UINT64_C(3600) * 1000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

static void check_range(const struct impair_params *p)
{
	const double shares[] = { p->loss, p->duplicate, p->reorder, p->corrupt,
				  p->cut, p->reset, p->stall };

	for (unsigned i = 0; i < sizeof(shares) / sizeof(*shares); i++)
		must(shares[i] >= 0 && shares[i] <= 1);
	must(p->delay_ns <= HOUR_NS && p->jitter_ns <= HOUR_NS && p->gap_ns <= HOUR_NS);
	must(p->rate_bps <= UINT64_C(1000000000000000));
	must(p->pause_ns <= HOUR_NS && p->after_bytes <= UINT64_C(1) << 50);
}

/* Nothing that can be set makes a decision overflow or fall back in time. */
static void use(const struct impair_params *p, uint64_t seed)
{
	struct impair_lane lane;
	struct impair_fate fate;

	impair_lane_init(&lane, seed);
	impair_lane_set(&lane, IMPAIR_ALL_CLASSES, p);
	for (unsigned i = 0; i < 8; i++) {
		impair_decide(&lane, i, 1500, 1000 * i, &fate);
		must(fate.copies <= 2);
		for (unsigned k = 0; k < fate.copies; k++)
			must(fate.copy[k].due_ns >= 1000 * i);
	}
	for (unsigned i = 0; i < 8; i++) {
		struct impair_stream_fate s;

		impair_decide_stream(&lane, 2 + i, 1000 * i, &s);
		must(s.due_ns >= 1000 * i);
		must(s.end == IMPAIR_NO_END || (s.end_at > 0 && s.end_at < 2 + i));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct impair_settings s, was;
	char *text = malloc(size + 1), error[240];
	int err;

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&s, 0x77, sizeof(s));
	memset(error, 'x', sizeof(error));
	was = s;
	err = impair_parse(text, &s, error, sizeof(error));
	if (err) {
		must(err == -EINVAL && !memcmp(&s, &was, sizeof(s)));
		must(memchr(error, '\0', sizeof(error)) && strchr(error, ':'));
		for (const char *c = error; *c; c++)
			must(*c >= ' ' && *c < 0x7f);
	} else {
		check_range(&s.out);
		check_range(&s.in);
		must(memchr(s.events, '\0', sizeof(s.events)));
		use(&s.out, s.seed);
		use(&s.in, s.seed);
	}
	free(text);
	return 0;
}

#ifndef FUZZER
static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(void)
{
	static const char *const texts[] = {
		("loss=0.01,dup=0.01,reorder=0.05,delay=100us,jitter=20us,rate=1Gbit,"
		 "corrupt=0.001,seed=7"),
		"in.loss=1%, in.delay = 1.5 ms, partition=1, gap=3600s",
		"cut=1%,after=64k,reset=0.1,stall=1%,pause=10ms,in.cut=1",
		"events=/tmp/file.events,loss=1%",
		"rate=1000000Gbit,in.rate=1bit,seed=18446744073709551615",
		"",
	};
	const char *seconds = getenv("SECONDS");
	double end = now() + (seconds ? atof(seconds) : 0.3);
	uint8_t data[512];

	for (unsigned run = 0; run % 64 || now() < end; run++) {
		const char *text = texts[random_below(sizeof(texts) / sizeof(*texts))];
		size_t size = strlen(text);

		memcpy(data, text, size);
		for (uint64_t n = random_below(6); n; n--)
			size = mutate(data, size, sizeof(data));
		LLVMFuzzerTestOneInput(data, size);
	}
	return 0;
}
#endif

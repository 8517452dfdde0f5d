/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of profiles of adapters with regions on demand: whatever the text, it is taken and in
 * range, or one line names what is wrong; and the model plays any events with it. Built plainly,
 * main() runs mutations of the built-in profiles for a bounded time (SECONDS in the environment,
 * 0.3 without); built with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#define MUTATE_BYTES "0123456789=# onfus_\t\n\r\xff"
#include "mutate.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "engine/paging/paging.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool good)
{
	if (!good)
		abort();
}

/* Each fault that was begun is served once, and behind it the page is there. */
static void play(const struct paging_profile *profile)
{
	struct paging *p = paging_open(profile);
	struct paging_range one = { .region = 1, .pages = 1 };
	unsigned began = 0, served = 0;
	struct paging_event event;
	uint64_t now_ns = 0;

	must(p);
	for (unsigned i = 0; i < 32; i++) {
		one.first = random_below(4);
		began += !paging_use(p, 1 + i, PAGING_REQUESTER, &one, now_ns);
		now_ns += random_below(1000000);
		while (paging_take(p, now_ns, &event))
			served++;
	}
	while (paging_next_ns(p) != UINT64_MAX) {
		must(paging_take(p, paging_next_ns(p), &event));
		served++;
	}
	must(served == began);
	for (one.first = 0; one.first < 4; one.first++)
		if (!paging_use(p, 99, PAGING_RESPONDER, &one, now_ns))
			must(paging_next_ns(p) != UINT64_MAX);
	paging_close(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct paging_profile profile, was;
	char *text = malloc(size + 1), why[160];
	int err;

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	memset(&profile, 0, sizeof(profile));
	was = profile;
	memset(why, 'x', sizeof(why));
	err = paging_profile_parse(text, &profile, why, sizeof(why));
	if (err) {
		must(err == -EINVAL && !memcmp(&profile, &was, sizeof(was)));
		must(memchr(why, '\0', sizeof(why)) && !strncmp(why, "line ", 5));
	} else {
		must(profile.timeout_floor <= 31);
		for (unsigned code = 1; code < 32; code++)
			must(profile.timeout_permille == 0 ||
			     paging_timeout_ns(&profile, (uint8_t)code));
		play(&profile);
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
	static const char *const names[] = { "connectx4", "connectx5", "connectx6", "ideal" };
	const char *seconds = getenv("SECONDS");
	double end = now() + (seconds ? atof(seconds) : 0.3);
	uint8_t data[2048];

	for (unsigned run = 0; run % 64 || now() < end; run++) {
		const char *text = paging_profile_text(names[random_below(4)]);
		size_t size = strlen(text);

		memcpy(data, text, size);
		for (uint64_t n = random_below(4); n; n--)
			size = mutate(data, size, sizeof(data));
		LLVMFuzzerTestOneInput(data, size);
	}
	return 0;
}
#endif

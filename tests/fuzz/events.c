/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of files of events at packet numbers: whatever the text, it is taken and in range,
 * or one line names what is wrong; and any packets may then meet the events. Built plainly, main()
 * runs mutations of valid texts for a bounded time (SECONDS in the environment, 0.3 without); built
 * with -fsanitize=fuzzer and -DFUZZER, libFuzzer drives it.
 */
#define MUTATE_BYTES "0123456789-x#nusm \t\r\n\xff"
#include "mutate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "transport/packet/event/watch.h"

#define HOUR_NS (UINT64_C(3600) * 1000000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct packet_event_rules rules, was;

static void must(bool good)
{
	if (!good)
		abort();
}

static void check(const struct packet_event_rule *r)
{
	must(r->action < PACKET_EVENT_ACTIONS && r->class < PACKET_EVENT_CLASSES);
	must(r->direction <= CARRIER_IN && r->line >= 1);
	must(r->from >= 1 && r->from <= r->to);
	must(r->delay_ns <= HOUR_NS && !r->delay_ns == (r->action != PACKET_EVENT_DELAY));
	must(r->whose == PACKET_EVENT_ANY_QP || (r->qp >= 1 && r->qp <= 0xffffff));
	must((r->which == PACKET_EVENT_AGAIN) == (r->again > 0));
}

static void check_error(const char *error, size_t bytes)
{
	must(memchr(error, '\0', bytes) && strchr(error, ':'));
	for (const char *c = error; *c; c++)
		must(*c >= ' ' && *c < 0x7f);
}

/* Shows packets that the input describes to the rules. */
static void play(const uint8_t *data, size_t size)
{
	struct packet_events *e = packet_events_open();
	char line[PACKET_EVENT_LINE_BYTES];
	uint64_t now_ns = 1;

	must(e);
	packet_events_set(e, &rules, now_ns);
	for (size_t i = 0; i + 4 <= size; now_ns += data[i], i += 4) {
		const struct packet_frame f = {
			.service = data[i] >> 6,
			.rc = { .op = (uint8_t)(data[i] % (RC_CNP + 1)), .flags = data[i + 1],
				.syndrome = data[i + 3] & 0x7f, .psn = data[i + 2] % 16u },
		};
		struct carrier_fault_verdict v = { 0 };

		packet_events_see(e, data[i + 3] >> 7, data[i + 2] >> 4, &f, now_ns, &v);
		must(v.delay_ns <= HOUR_NS * PACKET_EVENT_RULES_MAX);
	}
	for (unsigned i = 0; i < packet_events_tell(e, i, line, sizeof(line)); i++)
		must(memchr(line, '\0', sizeof(line)) && strstr(line, "sent_again="));
	packet_events_close(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char error[240];
	int err;

	memset(error, 'x', sizeof(error));
	was = rules;
	err = packet_event_parse("file", (const char *)data, size, &rules, error, sizeof(error));
	if (err) {
		must(err == -EINVAL && !memcmp(&rules, &was, sizeof(rules)));
		check_error(error, sizeof(error));
		return 0;
	}
	must(rules.count <= PACKET_EVENT_RULES_MAX);
	for (unsigned i = 0; i < rules.count; i++)
		check(&rules.rule[i]);
	play(data, size);
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
		("drop packet 3 of qp any out read-request\n"
		 "delay packet 5 by 2ms of qp 0x12 in ack # late\n"
		 "mark packets 10-20 of qp nth 2 out each\n"),
		("corrupt packet 1 of qp 18 in write again 2\n"
		 "duplicate packets 7-4294967295 of qp any in cnp first"),
		"drop packets 1-100 of qp any in\ndrop packets 1-100 of qp any out again 1\n",
		"# nothing\n\n",
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

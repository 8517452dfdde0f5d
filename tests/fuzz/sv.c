/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of sampled values from the network: each is refused with a reason or taken apart within
 * its bounds; and what was taken apart can be written again and means the same then.
 *
 * usage: fuzz_sv [RUNS [SEED]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "wire/grid/sv.h"

#define MUTATE_BYTES "\x00\x01\x02\x04\x08\x30\x60\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\xa2\xff"
#include "drive.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void lies_in(const struct ber *b, const uint8_t *data, size_t size)
{
	must(!b->len || (b->at >= data && b->at + b->len <= data + size));
}

static bool same_bytes(const struct ber *a, const struct ber *b)
{
	return a->len == b->len && (!a->len || !memcmp(a->at, b->at, a->len));
}

static void must_be_same(const struct sv_asdu *a, const struct sv_asdu *b)
{
	must(same_bytes(&a->id, &b->id) && same_bytes(&a->dataset, &b->dataset) &&
	     same_bytes(&a->values, &b->values));
	must(a->count == b->count && a->revision == b->revision && a->synch == b->synch);
	must(a->has_time == b->has_time && a->has_rate == b->has_rate && a->rate == b->rate &&
	     a->has_mode == b->has_mode && a->mode == b->mode);
	must(a->time.seconds == b->time.seconds && a->time.nanoseconds == b->time.nanoseconds &&
	     a->time.nanoseconds < 1000000000 &&
	     a->time.leap_seconds_known == b->time.leap_seconds_known &&
	     a->time.clock_failure == b->time.clock_failure &&
	     a->time.not_synchronized == b->time.not_synchronized &&
	     a->time.accuracy == b->time.accuracy);
	must(a->has_grandmaster == b->has_grandmaster &&
	     !memcmp(a->grandmaster, b->grandmaster, sizeof(a->grandmaster)));
}

/* The ASDUs of a body; -1: it is refused, with a reason. */
static int take(const struct ber *body, struct sv_asdu asdus[SV_ASDUS_MAX])
{
	struct sv_message m;
	struct sv_asdu a;
	const char *why = sv_decode(body, &m);
	int count = 0, ret;

	if (why)
		return -1;
	while ((ret = sv_next(&m, &a, &why)) > 0) {
		must(count < SV_ASDUS_MAX);
		asdus[count++] = a;
	}
	must(ret == 0 || (ret == -EPROTO && why));
	return ret ? -1 : count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sv_asdu asdus[SV_ASDUS_MAX], again[SV_ASDUS_MAX];
	static uint8_t buffer[70000];
	struct apdu head, head_again;
	uint8_t *at;
	size_t len;
	int count;

	if (apdu_decode(data, size, &head))
		return 0;
	lies_in(&head.body, data, size);
	count = take(&head.body, asdus);
	if (count < 0)
		return 0;
	must(count > 0);
	for (int i = 0; i < count; i++) {
		lies_in(&asdus[i].id, data, size);
		lies_in(&asdus[i].dataset, data, size);
		lies_in(&asdus[i].values, data, size);
	}
	at = sv_encode(&head, asdus, (unsigned)count, buffer, sizeof(buffer), &len);
	must(at && at >= buffer && at + len == buffer + sizeof(buffer));
	must(!apdu_decode(at, len, &head_again));
	must(head.appid == head_again.appid && head.simulation == head_again.simulation &&
	     head.reserved1 == head_again.reserved1 && head.reserved2 == head_again.reserved2);
	must(take(&head_again.body, again) == count);
	for (int i = 0; i < count; i++)
		must_be_same(&asdus[i], &again[i]);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 600

static size_t make(uint8_t *bytes, size_t capacity)
{
	const struct apdu head = { .appid = (uint16_t)random_below(3), .simulation = random_below(2) };
	unsigned count = 1 + (unsigned)random_below(4);
	struct sv_asdu asdus[4];
	uint8_t values[32], buffer[SIZE_MAX_BYTES], *at;
	size_t len;

	memset(values, 0x87, sizeof(values));
	for (unsigned i = 0; i < count; i++)
		asdus[i] = (struct sv_asdu){
			.id = { values, random_below(6) },
			.dataset = { values, random_below(6) },
			.count = (uint16_t)random_below(4000), .revision = (uint32_t)random_below(3),
			.synch = (uint8_t)random_below(3),
			.has_time = random_below(2), .time = { .seconds = 5, .nanoseconds = 999999999 },
			.has_rate = random_below(2), .rate = 4000,
			.has_mode = random_below(2), .mode = (uint16_t)random_below(3),
			.has_grandmaster = random_below(2),
			.values = { values, random_below(sizeof(values)) },
		};
	at = sv_encode(&head, asdus, count, buffer, sizeof(buffer), &len);
	must(at);
	memcpy(bytes, at, len);
	return mutate_times(bytes, len, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SIZE_MAX_BYTES, make);
}
#endif

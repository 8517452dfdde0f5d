/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of GOOSE from the network: each is refused with a reason or taken apart within its
 * bounds; and what was taken apart can be written again and means the same then.
 *
 * usage: fuzz_goose [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "wire/grid/goose.h"

#define MUTATE_BYTES "\x00\x01\x02\x03\x05\x08\x09\x0b\x61\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89\x8a\x8c\x90\x91\xa1\xa2\xab\xff"
#include "drive.h"

#define VALUES_MAX 1024 /* of all depths together */

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

static bool same_time(const struct utc_time *a, const struct utc_time *b)
{
	return a->seconds == b->seconds && a->nanoseconds == b->nanoseconds &&
	       a->nanoseconds < 1000000000 && a->leap_seconds_known == b->leap_seconds_known &&
	       a->clock_failure == b->clock_failure &&
	       a->not_synchronized == b->not_synchronized && a->accuracy == b->accuracy;
}

static bool is_group(const struct goose_value *v)
{
	return v->type == GOOSE_ARRAY || v->type == GOOSE_STRUCTURE;
}

static void must_mean_the_same(struct ber a, struct ber b)
{
	struct goose_value x, y;
	int ret;

	while ((ret = goose_next(&a, &x)) > 0) {
		must(goose_next(&b, &y) > 0 && x.type == y.type);
		switch (x.type) {
		case GOOSE_BOOLEAN:
			must(x.boolean == y.boolean);
			break;
		case GOOSE_INTEGER:
			must(x.integer == y.integer);
			break;
		case GOOSE_UNSIGNED:
			must(x.number == y.number);
			break;
		case GOOSE_BIT_STRING:
			must(x.bits == y.bits && x.number == y.number);
			break;
		case GOOSE_FLOAT:
			/* The quiet bit of a NaN may be set by a conversion. */
			must(x.bits == y.bits && (x.real == y.real || x.real != x.real));
			break;
		case GOOSE_UTC_TIME:
			must(same_time(&x.time, &y.time));
			break;
		case GOOSE_ARRAY:
		case GOOSE_STRUCTURE:
			must_mean_the_same(x.members, y.members);
			break;
		default:
			must(same_bytes(&x.bytes, &y.bytes));
		}
	}
	must(ret == 0 && goose_next(&b, &y) == 0);
}

/* Takes values and the members of groups for encoding; -1: there are too many. Groups have their
 * members behind them. */
static int take(struct ber values, struct goose_value list[], unsigned *used, const uint8_t *data,
		size_t size)
{
	struct goose_value v;
	unsigned first = *used, count = 0;
	struct ber rest = values;

	for (; goose_next(&rest, &v) > 0; count++)
		;
	if (first + count > VALUES_MAX)
		return -1;
	*used += count;
	for (unsigned i = 0; i < count; i++) {
		int parts;

		must(goose_next(&values, &v) > 0);
		list[first + i] = v;
		if (v.type >= GOOSE_OCTET_STRING && v.type < GOOSE_UTC_TIME)
			lies_in(&v.bytes, data, size);
		if (!is_group(&v))
			continue;
		list[first + i].parts = list + *used;
		parts = take(v.members, list, used, data, size);
		if (parts < 0)
			return -1;
		list[first + i].part_count = (unsigned)parts;
	}
	return (int)count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct goose_value list[VALUES_MAX];
	static uint8_t buffer[70000];
	struct apdu head, head_again;
	struct goose g, again;
	unsigned used = 0;
	uint8_t *at;
	size_t len;
	int count;

	if (apdu_decode(data, size, &head))
		return 0;
	lies_in(&head.body, data, size);
	if (goose_decode(&head.body, &g))
		return 0;
	lies_in(&g.reference, data, size);
	lies_in(&g.dataset, data, size);
	lies_in(&g.id, data, size);
	lies_in(&g.values, data, size);
	count = take(g.values, list, &used, data, size);
	if (count < 0)
		return 0;
	must((unsigned)count == g.count);
	at = goose_encode(&head, &g, list, (unsigned)count, buffer, sizeof(buffer), &len);
	must(at && at >= buffer && at + len == buffer + sizeof(buffer));
	must(!apdu_decode(at, len, &head_again) && !goose_decode(&head_again.body, &again));
	must(head.appid == head_again.appid && head.simulation == head_again.simulation &&
	     head.reserved1 == head_again.reserved1 && head.reserved2 == head_again.reserved2);
	must(same_bytes(&g.reference, &again.reference) && same_bytes(&g.dataset, &again.dataset) &&
	     same_bytes(&g.id, &again.id) && same_time(&g.time, &again.time));
	must(g.allowed_live_ms == again.allowed_live_ms && g.state == again.state &&
	     g.sequence == again.sequence && g.revision == again.revision &&
	     g.simulation == again.simulation && g.count == again.count &&
	     g.needs_commissioning == again.needs_commissioning);
	must_mean_the_same(g.values, again.values);
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 600

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const enum goose_type types[] = {
		GOOSE_BOOLEAN, GOOSE_INTEGER, GOOSE_UNSIGNED, GOOSE_BIT_STRING, GOOSE_FLOAT,
		GOOSE_OCTET_STRING, GOOSE_UTC_TIME, GOOSE_BINARY_TIME, GOOSE_STRUCTURE,
	};
	const struct apdu head = { .appid = (uint16_t)random_below(3), .simulation = random_below(2) };
	const uint8_t text[] = "reference";
	unsigned count = (unsigned)random_below(9);
	struct goose_value values[8], part = { .type = GOOSE_BOOLEAN, .boolean = true };
	uint8_t buffer[SIZE_MAX_BYTES], *at;
	struct goose g = {
		.reference = { text, 1 + random_below(8) }, .dataset = { text, 1 + random_below(8) },
		.id = { text, random_below(8) }, .allowed_live_ms = (uint32_t)random_below(3000),
		.time = { .seconds = 5, .nanoseconds = 999999999 },
		.state = (uint32_t)random_below(300), .sequence = (uint32_t)random_below(300),
	};
	size_t len;

	for (unsigned i = 0; i < count; i++) {
		struct goose_value *v = &values[i];

		*v = (struct goose_value){ .type = types[random_below(sizeof(types) / sizeof(*types))] };
		if (v->type == GOOSE_FLOAT) {
			v->bits = random_below(2) ? 32 : 64;
			v->real = 1.5;
		} else if (v->type == GOOSE_BIT_STRING) {
			v->bits = (unsigned)random_below(65);
		} else if (v->type == GOOSE_STRUCTURE) {
			v->parts = &part;
			v->part_count = (unsigned)random_below(2);
		} else if (v->type == GOOSE_BINARY_TIME) {
			v->bytes = (struct ber){ text, random_below(2) ? 4 : 6 };
		} else if (v->type == GOOSE_OCTET_STRING) {
			v->bytes = (struct ber){ text, random_below(8) };
		} else if (v->type != GOOSE_UTC_TIME) {
			v->number = random_below(2) ? random_below(UINT64_MAX) : random_below(200);
			if (v->type == GOOSE_BOOLEAN)
				v->boolean = v->number & 1;
		}
	}
	at = goose_encode(&head, &g, values, count, buffer, sizeof(buffer), &len);
	must(at);
	memcpy(bytes, at, len);
	return mutate_times(bytes, len, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SIZE_MAX_BYTES, make);
}
#endif

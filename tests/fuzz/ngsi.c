/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of the answers of context brokers: each makes a sample, or none with a reason; a
 * sample that is printed and read again is the same.
 *
 * usage: fuzz_ngsi [RUNS [SEED]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MUTATE_BYTES "{}[]\":,.-+0123456789eETZntrufalsxX\\ \0\x7f\xff"
#include "drive.h"
#include "gateway/node/ngsi/entity.h"
#include "util/container_of.h"

#define VALUES 4

static struct ngsi_attribute attributes[VALUES] = {
	{ "u", NULL, NULL }, { "n", NULL, NULL }, { "on", NULL, NULL }, { "z", NULL, NULL },
};

static void must(bool good)
{
	if (!good)
		abort();
}

static struct signal_list *make_signals(void)
{
	struct signal_list *l = signal_list_new(VALUES, SIGNAL_FLOAT);

	must(l);
	for (unsigned i = 0; i < VALUES; i++)
		l->signals[i].type = (enum signal_type)i;
	atomic_store(&l->lasting, true);
	return l;
}

static int scan(const struct ngsi_entity *e, struct signal_list *signals, const void *data,
		size_t size, struct sample *s)
{
	char why[NGSI_WHY] = "";
	int ret;

	memset(s, 0, sizeof(*s) + VALUES * sizeof(s->data[0]));
	s->capacity = VALUES;
	ret = ngsi_entity_scan(e, signals, data, size, s, why);
	must(ret == 0 || ret == 1 || ((ret == -EBADMSG || ret == -EPROTO) && *why));
	must(s->length == VALUES && (!(s->flags & SAMPLE_HAS_ORIGIN) ||
				     (s->origin.tv_nsec >= 0 && s->origin.tv_nsec < 1000000000)));
	return ret;
}

/* A sample and its values. */
union room {
	struct sample s;
	char bytes[sizeof(struct sample) + VALUES * sizeof(union signal_data)];
};

/* The printed attributes, as the broker would answer them. */
static void again(const struct ngsi_entity *e, struct signal_list *signals, const struct sample *s)
{
	static union room other;
	char text[4096] = "{\"id\":\"e\",", why[NGSI_WHY];
	size_t len = strlen(text), used = 0;
	unsigned left_out = 0;
	int n = ngsi_entity_print(e, signals, s, text + len - 1, sizeof(text) - len, &used, &left_out,
				  why);

	must(n == 1 || n == -EBADMSG);
	if (n != 1 || left_out)
		return;
	must(text[len - 1] == '{');
	text[len - 1] = ',';
	must(scan(e, signals, text, len - 1 + used, &other.s) == 1);
	must(!memcmp(other.s.data, s->data, VALUES * sizeof(s->data[0])));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static union room room;
	static struct signal_list *signals;
	struct ngsi_entity e = {
		.id = "e", .type = "t", .timestamp = true, .sequence = true,
		.in = { attributes, VALUES }, .out = { attributes, VALUES },
	};

	if (!signals)
		signals = make_signals();
	for (int ld = 0; ld < 2; ld++) {
		e.ld = ld;
		if (scan(&e, signals, data, size, &room.s) == 1)
			again(&e, signals, &room.s);
	}
	return 0;
}

#ifndef FUZZER
static const char *const valid[] = {
	("{\"id\":\"e\",\"u\":{\"type\":\"Number\",\"value\":1.5,\"metadata\":{\"timestamp\":{\"value\":"
	"\"2026-01-31T12:00:00.123456Z\"},\"sequence\":{\"value\":7}}},\"n\":{\"value\":-3},"
	"\"on\":{\"value\":true},\"z\":{\"value\":{\"real\":1,\"imag\":-2.5}}}"),
	("{\"id\":\"e\",\"u\":{\"value\":\"1e5\",\"observedAt\":\"2026-01-31T12:00:00+01:30\",\"sequence\":"
	"{\"value\":9e3}},\"n\":{\"value\":\"8\"},\"on\":{\"value\":0},\"z\":{\"value\":{\"real\":1,\"imag\":2}}}"),
	"{\"id\":\"e\"}",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	const char *text = valid[random_below(ARRAY_SIZE(valid))];

	memcpy(bytes, text, strlen(text));
	return mutate_times(bytes, strlen(text), capacity, random_below(5));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 50000, 2048, make);
}
#endif

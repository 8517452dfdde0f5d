/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target: scan() of the format that the first argument (or FORMAT in the
 * environment) names or describes as JSON. The inputs are what the format itself
 * wrote, with damage; they are read as a stream and as a message. Behind each message
 * a valid one of another source is read, by the same reader and by one of its own:
 * both must take it alike, whatever came before.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address -DWITH_LIBFUZZER. Without, a
 * main() works for about a second; SECONDS and SEED in the environment make it
 * longer and another one. A failing input is printed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/format.h"
#include "mutate.h"
#include "util/clock.h"
#include "util/log.h"

#define VALUES_MAX 16
#define SAMPLES_MAX 4
#define INPUT_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                             \
	do {                                                           \
		if (!(condition)) {                                    \
			fprintf(stderr, "failed: %s\n", #condition);   \
			print_input(data, size);                       \
			abort();                                       \
		}                                                      \
	} while (0)

static struct format *format, *apart; /* `apart` reads the other source alone */
static bool plain; /* recordings of other programs */
static char valid[4096];
static size_t valid_size;
static struct sample *made[SAMPLES_MAX], *first[SAMPLES_MAX], *second[SAMPLES_MAX];

static void print_input(const uint8_t *data, size_t size)
{
	fprintf(stderr, "%s of %s: ", format->message ? "message" : "stream",
		format->type->name);
	for (size_t i = 0; i < size; i++)
		fprintf(stderr, "\\x%02x", data[i]);
	fputc('\n', stderr);
}

static struct sample *new_sample(void)
{
	struct sample *s = calloc(1, sizeof(*s) +
					     VALUES_MAX * sizeof(s->data[0]));

	if (!s)
		abort();
	s->capacity = VALUES_MAX;
	return s;
}

static struct format *new_format(struct config *c, struct signal_list *l)
{
	struct format *f;

	if (format_new(&f, c, json_object_get(config_root(c), "format"), NULL, l))
		abort();
	return f;
}

/* Kept until the process ends; the pointers stay reachable. */
static void set_up(const char *name)
{
	static struct config *config;
	static char text[300];
	struct signal_list *signals = signal_list_new(8, SIGNAL_FLOAT);
	struct format *any;
	unsigned types;

	snprintf(text, sizeof(text), "{ \"format\": %s%s%s }",
		 *name == '{' ? "" : "\"", name, *name == '{' ? "" : "\"");
	if (config_load_text("fuzz", text, strlen(text), &config))
		abort();
	any = new_format(config, NULL);
	types = any->types;
	format_destroy(any);
	/* All types that the format holds, in turn. */
	for (unsigned i = 0, type = 0; i < 8; type++) {
		if (types & FORMAT_TYPE(type % 4))
			signals->signals[i++].type = (enum signal_type)(type % 4);
	}
	format = new_format(config, signals);
	apart = new_format(config, signals);
	apart->message = true;
	plain = strstr(name, "plain");
	for (unsigned i = 0; i < SAMPLES_MAX; i++) {
		made[i] = new_sample();
		first[i] = new_sample();
		second[i] = new_sample();
	}
	first[0]->signals = signals;
	first[0]->length = format->type->carries.values_max == 1 ? 1 : 8;
	first[0]->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	first[0]->sequence = 7;
	if (apart->type->print(apart, valid, sizeof(valid), &valid_size, first, 1) != 1)
		abort();
	signal_list_put(signals);
}

/* What the other source says, behind any message of this one. */
static void scan_other_source(const uint8_t *data, size_t size)
{
	size_t used;

	REQUIRE(apart->type->scan(apart, valid, valid_size, &used, second, 1) == 1);
	REQUIRE(format->type->scan(format, valid, valid_size, &used, first, 1) == 1);
	/* What is left is the end of an array. */
	REQUIRE(format->type->scan(format, valid + used, valid_size - used, &used,
				   &first[1], 1) == 0);
	REQUIRE(first[0]->length == second[0]->length);
	REQUIRE(first[0]->flags == second[0]->flags);
	REQUIRE(first[0]->signals == second[0]->signals);
	REQUIRE(!memcmp(first[0]->data, second[0]->data,
			first[0]->length * sizeof(first[0]->data[0])));
}

/* What the format's resolution lets through. */
static void require_same_time(struct timespec a, struct timespec b,
			      const uint8_t *data, size_t size)
{
	long step = (long)format->type->carries.time_step_ns;

	if (step > 1 && (a.tv_nsec % step || a.tv_sec < 0 || a.tv_sec >> 40))
		return;
	REQUIRE(a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec);
}

/* json.reserve keeps time and sequence number with each value. */
static bool is_empty(const struct sample *s)
{
	if (!s->length && !strcmp(format->type->name, "json.reserve"))
		return true;
	return !s->length && !(s->flags & (SAMPLE_HAS_SEQUENCE |
					   SAMPLE_HAS_ORIGIN |
					   SAMPLE_HAS_RECEIVED));
}

/* What was understood must survive being written and read again. */
static void check_round_trip(unsigned n, const uint8_t *data, size_t size)
{
	const struct format_carries *c = &format->type->carries;
	static char buf[SAMPLES_MAX * (600 + VALUES_MAX * 400)];
	size_t used, taken;

	/* Columns of any order and less than a sample holds. */
	if (plain)
		return;
	for (unsigned i = 0; i < n; i++) {
		const struct sample *a = first[i], *b = second[i];

		/* Nothing stands for a sample without anything. */
		if (is_empty(a) || (c->values_max && a->length > c->values_max) ||
		    (a->signals && !(c->traits & FORMAT_SELF_DELIMITING) &&
		     a->length != a->signals->count && !format->message))
			continue;
		REQUIRE(format->type->print(format, buf, sizeof(buf), &used,
					    &first[i], 1) == 1);
		REQUIRE(format->type->scan(format, buf, used, &taken,
					   &second[i], 1) == 1);
		REQUIRE(a->length == b->length);
		REQUIRE(((a->flags ^ b->flags) & c->flags) == 0);
		REQUIRE(!(a->flags & c->flags & SAMPLE_HAS_SEQUENCE) ||
			a->sequence == b->sequence);
		if (a->flags & c->flags & SAMPLE_HAS_ORIGIN)
			require_same_time(a->origin, b->origin, data, size);
		if (a->flags & c->flags & SAMPLE_HAS_RECEIVED)
			require_same_time(a->received, b->received, data, size);
		REQUIRE(c->integer_bits != 64 ||
			!memcmp(a->data, b->data, a->length * sizeof(a->data[0])));
	}
}

static void scan_all(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data;
	size_t left = size;

	if (format->type->reset)
		format->type->reset(format);
	for (;;) {
		size_t used = SIZE_MAX;
		int n = format->type->scan(format, at, left, &used, first,
					   SAMPLES_MAX);

		REQUIRE(used <= left);
		REQUIRE(n == -EBADMSG || (n >= 0 && n <= SAMPLES_MAX));
		/* Either there is progress, or nothing more to come. */
		REQUIRE(n == 0 || used > 0);
		REQUIRE(n >= 0 || *format_error(format));
		for (int i = 0; i < n; i++) {
			REQUIRE(first[i]->length <= VALUES_MAX);
			REQUIRE(!(first[i]->flags & SAMPLE_HAS_ORIGIN) ||
				(unsigned long)first[i]->origin.tv_nsec < 1000000000);
		}
		if (n > 0)
			check_round_trip((unsigned)n, data, size);
		at += used;
		left -= used;
		if (n == 0)
			break;
	}
	/* All of a message has been looked at. */
	REQUIRE(!format->message || left == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of exactly this size shows every read beyond the end. */
	uint8_t *copy = malloc(size ? size : 1);

	if (!format)
		set_up(getenv("FORMAT") ? getenv("FORMAT") : "json");
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	format->message = false;
	scan_all(copy, size);
	format->message = true;
	scan_all(copy, size);
	scan_other_source(copy, size);
	free(copy);
	return 0;
}

#ifndef WITH_LIBFUZZER
static uint64_t random_bits(void)
{
	return random_below(UINT64_MAX);
}

static void make_sample(struct sample *s)
{
	s->flags = (uint32_t)random_below(64) | SAMPLE_HAS_DATA;
	s->signals = format->signals;
	s->sequence = random_bits() >> 1 >> random_below(63);
	s->origin = (struct timespec){ (time_t)random_below(UINT64_C(1) << 32),
				       (long)random_below(1000000000) };
	s->received = (struct timespec){ s->origin.tv_sec,
					 (long)random_below(1000000000) };
	s->length = (uint32_t)random_below(9);
	for (unsigned i = 0; i < s->length; i++) {
		s->data[i].bits = random_bits() >> random_below(64);
		if (format->signals->signals[i].type == SIGNAL_BOOLEAN)
			s->data[i].i &= 1;
	}
}

static size_t make_input(char *buf, size_t size)
{
	size_t head = 0, used = 0;

	format->message = random_below(2);
	/* Also in messages: a description, which may be damaged. */
	if (format->type->header && random_below(2))
		head = format->type->header(format, buf, size, format->signals);
	for (unsigned i = 0; i < SAMPLES_MAX; i++)
		make_sample(made[i]);
	format->type->print(format, buf + head, size - head, &used, made,
			    1 + (unsigned)random_below(SAMPLES_MAX));
	return head + used;
}

int main(int argc, char **argv)
{
	const char *seconds = getenv("SECONDS"), *seed = getenv("SEED");
	static char data[INPUT_MAX];
	uint64_t stop_ns, runs = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FORMAT\n", argv[0]);
		return 1;
	}
	clock_init();
	set_up(argv[1]);
	random_state = seed ? strtoull(seed, NULL, 0) : 1;
	stop_ns = clock_monotonic_ns_slow() +
		  (uint64_t)((seconds ? strtod(seconds, NULL) : 1) * NSEC_PER_SEC);
	while (clock_monotonic_ns_slow() < stop_ns) {
		size_t size = make_input(data, sizeof(data));

		for (uint64_t n = random_below(8); n > 0; n--)
			size = mutate((uint8_t *)data, size, sizeof(data));
		LLVMFuzzerTestOneInput((const uint8_t *)data, size);
		runs++;
	}
	printf("%ju inputs\n", (uintmax_t)runs);
	return 0;
}
#endif

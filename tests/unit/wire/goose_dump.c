/* SPDX-License-Identifier: BSD-2-Clause */
/* Random messages of GOOSE for tshark; see grid_dump.h. */
#include "grid_dump.h"
#include "wire/bytes.h"
#include "wire/grid/goose.h"

#define VALUES 12
#define LINE_MAX_BYTES 1000

static void check(bool good)
{
	if (!good)
		abort();
}

static struct goose_value random_value(struct prng *random)
{
	static const enum goose_type types[] = { GOOSE_BOOLEAN, GOOSE_INTEGER, GOOSE_UNSIGNED,
						 GOOSE_BIT_STRING, GOOSE_FLOAT,
						 GOOSE_VISIBLE_STRING };
	struct goose_value v = { .type = types[grid_below(random, sizeof(types) / sizeof(*types))] };

	switch (v.type) {
	case GOOSE_BOOLEAN:
		v.boolean = grid_below(random, 2);
		break;
	case GOOSE_INTEGER:
		/* Of any length. */
		v.integer = (int32_t)prng_next(random) >> grid_below(random, 32);
		break;
	case GOOSE_UNSIGNED:
		/* tshark has them signed, in 32 bits. */
		v.number = (uint32_t)prng_next(random) >> (1 + grid_below(random, 31));
		break;
	case GOOSE_BIT_STRING:
		v.bits = 1 + grid_below(random, 64);
		v.number = prng_next(random) >> (64 - v.bits);
		break;
	case GOOSE_FLOAT:
		v.bits = 32;
		v.real = (double)grid_below(random, 1000) / 8;
		break;
	default:
		v.bytes = (struct ber){ (const uint8_t *)"some text", grid_below(random, 9) };
	}
	return v;
}

struct lines {
	char boolean[LINE_MAX_BYTES], integer[LINE_MAX_BYTES], number[LINE_MAX_BYTES];
	char bits[LINE_MAX_BYTES], real[LINE_MAX_BYTES];
};

static void add(char *line, const char *value)
{
	check(strlen(line) + strlen(value) + 2 < LINE_MAX_BYTES);
	strcat(line, *line ? "," : "");
	strcat(line, value);
}

static void say_value(struct lines *l, const struct goose_value *v)
{
	struct ber members = v->members;
	struct goose_value member;
	char text[40] = "";

	switch (v->type) {
	case GOOSE_STRUCTURE:
		while (goose_next(&members, &member) > 0)
			say_value(l, &member);
		break;
	case GOOSE_BOOLEAN:
		add(l->boolean, v->boolean ? "1" : "0");
		break;
	case GOOSE_INTEGER:
		snprintf(text, sizeof(text), "%lld", (long long)v->integer);
		add(l->integer, text);
		break;
	case GOOSE_UNSIGNED:
		snprintf(text, sizeof(text), "%llu", (unsigned long long)v->number);
		add(l->number, text);
		break;
	case GOOSE_BIT_STRING:
		for (unsigned done = 0; done < v->bits; done += 8) {
			unsigned left = v->bits - done;

			snprintf(text + done / 4, 3, "%02x",
				 (unsigned)(left > 8 ? v->number >> (left - 8) : v->number << (8 - left)) & 0xff);
		}
		add(l->bits, text);
		break;
	case GOOSE_FLOAT:
		snprintf(text, sizeof(text), "%.10g", v->real);
		add(l->real, text);
		break;
	default:
		break;
	}
}

static void say(FILE *lines, const uint8_t *payload, size_t len)
{
	struct lines l = { 0 };
	struct goose_value v;
	struct apdu head;
	struct goose g;

	check(!apdu_decode(payload, len, &head) && !goose_decode(&head.body, &g));
	while (goose_next(&g.values, &v) > 0)
		say_value(&l, &v);
	fprintf(lines, "0x%04x\t%d\t%.*s\t%u\t%.*s\t%.*s\t%u\t%u\t%d\t%u\t%d\t%u\t%s\t%s\t%s\t%s\t%s\n",
		head.appid, head.simulation, (int)g.reference.len, (const char *)g.reference.at,
		g.allowed_live_ms, (int)g.dataset.len, (const char *)g.dataset.at, (int)g.id.len,
		(const char *)g.id.at, g.state, g.sequence, g.simulation, g.revision,
		g.needs_commissioning, g.count, l.boolean, l.integer, l.number, l.bits, l.real);
}

static size_t make(struct prng *random, uint8_t frame[GRID_FRAME_MAX], FILE *lines)
{
	static const uint8_t ethernet[] = { 1, 12, 0xcd, 1, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0xb8 };
	struct goose_value values[VALUES], parts[VALUES];
	unsigned count = grid_below(random, VALUES + 1);
	uint8_t buffer[GRID_FRAME_MAX], *at;
	char names[3][64];
	size_t len, lens[3];
	bool simulation = grid_below(random, 2);
	struct apdu head = { .appid = (uint16_t)prng_next(random), .simulation = simulation };
	struct goose g = {
		.allowed_live_ms = (uint32_t)prng_next(random) >> 1,
		.time = { .seconds = (uint32_t)prng_next(random) },
		.state = (uint32_t)prng_next(random), .sequence = (uint32_t)prng_next(random),
		.revision = (uint32_t)prng_next(random) >> 1, .simulation = simulation,
		.needs_commissioning = grid_below(random, 2),
	};

	for (unsigned i = 0; i < 3; i++) {
		lens[i] = 1 + grid_below(random, 60);
		grid_text(random, names[i], lens[i]);
	}
	g.reference = (struct ber){ (uint8_t *)names[0], lens[0] };
	g.dataset = (struct ber){ (uint8_t *)names[1], lens[1] };
	g.id = (struct ber){ (uint8_t *)names[2], grid_below(random, 2) ? lens[2] : 0 };
	for (unsigned i = 0; i < VALUES; i++) {
		values[i] = random_value(random);
		parts[i] = random_value(random);
	}
	if (count && grid_below(random, 2))
		values[count / 2] = (struct goose_value){ .type = GOOSE_STRUCTURE, .parts = parts,
							  .part_count = grid_below(random, VALUES) };
	at = goose_encode(&head, &g, values, count, buffer, sizeof(buffer), &len);
	check(at);
	memcpy(frame, ethernet, sizeof(ethernet));
	memcpy(frame + sizeof(ethernet), at, len);
	say(lines, frame + sizeof(ethernet), len);
	return sizeof(ethernet) + len;
}

int main(int argc, char **argv)
{
	return grid_dump(argc, argv, make);
}

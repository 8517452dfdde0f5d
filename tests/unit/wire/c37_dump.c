/* SPDX-License-Identifier: BSD-2-Clause */
/* Random frames of C37.118 for tshark: configurations, data frames for them, commands; see
 * grid_dump.h. */
#include "grid_dump.h"

#include "c37_random.h"
#include "wire/bytes.h"

#define HEADERS (14 + 20 + 8)

/* The last configuration, for the data frames behind it. */
static uint8_t config_bytes[C37_FRAME_MAX];
static struct c37_config config;
static struct c37_frame config_frame;

static void check(bool good)
{
	if (!good)
		abort();
}

/* A field of tshark has the values of all stations by commas. */
struct field {
	char text[1000];
};

static void add(struct field *f, double v)
{
	size_t used = strlen(f->text);

	snprintf(f->text + used, sizeof(f->text) - used, v == floor(v) ? "%s%.0f" : "%s%.6g",
		 used ? "," : "", v);
}

static void add_hex(struct field *f, unsigned v)
{
	char text[20];

	snprintf(text, sizeof(text), "%s0x%04x", *f->text ? "," : "", v);
	strncat(f->text, text, sizeof(f->text) - strlen(f->text) - 1);
}

enum {
	STATION, TIME_BASE, STATIONS, PHASORS, ANALOGS, DIGITALS, CHANGES, NOMINAL, REASON, STATUS,
	COMMAND, NORMAL, VALID, NOTATION, FORMAT, FREQUENCY, ROCOF, WORDS, FIELDS
};

static void say_config(struct field out[FIELDS], const struct c37_config *decoded)
{
	struct c37_config c = *decoded;
	struct c37_station s;

	add(&out[TIME_BASE], c.time_base);
	add(&out[STATIONS], c.stations);
	while (c37_station_next(&c, &s)) {
		add(&out[STATION], s.idcode);
		add(&out[PHASORS], s.block.phasors);
		add(&out[ANALOGS], s.block.analogs);
		add(&out[DIGITALS], s.block.digitals);
		add(&out[CHANGES], s.changes);
		add(&out[NOMINAL], s.block.nominal_hz == 50);
		add(&out[NOTATION], !!(s.block.format & C37_POLAR));
		add(&out[FORMAT], !!(s.block.format & C37_FLOAT_PHASORS));
		for (unsigned i = 0; i < s.block.digitals; i++) {
			add_hex(&out[NORMAL], c37_digital_unit(&s, i).normal);
			add_hex(&out[VALID], c37_digital_unit(&s, i).valid);
		}
	}
}

static void say_data(struct field out[FIELDS], const struct c37_frame *f)
{
	struct c37_config c = config;
	struct c37_bytes rest = f->body;
	struct c37_station s;
	struct c37_values v;

	while (c37_station_next(&c, &s)) {
		check(!c37_data_next(&rest, &s.block, &v));
		add_hex(&out[REASON], v.stat & 15);
		add_hex(&out[STATUS], v.stat >> 14);
		/* tshark has a field of it for floats only. */
		if (s.block.format & C37_FLOAT_FREQUENCY)
			add(&out[FREQUENCY], v.frequency_hz);
		add(&out[ROCOF], v.rocof_hz_s);
		for (unsigned i = 0; i < s.block.digitals; i++)
			add_hex(&out[WORDS], c37_digital(&v, i));
	}
}

static void say(FILE *lines, const uint8_t *data, size_t len)
{
	struct field out[FIELDS] = { 0 };
	struct c37_frame f;
	const char *why;
	size_t skip;

	check(c37_next(data, len, &f, &skip, &why) == (int)len);
	fprintf(lines, "0x%04x\t%u\t%zu\t%u", f.type, f.version, len, f.idcode);
	if (f.type == C37_COMMAND) {
		add_hex(&out[COMMAND], c37_command_of(&f));
	} else if (f.type == C37_DATA) {
		say_data(out, &f);
	} else {
		check(!c37_config_decode(&f, &config));
		say_config(out, &config);
	}
	fprintf(lines, "\t%s\t%d\t%d\t%d\t0x%02x\t%u", out[STATION].text, !!(f.quality & C37_LEAP_DELETES),
		!!(f.quality & C37_LEAP_OCCURRED), !!(f.quality & C37_LEAP_PENDING),
		f.quality & C37_TIME_CODE, f.fraction);
	for (unsigned i = TIME_BASE; i < FIELDS; i++)
		fprintf(lines, "\t%s", out[i].text);
	fprintf(lines, "\n");
}

static size_t make_frame(struct prng *random, uint8_t *data, size_t size)
{
	static const enum c37_type types[] = { C37_CFG2, C37_CFG2, C37_CFG3 };
	struct c37_frame head;
	size_t len;

	switch (config_bytes[0] ? grid_below(random, 4) : 0) {
	case 0:
		head = c37_random_head(random, types[grid_below(random, 3)]);
		do
			len = c37_random_config(random, data, size, &head, 3);
		while (!len);
		memcpy(config_bytes, data, len);
		config_frame = head;
		break;
	case 1:
		head = c37_random_head(random, C37_COMMAND);
		len = c37_encode_command(data, size, &head, (uint16_t)(1 + grid_below(random, 6)));
		break;
	default:
		head = c37_random_head(random, C37_DATA);
		head.idcode = config_frame.idcode;
		len = c37_random_data(random, data, size, &head, config);
	}
	check(len);
	return len;
}

static size_t make(struct prng *random, uint8_t frame[GRID_FRAME_MAX], FILE *lines)
{
	static const uint8_t headers[HEADERS] = {
		2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0,
		0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
		0x12, 0x69, 0x12, 0x69,
	};
	uint8_t *data = frame + HEADERS;
	size_t len = make_frame(random, data, C37_RANDOM_MAX);

	memcpy(frame, headers, HEADERS);
	put_16(frame + 14 + 2, (uint16_t)(20 + 8 + len));
	put_16(frame + 14 + 20 + 4, (uint16_t)(8 + len));
	/* What stays of a configuration points into its bytes. */
	if (data[1] >> 4 == C37_CFG2 || data[1] >> 4 == C37_CFG3)
		data = config_bytes;
	say(lines, data, len);
	return HEADERS + len;
}

int main(int argc, char **argv)
{
	return grid_dump(argc, argv, make);
}

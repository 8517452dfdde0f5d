/* SPDX-License-Identifier: BSD-2-Clause */
/* Random messages of sampled values for tshark; see grid_dump.h. */
#include "grid_dump.h"
#include "wire/bytes.h"
#include "wire/grid/sv.h"

#define ASDUS 8
/* Of the data set of 9-2LE: eight pairs of value and quality. */
#define VALUES 64

static void check(bool good)
{
	if (!good)
		abort();
}

static void random_asdu(struct prng *random, struct sv_asdu *a, char *names, uint8_t *values)
{
	size_t id = 1 + grid_below(random, 30), set = grid_below(random, 30);

	grid_text(random, names, id + set);
	grid_bytes(random, values, VALUES);
	*a = (struct sv_asdu){
		.id = { (uint8_t *)names, id },
		.dataset = { (uint8_t *)names + id, set },
		.count = (uint16_t)prng_next(random),
		.revision = (uint32_t)prng_next(random),
		.synch = (uint8_t)grid_below(random, 3),
		.has_rate = grid_below(random, 2), .rate = (uint16_t)prng_next(random),
		.has_mode = grid_below(random, 2), .mode = (uint16_t)grid_below(random, 3),
		.values = { values, VALUES },
	};
}

/* What tshark prints: fields by tabs, values of several ASDUs by commas. */
static void say(FILE *lines, const uint8_t *payload, size_t len)
{
	enum { ID, SET, COUNT, REVISION, SYNCH, RATE, MODE, FIELDS };
	char text[FIELDS][ASDUS * 64] = { "" };
	struct sv_message m;
	struct sv_asdu a;
	struct apdu head;
	const char *why;
	int ret;

	check(!apdu_decode(payload, len, &head) && !sv_decode(&head.body, &m));
	fprintf(lines, "0x%04x\t%u\t%d\t0x%04x\t%u", head.appid, (unsigned)head.body.len + APDU_HEADER,
		head.simulation, head.reserved2, m.count);
	while ((ret = sv_next(&m, &a, &why)) > 0) {
		char value[FIELDS][64] = { "" };

		snprintf(value[ID], 64, "%.*s", (int)a.id.len, (const char *)a.id.at);
		snprintf(value[SET], 64, "%.*s", (int)a.dataset.len, (const char *)a.dataset.at);
		snprintf(value[COUNT], 64, "%u", a.count);
		snprintf(value[REVISION], 64, "%u", a.revision);
		snprintf(value[SYNCH], 64, "%u", a.synch);
		if (a.has_rate)
			snprintf(value[RATE], 64, "%u", a.rate);
		if (a.has_mode)
			snprintf(value[MODE], 64, "%u", a.mode);
		for (unsigned i = 0; i < FIELDS; i++)
			if (*value[i]) {
				strcat(text[i], *text[i] ? "," : "");
				strcat(text[i], value[i]);
			}
	}
	check(!ret);
	for (unsigned i = 0; i < FIELDS; i++)
		fprintf(lines, "\t%s", text[i]);
	fprintf(lines, "\n");
}

static size_t make(struct prng *random, uint8_t frame[GRID_FRAME_MAX], FILE *lines)
{
	static const uint8_t ethernet[] = { 1, 12, 0xcd, 4, 0, 1, 2, 0, 0, 0, 0, 1, 0x88, 0xba };
	unsigned count = 1 + grid_below(random, ASDUS);
	char names[ASDUS][64];
	uint8_t values[ASDUS][VALUES], buffer[GRID_FRAME_MAX], *at;
	struct sv_asdu asdus[ASDUS];
	struct apdu head = { .appid = (uint16_t)prng_next(random),
			     .simulation = grid_below(random, 2),
			     .reserved2 = (uint16_t)prng_next(random) };
	size_t len;

	for (unsigned i = 0; i < count; i++)
		random_asdu(random, &asdus[i], names[i], values[i]);
	at = sv_encode(&head, asdus, count, buffer, sizeof(buffer), &len);
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

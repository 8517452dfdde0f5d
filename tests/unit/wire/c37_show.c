/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints the frames of C37.118 that come on standard input as a stream: a line for a
 * configuration's station, one for each station's part of a data frame, one for other frames.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/grid/c37.h"

#define INPUT_MAX (4u << 20)

static uint8_t config_bytes[C37_FRAME_MAX];
static struct c37_config config;

static void show_config(const struct c37_frame *f, const uint8_t *data, size_t len)
{
	struct c37_config walk;
	struct c37_station s;
	struct c37_frame copy;
	const char *why;
	size_t skip;

	memcpy(config_bytes, data, len);
	if (c37_next(config_bytes, len, &copy, &skip, &why) <= 0)
		exit(1);
	why = c37_config_decode(&copy, &config);
	if (why) {
		printf("wrong\t%s\n", why);
		exit(1);
	}
	for (walk = config; c37_station_next(&walk, &s);) {
		struct c37_bytes name;

		printf("config%d\t%u\t%.*s\t%d\t%u\t%u\t%u\t", f->type == C37_CFG3 ? 3 : (int)f->type - 1,
		       f->idcode, (int)s.name.len, (const char *)s.name.at, config.rate,
		       config.time_base, s.block.format, s.block.nominal_hz);
		for (unsigned i = 0; i < s.block.phasors && c37_name_next(&s, &name); i++)
			printf("%s%.*s", i ? "," : "", (int)name.len, (const char *)name.at);
		printf("\n");
	}
}

static void show_data(const struct c37_frame *f)
{
	struct c37_config walk = config;
	struct c37_bytes rest = f->body;
	struct c37_station s;

	while (c37_station_next(&walk, &s)) {
		struct c37_values v;

		if (c37_data_next(&rest, &s.block, &v))
			exit(1);
		printf("data\t%u\t%u\t%u\t0x%04x\t%.9g\t%.9g", f->idcode, f->soc, f->fraction, v.stat,
		       v.frequency_hz, v.rocof_hz_s);
		for (unsigned i = 0; i < s.block.phasors; i++) {
			struct c37_phasor_unit u = c37_phasor_unit(&s, i);
			double z[2];

			c37_phasor(&s.block, &v, i, &u, z);
			printf("\t%.9g\t%.9g", hypot(z[0], z[1]), atan2(z[1], z[0]) * 180 / M_PI);
		}
		printf("\n");
	}
	if (rest.len)
		exit(1);
}

int main(void)
{
	uint8_t *data = malloc(INPUT_MAX);
	size_t len = data ? fread(data, 1, INPUT_MAX, stdin) : 0, at = 0;
	struct c37_frame f;
	const char *why;
	size_t skip;

	while (at < len) {
		int n = c37_next(data + at, len - at, &f, &skip, &why);

		if (n <= 0) {
			printf("wrong\t%s\n", n ? why : "the last frame is cut");
			return 1;
		}
		if (f.type == C37_CFG1 || f.type == C37_CFG2 || f.type == C37_CFG3)
			show_config(&f, data + at, (size_t)n);
		else if (f.type == C37_DATA)
			show_data(&f);
		else
			printf("%s\t%u\t%u\n", f.type == C37_COMMAND ? "command" : "header", f.idcode,
			       c37_command_of(&f));
		at += (size_t)n;
	}
	free(data);
	return 0;
}

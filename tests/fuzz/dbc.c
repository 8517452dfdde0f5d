/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DBC files: each is refused with a reason and a line that it has, or its signals lie within frames, are
 * found by their names, and can be written and read at their places.
 *
 * usage: fuzz_dbc [RUNS [SEED]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/can/dbc.h"
#include "gateway/node/can/places.h"

#define MUTATE_BYTES "\n \t:;|@+-(),[]\"\\0123456789.eMm_xBSG\x00\xff"
#include "drive.h"

static void must(bool good)
{
	if (!good)
		abort();
}

static void look_at_signal(const struct dbc *d, const struct dbc_message *m, const struct dbc_signal *s)
{
	const struct dbc_message *found;
	const struct dbc_signal *signal;
	uint8_t data[CANFD_MAX_DLEN] = { 0 };
	char name[400];

	must(s->name.len && s->length >= 1 && s->length <= CAN_VALUE_BITS);
	must(can_bits_reach(s->start, s->length, s->big) <= CANFD_MAX_DLEN);
	must(isfinite(s->factor) && s->factor != 0 && isfinite(s->offset) && isfinite(s->min) && isfinite(s->max));
	must(!s->coding || s->length == (s->coding == DBC_FLOAT ? 32 : 64));
	can_bits_set(data, s->start, s->length, s->big, UINT64_MAX);
	must(can_bits_get(data, s->start, s->length, s->big) == UINT64_MAX >> (64 - s->length));
	if (m->id == 0xc0000000 || m->name.len + s->name.len + 2 > sizeof(name))
		return;
	snprintf(name, sizeof(name), "%.*s.%.*s", (int)m->name.len, m->name.at, (int)s->name.len, s->name.at);
	must(dbc_find(d, name, &found, &signal) >= 1);
	must(signal->name.len == s->name.len && !memcmp(signal->name.at, s->name.at, s->name.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char why[DBC_WHY_MAX] = "", *text = malloc(size + 1);
	unsigned line = 0, lines = 1, next = 0;
	struct dbc d;

	must(text);
	memcpy(text, data, size);
	text[size] = '\0';
	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (dbc_read(&d, text, size, &line, why))
		must(*why && line >= 1 && line <= lines);
	for (unsigned i = 0; i < d.message_count && !*why; i++) {
		const struct dbc_message *m = &d.messages[i];

		must(m->first == next && m->first + m->count <= d.signal_count);
		next = m->first + m->count;
		for (unsigned k = 0; k < m->count; k++)
			look_at_signal(&d, m, &d.signals[m->first + k]);
	}
	dbc_free(&d);
	free(text);
	return 0;
}

#ifndef FUZZER
static const char *const lines[] = {
	"VERSION \"1\"\n", "NS_ :\n\tCM_\n\tVAL_\n", "BS_:\n", "BU_: A B\n C\n", "BO_ 385 Engine: 8 A\n",
	"BO_ 2566868965 Inverter: 8 Vector__XXX\n", "BO_ 3221225472 None: 0 X\n",
	" SG_ Speed : 0|16@1- (0.25,0) [-3000|3000] \"rpm\" B,\n C\n", " SG_ Kind M : 7|4@0+ (1,0) [0|15] \"\" B\n",
	" SG_ Current m1 : 8|16@1- (0.1,0) [0|0] \"A\" B\n", " SG_ V m0M : 8|32@1- (1,0) [0|0] \"V\" B\n",
	" SG_ Last : 504|8@1+ (1e-3,-1.5E2) [0|0] \"\" B\n", "CM_ SG_ 385 Speed \"a \\\"text\\\"\nBO_ 1\";\n",
	"VAL_ 385 Speed 1 \"on\" 0 \"off\" ;\n", "SIG_VALTYPE_ 2566868965 V : 1;\n", "SIG_VALTYPE_ 385 Speed : 0;\n",
	"SG_MUL_VAL_ 2566868965 Current Kind 1-1, 3-5;\n", "BA_DEF_ BO_ \"Time\" INT 0 1;\n", "\xef\xbb\xbf", "\r\n",
};

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = 0;

	for (size_t i = random_below(20); i; i--) {
		const char *line = lines[random_below(sizeof(lines) / sizeof(*lines))];
		size_t len = strlen(line);

		if (size + len > capacity)
			break;
		memcpy(bytes + size, line, len);
		size += len;
	}
	return random_below(3) ? mutate_times(bytes, size, capacity, 3) : size;
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, 4096, make);
}
#endif

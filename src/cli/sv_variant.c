/* SPDX-License-Identifier: BSD-2-Clause */
/* What a stream of sampled values carries; see sv.h. */
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/run.h"
#include "cli/sv.h"
#include "cli/tool.h"

#define ASDUS_MAX 255

/* A letter and a number. NULL: it is another letter, or the number is not in its range. */
static const char *take_number(const char *at, char letter, unsigned min, unsigned max, unsigned *out)
{
	unsigned long number;
	char *end;

	if (!at || toupper((unsigned char)*at) != letter || !isdigit((unsigned char)at[1]))
		return NULL;
	number = strtoul(at + 1, &end, 10);
	*out = (unsigned)number;
	return number >= min && number <= max ? end : NULL;
}

int sv_variant_take(const struct option_given *g)
{
	struct sv_variant *v = option_member(g);
	const char *at = g->value;

	*v = (struct sv_variant){ 0 };
	if (toupper((unsigned char)*at) == 'F') {
		at = take_number(at, 'F', 1, UINT16_MAX, &v->rate);
		at = take_number(at, 'S', 1, ASDUS_MAX, &v->asdus);
	}
	at = take_number(at, 'I', 0, SV_CHANNELS_MAX, &v->currents);
	at = take_number(at, 'U', 0, SV_CHANNELS_MAX, &v->voltages);
	if (at && !*at && v->currents + v->voltages > 0 &&
	    v->currents + v->voltages <= SV_CHANNELS_MAX)
		return OPTIONS_GO_ON;
	return options_refuse(g, "expected samples a second, samples in a message, currents and voltages, such as F4800S2I4U4, or I4U4 alone; %u channels at most",
			      SV_CHANNELS_MAX);
}

/* "IA" ... "IN" of three phases and neutral, else "I1" ... */
static json_t *make_signal(char quantity, unsigned number, unsigned count)
{
	json_t *s = json_pack("{s:s s:s s:b s:s}", "iec_type", "int32", "type", "float", "quality", 1,
			      "unit", quantity == 'I' ? "A" : "V");

	if (count == 3 || count == 4)
		json_object_set_new(s, "name", json_sprintf("%c%c", quantity, "ABCN"[number]));
	else
		json_object_set_new(s, "name", json_sprintf("%c%u", quantity, number + 1));
	return s;
}

json_t *sv_variant_signals(const struct sv_variant *v)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < v->currents; i++)
		json_array_append_new(list, make_signal('I', i, v->currents));
	for (unsigned i = 0; i < v->voltages; i++)
		json_array_append_new(list, make_signal('U', i, v->voltages));
	return list;
}

json_t *sv_group(json_t *node, const char *name)
{
	json_t *group = json_object_get(node, name);

	if (!group) {
		group = json_object();
		json_object_set_new(node, name, group);
	}
	return group;
}

int sv_run(json_t *config, bool print, double seconds)
{
	int status;

	if (!print)
		return cli_run_config(config, seconds);
	status = tool_print_json((char *[]){ (char *)"busbar sv" }, config);
	json_decref(config);
	return status;
}

bool sv_check_words(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		json_t *text = json_string(argv[i]);

		json_decref(text);
		if (text)
			continue;
		fprintf(stderr, "busbar sv %s: argument %d is no UTF-8\n", argv[0], i);
		return false;
	}
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cosim: an electric network that is solved in two halves by two processes in real
 * time, coupled by gateways; see network.h for the network and run.sh for a run.
 *
 *	cosim source|load WNAME RNAME log=FILE [OPTION...]   one half, in real time
 *	cosim compare SOURCE-LOG LOAD-LOG [OPTION...]        with the undivided network
 *	cosim offline [OPTION...]         both halves here, delayed by whole steps
 *	cosim theory [OPTION...]          what the theory says
 *	cosim heading                     of the table that the others print
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define NET(field) offsetof(struct options, net.field)

static const struct {
	const char *name;
	size_t offset; /* of a double */
	double min, max;
	const char *help;
} numbers[] = {
	{ "step", NET(step_s), 1e-6, 0.01, "s" },
	{ "e", NET(e_v), 0, 1e9, "amplitude of the source, V" },
	{ "frequency", NET(frequency_hz), 0.1, 1e5, "Hz" },
	{ "r1", NET(r1_ohm), 0, 1e9, "ohm" },
	{ "l1", NET(l1_h), 1e-9, 1e3, "H" },
	{ "rp", NET(rp_ohm), 1e-3, 1e9, "ohm, in parallel to l1" },
	{ "r2", NET(r2_ohm), 0, 1e9, "ohm" },
	{ "l2", NET(l2_h), 1e-9, 1e3, "H" },
	{ "c2", NET(c2_f), 1e-12, 1, "F" },
	{ "rload", NET(rload_ohm), 1e-3, 1e9, "ohm" },
	{ "rswitch", NET(rswitch_ohm), 1e-3, 1e9, "ohm" },
	{ "switch", NET(switch_s), -1, 1e6, "s; -1: never" },
	{ "duration", offsetof(struct options, duration_s), 1e-3, 600, "s" },
	{ "start", offsetof(struct options, start_s), 0, 1e12,
	  "s since 1970, when both halves begin" },
};

#define COUNT (sizeof(numbers) / sizeof(numbers[0]))

static int parse_number(struct options *o, const char *name, size_t length,
			const char *text)
{
	for (size_t i = 0; i < COUNT; i++) {
		char *end;
		double v;

		if (strlen(numbers[i].name) != length ||
		    strncmp(numbers[i].name, name, length))
			continue;
		v = strtod(text, &end);
		if (end == text || *end || !(v >= numbers[i].min) ||
		    !(v <= numbers[i].max)) {
			fprintf(stderr, "cosim: %s: '%s' is not between %g and %g\n",
				numbers[i].name, text, numbers[i].min,
				numbers[i].max);
			return -1;
		}
		*(double *)(void *)((char *)o + numbers[i].offset) = v;
		return 0;
	}
	fprintf(stderr, "cosim: there is no option %.*s\n", (int)length, name);
	return -1;
}

static int parse_delay(unsigned *delay, const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	if (end == text || *end || n < 1 || n > COUPLE_DELAY_MAX) {
		fprintf(stderr, "cosim: a delay of '%s' is not 1 to %d steps\n",
			text, COUPLE_DELAY_MAX);
		return -1;
	}
	*delay = (unsigned)n;
	return 0;
}

int options_parse(struct options *o, int argc, char *argv[], int from)
{
	*o = (struct options){ .net = network_default, .duration_s = 0.4,
			       .delay_v = 1, .delay_i = 1, .behind = 1, .label = "-" };
	for (int i = from; i < argc; i++) {
		const char *is = strchr(argv[i], '=');
		size_t length = is ? (size_t)(is - argv[i]) : 0;
		int ret = 0;

		if (!is) {
			fprintf(stderr, "cosim: '%s' is no NAME=VALUE\n",
				argv[i]);
			return -1;
		}
		if (!strncmp(argv[i], "delay_v=", length + 1))
			ret = parse_delay(&o->delay_v, is + 1);
		else if (!strncmp(argv[i], "delay_i=", length + 1))
			ret = parse_delay(&o->delay_i, is + 1);
		else if (!strncmp(argv[i], "behind=", length + 1))
			ret = parse_delay(&o->behind, is + 1);
		else if (!strncmp(argv[i], "polling=", length + 1))
			o->polling = !strcmp(is + 1, "yes");
		else if (!strncmp(argv[i], "label=", length + 1))
			o->label = is + 1;
		else if (!strncmp(argv[i], "log=", length + 1))
			o->log = is + 1;
		else if (!strncmp(argv[i], "plot=", length + 1))
			o->plot = is + 1;
		else
			ret = parse_number(o, argv[i], length, is + 1);
		if (ret)
			return ret;
	}
	return 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: cosim source|load WNAME RNAME log=FILE [OPTION...]\n"
		"       cosim compare SOURCE-LOG LOAD-LOG [OPTION...]\n"
		"       cosim offline|theory [OPTION...]\n"
		"       cosim heading\n"
		"options, NAME=VALUE:\n"
		"  label, log, plot     first column; file of one half; file for gnuplot\n"
		"  polling              yes: spins between steps\n"
		"  behind               steps that an input is old, 1 to %d\n"
		"  delay_v, delay_i     the same without real time (offline)\n",
		COUPLE_DELAY_MAX);
	for (size_t i = 0; i < COUNT; i++)
		fprintf(stderr, "  %-20s %s\n", numbers[i].name, numbers[i].help);
	return 2;
}

int main(int argc, char *argv[])
{
	const char *command = argc > 1 ? argv[1] : "";
	bool half = !strcmp(command, "source") || !strcmp(command, "load");
	int files = half || !strcmp(command, "compare") ? 2 : 0;
	struct options o;

	if (argc < 2 + files)
		return usage();
	if (options_parse(&o, argc, argv, 2 + files))
		return 2;
	if (half)
		return half_run(*command == 's', argv[2], argv[3], &o);
	if (files)
		return report_compare(argv[2], argv[3], &o);
	if (!strcmp(command, "offline"))
		return report_offline(&o);
	if (!strcmp(command, "theory"))
		report_theory(&o);
	else if (!strcmp(command, "heading"))
		report_heading();
	else
		return usage();
	return 0;
}

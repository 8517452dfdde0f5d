/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar simulate fault`: writes the waveform of a short circuit to a file. */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/fault_sim.h"
#include "gateway/plugin/format.h"
#include "util/clock.h"
#include "util/log.h"

#define DURATION_MAX_S 86400.0

struct settings {
	struct fault_sim_parameters p;
	const char *out, *format;
	double duration_s, values, start_s;
};

static void print_help(FILE *out)
{
	fputs("usage: busbar simulate fault [OPTIONS]\n"
	      "\n"
	      "Writes voltages and currents at one end of a power line on which a short\n"
	      "circuit happens and is cleared. The same options give the same file.\n"
	      "\n"
	      "  -o, --output FILE        where to write; default standard output\n"
	      "  -f, --format FMT         villas.human, csv, tsv or {\"type\": ...};\n"
	      "                           default by the file's name\n"
	      "  -d, --duration S         0.5\n"
	      "  -r, --rate HZ            samples per second, 10000\n"
	      "      --values N           6: voltages and currents; 8: also their sums (8)\n"
	      "      --start S            time of the first sample, seconds since 1970 (0)\n"
	      "      --fault-at S         0.2; below 0: no fault\n"
	      "      --clear-at S         when the breaker begins to open, 0.3; below 0: never\n"
	      "      --phases ABC         phases that touch ground: a, b, c, ab ... abc (a)\n"
	      "      --location X         of the fault, 0 at the bus to 1 at the load (0.5)\n"
	      "      --fault-resistance R in ohm, 0.5\n"
	      "      --voltage V          line to line, 110000\n"
	      "      --frequency HZ       50\n"
	      "      --source-power VA    short-circuit power, 2e9\n"
	      "      --line-length KM     50\n"
	      "      --load-power W       40e6\n"
	      "  -h, --help               this text\n",
	      out);
}

static bool parse_phases(const char *text, unsigned *phases)
{
	*phases = 0;
	for (; *text; text++) {
		if (*text < 'a' || *text > 'c')
			return false;
		*phases |= 1u << (*text - 'a');
	}
	return *phases != 0;
}

/* The variable of an option with a number; `c`: the result of getopt_long(). */
static double *number_at(struct settings *s, int c)
{
	switch (c) {
	case 'd': return &s->duration_s;
	case 'r': return &s->p.rate_hz;
	case 'V': return &s->values;
	case 'S': return &s->start_s;
	case 'F': return &s->p.fault_at_s;
	case 'C': return &s->p.clear_at_s;
	case 'L': return &s->p.location;
	case 'R': return &s->p.fault_resistance_ohm;
	case 'U': return &s->p.voltage_v;
	case 'H': return &s->p.frequency_hz;
	case 'P': return &s->p.source_power_va;
	case 'K': return &s->p.line_km;
	case 'W': return &s->p.load_power_w;
	default: return NULL;
	}
}

static const struct option options[] = {
	{ "output", required_argument, NULL, 'o' },
	{ "format", required_argument, NULL, 'f' },
	{ "duration", required_argument, NULL, 'd' },
	{ "rate", required_argument, NULL, 'r' },
	{ "values", required_argument, NULL, 'V' },
	{ "start", required_argument, NULL, 'S' },
	{ "fault-at", required_argument, NULL, 'F' },
	{ "clear-at", required_argument, NULL, 'C' },
	{ "phases", required_argument, NULL, 'p' },
	{ "location", required_argument, NULL, 'L' },
	{ "fault-resistance", required_argument, NULL, 'R' },
	{ "voltage", required_argument, NULL, 'U' },
	{ "frequency", required_argument, NULL, 'H' },
	{ "source-power", required_argument, NULL, 'P' },
	{ "line-length", required_argument, NULL, 'K' },
	{ "load-power", required_argument, NULL, 'W' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int usage(const char *what, const char *text, const char *right)
{
	fprintf(stderr, "busbar simulate fault: %s '%s' is not %s\n", what, text,
		right);
	return CLI_USAGE + 1;
}

/* 0: go on; else the exit status plus 1. */
static int parse(int argc, char **argv, struct settings *s)
{
	int c, index = 0;

	while ((c = getopt_long(argc, argv, "o:f:d:r:h", options, &index)) >= 0) {
		double *number = number_at(s, c);
		char *end;

		if (number) {
			*number = strtod(optarg, &end);
			if (end == optarg || *end || !isfinite(*number))
				return usage("option value", optarg, "a number");
		} else if (c == 'o') {
			s->out = optarg;
		} else if (c == 'f') {
			s->format = optarg;
		} else if (c == 'p') {
			if (!parse_phases(optarg, &s->p.fault_phases))
				return usage("--phases", optarg,
					     "made of the letters a, b and c");
		} else if (c == 'h') {
			print_help(stdout);
			return CLI_OK + 1;
		} else {
			print_help(stderr);
			return CLI_USAGE + 1;
		}
	}
	if (optind < argc)
		return usage("argument", argv[optind], "known here");
	if (s->values != 6 && s->values != 8) {
		fputs("busbar simulate fault: --values is 6 or 8\n", stderr);
		return CLI_USAGE + 1;
	}
	if (!(s->duration_s > 0) || s->duration_s > DURATION_MAX_S ||
	    !(fabs(s->start_s) < 9e9)) {
		fputs("busbar simulate fault: --duration is above 0 and up to a day\n",
		      stderr);
		return CLI_USAGE + 1;
	}
	return 0;
}

static struct signal_list *make_signals(unsigned count)
{
	static const char *const names[] = { "v_a", "v_b", "v_c", "i_a",
					     "i_b", "i_c", "v_0", "i_n" };
	struct signal_list *l = signal_list_new(count, SIGNAL_FLOAT);

	for (unsigned i = 0; l && i < count; i++) {
		free(l->signals[i].name);
		l->signals[i].name = strdup(names[i]);
		l->signals[i].unit = strdup(names[i][0] == 'v' ? "V" : "A");
		if (!l->signals[i].name || !l->signals[i].unit) {
			signal_list_put(l);
			return NULL;
		}
	}
	return l;
}

static int make_format(const struct settings *s, struct signal_list *signals,
		       struct config **config, struct format **format)
{
	const char *dot = s->out ? strrchr(s->out, '.') : NULL;
	const char *name = s->format ? s->format :
			   dot && !strcmp(dot, ".csv") ? "csv" :
			   dot && !strcmp(dot, ".tsv") ? "tsv" : "villas.human";
	bool object = name[0] == '{';
	char *text;
	int ret;

	if (asprintf(&text, "{ \"format\": %s%s%s }", object ? "" : "\"", name,
		     object ? "" : "\"") < 0)
		return -ENOMEM;
	ret = config_load_text("command line", text, strlen(text), config);
	free(text);
	if (ret)
		return ret;
	ret = format_new(format, *config,
			 json_object_get(config_root(*config), "format"), NULL,
			 signals);
	if (ret)
		config_destroy(*config);
	return ret;
}

static void fill(struct sample *smp, struct fault_sim *sim,
		 const struct settings *s, uint64_t n)
{
	/* Whole seconds are added apart, so that nanoseconds are exact for any start. */
	double whole = floor(s->start_s);
	uint64_t ns = (uint64_t)llround((s->start_s - whole) * 1e9) +
		      (uint64_t)llround((double)n / s->p.rate_hz * 1e9);
	double values[FAULT_VALUES_MAX];

	fault_sim_next(sim, values);
	smp->sequence = n;
	smp->origin = (struct timespec){
		.tv_sec = (time_t)whole + (time_t)(ns / NSEC_PER_SEC),
		.tv_nsec = (long)(ns % NSEC_PER_SEC),
	};
	for (unsigned i = 0; i < smp->length; i++)
		smp->data[i].f = values[i];
}

static int write_samples(FILE *out, struct format *f, struct fault_sim *sim,
			 const struct settings *s)
{
	struct sample *smp = calloc(1, sizeof(*smp) + FAULT_VALUES_MAX *
						sizeof(union signal_data));
	uint64_t count = (uint64_t)llround(s->duration_s * s->p.rate_hz);
	char buf[4096];
	size_t used;
	int ret = 0;

	if (!smp)
		return -ENOMEM;
	smp->signals = f->signals;
	smp->length = (uint32_t)s->values;
	smp->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	errno = 0;
	if (f->header) {
		used = f->type->header(f, buf, sizeof(buf), f->signals);
		fwrite(buf, 1, used, out);
	}
	for (uint64_t n = 0; n < count && !ferror(out); n++) {
		fill(smp, sim, s, n);
		f->type->print(f, buf, sizeof(buf), &used, &smp, 1);
		fwrite(buf, 1, used, out);
	}
	if (fflush(out) || ferror(out))
		ret = errno ? -errno : -EIO;
	free(smp);
	return ret;
}

static int simulate(const struct settings *s)
{
	struct signal_list *signals;
	struct config *config;
	struct format *format;
	struct fault_sim sim;
	FILE *out = stdout;
	const char *why;
	int ret;

	if (fault_sim_init(&sim, &s->p, &why)) {
		fprintf(stderr, "busbar simulate fault: %s\n", why);
		return CLI_USAGE;
	}
	signals = make_signals((unsigned)s->values);
	if (!signals)
		return CLI_FAILED;
	ret = make_format(s, signals, &config, &format);
	signal_list_put(signals);
	if (ret)
		return CLI_USAGE;
	if (s->out && strcmp(s->out, "-"))
		out = fopen(s->out, "we");
	ret = out ? write_samples(out, format, &sim, s) : -errno;
	if (out && out != stdout && fclose(out) && !ret)
		ret = -errno;
	if (ret)
		log_error("cannot write '%s': %s", s->out ? s->out : "standard output",
			  strerror(-ret));
	format_destroy(format);
	config_destroy(config);
	return ret ? CLI_FAILED : CLI_OK;
}

int cli_simulate(int argc, char **argv)
{
	struct settings s = {
		.p = fault_sim_default,
		.duration_s = 0.5,
		.values = 8,
	};
	int status;

	if (argc >= 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		print_help(stdout);
		return CLI_OK;
	}
	if (argc < 2 || strcmp(argv[1], "fault")) {
		fputs("busbar simulate: say what to simulate; there is: fault\n",
		      stderr);
		return CLI_USAGE;
	}
	status = parse(argc - 1, argv + 1, &s);
	return status ? status - 1 : simulate(&s);
}

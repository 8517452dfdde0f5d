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
#include "util/options.h"

struct settings {
	struct fault_sim_parameters p;
	const char *out, *format;
	double duration_s, start_s;
	bool with_sums; /* of voltages and currents: 8 values, else 6 */
};

static int take_phases(const struct option_given *g)
{
	unsigned phases = 0;

	for (const char *at = g->value; *at; at++) {
		if (*at < 'a' || *at > 'c')
			return options_refuse(g, "expected letters of a, b and c");
		phases |= 1u << (*at - 'a');
	}
	if (!phases)
		return options_refuse(g, "expected letters of a, b and c");
	*(unsigned *)option_member(g) = phases;
	return OPTIONS_GO_ON;
}

#define NUMBER(member) OPTION_REAL(struct settings, member, -INFINITY, INFINITY)

static const struct option_entry table[] = {
	{ "-o, --output FILE: where to write; default standard output", OPTION_TEXT(struct settings, out) },
	{ "-f, --format FMT: villas.human, csv, tsv or {\"type\": ...}; default by the file's name",
	  OPTION_TEXT(struct settings, format) },
	{ "-d, --duration S: of the waveform (0.5)", OPTION_REAL(struct settings, duration_s, 1e-9, 86400) },
	{ "-r, --rate HZ: samples per second (10000)", NUMBER(p.rate_hz) },
	{ "--values 6|8: 6: voltages and currents; 8: also their sums (8)",
	  OPTION_CHOICE(struct settings, with_sums) },
	{ "--start S: time of the first sample, seconds since 1970 (0)",
	  OPTION_REAL(struct settings, start_s, -9e9, 9e9) },
	{ "--fault-at S: below 0: no fault (0.2)", NUMBER(p.fault_at_s) },
	{ "--clear-at S: when the breaker begins to open; below 0: never (0.3)", NUMBER(p.clear_at_s) },
	{ "--phases ABC: phases that touch ground: a, b, c, ab ... abc (a)", OPTION_TAKE(struct settings, p.fault_phases, take_phases) },
	{ "--location X: of the fault, 0 at the bus to 1 at the load (0.5)", NUMBER(p.location) },
	{ "--fault-resistance R: in ohm (0.5)", NUMBER(p.fault_resistance_ohm) },
	{ "--voltage V: line to line (110000)", NUMBER(p.voltage_v) },
	{ "--frequency HZ: of the grid (50)", NUMBER(p.frequency_hz) },
	{ "--source-power VA: short-circuit power (2e9)", NUMBER(p.source_power_va) },
	{ "--line-length KM: of the line (50)", NUMBER(p.line_km) },
	{ "--load-power W: of the load (40e6)", NUMBER(p.load_power_w) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar simulate",
	.synopsis = "fault [OPTIONS]",
	.about = "Writes voltages and currents at one end of a power line on which a short\n"
		 "circuit happens and is cleared. The same options give the same file.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
};

static unsigned values_of(const struct settings *s)
{
	return s->with_sums ? 8 : 6;
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
	smp->length = (uint32_t)values_of(s);
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
	signals = make_signals(values_of(s));
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
		.with_sums = true,
	};
	int status;

	status = options_parse(&options, argc, argv, &s, NULL);
	if (status >= 0)
		return status;
	if (!strcmp(argv[optind], "fault"))
		return simulate(&s);
	return options_wrong(&options, argv, "say what to simulate; there is: fault");
}

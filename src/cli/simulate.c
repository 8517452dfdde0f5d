/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar simulate fault`: writes the waveform of a short circuit to a file. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/delivery/match.h"
#include "bench/fault_sim.h"
#include "cli/tool_stream.h"
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

static int write_samples(struct tool_output *out, struct fault_sim *sim, const struct settings *s)
{
	struct sample *smp = calloc(1, sizeof(*smp) + FAULT_VALUES_MAX * sizeof(union signal_data));
	uint64_t count = (uint64_t)llround(s->duration_s * s->p.rate_hz);
	int ret = 0;

	if (!smp)
		return -ENOMEM;
	smp->signals = out->format->signals;
	smp->length = (uint32_t)values_of(s);
	smp->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN | SAMPLE_HAS_DATA;
	for (uint64_t n = 0; n < count && !ret; n++) {
		fill(smp, sim, s, n);
		ret = tool_output_put(out, &smp, 1);
	}
	free(smp);
	return ret;
}
/* Opens the file, or standard output, for samples of this format. 0 or a negative errno, logged. */
static int open_output(struct tool_output *out, const struct settings *s, struct format *format)
{
	int ret = tool_output_open(out, format);

	if (ret || !s->out || !strcmp(s->out, "-"))
		return ret;
	out->name = s->out;
	out->fd = open(s->out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out->fd >= 0)
		return 0;
	out->error = -errno;
	log_error("cannot write '%s': %s", s->out, strerror(errno));
	return out->error;
}

static int simulate(const struct settings *s)
{
	const char *format_name = s->format ?: delivery_format_by_name(s->out ?: "");
	struct tool_format format;
	struct signal_list *signals;
	struct tool_output out;
	struct fault_sim sim;
	const char *why;
	int ret;

	if (fault_sim_init(&sim, &s->p, &why)) {
		fprintf(stderr, "busbar simulate fault: %s\n", why);
		return CLI_USAGE;
	}
	signals = make_signals(values_of(s));
	if (!signals)
		return CLI_FAILED;
	ret = tool_format_open(&format, (char *[]){ (char *)"command line" }, 'f', format_name,
			       signals);
	signal_list_put(signals);
	if (ret)
		return ret;
	tool_room = "simulate";
	ret = open_output(&out, s, format.format) ?: write_samples(&out, &sim, s);
	ret = tool_output_close(&out, NULL) ?: ret;
	if (out.fd > STDERR_FILENO && close(out.fd) && !ret) {
		ret = -errno;
		log_error("cannot write '%s': %s", out.name, strerror(errno));
	}
	tool_format_close(&format);
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

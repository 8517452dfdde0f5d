/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar signal` (villas-signal): generated signals on standard output. It is a front of
 * the node-type `signal`, with the node's settings as options.
 */
#define LOG_ROOM "signal"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool_stream.h"
#include "gateway/plugin/node_life.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* Output is written when it has been in the buffer for this time. */
#define FLUSH_NS UINT64_C(1000000)

static const char usage[] =
	"[OPTIONS] SIGNAL\n"
	"\n"
	"Writes samples of a generated signal to standard output. SIGNAL: mixed, random,\n"
	"sine, square, triangle, ramp, counter, constant or pulse.\n"
	"\n"
	"  -f FMT    format, a name or {\"type\": ..., ...} (villas.human)\n"
	"  -v NUM    values in a sample (1)\n"
	"  -r HZ     samples per second (10)\n"
	"  -n        not in real time: as fast as they are taken\n"
	"  -l NUM    end after so many samples\n"
	"  -F HZ     frequency of the signal (1); of a ramp its period in seconds\n"
	"  -a AMP    amplitude (1)\n"
	"  -D DEV    standard deviation of a random walk's step (0.2)\n"
	"  -o OFF    added to every value (0)\n"
	"  -p RAD    phase (0)\n"
	"  -w NUM    samples that a pulse lasts (1)\n"
	"  -L VAL    value between pulses (0)\n"
	"  -H VAL    value of a pulse (1)\n";

struct number {
	int opt;
	const char *key; /* key of the node's configuration */
	bool whole;
	double min, max;
};

static const struct number numbers[] = {
	{ 'v', "values", true, 1, SIGNALS_MAX },
	{ 'r', "rate", false, 1e-6, 1e9 },
	{ 'l', "limit", true, -1, 1e15 },
	{ 'F', "frequency", false, 1e-12, 1e12 },
	{ 'a', "amplitude", false, -1e300, 1e300 },
	{ 'D', "stddev", false, 0, 1e300 },
	{ 'o', "offset", false, -1e300, 1e300 },
	{ 'p', "phase", false, -1e9, 1e9 },
	{ 'w', "pulse_width", false, 0, 1e15 },
	{ 'L', "pulse_low", false, -1e300, 1e300 },
	{ 'H', "pulse_high", false, -1e300, 1e300 },
};

struct settings {
	const char *format;
	bool realtime;
	double rate_hz;
	json_t *node; /* configuration */
};

static struct node *running;

static void interrupt(void)
{
	running->type->interrupt(running);
}

/* Must the buffered output be written now? */
static bool must_flush(const struct settings *s, const struct tool_output *out)
{
	if (!s->realtime)
		return false;
	return s->rate_hz <= 1000 ||
	       clock_monotonic_ns_slow() - out->flushed_ns > FLUSH_NS;
}

static int generate(struct node *n, const struct settings *s,
		    struct tool_output *out, struct pool *pool)
{
	struct sample *smps[TOOL_BATCH];
	int ret = 0;

	sample_alloc_many(pool, smps, TOOL_BATCH);
	while (ret >= 0 && !tool_stopping()) {
		unsigned release = TOOL_BATCH;

		ret = node_read(n, smps, TOOL_BATCH, &release);
		if (ret > 0)
			ret = tool_output_put(out, smps, (unsigned)ret);
		if (ret >= 0 && must_flush(s, out))
			ret = tool_output_flush(out);
	}
	sample_put_many(smps, TOOL_BATCH);
	return ret == -ENODATA ? 0 : ret;
}

static int run_node(struct node *n, const struct settings *s,
		    struct format *format)
{
	struct tool_output out;
	struct pool pool;
	int ret, end;

	ret = pool_init(&pool, TOOL_BATCH, n->in.signals->count, &tool_memory);
	if (ret) {
		log_error("no memory for samples");
		return ret;
	}
	ret = tool_output_open(&out, format);
	if (!ret)
		ret = node_start(n);
	if (!ret) {
		running = n;
		tool_on_stop(interrupt);
		ret = generate(n, s, &out, &pool);
		tool_on_stop(NULL);
		node_stop(n);
	}
	end = tool_output_close(&out, n->in.signals);
	pool_destroy(&pool);
	return ret < 0 ? ret : end;
}

static int run(char **argv, const struct settings *s)
{
	char *text = json_dumps(s->node, 0);
	struct tool_format format = { 0 };
	struct config *c = NULL;
	struct node *n = NULL;
	int status = CLI_USAGE;

	/* As a text, so that messages can name a line. */
	if (!text || config_load_text(argv[0], text, strlen(text), &c))
		goto out;
	if (node_new(&n, NULL, c, "signal", config_root(c)) ||
	    node_check(n, c) || config_errors(c))
		goto out;
	status = tool_format_open(&format, argv, 'f', s->format, n->in.signals);
	if (!status)
		status = tool_catch_signals() ? CLI_FAILED :
			 tool_status(run_node(n, s, format.format));
	tool_format_close(&format);
out:
	node_destroy(n);
	config_destroy(c);
	free(text);
	return status;
}

/* Puts the option's number into the node's configuration. */
static bool take_number(char **argv, int opt, struct settings *s)
{
	const struct number *n = numbers;
	double v;

	while (n->opt != opt)
		n++;
	if (!tool_number(argv, opt, n->min, n->max, &v))
		return false;
	if (n->whole && v != rint(v)) {
		fprintf(stderr, "%s: -%c %s: expected a whole number\n",
			argv[0], opt, optarg);
		return false;
	}
	json_object_set_new(s->node, n->key,
			    n->whole ? json_integer((json_int_t)v) :
				       json_real(v));
	if (opt == 'r')
		s->rate_hz = v;
	return true;
}

static int parse(int argc, char **argv, struct settings *s)
{
	int opt, status;

	while ((opt = getopt(argc, argv, TOOL_OPTIONS
			     "f:nv:r:l:F:a:D:o:p:w:L:H:")) != -1) {
		switch (opt) {
		case 'f':
			s->format = optarg;
			break;
		case 'n':
			s->realtime = false;
			break;
		case 'd':
		case 'V':
		case 'h':
		case '?':
			status = tool_option(argv, opt, usage);
			if (status >= 0)
				return status;
			break;
		default:
			if (!take_number(argv, opt, s))
				return CLI_USAGE;
		}
	}
	if (optind + 1 != argc) {
		tool_print_usage(argv, usage, stderr);
		return CLI_USAGE;
	}
	json_object_set_new(s->node, "signal", json_string(argv[optind]));
	json_object_set_new(s->node, "realtime", json_boolean(s->realtime));
	return -1;
}

int cli_signal(int argc, char **argv)
{
	struct settings s = {
		.format = "villas.human",
		.realtime = true,
		.rate_hz = 10,
		.node = json_pack("{ss si sb}", "type", "signal", "values", 1,
				  "builtin", 0),
	};
	int status;

	tool_begin(argv);
	status = parse(argc, argv, &s);
	if (status < 0)
		status = run(argv, &s);
	json_decref(s.node);
	return status;
}

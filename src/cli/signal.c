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
#include "util/log.h"
#include "util/options.h"

/* Output is written when it has been in the buffer for this time. */
#define FLUSH_NS UINT64_C(1000000)

struct settings {
	const char *format;
	bool fast; /* not in real time */
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
	if (s->fast)
		return false;
	return json_number_value(json_object_get(s->node, "rate")) <= 1000 ||
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

	ret = tool_pool_init(&pool, TOOL_BATCH, n->in.signals->count);
	if (ret)
		return ret;
	ret = tool_output_open(&out, format) ?: node_start(n);
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

/* What a number sets in the node's configuration. */
struct number {
	const char *key;
	bool whole;
	double min, max;
};

static int take_number(const struct option_given *g)
{
	const struct number *n = g->entry->data;
	struct settings *s = g->to;
	char *end;
	double v = strtod(g->value, &end);

	if (end == g->value || *end || !(v >= n->min && v <= n->max) || (n->whole && v != rint(v)))
		return options_refuse(g, "expected a %snumber from %g to %g", n->whole ? "whole " : "", n->min,
				      n->max);
	json_object_set_new(s->node, n->key, n->whole ? json_integer((json_int_t)v) : json_real(v));
	return OPTIONS_GO_ON;
}

#define NUMBER(...) OPTION_CALL(take_number, &(const struct number){ __VA_ARGS__ })

static const struct option_entry table[] = {
	{ "-f FMT: format, a name or {\"type\": ..., ...} (villas.human)", OPTION_TEXT(struct settings, format) },
	{ "-v NUM: values in a sample (1)", NUMBER("values", true, 1, SIGNALS_MAX) },
	{ "-r HZ: samples per second (10)", NUMBER("rate", false, 1e-6, 1e9) },
	{ "-n: not in real time: as fast as they are taken", OPTION_FLAG(struct settings, fast) },
	{ "-l NUM: end after so many samples", NUMBER("limit", true, -1, 1e15) },
	{ "-F HZ: frequency of the signal (1); of a ramp its period in seconds",
	  NUMBER("frequency", false, 1e-12, 1e12) },
	{ "-a AMP: amplitude (1)", NUMBER("amplitude", false, -1e300, 1e300) },
	{ "-D DEV: standard deviation of a random walk's step (0.2)", NUMBER("stddev", false, 0, 1e300) },
	{ "-o OFF: added to every value (0)", NUMBER("offset", false, -1e300, 1e300) },
	{ "-p RAD: phase (0)", NUMBER("phase", false, -1e9, 1e9) },
	{ "-w NUM: samples that a pulse lasts (1)", NUMBER("pulse_width", false, 0, 1e15) },
	{ "-L VAL: value between pulses (0)", NUMBER("pulse_low", false, -1e300, 1e300) },
	{ "-H VAL: value of a pulse (1)", NUMBER("pulse_high", false, -1e300, 1e300) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS] SIGNAL",
	.about = "Writes samples of a generated signal to standard output. SIGNAL: mixed, random,\n"
		 "sine, square, triangle, ramp, counter, constant or pulse.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
};

int cli_signal(int argc, char **argv)
{
	struct settings s = {
		.format = "villas.human",
		.node = json_pack("{ss si sb sf}", "type", "signal", "values", 1, "builtin", 0, "rate", 10.0),
	};
	int status;

	tool_begin(argv);
	status = options_parse(&options, argc, argv, &s, NULL);
	if (status < 0) {
		json_object_set_new(s.node, "signal", json_string(argv[optind]));
		json_object_set_new(s.node, "realtime", json_boolean(!s.fast));
		status = run(argv, &s);
	}
	json_decref(s.node);
	return status;
}

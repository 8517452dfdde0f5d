/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar convert` (villas-convert): samples from one format into another. */
#define LOG_ROOM "convert"

#include "cli/tool_stream.h"
#include "gateway/sample/signals.h"
#include "util/log.h"
#include "util/options.h"

struct convert {
	const char *in_format, *out_format;
	struct signal_list *signals;
};

/* Takes over names and types that the beginning of the input has given. */
static void adopt_signals(struct tool_input *in, struct tool_output *out)
{
	const struct format_type *type = in->format->type;
	struct signal_list *l;

	if (!type->names || in->format->signals->count)
		return;
	l = type->names(in->format, in->buf + in->start, in->end - in->start);
	if (!l)
		return;
	signal_list_put(in->format->signals);
	in->format->signals = l;
	signal_list_put(out->format->signals);
	out->format->signals = signal_list_get(l);
}

static int copy(struct tool_input *in, struct tool_output *out,
		struct pool *pool)
{
	struct sample *smps[TOOL_BATCH];
	int ret = tool_input_fill(in);

	sample_alloc_many(pool, smps, TOOL_BATCH);
	if (ret > 0)
		adopt_signals(in, out);
	while (ret > 0 && !tool_stopping()) {
		int n = tool_input_scan(in, smps, TOOL_BATCH);

		if (n > 0)
			ret = tool_output_put(out, smps, (unsigned)n) ?: n;
		else if (n < 0)
			ret = n;
		else /* a reader of the output gets all that was read so far */
			ret = tool_output_flush(out) ?: tool_input_fill(in);
	}
	sample_put_many(smps, TOOL_BATCH);
	return ret;
}

static int convert(const struct tool_format *from, const struct tool_format *to)
{
	struct tool_input in;
	struct tool_output out;
	struct pool pool;
	int ret, end;

	ret = tool_input_open(&in, "-", from->format);
	if (ret)
		return ret;
	ret = tool_pool_init(&pool, TOOL_BATCH, SIGNALS_MAX);
	if (ret)
		goto err_input;
	ret = tool_output_open(&out, to->format) ?: copy(&in, &out, &pool);
	end = tool_output_close(&out, to->format->signals->count ?
					      to->format->signals : NULL);
	ret = ret < 0 ? ret : end;
	pool_destroy(&pool);
err_input:
	tool_input_close(&in);
	return ret;
}

static const struct option_entry table[] = {
	{ "-i FMT: format of the input, a name or {\"type\": ..., ...} (villas.human)",
	  OPTION_TEXT(struct convert, in_format) },
	{ "-o FMT: format of the output (villas.human)", OPTION_TEXT(struct convert, out_format) },
	{ "-t DT: types of the values, such as 12f3i (floats, as many as there are)",
	  OPTION_TAKE(struct convert, signals, tool_take_types) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS]",
	.about = "Reads samples from standard input and writes them to standard output.\n",
	.table = table,
};

int cli_convert(int argc, char **argv)
{
	struct convert c = { .in_format = "villas.human",
			     .out_format = "villas.human" };
	struct tool_format from = { 0 }, to = { 0 };
	int status;

	tool_begin(argv);
	status = options_parse(&options, argc, argv, &c, NULL);
	if (status >= 0)
		goto out;
	status = tool_format_open(&from, argv, 'i', c.in_format, c.signals) ?:
		 tool_format_open(&to, argv, 'o', c.out_format, c.signals);
	if (!status && !tool_format_can_scan(argv, &from))
		status = CLI_USAGE;
	if (!status)
		status = tool_catch_signals() ? CLI_FAILED :
						tool_status(convert(&from, &to));
	tool_format_close(&from);
	tool_format_close(&to);
out:
	signal_list_put(c.signals);
	return status;
}

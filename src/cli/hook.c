/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar hook` (villas-hook): passes samples from standard input through one hook. */
#define LOG_ROOM "hook"
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli/tool_stream.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/options.h"

/* Number of samples that a hook may keep. */
#define KEPT_MAX 1024
#define VECTOR_MAX 65536

struct settings {
	const char *file, *in_format, *out_format, *hook;
	json_t *options;   /* of the command line */
	struct signal_list *signals;
	unsigned vector;
};

/* The state while it runs. */
struct machine {
	struct hook_list *hooks;
	struct tool_input in;
	struct tool_output out;
	struct pool pool;
	struct sample **smps;
	unsigned size, vector;
	struct signal_list *signals, *hooked;
	bool started;
};

/* The node-type of the node that hooks of nodes get. */
static const struct node_type stdin_type = {
	.name = "stdin",
	.flags = NODE_CAN_READ,
};

static struct node stdin_node = {
	.name = (char *)"stdin",
	.type = &stdin_type,
	.enabled = true,
};

/* Started with the first sample, because the signals may follow from it. */
static int start_hooks(struct machine *m, unsigned length)
{
	unsigned capacity = 0;
	int ret;

	if (!m->signals)
		m->signals = signal_list_new(length, SIGNAL_FLOAT);
	if (!m->signals)
		return -ENOMEM;
	stdin_node.in.signals = m->signals;
	ret = hook_list_signals(m->hooks, m->signals, &m->hooked, &capacity);
	if (ret)
		return ret;
	if (capacity > m->pool.capacity) {
		log_error("the hook makes samples of %u values, %u are possible",
			  capacity, m->pool.capacity);
		return -ENOBUFS;
	}
	signal_list_put(m->out.format->signals);
	m->out.format->signals = m->hooked ? signal_list_get(m->hooked) :
					     signal_list_new(0, SIGNAL_FLOAT);
	ret = hook_list_start(m->hooks);
	m->started = !ret;
	return ret;
}

/* Writes the samples that the hook returned. */
static int pass_on(struct machine *m, unsigned cnt)
{
	int ret;

	for (unsigned i = 0; m->hooked && i < cnt; i++)
		m->smps[i]->signals = m->hooked;
	ret = tool_output_put(&m->out, m->smps, cnt);
	sample_put_many(m->smps, cnt);
	return ret;
}

/* Sets the receive timestamp, as a gateway does: hooks rely on it. */
static void stamp(struct machine *m, unsigned have)
{
	struct timespec now = clock_realtime();

	for (unsigned i = 0; i < have; i++) {
		struct sample *s = m->smps[i];

		if (s->flags & SAMPLE_HAS_RECEIVED)
			continue;
		s->received = now;
		s->flags |= SAMPLE_HAS_RECEIVED;
	}
}

/* Processes and writes the first `have` samples. */
static int process(struct machine *m, unsigned have)
{
	int ret = 0;

	if (!m->started)
		ret = start_hooks(m, m->smps[0]->length);
	if (ret) {
		sample_put_many(m->smps, have);
		return ret;
	}
	stamp(m, have);
	for (unsigned i = 0; i < have; i++)
		if (!m->smps[i]->signals)
			m->smps[i]->signals = m->signals;
	return pass_on(m, hook_list_process(m->hooks, m->smps, have));
}

/* Reads samples until the vector is full or no more have come yet. */
static int collect(struct machine *m, unsigned *have)
{
	int ret;

	for (;;) {
		unsigned room = sample_alloc_many(&m->pool, m->smps + *have,
						  m->size - *have);

		if (!room && !*have) {
			log_error("the hook keeps more than %u samples",
				  KEPT_MAX);
			return -ENOBUFS;
		}
		ret = tool_input_scan(&m->in, m->smps + *have, room);
		if (ret < 0 || !ret || (unsigned)ret < room)
			sample_put_many(m->smps + *have + MAX(ret, 0),
					room - (unsigned)MAX(ret, 0));
		*have += (unsigned)MAX(ret, 0);
		if (ret < 0 || *have >= m->vector)
			return ret;
		if (ret > 0)
			continue;
		ret = tool_output_flush(&m->out) ?: tool_input_fill(&m->in);
		if (ret <= 0)
			return ret;
	}
}

static int loop(struct machine *m)
{
	int ret = 1;

	while (ret > 0 && !tool_stopping()) {
		unsigned have = 0;
		int done;

		ret = collect(m, &have);
		done = have ? process(m, have) : 0;
		ret = ret < 0 ? ret : done ?: ret;
	}
	/* At the end, also after Ctrl-C, hooks give out the samples that they keep. */
	while ((!ret || ret == -EINTR) && m->started) {
		unsigned n = hook_list_flush(m->hooks, m->smps, m->size);
		int done = n ? pass_on(m, n) : 0;

		if (!n)
			break;
		ret = done ?: ret;
	}
	/* Without any sample the hook is started here, to report wrong settings. */
	if (!ret && !m->started)
		ret = start_hooks(m, SIGNALS_DEFAULT);
	return ret;
}

static int run(struct machine *m, struct format *from, struct format *to)
{
	int ret, end;

	m->size = MAX(m->vector, TOOL_BATCH);
	m->smps = calloc(m->size, sizeof(m->smps[0]));
	ret = m->smps ? tool_pool_init(&m->pool, m->size + KEPT_MAX + hook_list_hold_max(m->hooks),
				       SIGNALS_MAX) : -ENOMEM;
	if (ret)
		goto err_free;
	ret = tool_input_open(&m->in, "-", from);
	if (ret)
		goto err_pool;
	ret = tool_output_reserve() ?: tool_output_open(&m->out, to) ?: loop(m);
	end = tool_output_close(&m->out, m->started ? m->hooked : NULL);
	if (m->started)
		hook_list_stop(m->hooks);
	ret = ret < 0 ? ret : end;
	tool_input_close(&m->in);
err_pool:
	/* Before the pool: hooks release the samples that they keep. */
	hook_list_destroy(m->hooks);
	m->hooks = NULL;
	pool_destroy(&m->pool);
err_free:
	free(m->smps);
	return ret;
}

/* Puts the settings of the command line over those of the file, key by key. */
static void lay_over(json_t *under, json_t *over, json_t *keep)
{
	const char *key;
	json_t *value;

	json_object_foreach(over, key, value) {
		json_t *old = json_object_get(under, key);

		if (json_is_object(old) && json_is_object(value)) {
			lay_over(old, value, keep);
			continue;
		}
		/* Kept, because the lines of values are found by their addresses. */
		if (old)
			json_array_append(keep, old);
		json_object_set(under, key, value);
	}
}

/* Makes a configuration of the settings in file and command line. */
static int load(char **argv, const struct settings *s, struct config **out,
		json_t *keep)
{
	json_t *root, *o;

	if (s->file ? config_load(s->file, out) :
		      config_load_text(argv[0], "{}", 2, out))
		return -EINVAL;
	root = config_root(*out);
	if (!json_is_object(root)) {
		config_fail(*out, root, NULL, "expected a group with the settings of the hook");
		return -EINVAL;
	}
	lay_over(root, s->options, keep);
	o = json_object_get(root, "type");
	if (o && strcmp(json_string_value(o) ?: "", s->hook)) {
		config_fail(*out, root, "type", "is another hook than '%s'",
			    s->hook);
		return -EINVAL;
	}
	return json_object_set_new(root, "type", json_string(s->hook));
}

/* A place where the hook may be used; a path is preferred. */
static enum hook_place place_of(const char *name)
{
	const struct hook_type *type = hook_type_find(name);

	if (!type || type->places & HOOK_PATH)
		return HOOK_PATH;
	return type->places & HOOK_NODE_READ ? HOOK_NODE_READ : HOOK_NODE_WRITE;
}

static int make(char **argv, const struct settings *s)
{
	struct machine m = { .vector = s->vector };
	struct tool_format from = { 0 }, to = { 0 };
	struct config *c = NULL;
	json_t *keep = json_array();
	enum hook_place place = place_of(s->hook);
	int status = CLI_USAGE;

	m.signals = s->signals ? signal_list_get(s->signals) : NULL;
	if (load(argv, s, &c, keep) ||
	    hook_list_parse(&m.hooks, c, config_root(c), place,
			    place == HOOK_PATH ? NULL : &stdin_node, "stdin"))
		goto out;
	status = tool_format_open(&from, argv, 'f', s->in_format, s->signals) ?:
		 tool_format_open(&to, argv, 'F', s->out_format ?: s->in_format, s->signals);
	if (!status && !tool_format_can_scan(argv, &from))
		status = CLI_USAGE;
	if (!status)
		status = tool_catch_signals() ? CLI_FAILED :
			 tool_status(run(&m, from.format, to.format));
	tool_format_close(&from);
	tool_format_close(&to);
out:
	hook_list_destroy(m.hooks);
	signal_list_put(m.signals);
	signal_list_put(m.hooked);
	config_destroy(c);
	json_decref(keep);
	return status;
}

static const struct option_entry table[] = {
	{ "-c FILE: settings of the hook (libconfig or JSON)", OPTION_TEXT(struct settings, file) },
	{ "-o K=V...: one setting: the same key again, or commas in the value, make a list; dots in the key "
		       "lead into groups", OPTION_TAKE(struct settings, options, tool_take_list_setting) },
	{ "-f FMT: format of the input, a name or {\"type\": ..., ...} (villas.human)",
	  OPTION_TEXT(struct settings, in_format) },
	{ "-F FMT: format of the output (that of the input)", OPTION_TEXT(struct settings, out_format) },
	{ "-t DT: types of the values, such as 12f3i (floats, as many as there are)",
	  OPTION_TAKE(struct settings, signals, tool_take_types) },
	{ "-v NUM: samples that are given to the hook at once (1)",
	  OPTION_WHOLE(struct settings, vector, 1, VECTOR_MAX) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS] HOOK",
	.about = "Reads samples from standard input and writes to standard output what the hook\n"
		 "HOOK makes of them.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
};

int cli_hook(int argc, char **argv)
{
	struct settings s = { .in_format = "villas.human", .vector = 1,
			      .options = json_object() };
	int status;

	tool_begin(argv);
	clock_init();
	status = options_parse(&options, argc, argv, &s, NULL);
	if (status < 0) {
		s.hook = argv[optind];
		status = make(argv, &s);
	}
	json_decref(s.options);
	signal_list_put(s.signals);
	return status;
}

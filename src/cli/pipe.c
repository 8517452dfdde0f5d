/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar pipe` (villas-pipe): one node of a configuration between standard input and
 * standard output. It is a gateway with two paths, from standard input to the node and
 * from the node to standard output; these two are node-types of their own (pipe_ends.h).
 */
#define LOG_ROOM "pipe"
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "cli/pipe_ends.h"
#include "gateway/http/http.h"
#include "gateway/plugin/node.h"
#include "gateway/super_node/super_node.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/nearest.h"
#include "util/options.h"

/* Types of the values on standard input without -t. */
#define TYPES_DEFAULT "512f"
/* How long output stays in the buffer at most. */
#define FLUSH_MS 20

struct settings {
	const char *format, *config, *node;
	json_t *options;
	struct config *loaded;
	struct signal_list *signals;
	bool swap, send_only, receive_only;
	double seconds; /* < 0: no limit */
	uint64_t send_max, receive_max;
};

static struct super_node *running;

static void request_stop(void)
{
	super_node_request_stop(running);
}

static bool has_key(const struct config_key *keys, size_t count,
		    const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(keys[i].name, name))
			return true;
	return false;
}

/* A group of the keys of `own` that only one direction knows and the keys of `other` that
 * both know. */
static json_t *swapped(const struct node_type *t, json_t *own, json_t *other)
{
	json_t *group = json_object(), *v;
	const char *key;

	json_object_foreach(own, key, v)
		if (!has_key(t->in_keys, t->in_key_count, key) ||
		    !has_key(t->out_keys, t->out_key_count, key))
			json_object_set(group, key, v);
	json_object_foreach(other, key, v)
		if (has_key(t->in_keys, t->in_key_count, key) &&
		    has_key(t->out_keys, t->out_key_count, key))
			json_object_set(group, key, v);
	return group;
}

/*
 * Option -x for node-types without a callback reverse(): exchanges the keys that both
 * sides know (addresses); keys that only one side knows stay.
 */
static void swap_sides(json_t *node, const struct node_type *type, json_t *keep)
{
	json_t *in = json_object_get(node, "in");
	json_t *out = json_object_get(node, "out");
	json_t *new_in = out ? swapped(type, in, out) : NULL;
	json_t *new_out = in ? swapped(type, out, in) : NULL;

	if (in)
		json_array_append(keep, in);
	if (out)
		json_array_append(keep, out);
	json_object_del(node, "in");
	json_object_del(node, "out");
	if (new_in)
		json_object_set_new(node, "in", new_in);
	if (new_out)
		json_object_set_new(node, "out", new_out);
}

/* The node's configuration, changed by the options of the command line; NULL: error,
 * reported. */
static json_t *find_node(char **argv, const struct settings *s,
			 struct config *c, json_t *keep)
{
	json_t *nodes = json_object_get(config_root(c), "nodes"), *node, *o;
	struct nearest near = NEAREST(s->node);
	const char *name;
	char hint[100];
	size_t i;

	json_object_foreach(nodes, name, o)
		nearest_try(&near, name);
	node = json_object_get(nodes, s->node);
	if (!json_is_object(node)) {
		config_fail(c, config_root(c), "nodes", "no node '%s'%s", s->node,
			    nearest_hint(&near, hint, sizeof(hint)));
		return NULL;
	}
	json_array_foreach(s->options, i, o)
		if (tool_set(argv[0], node, json_string_value(o), false, keep))
			return NULL;
	return node;
}

/* A side that is missing has nothing that could be exchanged: the node-type says whether
 * it needs something there. */
static void complete_sides(json_t *node)
{
	static const char *const groups[] = { "in", "out" };

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (!json_object_get(node, groups[i]))
			json_object_set_new(node, groups[i], json_object());
}

/* Disables a direction that is not used; its addresses remain known. */
static void disable(json_t *node, const char *group, json_t *keep)
{
	json_t *g = json_object_get(node, group);

	if (!json_is_object(g))
		return;
	json_array_append(keep, g);
	g = json_copy(g);
	json_object_set_new(g, "enabled", json_false());
	json_object_set_new(node, group, g);
}

static json_t *make_end(const char *type, unsigned vectorize)
{
	return json_pack("{ss si sb}", "type", type, "vectorize", vectorize,
			 "builtin", 0);
}

/* The directions that the node has and the command line allows. */
struct directions {
	bool send, receive;
};

/* Decides the directions, and what the pipe does at the end of its input. */
static struct directions decide(const struct settings *s, json_t *node,
				const struct node_type *type)
{
	/* reverse() exchanges the sides later, after parsing: test the other side. */
	bool turned = s->swap && type->reverse;
	const char *read_group = turned ? "out" : "in";
	const char *write_group = turned ? "in" : "out";
	struct directions d = {
		.send = !s->receive_only && type->flags & NODE_CAN_WRITE &&
			node_side_is_open(type, node, write_group),
		.receive = !s->send_only && type->flags & NODE_CAN_READ &&
			   node_side_is_open(type, node, read_group),
	};

	pipe_ends.refuses = !d.send && !s->receive_only;
	pipe_ends.stays = d.receive && (s->receive_max > 0 || type->flags & NODE_LOOPS);
	/* Its configuration speaks of reading only. */
	pipe_ends.stays_if_empty = d.receive && json_object_get(node, read_group) &&
				   !json_object_get(node, write_group);
	pipe_ends.served = !strcmp(type->name, "websocket");
	return d;
}

/*
 * Reduces the configuration to the node and the two ends. Replaced objects are kept in
 * `keep`, because the lines of values are found by their addresses.
 */
static int rewrite(char **argv, const struct settings *s, struct config *c,
		   json_t *keep)
{
	json_t *root = config_root(c), *node, *nodes, *paths = json_array();
	const struct node_type *type;
	struct directions d = { 0 };

	json_array_append_new(keep, json_copy(root));
	node = find_node(argv, s, c, keep);
	if (!node) {
		json_decref(paths);
		return -1;
	}
	type = node_type_find(json_string_value(json_object_get(node, "type")) ?:
			      "");
	if (type && s->swap && !type->reverse)
		swap_sides(node, type, keep);
	/* An unknown type is reported later, together with other errors. */
	if (type)
		d = decide(s, node, type);
	if (type && !d.send && !d.receive) {
		config_fail(c, node, NULL, "cannot be %s",
			    s->receive_only ? "read" :
			    s->send_only ? "written" : "read or written");
		json_decref(paths);
		return -1;
	}
	if (s->swap && type && type->reverse)
		complete_sides(node);
	if (s->send_only)
		disable(node, "in", keep);
	if (s->receive_only)
		disable(node, "out", keep);
	nodes = json_pack("{sO}", s->node, node);
	/* A full loopback queue makes standard input wait, so no sample is lost. */
	if (d.send && d.receive && type->flags & NODE_LOOPS &&
	    !json_object_get(node, "full"))
		json_object_set_new(node, "full", json_string("block"));
	if (d.send) {
		json_object_set_new(nodes, PIPE_IN, make_end(PIPE_IN, 16));
		json_array_append_new(paths, json_pack("{ss ss si}", "in",
			PIPE_IN, "out", s->node, "queuelen", 64));
	}
	if (d.receive) {
		json_object_set_new(nodes, PIPE_OUT, make_end(PIPE_OUT, 64));
		json_array_append_new(paths, json_pack("{ss ss}", "in",
			s->node, "out", PIPE_OUT));
	}
	json_object_set_new(root, "nodes", nodes);
	json_object_set_new(root, "paths", paths);
	json_object_set_new(root, "hugepages", json_integer(0));
	json_object_set_new(root, "idle_stop", json_true());
	/* Only clients of a node `websocket` are served. */
	if (!pipe_ends.served)
		json_object_del(root, "http");
	return 0;
}

static void wait_for_end(struct super_node *sn, const struct settings *s)
{
	uint64_t start = clock_now_ns();

	while (!super_node_wait(sn, FLUSH_MS)) {
		pipe_flush();
		if (s->seconds >= 0 &&
		    (double)(clock_now_ns() - start) >= s->seconds * 1e9)
			break;
	}
}

/*
 * The HTTP server for the clients of a node `websocket`: as the configuration says, and
 * without a group `http` as `busbar run --http` does. A node that connects itself, perhaps
 * to this server, does without if it has to.
 */
static int serve(struct super_node *sn, const struct settings *s, struct http **http)
{
	json_t *root = config_root(s->loaded), *group = json_object_get(root, "http");
	const struct node *n = super_node_find(sn, s->node);
	int ret = http_start(http, sn, group ? NULL : "");

	if (json_object_get(n->cfg, "destinations"))
		return 0;
	if (ret || *http)
		return ret;
	config_fail(s->loaded, root, "http",
		    "is not enabled, so nobody can connect to node '%s', which has no `destinations` either",
		    n->name);
	return -EINVAL;
}

static int carry(struct super_node *sn, const struct settings *s)
{
	struct http *http = NULL;
	int ret = pipe_ends.served ? serve(sn, s, &http) : 0;
	bool started = !ret && !super_node_start(sn);

	if (started && pipe_ends.refuses)
		ret = pipe_refuse_start();
	if (started && !ret)
		wait_for_end(sn, s);
	http_stop(http);
	if (!started)
		return -EIO;
	super_node_stop(sn);
	return ret;
}

/* Samples of standard input that have not reached the node, and others that were lost
 * though nothing allows it. Reports those that have not been reported. */
static uint64_t count_lost(struct super_node *sn, const struct node *n)
{
	uint64_t refused = atomic_load(&n->counters.not_sent), unread = 0;

	if (refused)
		log_warn("node %s did not take %ju samples", n->name,
			 (uintmax_t)refused);
	if (pipe_ends.refuses)
		unread = pipe_refuse_stop(n->name);
	return refused + unread + atomic_load(&n->counters.not_stored) +
	       super_node_losses(sn);
}

static int run(struct super_node *sn, const struct settings *s)
{
	struct node *n = super_node_find(sn, s->node);
	uint64_t lost;
	int ret = 0;

	if (s->swap && n->type->reverse)
		ret = n->type->reverse(n);
	if (ret)
		return CLI_USAGE;
	if (tool_catch_signals())
		return CLI_FAILED;
	running = sn;
	tool_on_stop(request_stop);
	ret = carry(sn, s);
	tool_on_stop(NULL);
	lost = count_lost(sn, n);
	if (ret || atomic_load(&pipe_ends.failed) || super_node_has_failed(sn))
		return CLI_FAILED;
	return lost ? CLI_LOST : CLI_OK;
}

static int make(char **argv, struct settings *s)
{
	struct tool_format in = { 0 }, out = { 0 };
	struct super_node *sn = NULL;
	struct config *c = NULL;
	json_t *keep = json_array();
	int status = CLI_USAGE;

	if (tool_format_open(&in, argv, 'f', s->format, s->signals) ||
	    tool_format_open(&out, argv, 'f', s->format, NULL))
		goto out;
	pipe_ends.in_format = in.format;
	pipe_ends.out_format = out.format;
	pipe_ends.signals = s->signals;
	pipe_ends.send_max = s->send_max;
	pipe_ends.receive_max = s->receive_max;
	plugin_extend(node_plugins, pipe_plugins);
	if (config_load(s->config, &c) || rewrite(argv, s, c, keep))
		goto out;
	if (!s->receive_only && !tool_format_can_scan(argv, &in))
		goto out;
	s->loaded = c;
	if (!tool_output_reserve() && !super_node_new(&sn, c))
		status = run(sn, s);
	super_node_destroy(sn);
out:
	config_destroy(c);
	json_decref(keep);
	tool_format_close(&in);
	tool_format_close(&out);
	return status;
}

static const struct option_entry table[] = {
	{ "-f FMT: format of both streams, a name or {\"type\": ..., ...} (villas.human)",
	  OPTION_TEXT(struct settings, format) },
	{ "-t DT: types of the values on standard input, such as 12f3i (512f)",
	  OPTION_TAKE(struct settings, signals, tool_take_types) },
	{ "-o K=V...: overrides a setting of the node; dots in the key lead into groups",
	  OPTION_TAKE(struct settings, options, tool_take_text) },
	{ "-x: swaps the node's two sides: what `in` says is for sending", OPTION_FLAG(struct settings, swap) },
	{ "-s: only send", OPTION_FLAG(struct settings, send_only) },
	{ "-r: only receive", OPTION_FLAG(struct settings, receive_only) },
	{ "-T S: end after S seconds", OPTION_REAL(struct settings, seconds, 0, 1e15) },
	{ "-L NUM: end after NUM samples were sent", OPTION_WHOLE(struct settings, send_max, 0, 1e15) },
	{ "-l NUM: end after NUM samples were received, and not with standard input",
	  OPTION_WHOLE(struct settings, receive_max, 0, 1e15) },
	TOOL_OPTIONS,
};

static const struct options options = {
	.synopsis = "[OPTIONS] CONFIG NODE",
	.about = "Sends what comes from standard input to node NODE of CONFIG, and prints what the\n"
		 "node receives. Ends when standard input does.\n",
	.table = table,
	.operands_min = 2,
	.operands_max = 2,
};

static int parse(int argc, char **argv, struct settings *s)
{
	int status = options_parse(&options, argc, argv, s, NULL);

	if (status >= 0)
		return status;
	if (s->send_only && s->receive_only)
		return options_wrong(&options, argv, "-s and -r exclude each other");
	s->config = argv[optind];
	s->node = argv[optind + 1];
	pipe_ends.any_signals = !s->signals;
	if (!s->signals && !tool_types(argv[0], TYPES_DEFAULT, &s->signals))
		return CLI_FAILED;
	return -1;
}

int cli_pipe(int argc, char **argv)
{
	struct settings s = { .format = "villas.human", .seconds = -1,
			      .options = json_array() };
	int status;

	tool_begin(argv);
	status = parse(argc, argv, &s);
	if (status < 0)
		status = make(argv, &s);
	json_decref(s.options);
	signal_list_put(s.signals);
	return status;
}

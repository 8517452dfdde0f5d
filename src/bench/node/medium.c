/* SPDX-License-Identifier: BSD-2-Clause */
/* The node-types under test; see medium.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/medium.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "util/container_of.h"
#include "util/log.h"

/* Samples that the target takes at a time: with one it falls behind where they come in bursts. */
#define TAKES "in.vectorize=16"
#define QUEUE "queuelen=8192"
#define SIGNALS "in.signals.count=$values in.signals.type=float"
#define INFINIBAND "rdma_transport_mode=$service"
#define SOCKET_SOURCE(layer, address) "layer=" layer " format=busbar.binary out.address=" address
#define SOCKET_TARGET(layer, address) \
	"layer=" layer " format=busbar.binary in.address=" address " in.polling=$polling " TAKES \
	" " SIGNALS

static const struct bench_node_medium media[] = {
	/* The source receives nothing, so its receive queue is as short as can be. */
	{ .name = "infiniband", .type = "infiniband", .ready = "listening on",
	  .addressed = true, .services = true,
	  .source = INFINIBAND " in.address=$source in.max_wrs=4 in.cq_size=4 "
		    "in.buffer_subtraction=2 out.address=$target out.resolution_timeout=1000 "
		    "out.send_inline=true out.max_inline_data=128 out.use_fallback=true "
		    "out.max_wrs=4096 out.cq_size=4096 out.periodic_signaling=2048",
	  .target = INFINIBAND " in.address=$target in.max_wrs=512 in.cq_size=512 "
		    "in.buffer_subtraction=64 " TAKES " in.polling=$polling " SIGNALS },
	{ .name = "shmem", .type = "shmem", .removable = true,
	  .source = "mode=$waiting " QUEUE " out.name=/$tag",
	  .target = "mode=$waiting " QUEUE " in.name=/$tag " TAKES " " SIGNALS },
	{ .name = "simulator", .type = "shmem", .both_ends = true, .removable = true,
	  .source = "mode=$waiting " QUEUE " exec=[$program,/$tag-in,/$tag-out,16,$program_mode] "
		    "in.name=/$tag-in " TAKES " " SIGNALS " out.name=/$tag-out" },
	{ .name = "loopback", .type = "loopback", .both_ends = true,
	  .source = "mode=$waiting " QUEUE },
	/* A loopback behind the file under test, which leaves the processors to that. */
	{ .name = "file", .type = "file", .node = "loopback", .both_ends = true, .logs = true,
	  .source = "mode=$mark " QUEUE },
	{ .name = "udp", .type = "socket", .addressed = true,
	  .source = SOCKET_SOURCE("udp", "$target"), .target = SOCKET_TARGET("udp", "$target") },
	{ .name = "tcp", .type = "socket", .addressed = true,
	  .source = SOCKET_SOURCE("tcp-client", "$target"),
	  .target = SOCKET_TARGET("tcp-server", "$target") },
	{ .name = "unix", .type = "socket",
	  .source = SOCKET_SOURCE("unix", "@$tag"), .target = SOCKET_TARGET("unix", "@$tag") },
	{ .name = "exec", .type = "exec", .both_ends = true,
	  .source = "format=busbar.binary exec=[cat] " SIGNALS },
	/* Named by the sources; not every build has them. By the keys that VILLASnode's have. The
	 * publisher of zeromq binds. */
	{ .name = "zeromq", .type = "zeromq", .addressed = true,
	  .source = "format=busbar.binary out.publish=tcp://$source",
	  .target = "format=busbar.binary in.subscribe=tcp://$source " SIGNALS },
	{ .name = "nanomsg", .type = "nanomsg", .addressed = true,
	  .source = "format=busbar.binary out.endpoints=[tcp://$target]",
	  .target = "format=busbar.binary in.endpoints=[tcp://$target] " SIGNALS },
};

/* Any other node-type, of which only the user knows the keys. */
static const struct bench_node_medium any = { .addressed = true, .source = "out={}",
					      .target = SIGNALS };

/* ---- the keys of an end ---- */

/* A text, in which one "$name" is replaced; malloc()ed. */
static char *expand(const struct bench_node_settings *s, const char *text, size_t size)
{
	bool busy = !strcmp(s->polling, "busy"), event = !strcmp(s->polling, "event");
	char ends[BENCH_NODE_ENDS][80], values[12], program[PATH_MAX], *out;
	const struct {
		const char *name, *value;
	} all[] = {
		{ "service", s->service }, { "polling", s->polling }, { "tag", s->tag },
		/* In the words of the nodes that wait for other processes, or for the network. */
		{ "waiting", busy ? "polling" : event ? "pthread" : "auto" },
		{ "mark", event ? "pthread" : "auto" },
		{ "program_mode", event ? "pthread" : "polling" },
		/* Absolute: gateways run in a folder of their own. */
		{ "program", s->simulator && strchr(s->simulator, '/') &&
				     realpath(s->simulator, program) ? program : s->simulator },
		{ "values", values }, { "source", ends[BENCH_NODE_SOURCE] },
		{ "target", ends[BENCH_NODE_TARGET] },
	};
	const char *dollar = memchr(text, '$', size);
	size_t i = 0, length;

	if (!dollar)
		return strndup(text, size);
	snprintf(values, sizeof(values), "%u", s->values);
	for (int end = 0; end < BENCH_NODE_ENDS; end++)
		snprintf(ends[end], sizeof(ends[end]), "%s:%u", s->host[end], s->port[end]);
	while (strncmp(dollar + 1, all[i].name, strlen(all[i].name)))
		i++;
	length = (size_t)(dollar - text) + 1 + strlen(all[i].name);
	return asprintf(&out, "%.*s%s%.*s", (int)(dollar - text), text, all[i].value,
			(int)(size - length), text + length) < 0 ? NULL : out;
}

/* A number, true, {}, a list of texts, or a text. */
static json_t *value_of(const struct bench_node_settings *s, const char *text, size_t size)
{
	json_t *list = *text == '[' ? json_array() : NULL, *value;
	char *whole;

	while (list && size > 2) {
		size_t n = strcspn(text + 1, ",]");

		whole = expand(s, text + 1, n);
		json_array_append_new(list, json_string(whole));
		free(whole);
		text += n + 1;
		size -= n + 1;
	}
	if (list)
		return list;
	whole = expand(s, text, size);
	if (!whole)
		return NULL;
	if (!strcmp(whole, "{}"))
		value = json_object();
	else if (!strcmp(whole, "true"))
		value = json_true();
	else if (*whole && !whole[strspn(whole, "0123456789")])
		value = json_integer(atoll(whole));
	else
		value = json_string(whole);
	free(whole);
	return value;
}

json_t *bench_node_keys(const struct bench_node_settings *s, const char *type, const char *words)
{
	json_t *node = json_pack("{ss}", "type", type);

	for (; words && *words; words += strspn(words, " ")) {
		size_t key = strcspn(words, "="), word = strcspn(words, " ");
		json_t *at = node;
		char name[64];

		/* "in.signals.count": groups within groups. */
		for (size_t n; (n = strcspn(words, ".=")) < key; words += n + 1, key -= n + 1) {
			snprintf(name, sizeof(name), "%.*s", (int)n, words);
			if (!json_object_get(at, name))
				json_object_set_new(at, name, json_object());
			at = json_object_get(at, name);
			word -= n + 1;
		}
		snprintf(name, sizeof(name), "%.*s", (int)key, words);
		json_object_set_new(at, name, value_of(s, words + key + 1, word - key - 1));
		words += word;
	}
	return node;
}

/* ---- by name ---- */

static const struct bench_node_medium *in_table(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(media); i++)
		if (!strcmp(media[i].name, name))
			return &media[i];
	return NULL;
}

const struct bench_node_medium *bench_node_medium_find(const char *name)
{
	return in_table(name) ?: (plugin_is_there(node_plugins, name) ? &any : NULL);
}

void bench_node_medium_list(char *text, size_t size)
{
	FILE *f = fmemopen(text, size - 1, "w");

	text[size - 1] = '\0';
	for (size_t i = 0; f && i < ARRAY_SIZE(media); i++)
		fprintf(f, "%s%s", i ? " " : "", media[i].name);
	for (const struct plugin *p = node_plugins; f && p->name; p++)
		if (!in_table(p->name))
			fprintf(f, " %s", p->name);
	if (f)
		fclose(f);
}

int bench_node_medium_is_there(const struct bench_node_settings *s)
{
	const char *name = s->medium->type ? s->medium->type : s->node;
	const struct node_type *type;

	if (!plugin_is_there(node_plugins, name))
		return log_fail(-EOPNOTSUPP, "node: this gateway has no node-type '%s'", name);
	type = node_type_find(name);
	if (!type)
		return log_fail(-EOPNOTSUPP, "node: the module of node-type '%s' cannot be loaded",
				name);
	if (!(type->flags & NODE_CAN_WRITE) || !(type->flags & NODE_CAN_READ))
		return log_fail(-EOPNOTSUPP,
				"node: '%s' cannot be %s, so nothing can go through it", name,
				type->flags & NODE_CAN_WRITE ? "read" : "written");
	return 0;
}

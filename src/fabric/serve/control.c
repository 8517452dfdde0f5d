/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to the fabric's process; see control.h. */
#define LOG_ROOM "fabric"
#include "fabric/serve/control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/agent/agent.h"
#include "fabric/serve/nodes.h"
#include "fabric/serve/out.h"
#include "fabric/serve/show.h"
#include "util/log.h"

#define LINE_MAX_BYTES 512

/* What a command says: a text that is allocated, and an errno. */
struct answer {
	char *text;
	size_t bytes;
	int err;
};

__attribute__((format(printf, 2, 3))) static struct answer say(int err, const char *format, ...)
{
	struct answer a = { .err = err };
	va_list ap;
	int n;

	va_start(ap, format);
	n = vasprintf(&a.text, format, ap);
	va_end(ap);
	if (n < 0)
		return (struct answer){ .err = -ENOMEM };
	a.bytes = (size_t)n;
	return a;
}

static struct answer on_show(struct serve *s, const char *argument, int number)
{
	struct answer a = { 0 };

	if (*argument)
		return say(-EINVAL, "show has no argument, '%s' is one", argument);
	a.err = serve_show(s, &a.text, &a.bytes);
	return a;
}

/* How many cables of the node were set; `port` 0: of all. */
static unsigned set_cables(struct serve *s, uint32_t node, unsigned port, bool joined)
{
	const struct topology_node *n = &s->topology->nodes[node];
	unsigned set = 0;

	for (unsigned p = port ? port : 1; p <= (port ? port : n->port_count); p++)
		if (n->ports[p].link != TOPOLOGY_NONE &&
		    !fabric_agents_cable(s->agents, node, (uint8_t)p, joined, s->now_ns))
			set++;
	return set;
}

enum { CUT, JOIN, FAIL };

static struct answer on_cable(struct serve *s, const char *name, int what)
{
	static const char *const done[] = { "cut", "joined", "cut" };
	unsigned port, set;
	uint32_t node = serve_nodes_find(s, name, &port);
	char hint[128];

	if (!*name)
		return say(-EINVAL, "the name of a node is missing, as in 'cut leaf-1:3'");
	if (node == TOPOLOGY_NONE)
		return say(-ENODEV, "the fabric has no node '%s'%s", name,
			   serve_nodes_hint(s, name, 0, hint, sizeof(hint)));
	if (port > s->topology->nodes[node].port_count)
		return say(-ENODEV, "%s has ports 1 to %u", s->topology->nodes[node].id,
			   s->topology->nodes[node].port_count);
	if (what == FAIL && port)
		return say(-EINVAL, "a node fails as a whole; for one port: cut %s", name);
	if (what == CUT && !port && s->topology->nodes[node].port_count > 1)
		return say(-EINVAL, "%s has %u ports: say which one, as in 'cut %s:1', or fail the node",
			   name, s->topology->nodes[node].port_count, name);
	set = set_cables(s, node, port, what == JOIN);
	if (!set)
		return say(-ENOLINK, "%s has no cable there", name);
	log_info("%u cable%s of %s %s", set, set > 1 ? "s" : "", name, done[what]);
	return say(0, "%u cable%s of %s %s\n", set, set > 1 ? "s" : "", name, done[what]);
}

static struct answer on_stop(struct serve *s, const char *argument, int number)
{
	s->stopping = true;
	return say(0, "stops\n");
}

static const struct {
	const char *word;
	struct answer (*f)(struct serve *s, const char *argument, int number);
	int number;
	bool changes;
} commands[] = {
	{ "show", on_show, 0, false },	    { "cut", on_cable, CUT, true },  { "join", on_cable, JOIN, true },
	{ "fail", on_cable, FAIL, true },  { "stop", on_stop, 0, true },
};

void serve_control(struct serve_client *c, const char *line, size_t bytes, uint32_t question)
{
	char text[LINE_MAX_BYTES + 1] = "", *argument;
	struct answer a = { .err = -EINVAL };

	memcpy(text, line, bytes < LINE_MAX_BYTES ? bytes : LINE_MAX_BYTES);
	for (char *p = text; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
	argument = text + strcspn(text, " ");
	if (*argument)
		*argument++ = '\0';
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].word, text)) {
			if (commands[i].changes && !c->may_change)
				a = say(-EPERM, "'%s' is for the user who runs the fabric, user %u is another one",
					text, (unsigned)c->uid);
			else
				a = commands[i].f(c->serve, argument, commands[i].number);
			serve_out_text(c, a.text, a.bytes, a.err, question);
			return;
		}
	a = say(-EINVAL, "'%s' is not known; there are show, cut, join, fail, stop", text);
	serve_out_text(c, a.text, a.bytes, a.err, question);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of keys, key by key. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/super_node/schema.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/hook.h"
#include "gateway/config/keys.h"
#include "gateway/plugin/node.h"
#include "util/nearest.h"

/* One group of keys and the names it goes by. */
struct section {
	const char *kind;        /* "node-type", NULL: a group of every file */
	const char *name;        /* "file" */
	const char *part;        /* "in", "out" or "" */
	const char *description;
	const struct config_key *keys;
	size_t count;
};

struct search {
	const char *what;        /* NULL: only name the groups */
	FILE *out;
	unsigned found;
	struct nearest near;
	char names[2][128];      /* near.best points at one of them */
	unsigned turn;
};

static const char *type_name(enum config_type type)
{
	switch (type) {
	case CONFIG_BOOL: return "true or false";
	case CONFIG_INT: return "whole number";
	case CONFIG_REAL: return "number";
	case CONFIG_STRING: return "text";
	case CONFIG_ENUM: return "one of";
	case CONFIG_JSON: return "group, list or value";
	}
	return "value";
}

static void print_key(FILE *out, const struct section *s,
		      const struct config_key *k)
{
	fprintf(out, "%s%s%s%s%s: %s", s->name, *s->name ? "." : "", s->part,
		*s->part ? "." : "", k->name, type_name(k->type));
	for (size_t i = 0; k->type == CONFIG_ENUM && k->names[i]; i++)
		fprintf(out, "%s%s", i ? ", " : " ", k->names[i]);
	if ((k->type == CONFIG_INT || k->type == CONFIG_REAL) &&
	    (k->min != 0 || k->max != 0)) {
		if (k->max >= (double)INT64_MAX)
			fprintf(out, ", %.10g or more", k->min);
		else
			fprintf(out, ", %.10g to %.10g", k->min, k->max);
	}
	if (k->required)
		fputs(", required", out);
	else if (k->fallback && strcmp(k->fallback, "\n"))
		fprintf(out, ", default %s", k->fallback);
	else if (k->type == CONFIG_BOOL)
		fputs(", default false", out);
	else if (k->type == CONFIG_INT || k->type == CONFIG_REAL)
		fputs(", default 0", out);
	fprintf(out, "\n\t%s\n", k->help ? k->help : "");
}

static void print_section(FILE *out, const struct section *s)
{
	if (s->kind)
		fprintf(out, "%s %s%s%s%s%s\n\n", s->kind, s->name,
			*s->part ? ", group " : "", s->part,
			s->description && !*s->part ? ": " : "",
			s->description && !*s->part ? s->description : "");
	for (size_t i = 0; i < s->count; i++)
		print_key(out, s, &s->keys[i]);
	fputc('\n', out);
}

/* Remembers the nearest name although it is put together in a buffer. */
static void try_name(struct search *q, const char *name)
{
	const char *before = q->near.best;
	char *copy = q->names[q->turn];

	snprintf(copy, sizeof(q->names[0]), "%s", name);
	nearest_try(&q->near, copy);
	if (q->near.best != before)
		q->turn ^= 1;
}

static void visit(struct search *q, const struct section *s)
{
	char name[128], key[256];

	snprintf(name, sizeof(name), "%s%s%s", s->name,
		 *s->name && *s->part ? "." : "", s->part);
	if (!q->what) {
		if (!*s->part || !s->kind)
			fprintf(q->out, "%-12s %-20s %s\n",
				s->kind ? s->kind : "group",
				*name ? name : "(top level)",
				s->description ? s->description : "");
		return;
	}
	if (*name)
		try_name(q, name);
	if (!strcmp(q->what, name) || (s->kind && !strcmp(q->what, s->name))) {
		print_section(q->out, s);
		q->found++;
		return;
	}
	for (size_t i = 0; i < s->count; i++) {
		snprintf(key, sizeof(key), "%s%s%s", name, *name ? "." : "",
			 s->keys[i].name);
		try_name(q, s->keys[i].name);
		if (strcmp(q->what, key) && strcmp(q->what, s->keys[i].name))
			continue;
		print_key(q->out, s, &s->keys[i]);
		q->found++;
	}
}

static void visit_groups(struct search *q)
{
	const struct {
		const char *name, *part, *description;
		const struct key_table *t;
	} groups[] = {
		{ "", "", "keys of a whole file", &keys_top },
		{ "logging", "", "the log", &keys_logging },
		{ "logging", "expressions", "levels of single rooms",
		  &keys_expression },
		{ "http", "", "the HTTP server", &keys_http },
		{ "nodes", "", "keys of every node", &keys_node },
		{ "nodes", "in", "keys of reading from every node",
		  &keys_direction },
		{ "nodes", "out", "keys of writing to every node",
		  &keys_direction },
		{ "paths", "", "keys of a path", &keys_path },
		{ "hooks", "", "keys of every hook", &keys_hook },
		{ "format", "", "keys of every format", &keys_format },
	};

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		visit(q, &(struct section){ NULL, groups[i].name,
					    groups[i].part,
					    groups[i].description,
					    groups[i].t->keys,
					    groups[i].t->count });
}

static void visit_plugins(struct search *q)
{
	for (const struct plugin *p = node_plugins; p->name; p++) {
		const struct node_type *t = plugin_type(p);

		if (!t)
			continue;
		visit(q, &(struct section){ "node-type", p->name, "",
					    t->description, t->keys,
					    t->key_count });
		visit(q, &(struct section){ "node-type", p->name, "in", "",
					    t->in_keys, t->in_key_count });
		visit(q, &(struct section){ "node-type", p->name, "out", "",
					    t->out_keys, t->out_key_count });
	}
	for (const struct plugin *p = hook_plugins; p->name; p++) {
		const struct hook_type *t = plugin_type(p);

		if (t)
			visit(q, &(struct section){ "hook", p->name, "",
						    t->description, t->keys,
						    t->key_count });
	}
	for (const struct plugin *p = format_plugins; p->name; p++) {
		const struct format_type *t = plugin_type(p);

		if (t)
			visit(q, &(struct section){ "format", p->name, "",
						    t->description, t->keys,
						    t->key_count });
	}
}

int config_explain(const char *what, FILE *out)
{
	struct search q = { .what = what, .out = out,
			    .near = NEAREST(what ? what : "") };
	char hint[128];

	visit_groups(&q);
	visit_plugins(&q);
	if (!what || q.found)
		return 0;
	fprintf(stderr, "'%s' is no key, group, node-type, hook or format%s\n",
		what, nearest_hint(&q.near, hint, sizeof(hint)));
	return -ENOENT;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading a configuration and telling where in it something stands. The tables
 * of keys are in config_unpack.c.
 *
 * Places are looked up only for messages, so a plain array does.
 */
#define LOG_ROOM "config"
#include "gateway/config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config/tree.h"
#include "util/container_of.h"
#include "util/log.h"

size_t config_place_add(struct config *c, size_t parent, const char *key,
			size_t index, const json_t *value, unsigned line)
{
	struct config_place *p;

	if (c->place_count == c->place_capacity) {
		size_t capacity = c->place_capacity ? c->place_capacity * 2 : 64;

		p = reallocarray(c->places, capacity, sizeof(*p));
		if (!p) {
			c->no_memory = true;
			return 0;
		}
		c->places = p;
		c->place_capacity = capacity;
	}
	p = &c->places[c->place_count];
	*p = (struct config_place){
		.value = value,
		.parent = parent,
		.key = key ? strdup(key) : NULL,
		.index = index,
		.line = line,
	};
	if (key && !p->key)
		c->no_memory = true;
	return c->place_count++;
}

/* True the first time. What stands on a node holds for both directions, so it
 * is looked at twice. */
static bool is_news(struct config *c, const char *message)
{
	uint64_t hash = 14695981039346656037u, *more;

	for (; *message; message++)
		hash = (hash ^ (unsigned char)*message) * 1099511628211u;
	for (unsigned i = 0; i < c->reported_count; i++)
		if (c->reported[i] == hash)
			return false;
	more = reallocarray(c->reported, c->reported_count + 1, sizeof(*more));
	if (more) {
		c->reported = more;
		more[c->reported_count++] = hash;
	}
	/* Without memory it may be told twice. */
	return true;
}

static _Thread_local json_t *collected, *problems;

void config_collect_errors(json_t *list)
{
	collected = list;
}

void config_collect_problems(json_t *list)
{
	problems = list;
}

/* What is no UTF-8, such as a name that was cut, is told in ASCII. */
static json_t *told(const char *text)
{
	json_t *o = json_string(text);
	char plain[1024];
	size_t i;

	for (i = 0; !o && text[i] && i + 1 < sizeof(plain); i++)
		plain[i] = (unsigned char)text[i] < 128 ? text[i] : '?';
	plain[o ? 0 : i] = '\0';
	return o ? o : json_string(plain);
}

static void collect_problem(enum log_level level, const char *file, unsigned line,
			    const char *path, const char *text)
{
	json_t *o = json_pack("{ss so sI so}", "level",
			      level == LOG_ERROR ? "error" : "warning", "file", told(file),
			      "line", (json_int_t)line, "message", told(text));

	if (*path)
		json_object_set_new(o, "key", told(path));
	json_array_append_new(problems, o);
}

const char *config_source(const struct config *c)
{
	return c->source ? c->source : "";
}

const char *config_file(const struct config *c)
{
	return c->file_count ? c->files[0] : "";
}

__attribute__((format(printf, 6, 0)))
static void report(struct config *c, enum log_level level, unsigned file,
		   unsigned line, const char *path, const char *fmt,
		   va_list args)
{
	const char *name = file < c->file_count ? c->files[file] : "?";
	char text[768], message[960];

	vsnprintf(text, sizeof(text), fmt, args);
	snprintf(message, sizeof(message), "%s:%u: %s%s%s", name, line, path,
		 *path ? ": " : "", text);
	if (!is_news(c, message))
		return;
	if (problems) {
		collect_problem(level, name, line, path, text);
		c->errors += level == LOG_ERROR;
		return;
	}
	if (level != LOG_ERROR) {
		log_warn("%s", message);
		return;
	}
	c->errors++;
	log_error("%s", message);
	if (collected)
		json_array_append_new(collected, json_string(message));
}

void config_error_in(struct config *c, unsigned file, unsigned line,
		     const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report(c, LOG_ERROR, file, line, "", fmt, args);
	va_end(args);
}

/* File and line of a line of the expanded text. */
static struct config_line resolve(const struct config *c, unsigned line)
{
	if (!c->line_count)
		return (struct config_line){ 0, 1 };
	return c->lines[line ? MIN(line, c->line_count) - 1 : 0];
}

void config_error_at(struct config *c, unsigned line, const char *fmt, ...)
{
	struct config_line at = resolve(c, line);
	va_list args;

	va_start(args, fmt);
	report(c, LOG_ERROR, at.file, at.line, "", fmt, args);
	va_end(args);
}

int config_load_text(const char *name, const char *text, size_t len,
		     struct config **out)
{
	struct config *c = calloc(1, sizeof(*c));
	size_t mark = config_text_mark(text, len);
	bool json;
	int ret;

	if (!c)
		return -ENOMEM;
	text += mark;
	len -= mark;
	json = config_text_is_json(text, len);
	c->source = strndup(text, len);
	c->no_memory |= !c->source;
	ret = config_text_expand(c, config_file_add(c, name), text, len, json);
	if (!ret)
		ret = json ? config_parse_json(c) : config_parse_libconfig(c);
	if (!ret)
		config_env_expand_strings(c);
	if (!ret && c->errors)
		ret = -EINVAL;
	if (c->no_memory) {
		log_error("%s: out of memory", name);
		ret = -ENOMEM;
	}
	if (ret) {
		config_destroy(c);
		return ret;
	}
	free(c->text);
	c->text = NULL;
	*out = c;
	return 0;
}

static int load_file(const char *path, bool only_regular, struct config **out)
{
	char *text;
	size_t len;
	int ret;

	/* How scripts for VILLASnode may name a file of this host. */
	if (!strncmp(path, "file://", 7))
		path += 7;
	ret = config_text_read(path, only_regular, &text, &len);
	if (only_regular && ret == -EINVAL)
		ret = -ESPIPE;
	if (ret) {
		log_error("cannot read configuration %s: %s", path,
			  ret == -ESPIPE ? "not a regular file" : strerror(-ret));
		return ret;
	}
	ret = config_load_text(strcmp(path, "-") ? path : "stdin", text, len,
			       out);
	free(text);
	return ret;
}

int config_load(const char *path, struct config **out)
{
	return load_file(path, false, out);
}

int config_load_regular(const char *path, struct config **out)
{
	return load_file(path, true, out);
}

void config_release(struct config *c)
{
	json_decref(c->root);
	for (size_t i = 0; i < c->place_count; i++) {
		free(c->places[i].key);
		free(c->places[i].where);
	}
	for (unsigned i = 0; i < c->file_count; i++)
		free(c->files[i]);
	free(c->places);
	free(c->files);
	free(c->lines);
	free(c->text);
	free(c->source);
	free(c->reported);
}

void config_destroy(struct config *c)
{
	if (!c)
		return;
	config_release(c);
	free(c);
}

json_t *config_root(struct config *c)
{
	return c->root;
}

unsigned config_errors(const struct config *c)
{
	return c->errors;
}

/* True, false and null are one object each, wherever they stand. */
static bool is_shared(const json_t *value)
{
	return json_is_boolean(value) || json_is_null(value);
}

static struct config_place *place_of(struct config *c, const json_t *value)
{
	for (size_t i = 0; value && i < c->place_count; i++)
		if (c->places[i].value == value)
			return &c->places[i];
	return NULL;
}

/* The place of member `key` of `at`. */
static struct config_place *place_of_member(struct config *c,
					    const json_t *at, const char *key)
{
	struct config_place *parent = place_of(c, at);

	for (size_t i = 1; parent && i < c->place_count; i++) {
		struct config_place *p = &c->places[i];

		if (&c->places[p->parent] == parent && p->key &&
		    !strcmp(p->key, key))
			return p;
	}
	return NULL;
}

/* "nodes.sig.rate", "paths[0].in[1]"; into buf. */
static void print_path(const struct config *c, const struct config_place *p,
		       FILE *f)
{
	if (p == c->places)
		return;
	print_path(c, &c->places[p->parent], f);
	if (p->key)
		fprintf(f, "%s%s", p->parent ? "." : "", p->key);
	else
		fprintf(f, "[%zu]", p->index);
}

/* Of member `key` of `at`, or of `at` itself. */
__attribute__((format(printf, 5, 0)))
static void report_value(struct config *c, enum log_level level,
			 const json_t *at, const char *key, const char *fmt,
			 va_list args)
{
	struct config_place *place = key ? place_of_member(c, at, key) : NULL;
	bool missing = key && !place;
	struct config_line where = { 0, 1 };
	char path[256] = "";
	FILE *f;

	if (!place)
		place = place_of(c, at);
	if (place)
		where = resolve(c, place->line);
	f = fmemopen(path, sizeof(path) - 1, "w");
	if (f) {
		if (place)
			print_path(c, place, f);
		if (missing)
			fprintf(f, "%s%s", ftell(f) > 0 ? "." : "", key);
		fclose(f);
	}
	report(c, level, where.file, where.line, path, fmt, args);
}

void config_fail(struct config *c, const json_t *at, const char *key,
		 const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report_value(c, LOG_ERROR, at, key, fmt, args);
	va_end(args);
}

void config_warn(struct config *c, const json_t *at, const char *key,
		 const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	report_value(c, LOG_WARN, at, key, fmt, args);
	va_end(args);
}

static bool pass_unknown_keys;

void config_pass_unknown_keys(bool on)
{
	pass_unknown_keys = on;
}

int config_unknown_key(struct config *c, const json_t *at, const char *key,
		       const char *hint)
{
	if (!pass_unknown_keys) {
		config_fail(c, at, key, "unknown key%s", hint);
		return -EINVAL;
	}
	config_warn(c, at, key, "unknown key, passed over%s", hint);
	return 0;
}

const char *config_where(struct config *c, const json_t *value)
{
	struct config_place *p = is_shared(value) ? NULL : place_of(c, value);
	struct config_line at;

	if (!p)
		return c->file_count ? c->files[0] : "";
	if (!p->where) {
		at = resolve(c, p->line);
		if (asprintf(&p->where, "%s:%u", c->files[at.file],
			     at.line) < 0)
			p->where = NULL;
	}
	return p->where ? p->where : "";
}

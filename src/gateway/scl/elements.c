/* SPDX-License-Identifier: BSD-2-Clause */
/* See elements.h. */
#include "gateway/scl/elements.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

#define CHUNK_BYTES (64u << 10)
#define ALIGNMENT sizeof(void *)

struct scl_chunk {
	struct scl_chunk *next;
	size_t used, size;
	char bytes[] __attribute__((aligned(sizeof(void *))));
};

void *scl_tree_alloc(struct scl_tree *t, size_t size)
{
	struct scl_chunk *c = t->chunks;
	size_t wanted;
	void *at;

	if (size > SCL_TREE_BYTES_MAX)
		return NULL;
	size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (!c || c->size - c->used < size) {
		wanted = MAX(size, (size_t)CHUNK_BYTES);
		if (t->bytes + wanted > SCL_TREE_BYTES_MAX)
			return NULL;
		c = calloc(1, sizeof(*c) + wanted);
		if (!c)
			return NULL;
		c->size = wanted;
		c->next = t->chunks;
		t->chunks = c;
		t->bytes += wanted;
	}
	at = c->bytes + c->used;
	c->used += size;
	return at;
}

const char *scl_tree_text(struct scl_tree *t, const char *text, size_t len)
{
	char *copy = scl_tree_alloc(t, len + 1);

	return copy ? memcpy(copy, text, len) : NULL;
}

const char *scl_tree_print(struct scl_tree *t, const char *fmt, ...)
{
	char text[2 * SCL_VALUE_MAX];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return len < 0 ? NULL : scl_tree_text(t, text, MIN((size_t)len, sizeof(text) - 1));
}

struct scl_element *scl_tree_add(struct scl_tree *t, struct scl_element *parent, const char *name,
				 unsigned line)
{
	struct scl_element *e = scl_tree_alloc(t, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct scl_element){ .name = name, .line = line, .parent = parent };
	if (!parent) {
		t->root = e;
		return e;
	}
	if (parent->last)
		parent->last->next = e;
	else
		parent->first = e;
	parent->last = e;
	return e;
}

bool scl_tree_set(struct scl_tree *t, struct scl_element *e, const char *name, const char *value)
{
	struct scl_attribute *a = scl_tree_alloc(t, sizeof(*a));

	if (!a)
		return false;
	a->name = scl_tree_text(t, name, strlen(name));
	a->value = scl_tree_text(t, value, strlen(value));
	a->next = e->attributes;
	e->attributes = a;
	return a->name && a->value;
}

void scl_tree_free(struct scl_tree *t)
{
	while (t->chunks) {
		struct scl_chunk *next = t->chunks->next;

		free(t->chunks);
		t->chunks = next;
	}
	*t = (struct scl_tree){ 0 };
}

const char *scl_attribute(const struct scl_element *e, const char *name)
{
	for (const struct scl_attribute *a = e->attributes; a; a = a->next)
		if (!strcmp(a->name, name))
			return a->value;
	return NULL;
}

bool scl_is(const struct scl_element *e, const char *name)
{
	return !strcmp(e->name, name);
}

struct scl_element *scl_child(const struct scl_element *e, const char *name,
			      const struct scl_element *before)
{
	struct scl_element *c = before ? before->next : e ? e->first : NULL;

	while (c && !scl_is(c, name))
		c = c->next;
	return c;
}

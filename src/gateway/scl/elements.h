/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The elements of an SCL file (IEC 61850-6) that the gateway uses, as a tree with line numbers,
 * and the reader of XML that makes it. The reader needs expat and is a module, `scl_xml`, so the
 * gateway itself does not need that library.
 */
#ifndef GATEWAY_SCL_ELEMENTS_H
#define GATEWAY_SCL_ELEMENTS_H

#include <stdbool.h>
#include <stddef.h>

enum {
	SCL_TREE_BYTES_MAX = 256 << 20, /* of all elements of a file */
	SCL_TREE_DEPTH_MAX = 64,        /* of elements in elements, also of unknown ones */
	SCL_VALUE_MAX = 1000,           /* bytes of an attribute or a text */
};

struct scl_attribute {
	const char *name, *value;
	struct scl_attribute *next;
};

struct scl_element {
	const char *name; /* without the prefix of its namespace */
	unsigned line;
	struct scl_attribute *attributes;
	const char *text; /* without blanks at its ends; NULL: none, or its texts are not kept */
	struct scl_element *parent, *first, *last, *next;
};

struct scl_chunk;

/* Zeroed at the start. */
struct scl_tree {
	struct scl_chunk *chunks;
	size_t bytes;
	struct scl_element *root;
};

/* Zeroed memory that lives as long as the tree; NULL: none is left, or the tree is too large. */
void *scl_tree_alloc(struct scl_tree *t, size_t size);
/* Likewise: a text that is `len` bytes of `text`; a printed text. */
const char *scl_tree_text(struct scl_tree *t, const char *text, size_t len);
const char *scl_tree_print(struct scl_tree *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds an element at the end of `parent` (NULL: it is the root). NULL without memory. */
struct scl_element *scl_tree_add(struct scl_tree *t, struct scl_element *parent, const char *name,
				 unsigned line);
/* False without memory. */
bool scl_tree_set(struct scl_tree *t, struct scl_element *e, const char *name, const char *value);
void scl_tree_free(struct scl_tree *t);

/* NULL: it has none. */
const char *scl_attribute(const struct scl_element *e, const char *name);
bool scl_is(const struct scl_element *e, const char *name);
/* The next element of this name behind `before`, or the first one in `e`; NULL: none. */
struct scl_element *scl_child(const struct scl_element *e, const char *name,
			      const struct scl_element *before);

struct scl_xml_ops {
	/* Fills `t`. 0; -EINVAL with *why and the *line where it stands; or -ENOMEM. */
	int (*read)(struct scl_tree *t, const char *text, size_t len, const char **why,
		    unsigned *line);
};

#endif

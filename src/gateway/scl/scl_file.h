/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the files of this room; see scl.h. */
#ifndef GATEWAY_SCL_SCL_FILE_H
#define GATEWAY_SCL_SCL_FILE_H

#include "gateway/scl/scl.h"

struct scl {
	struct scl_tree tree;
	const char *name; /* of the file */
	struct scl_control *controls;
	unsigned count;
	struct scl_element **types; /* templates of data types, by kind and id; NULL: not sorted yet */
	unsigned type_count;
	unsigned long looked;       /* at so many elements, to find others */
	char *why;        /* where a reason goes, while a function of scl.h runs */
};

/* Says what is wrong at a line of the file. -EINVAL. */
int scl_fail(struct scl *s, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int scl_fail_memory(struct scl *s); /* -ENOMEM */

/* Elements that are looked at in all, to find others; some seconds. */
#define SCL_LOOKS_MAX 100000000ul
/* Counts `count` more of them. 0; -EINVAL: they are too many. */
int scl_note_looks(struct scl *s, unsigned line, unsigned long count);

/* The only element of `parent` that has this value: *out, NULL: there is none. 0, or -EINVAL if
 * there are several. */
int scl_find_one(struct scl *s, const struct scl_element *parent, const char *name,
		 const char *attribute, const char *value, struct scl_element **out);

/* data.c: the data set of a control block. 0 or a negative errno. */
int scl_read_data(struct scl *s, struct scl_control *c, const struct scl_element *set);

/* The name of a logical node: prefix, class and instance. NULL without memory. */
const char *scl_node_name(struct scl *s, const struct scl_element *node);
/* The element `name` that is around `e`, or NULL. */
const struct scl_element *scl_around(const struct scl_element *e, const char *name);
/* A whole number, without blanks or a sign; false: it is none, or larger than `max`. */
bool scl_read_number(const char *text, int base, unsigned long max, unsigned long *out);
/* An attribute, or "". */
const char *scl_text_of(const struct scl_element *e, const char *name);

#endif

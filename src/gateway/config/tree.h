/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of the configuration loader: the text with its line map,
 * and the places that values came from. Not for other files.
 *
 * Does not include gateway/config.h, because the part that uses libconfig
 * cannot: both declare config_destroy().
 */
#ifndef GATEWAY_CONFIG_TREE_H
#define GATEWAY_CONFIG_TREE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONFIG_TEXT_MAX (16u << 20) /* bytes of one file */
#define CONFIG_DEPTH_MAX 100        /* nesting of groups and lists */

/* Where one line of the expanded text stood. */
struct config_line {
	unsigned file; /* index into files[] */
	unsigned line; /* from 1 */
};

/* Where one value stood. */
struct config_place {
	const json_t *value; /* true, false and null are shared by all places */
	size_t parent;       /* index of the place of the container */
	char *key;           /* in an object; NULL in an array */
	size_t index;        /* in an array */
	unsigned line;       /* of the expanded text, from 1 */
	char *where;         /* "file:line", made when first asked for */
};

struct config {
	json_t *root;
	unsigned errors;
	uint64_t *reported;          /* hashes of the messages, errors and warnings */
	unsigned reported_count;     /* fewer than errors without memory */
	char **files;
	unsigned file_count;
	struct config_line *lines;
	size_t line_count, line_capacity;
	struct config_place *places; /* [0] is the root */
	size_t place_count, place_capacity;
	char *text;                  /* expanded, while loading */
	size_t text_len, text_capacity;
	bool no_memory;
	char *source;                /* the text as it was given */
};

/* config_text.c: name of a file; returns its index. */
unsigned config_file_add(struct config *c, const char *name);
/* Bytes of the byte-order mark that the text begins with; 0 if there is none. */
size_t config_text_mark(const char *text, size_t len);
bool config_text_is_json(const char *text, size_t len);
/* Reads a whole file (or standard input); caller frees. */
int config_text_read(const char *path, bool only_regular, char **text,
		     size_t *len);
/* Expands includes and ${...} outside of strings into c->text and c->lines. */
int config_text_expand(struct config *c, unsigned file, const char *text,
		       size_t len, bool json);

/* Adds to the expanded text; after a line end, says where the line that begins there
 * stood. */
void config_text_put(struct config *c, const char *s, size_t n);
void config_text_begin_line(struct config *c, unsigned file, unsigned line);

/* embed.c: adds the libconfig text of file `path` as a JSON value. 0 or a negative
 * errno, after reporting what is wrong in it. */
int config_text_embed(struct config *c, const char *path, const char *text,
		      size_t len);

/* Frees all that *c holds, but not *c. */
void config_release(struct config *c);

/* config_env.c */
/* Expands ${...} in all strings of the tree. */
void config_env_expand_strings(struct config *c);
/*
 * The value of the ${...} that starts at *p; moves *p behind it. NULL (and
 * `problem` filled) when it cannot be had. Caller frees.
 */
char *config_env_value(const char **p, const char *end, char *problem,
		       size_t size);

/* Parsers: fill c->root and c->places, log syntax errors. */
int config_parse_libconfig(struct config *c);
int config_parse_json(struct config *c);

/* Remembers where `value` stood; returns the index of the place. */
size_t config_place_add(struct config *c, size_t parent, const char *key,
			size_t index, const json_t *value, unsigned line);

/* Logs "file:line: message" for a line of the expanded text and counts it. */
void config_error_at(struct config *c, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for a line of a file, while the text is not yet expanded. */
void config_error_in(struct config *c, unsigned file, unsigned line,
		     const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads configuration files, libconfig or JSON (the contents decide), into one JSON tree,
 * and remembers the file and line of every value.
 *
 * Tables of `struct config_key` describe all keys; they yield parsing, range checks,
 * errors for unknown keys (with the nearest known key), defaults and the
 * documentation.
 */
#ifndef GATEWAY_CONFIG_CONFIG_H
#define GATEWAY_CONFIG_CONFIG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config;

/*
 * Reads `path` ("-" is standard input), substitutes ${NAME} and
 * ${NAME:-default} from the environment inside string values and, for whole
 * values, before parsing (so that numbers can come from the environment).
 * Syntax errors and unset variables are logged with file and line.
 * 0 with *out set, or a negative errno. The caller frees *out by config_destroy().
 */
int config_load(const char *path, struct config **out);
/* The same for callers that must not wait: a `path` that is not a regular file (a FIFO, a
 * device) is refused with -ESPIPE before anything is read. */
int config_load_regular(const char *path, struct config **out);
/* The same from memory; `name` stands in messages. For tests. */
int config_load_text(const char *name, const char *text, size_t len,
		     struct config **out);
/* The symbol has a name of its own: libconfig, which we link, also exports a
 * config_destroy(). NULL allowed. */
void config_destroy(struct config *c) __asm__("gateway_config_destroy");
json_t *config_root(struct config *c); /* borrowed */

/* Errors found so far (config_fail and config_unpack count). */
unsigned config_errors(const struct config *c);

/*
 * Reports one error: "file:line: path.to.key: message". `at` is the object
 * that holds `key`; `key` may be NULL (then `at` itself is meant).
 */
void config_fail(struct config *c, const json_t *at, const char *key,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* The same as a warning, which does not count as an error. */
void config_warn(struct config *c, const json_t *at, const char *key,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/*
 * Whether unknown keys are warnings instead of errors, for the whole process; at first they
 * are errors. Programs called villas-NAME turn this on, because VILLASnode accepts files
 * with unknown keys. Called before any configuration is loaded.
 */
void config_pass_unknown_keys(bool on);
/* Reports `key` of `at` as unknown, with `hint`: as a warning, then returns 0, or as an
 * error, then returns -EINVAL. */
int config_unknown_key(struct config *c, const json_t *at, const char *key,
		       const char *hint);

enum config_type {
	CONFIG_BOOL,   /* bool */
	CONFIG_INT,    /* int64_t in [min, max] */
	CONFIG_REAL,   /* double in [min, max]; integers are accepted */
	CONFIG_STRING, /* const char *, lives as long as the config */
	CONFIG_ENUM,   /* int, index into names[]; the value is a string */
	CONFIG_JSON,   /* json_t *, borrowed; any type; the owner checks it */
};

struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;             /* of the field in the target structure */
	const char *fallback;      /* default as text; NULL: zero / NULL / false */
	bool required;
	double min, max;           /* CONFIG_INT, CONFIG_REAL; both 0: no limit */
	const char *const *names;  /* CONFIG_ENUM, NULL terminated */
	const char *help;          /* one sentence */
	/* CONFIG_JSON, for the schema: the keys of the group that the value is, */
	const struct config_key *group;
	size_t group_count;
	/* or JSON Schema with single quotes; with both, the value is one of them. */
	const char *form;
};

/* Forms: a text, or a list of texts; a group of texts. */
#define CONFIG_TEXTS \
	"'anyOf': [{'type': ['string', 'null']}, {'type': 'array', 'items': {'type': 'string'}}]"
#define CONFIG_TEXT_GROUP \
	"'type': ['object', 'null'], 'additionalProperties': {'type': 'string', 'minLength': 1}"

/*
 * Fills `target` from object `obj` by `keys`, then by `more` (NULL allowed:
 * keys that others read, known but not stored). Every wrong type, value out of
 * range, missing required key and unknown key is reported; returns 0 or
 * -EINVAL after all of them have been looked at. `obj` NULL means empty.
 * Booleans, integers and reals also accept a string that holds one (values
 * substituted from the environment).
 */
int config_unpack(struct config *c, const json_t *obj,
		  const struct config_key *keys, size_t count, void *target,
		  const struct config_key *more, size_t more_count);

/* The same without errors for unknown keys, for objects that several functions unpack. */
int config_unpack_part(struct config *c, const json_t *obj,
		       const struct config_key *keys, size_t count,
		       void *target);

/* From now on, errors that the calling thread reports are also appended to `list`
 * (borrowed) as strings; NULL ends this. */
void config_collect_errors(json_t *list);

/*
 * The same for errors and warnings, as objects {"level", "file", "line", "key", "message"}
 * (`key` where it belongs to one, such as "nodes.sig.rate"). They are not logged then, and not in
 * the list of texts: who collects them tells them.
 */
void config_collect_problems(json_t *list);

/* Name of the file that was loaded, as it was given. */
const char *config_file(const struct config *c);
/* The text as it was given: includes and ${...} are not replaced. */
const char *config_source(const struct config *c);

/* "file:line" of a value; valid until the config is destroyed. */
const char *config_where(struct config *c, const json_t *value);

#endif

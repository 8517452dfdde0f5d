/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key `scl` of node-types: a group that names an SCL file and a control block in it, whose
 * settings stand in for keys that the configuration does not give.
 */
#ifndef GATEWAY_SCL_CHOICE_H
#define GATEWAY_SCL_CHOICE_H

#include "gateway/config/config.h"
#include "gateway/scl/scl.h"

struct scl_settings {
	const char *file, *ied, *control;
	const char *prefix;  /* in front of the names of signals that are read; "" by default */
	json_t *signals;     /* names of the signals that are written */
};

/* The keys of every group; with the one of readers, and with that of writers. */
enum { SCL_FILE_KEYS = 3, SCL_KEYS = 4 };
extern const struct config_key scl_file_keys[SCL_FILE_KEYS];
extern const struct config_key scl_read_keys[SCL_KEYS], scl_write_keys[SCL_KEYS];
/* For schemas of groups that are no tables: of the value of the key `scl`. */
#define SCL_FORM_OF(more) \
	"{'type': ['object', 'null'], 'required': ['file', 'control'], " \
	"'additionalProperties': false, 'properties': {'file': {'type': 'string', 'minLength': 1}, " \
	"'control': {'type': 'string', 'minLength': 1}, 'ied': {'type': ['string', 'null']}, " more "}}"
#define SCL_READ_FORM SCL_FORM_OF("'prefix': {'type': ['string', 'null']}")
#define SCL_WRITE_FORM \
	SCL_FORM_OF("'signals': {'type': ['array', 'null'], 'items': {'type': 'string'}}")

/* Files that were read; zeroed at the start. */
struct scl_files {
	struct scl_file *first;
};
void scl_files_free(struct scl_files *f);

/* What the group says. */
struct scl_choice {
	struct scl_settings settings;
	struct scl *scl;             /* NULL: there is no group */
	struct scl_control *control; /* read; lives as long as `scl`, which `files` has */
};

/*
 * Reads the control block that the group `cfg`, the key `scl` of `at`, names. NULL or null: none.
 * A file that `files` has is not read again. 0; -EINVAL after config_fail(); or -ENOMEM.
 */
int scl_choose(struct scl_files *files, struct config *c, const json_t *at, const json_t *cfg,
	       enum scl_kind kind, const struct config_key *keys, size_t key_count,
	       struct scl_choice *out);

/* Warns that `key` of `at` says other than the file, at this line. */
void scl_say_overruled(struct config *c, const json_t *at, const char *key,
		       const struct scl_choice *choice, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));

#endif

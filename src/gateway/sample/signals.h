/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signal lists from the configuration, in the three spellings that users know:
 * a list of {name, unit, type}, one object with `count`, or a string such as
 * "12f3i" (f float, i integer, b boolean, c complex).
 */
#ifndef GATEWAY_SAMPLE_SIGNALS_H
#define GATEWAY_SAMPLE_SIGNALS_H

#include "gateway/config/config.h"
#include "gateway/sample/sample.h"

/* Values per sample when a configuration says nothing about signals. */
#define SIGNALS_DEFAULT 64
#define SIGNALS_MAX 65536

/*
 * Parses `key` of object `at`. 0 with a new list in *out (NULL when the key is
 * absent), or a negative errno after config_fail().
 */
int signal_list_parse(struct signal_list **out, struct config *c,
		      const json_t *at, const char *key);

/*
 * Refuses keys in the entries of a list that signal_list_parse() has taken: all
 * but those of every signal and `more`. 0, or -EINVAL after config_fail().
 */
int signal_list_check(struct config *c, const json_t *at, const char *key,
		      const struct config_key *more, size_t more_count);

/* `count` signals without names, to be filled by signal_set(); NULL on no
 * memory. */
struct signal_list *signal_list_alloc(unsigned count);
/* Copies the texts (`unit` may be NULL or empty: none). 0 or -ENOMEM. */
int signal_set(struct signal *s, const char *name, const char *unit,
	       enum signal_type type);
/* All of `from`, copied. 0 or -ENOMEM. */
int signal_copy(struct signal *s, const struct signal *from);

/*
 * The one list of its content: gives `l` (a reference, NULL allowed) away for a
 * reference to that. It lives as long as the process (signal_list.lasting), so that
 * samples under way may point at it whatever becomes of the node they came from.
 */
struct signal_list *signal_list_intern(struct signal_list *l);

/* Lists that a peer or a recording told, and their bytes, that are kept so. */
#define SIGNALS_TOLD_MAX 256
#define SIGNALS_TOLD_BYTES (8u << 20)

/*
 * The same for a list that was told at run time. Who tells ever new ones must not
 * fill the memory: beyond SIGNALS_TOLD_MAX and SIGNALS_TOLD_BYTES in all it is `l`
 * itself, which lives as long as its owners; samples own it then
 * (sample_set_signals()).
 */
struct signal_list *signal_list_intern_told(struct signal_list *l);
bool signal_list_equal(const struct signal_list *a, const struct signal_list *b);

#endif

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

/* Does object `at` (NULL: none) have signals under `key`? null and an empty list are none. */
bool signal_list_is_given(const json_t *at, const char *key);

/*
 * Parses `key` of object `at`. 0 with a new list in *out (NULL when no signals are
 * given), or a negative errno after config_fail().
 */
int signal_list_parse(struct signal_list **out, struct config *c,
		      const json_t *at, const char *key);

/*
 * Refuses unknown keys in the entries of a list that signal_list_parse() has parsed: all
 * but those of every signal and `more`. 0, or -EINVAL after config_fail().
 */
int signal_list_check(struct config *c, const json_t *at, const char *key,
		      const struct config_key *more, size_t more_count);

/*
 * The entries of `signals` of object `at`, a list or a single group, where each entry is one signal
 * with a place of its own. Their number; 0: no signals are given; -EINVAL after config_fail(): an
 * entry has `count`, or there are no entries but a text, and `what` says what each of them needs.
 */
int signal_entries(struct config *c, const json_t *at, const char *what);
const json_t *signal_entry(const json_t *at, unsigned i);

/* `count` signals without names, to be filled by signal_set(); NULL on no
 * memory. */
struct signal_list *signal_list_alloc(unsigned count);
/* Copies the texts (`unit` may be NULL or empty: none). 0 or -ENOMEM. */
int signal_set(struct signal *s, const char *name, const char *unit,
	       enum signal_type type);
/* Copies `from`. 0 or -ENOMEM. */
int signal_copy(struct signal *s, const struct signal *from);

/*
 * Returns the one lasting list with the contents of `l` (NULL allowed): takes over the
 * caller's reference to `l` and returns a reference to that list, which lives as long as
 * the process (signal_list.lasting). So samples may point at it after their node is
 * gone. Any thread; takes a lock. Returns `l` itself without memory.
 */
struct signal_list *signal_list_intern(struct signal_list *l);

/* Limits of the lists that peers and recordings described and that the process keeps:
 * their number, and their bytes. */
#define SIGNALS_TOLD_MAX 256
#define SIGNALS_TOLD_BYTES (8u << 20)

/*
 * The same for a list that a peer or recording described at run time. A peer that sends
 * ever new lists must not fill the memory: beyond the limits above it returns `l`
 * itself, which lives as long as it has owners; samples then own a reference
 * (sample_set_signals()).
 */
struct signal_list *signal_list_intern_told(struct signal_list *l);
/*
 * How many columns a header has for samples of `l` (NULL: none) of which the first has
 * `length` values: at least those, and all signals of the list, unless it is the default
 * list, which only says that nothing is known.
 */
unsigned signal_list_columns(const struct signal_list *l, unsigned length);
/* The names of these columns: those of `l`, then "signal6" and so on. NULL on no memory. */
struct signal_list *signal_list_header(const struct signal_list *l, unsigned length);
bool signal_list_equal(const struct signal_list *a, const struct signal_list *b);

#endif

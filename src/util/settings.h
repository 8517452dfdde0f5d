/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings table: each setting has one entry that yields its environment name,
 * its type and range, its default and its help text. The library reads them
 * from the environment; `busbar devices --settings` and the manual page print
 * the same table.
 */
#ifndef UTIL_SETTINGS_H
#define UTIL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum setting_type {
	SETTING_BOOL,   /* bool; accepts 0/1, no/yes, off/on, false/true */
	SETTING_UINT,   /* uint64_t within [min, max] */
	SETTING_SIZE,   /* uint64_t bytes; suffix k, m, g (1024) */
	SETTING_ENUM,   /* int, index into `names` */
	SETTING_STRING, /* const char *, points into the environment */
};

struct setting {
	const char *env;          /* "BUSBAR_SHM_RING" */
	const char *fallback;     /* default, as text, parsed like the variable */
	const char *help;         /* one sentence, ends without a full stop */
	enum setting_type type;
	size_t offset;            /* of the field in the target structure */
	uint64_t min, max;        /* SETTING_UINT and SETTING_SIZE */
	const char *const *names; /* SETTING_ENUM, NULL terminated */
};

/*
 * Fills `target` from the environment by `table` of `count` entries. A value
 * that does not parse or is out of range is reported once (log_warn names the
 * variable, the value and what would be right) and the default is used.
 * Returns the number of such values.
 */
int settings_load(const struct setting *table, size_t count, void *target);

/* Prints name, default and help of each entry. */
void settings_print(const struct setting *table, size_t count, FILE *out);

/* One value by `entry` into `field`; 0 or -EINVAL / -ERANGE. */
int setting_parse(const struct setting *entry, const char *text, void *field);

#endif

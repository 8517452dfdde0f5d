/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values in scenarios: numbers with units, `key=value` by a table of keys, ports of nodes. What the readers
 * of lines share. Private to the folder.
 */
#ifndef FABRIC_SIMULATE_WORDS_H
#define FABRIC_SIMULATE_WORDS_H

#include "fabric/simulate/scenario.h"
#include "fabric/topology/scan.h"

enum simulate_value {
	SIMULATE_TIME,   /* uint64_t, ps: "5us"; a unit is required */
	SIMULATE_SIZE,   /* uint32_t, bytes: "4096", "4KiB", "1MiB" */
	SIMULATE_COUNT,  /* uint32_t */
	SIMULATE_LARGE,  /* uint64_t */
	SIMULATE_LEVEL,  /* uint8_t */
	SIMULATE_PART,   /* double: "30%" or "0.3" */
	SIMULATE_CHOICE, /* bool: one of two words, `words` */
};

struct simulate_key {
	const char *name;
	enum simulate_value value;
	size_t offset;
	uint64_t least, most; /* of a share: in millionths */
	const char *words;    /* "FALSE|TRUE" of a choice */
};

/* Reads a value by its key, which names it in messages. -EINVAL, told. */
int simulate_words_value(struct topology_scan *s, const struct simulate_key *key, const struct topology_word *text,
			 void *into);
/* The key of that name; -EINVAL, told with the nearest one. */
int simulate_words_find(const struct topology_scan *s, const struct topology_word *name,
			const struct simulate_key *keys, unsigned count, const struct simulate_key **found);
/* Splits "key=value"; false: there is no "=". */
bool simulate_words_split(const struct topology_word *word, struct topology_word *key, struct topology_word *value);
/* Reads all words that remain in the line as "key=value". -EINVAL, told. */
int simulate_words_pairs(struct topology_scan *s, const struct simulate_key *keys, unsigned count, void *into);
/* The line ends here. -EINVAL, told. */
int simulate_words_end(struct topology_scan *s);
/* A real number, with "%" hundredths. -EINVAL, told. */
int simulate_words_real(struct topology_scan *s, const struct topology_word *text, const char *what, double *value);
/* "NODE:PORT" or "NODE", whose first port with a cable it is. -EINVAL, told. */
int simulate_words_end_port(struct topology_scan *s, const struct topology *t, const struct topology_word *text,
			    bool host, struct topology_end *end);

#endif

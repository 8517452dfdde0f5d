/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pieces of a line of a topology file or a scenario (fabric/simulate), and how a fault in it is told. It
 * knows no meaning: read.c does. Private to the room.
 */
#ifndef FABRIC_TOPOLOGY_SCAN_H
#define FABRIC_TOPOLOGY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the reader is, and where the line about a fault goes. */
struct topology_scan {
	const char *at, *end; /* the rest of the line, without its end */
	const char *file;
	unsigned line;
	char *why;
	size_t why_bytes;
};

/* A piece of the line, not terminated. */
struct topology_word {
	const char *at;
	size_t bytes;
};

/* Writes "FILE:LINE: ..." without control characters; returns -EINVAL. */
int topology_scan_refuse(const struct topology_scan *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

void topology_scan_blanks(struct topology_scan *s);
/* Takes the character if it is the next one. */
bool topology_scan_char(struct topology_scan *s, char c);
/* Takes what reaches to the next blank or comment. False: there is nothing. */
bool topology_scan_word(struct topology_scan *s, struct topology_word *word);
bool topology_word_is(const struct topology_word *word, const char *text);
/* The word as terminated text, cut to `size`, with what is no plain text replaced. Returns text. */
const char *topology_word_text(const struct topology_word *word, char *text, size_t size);

/*
 * A quoted text of 1 to `size` - 1 bytes. -EINVAL, told: something else stands there; `what` names it.
 */
int topology_scan_quoted(struct topology_scan *s, const char *what, char *text, size_t size);
/* A number in decimal, or with 0x in hexadecimal, up to `max`. -EINVAL, told. */
int topology_scan_number(struct topology_scan *s, const char *what, uint64_t max, uint64_t *value);
/* A GUID in hexadecimal digits, with or without 0x. -EINVAL, told. */
int topology_scan_guid(struct topology_scan *s, const char *what, uint64_t *guid);
/* "[N]": a number of a port from 1 on. -EINVAL, told. */
int topology_scan_port(struct topology_scan *s, uint8_t *port);

#endif

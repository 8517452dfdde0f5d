/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many answers a source gets: a flood of questions must not become a flood of answers,
 * least of all at somebody whose address was forged. Answers are no longer than questions,
 * and a source gets LIMIT_BURST at once and LIMIT_RATE a second. Sources share a place when
 * their addresses fall together. Not thread safe.
 */
#ifndef RIPC_LIMIT_H
#define RIPC_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "ripc/find/address.h"

#define LIMIT_BURST 1000 /* a host full of processes that all start at once */
#define LIMIT_RATE 2000
#define LIMIT_PLACES 256

struct limit {
	uint8_t key[16];
	struct {
		uint64_t at_ns;
		uint32_t left;
		bool used;
	} place[LIMIT_PLACES];
};

/* The key keeps strangers from choosing a place. */
void limit_init(struct limit *l, const uint8_t key[16]);
/* False: this one gets no answer. */
bool limit_take(struct limit *l, const union address *source, uint64_t now_ns);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A fuzzer's input as a source of numbers; behind its end they are 0. */
#ifndef TESTS_FUZZ_TAPE_H
#define TESTS_FUZZ_TAPE_H

#include <stdint.h>

struct tape {
	const uint8_t *at, *end;
};

static inline uint8_t next_byte(struct tape *t)
{
	return t->at < t->end ? *t->at++ : 0;
}

/* Of 16 bits. */
static inline uint32_t next_word(struct tape *t)
{
	uint32_t w = next_byte(t);

	return w << 8 | next_byte(t);
}

#endif

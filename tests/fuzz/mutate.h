/* SPDX-License-Identifier: BSD-2-Clause */
/* Random changes to an input, for fuzzing without libFuzzer. */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Bytes that mean something to the reader under test. */
#ifndef MUTATE_BYTES
#define MUTATE_BYTES "0123456789.,;+-eE()Fnai#\t\n\r \"\0\xff"
#endif

static uint64_t random_state = 1;

static inline uint64_t random_below(uint64_t n)
{
	uint64_t z = (random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return (z ^ (z >> 31)) % n;
}

static inline size_t mutate(uint8_t *data, size_t size, size_t capacity)
{
	static const char interesting[] = MUTATE_BYTES;
	size_t at = size ? random_below(size) : 0, n;

	switch (random_below(6)) {
	case 0: /* one byte becomes another */
		if (size)
			data[at] = (uint8_t)random_below(256);
		break;
	case 1: /* a byte that means something */
		if (size)
			data[at] = (uint8_t)interesting[random_below(sizeof(interesting))];
		break;
	case 2: /* goes */
		n = size ? 1 + random_below(size - at) : 0;
		n = n > 8 ? 8 : n;
		memmove(data + at, data + at + n, size - at - n);
		size -= n;
		break;
	case 3: /* comes */
		if (size < capacity) {
			memmove(data + at + 1, data + at, size - at);
			data[at] = (uint8_t)interesting[random_below(sizeof(interesting))];
			size++;
		}
		break;
	case 4: /* a piece stands there once more */
		n = size ? 1 + random_below(size - at) : 0;
		if (n && size + n <= capacity) {
			memmove(data + at + n, data + at, size - at);
			size += n;
		}
		break;
	case 5: /* it ends early */
		size = at;
		break;
	}
	return size;
}

static inline size_t mutate_times(uint8_t *data, size_t size, size_t capacity, uint64_t times)
{
	for (; times; times--)
		size = mutate(data, size, capacity);
	return size;
}

#endif

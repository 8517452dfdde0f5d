/* SPDX-License-Identifier: BSD-2-Clause */
/* The choice of the code for CRC-32C; see crc32c.h. */
#include "wire/iwarp/crc32c.h"

#include <stdatomic.h>
#include <string.h>

#include "wire/iwarp/crc32c_private.h"

static const struct {
	const char *name;
	crc32c_code *(*get)(void);
} methods[CRC32C_METHODS] = { /* each better than those before it */
	[CRC32C_PORTABLE] = { "portable", crc32c_portable },
	[CRC32C_X86] = { "x86", crc32c_x86 },
	[CRC32C_ARM] = { "arm", crc32c_arm },
};

bool crc32c_method_there(enum crc32c_method method)
{
	return methods[method].get() != NULL;
}

const char *crc32c_method_name(enum crc32c_method method)
{
	return methods[method].name;
}

enum crc32c_method crc32c_method_best(void)
{
	unsigned method = CRC32C_METHODS - 1;

	while (!crc32c_method_there(method))
		method--;
	return method;
}

uint32_t crc32c_run(enum crc32c_method method, uint32_t crc, const void *data, size_t bytes)
{
	return methods[method].get()(crc, data, bytes);
}

/* Every thread that is here for the first time finds the same. */
static crc32c_code *_Atomic chosen;

static crc32c_code *choose(void)
{
	crc32c_code *code = methods[crc32c_method_best()].get();

	atomic_store_explicit(&chosen, code, memory_order_relaxed);
	return code;
}

uint32_t crc32c_add(uint32_t crc, const void *data, size_t bytes)
{
	crc32c_code *code = atomic_load_explicit(&chosen, memory_order_relaxed);

	if (__builtin_expect(code == NULL, 0))
		code = choose();
	return code(crc, data, bytes);
}

void crc32c_end(uint32_t crc, uint8_t to[CRC32C_BYTES_OUT])
{
	for (unsigned i = 0; i < CRC32C_BYTES_OUT; i++)
		to[i] = (uint8_t)(~crc >> 8 * i);
}

bool crc32c_matches(uint32_t crc, const uint8_t received[CRC32C_BYTES_OUT])
{
	uint8_t want[CRC32C_BYTES_OUT];

	crc32c_end(crc, want);
	return memcmp(want, received, sizeof(want)) == 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers; see uuid.h. */
#include "gateway/config/uuid.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FNV_PRIME 1099511628211u

static uint64_t hash(uint64_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * FNV_PRIME;
	h = (h ^ (h >> 31)) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ (h >> 29);
}

void uuid_from_text(char uuid[UUID_SIZE], const char *kind, const char *text)
{
	uint64_t a = hash(hash(14695981039346656037u, kind), text);
	uint64_t b = hash(hash(a ^ 0x6275736261720000u, text), kind);

	snprintf(uuid, UUID_SIZE, "%08x-%04x-8%03x-%04x-%012llx",
		 (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xffff,
		 (unsigned)a & 0xfff, ((unsigned)(b >> 48) & 0x3fff) | 0x8000,
		 (unsigned long long)(b & 0xffffffffffffu));
}

bool uuid_is_valid(const char *text)
{
	if (strlen(text) != UUID_SIZE - 1)
		return false;
	for (unsigned i = 0; i < UUID_SIZE - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

int uuid_set(char uuid[UUID_SIZE], struct config *c, const json_t *cfg,
	     const char *given, const char *kind, const char *text)
{
	if (!given) {
		uuid_from_text(uuid, kind, text);
		return 0;
	}
	if (!uuid_is_valid(given)) {
		config_fail(c, cfg, "uuid",
			    "'%.60s' is no UUID, expected 32 hexadecimal digits in the form 01234567-89ab-cdef-0123-456789abcdef",
			    given);
		return -EINVAL;
	}
	for (unsigned i = 0; i < UUID_SIZE; i++)
		uuid[i] = (char)tolower((unsigned char)given[i]);
	return 0;
}

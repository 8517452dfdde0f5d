/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of MADs: all layouts, and the value of a member by its name. */
#ifndef TESTS_UNIT_WIRE_MAD_ROWS_H
#define TESTS_UNIT_WIRE_MAD_ROWS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/prng.h"
#include "wire/fields.h"
#include "wire/mad/cc.h"
#include "wire/mad/mad.h"
#include "wire/mad/notice.h"
#include "wire/mad/rmpp.h"
#include "wire/mad/sa.h"

/* The greatest structure, with room to spare. */
#define MAD_HOST_MAX 1024

typedef void mad_each_layout(const struct wire_layout *layout, void *context);

/* Calls `each` for every layout of wire/mad that is not inside of another one only. */
static inline void mad_layouts(mad_each_layout *each, void *context)
{
	static const uint8_t classes[] = { MAD_CLASS_SUBN_LID, MAD_CLASS_PERF, MAD_CLASS_CONG_MGT,
					   MAD_CLASS_SUBN_ADM };
	struct mad_attribute a;

	for (unsigned i = 0; i < sizeof(classes); i++)
		for (unsigned id = 0; id <= UINT16_MAX; id++)
			if (mad_attribute_find(classes[i], (uint16_t)id, &a))
				each(a.layout, context);
	for (unsigned trap = 0; trap <= UINT16_MAX; trap++)
		if (mad_trap_layout((uint16_t)trap))
			each(mad_trap_layout((uint16_t)trap), context);
	each(&mad_congestion_log_ca_layout, context);
	each(&mad_header_layout, context);
	each(&mad_rmpp_layout, context);
	each(&mad_sa_layout, context);
}

/* The row of `path`, "info.lid": its layout's field, and where its structure begins in host and
 * bytes. NULL: there is none. */
static inline const struct wire_field *mad_row(const struct wire_layout *layout, const char *path,
					       size_t *host, unsigned *bit)
{
	const size_t len = strcspn(path, ".");

	for (unsigned i = 0; i < layout->count; i++) {
		const struct wire_field *f = &layout->fields[i];

		if (!f->name || strlen(f->name) != len || memcmp(f->name, path, len))
			continue;
		*host += f->host;
		*bit += f->bit;
		return path[len] ? mad_row(f->inner, path + len + 1, host, bit) : f;
	}
	return NULL;
}

/* An integer of the structure. */
static inline uint64_t mad_host_value(const void *structure, size_t host, unsigned size)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < size; i++) /* in the order of this machine */
		v |= (uint64_t)((const uint8_t *)structure)[host + i]
		     << 8 * (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? i : size - 1 - i);
	return v;
}

static inline void mad_random_bytes(struct prng *random, void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)prng_next(random);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad_sa_matches(): records that have the components of a query. IBA volume 1, 15.4.4, and the
 * numbers of the components in 15.2.5.
 */
#include <string.h>

#include "wire/mad/sa.h"

struct comparison {
	uint64_t mask;          /* components that are still to be compared */
	unsigned next;          /* the number of the next component */
	const uint8_t *query, *record; /* of the structure whose fields are looked at */
	bool equal;
};

static bool bits_equal(const uint8_t *a, const uint8_t *b, unsigned bit, unsigned width)
{
	if (bit % 8 == 0 && width % 8 == 0)
		return !memcmp(a + bit / 8, b + bit / 8, width / 8);
	return wire_get_bits(a, bit, width) == wire_get_bits(b, bit, width);
}

static void component_compare(struct comparison *c, bool reserved, unsigned bit, unsigned width)
{
	const uint64_t one = c->next < 64 ? UINT64_C(1) << c->next : 0;

	c->next++;
	if (!(c->mask & one))
		return;
	c->mask &= ~one;
	if (!reserved && !bits_equal(c->query, c->record, bit, width))
		c->equal = false;
}

static bool is_row(const struct wire_layout *layout, const struct wire_field *f,
		   const struct wire_layout *of, unsigned bit)
{
	return layout == of && f->name && f->bit == bit;
}

static void fields_compare(struct comparison *c, const struct wire_layout *layout)
{
	for (unsigned i = 0; i < layout->count && c->mask; i++) {
		const struct wire_field *f = &layout->fields[i];

		/* ServiceID counts as its first byte and the seven others. */
		if (is_row(layout, f, &mad_path_record_layout, 0)) {
			component_compare(c, false, 0, 8);
			component_compare(c, false, 8, 56);
			continue;
		}
		/* One component with ClientReregister, whose neighbour it became later. */
		if (is_row(layout, f, &mad_port_info_layout, 8 * 51 + 1))
			continue;
		for (unsigned n = 0; n < f->count; n++) {
			const unsigned bit = f->bit + n * f->stride;
			struct comparison inner = *c;

			if (!f->inner) {
				component_compare(c, !f->name, bit, f->width);
				continue;
			}
			inner.query += bit / 8;
			inner.record += bit / 8;
			fields_compare(&inner, f->inner);
			c->mask = inner.mask;
			c->next = inner.next;
			c->equal = inner.equal;
		}
	}
}

bool mad_sa_matches(uint16_t attr_id, uint64_t mask, const uint8_t *query, const uint8_t *record)
{
	struct comparison c = { .mask = mask, .query = query, .record = record, .equal = true };
	struct mad_attribute attribute;

	if (!mad_attribute_find(MAD_CLASS_SUBN_ADM, attr_id, &attribute))
		return false;
	fields_compare(&c, attribute.layout);
	return c.equal && !c.mask;
}

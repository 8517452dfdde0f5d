/* SPDX-License-Identifier: BSD-2-Clause */
/* See store.h. */
#include "gateway/node/modbus/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"

enum owner {
	NOBODY,
	NODE,
	CLIENTS,      /* the first register of a value that clients write ... */
	CLIENTS_NEXT, /* ... and the others */
};

static int grow(struct modbus_words *w, unsigned size)
{
	uint16_t *words;
	uint8_t *owners;

	if (size <= w->size)
		return 0;
	words = realloc(w->words, size * sizeof(*words));
	if (words)
		w->words = words;
	owners = realloc(w->owners, size * sizeof(*owners));
	if (owners)
		w->owners = owners;
	if (!words || !owners)
		return -ENOMEM;
	memset(w->words + w->size, 0, (size - w->size) * sizeof(*words));
	memset(w->owners + w->size, NOBODY, (size - w->size) * sizeof(*owners));
	w->size = size;
	return 0;
}

static bool is_other_side(uint8_t owner, bool clients_write)
{
	return owner != NOBODY && (owner == NODE) == clients_write;
}

int modbus_store_add(struct modbus_store *s, const struct modbus_map maps[], unsigned count,
		     bool clients_write, enum modbus_table *table, unsigned *address)
{
	for (unsigned i = 0; i < count; i++) {
		const struct modbus_map *m = &maps[i];
		struct modbus_words *w = &s->tables[m->table];

		if (grow(w, m->address + m->count))
			return -ENOMEM;
		for (unsigned k = 0; k < m->count; k++) {
			*table = m->table;
			*address = m->address + k;
			if (is_other_side(w->owners[*address], clients_write))
				return -EEXIST;
			w->owners[*address] = !clients_write ? NODE : k ? CLIENTS_NEXT : CLIENTS;
		}
	}
	return 0;
}

void modbus_store_free(struct modbus_store *s)
{
	for (unsigned i = 0; i < MODBUS_TABLES; i++) {
		free(s->tables[i].words);
		free(s->tables[i].owners);
		s->tables[i] = (struct modbus_words){ 0 };
	}
}

enum modbus_refusal modbus_store_read(const struct modbus_store *s, enum modbus_table table,
				      const struct modbus_range *r, uint16_t to[], bool *of_node)
{
	const struct modbus_words *w = &s->tables[table];

	*of_node = false;
	if (r->address + r->count > w->size)
		return MODBUS_NO_ADDRESS;
	for (unsigned i = r->address; i < r->address + r->count; i++) {
		if (w->owners[i] == NOBODY && !s->zero_gaps)
			return MODBUS_NO_ADDRESS;
		*of_node |= w->owners[i] == NODE;
	}
	memcpy(to, w->words + r->address, r->count * sizeof(*to));
	return MODBUS_ACCEPTED;
}

enum modbus_refusal modbus_store_check(const struct modbus_store *s, enum modbus_table table,
				       const struct modbus_range *r)
{
	const struct modbus_words *w = &s->tables[table];
	unsigned end = r->address + r->count;

	if (end > w->size || w->owners[r->address] != CLIENTS)
		return MODBUS_NO_ADDRESS;
	for (unsigned i = r->address; i < end; i++)
		if (w->owners[i] != CLIENTS && w->owners[i] != CLIENTS_NEXT)
			return MODBUS_NO_ADDRESS;
	return end < w->size && w->owners[end] == CLIENTS_NEXT ? MODBUS_NO_ADDRESS :
								  MODBUS_ACCEPTED;
}

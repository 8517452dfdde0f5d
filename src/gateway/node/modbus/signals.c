/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of registers, which stand beside those of signals. */
#define LOG_ROOM "gateway/modbus"
#include <errno.h>
#include <stdlib.h>

#include "gateway/node/modbus/modbus.h"
#include "gateway/sample/signals.h"

struct entry {
	int64_t address, bit, integer_registers;
	int word_endianess, byte_endianess, word_order, table;
	bool is_signed;
	double scale, offset;
};

enum { BIG, LITTLE };
enum { LOW_FIRST, HIGH_FIRST };

static const char *const endianesses[] = { "big", "little", NULL };
static const char *const word_orders[] = { "low_first", "high_first", NULL };
static const char *const tables[] = {
	[MODBUS_COILS] = "coil",
	[MODBUS_DISCRETE_INPUTS] = "discrete",
	[MODBUS_HOLDING_REGISTERS] = "holding",
	[MODBUS_INPUT_REGISTERS] = "input",
	NULL,
};

#define OFFSET(field) offsetof(struct entry, field)

const struct config_key modbus_signal_keys[MODBUS_SIGNAL_KEYS] = {
	{ "address", CONFIG_INT, OFFSET(address), .required = true, .min = 0, .max = 65535,
	  .help = "Address of the first register, or of the coil, from 0 on as requests have it" },
	{ "bit", CONFIG_INT, OFFSET(bit), .min = 0, .max = 15,
	  .help = "Of a boolean: the bit of the register; 0 is the least significant one" },
	{ "integer_registers", CONFIG_INT, OFFSET(integer_registers), .min = 1,
	  .max = MODBUS_VALUE_MAX,
	  .help = "The value is an integer of so many registers (an integer signal without it: 1; a float signal without it: a float of 32 bits)" },
	{ "signed", CONFIG_BOOL, OFFSET(is_signed), "false",
	  .help = "The integer may be negative; one of 4 registers always may" },
	{ "word_endianess", CONFIG_ENUM, OFFSET(word_endianess), "big", .names = endianesses,
	  .help = "As VILLASnode has it: big: the first register has the least significant bits; little: the most significant ones; see word_order" },
	{ "word_order", CONFIG_ENUM, OFFSET(word_order), "low_first", .names = word_orders,
	  .help = "The same in plain words: high_first or low_first, by what the first register has" },
	{ "byte_endianess", CONFIG_ENUM, OFFSET(byte_endianess), "big", .names = endianesses,
	  .help = "little: the two bytes of each register are exchanged" },
	{ "table", CONFIG_ENUM, OFFSET(table), "holding", .names = tables,
	  .help = "holding or input registers; for booleans also coil, or discrete for discrete inputs; clients only read input registers and discrete inputs" },
	{ "scale", CONFIG_REAL, OFFSET(scale), "1.0",
	  .help = "The signal is the register times scale plus offset" },
	{ "offset", CONFIG_REAL, OFFSET(offset), "0.0", .help = "See scale" },
};

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* Keys that say nothing about such a signal are passed over, as VILLASnode does. */
static void warn_unused(struct config *c, const json_t *at, const char *const keys[],
			const char *what)
{
	for (; *keys; keys++)
		if (json_object_get(at, *keys))
			config_warn(c, at, *keys, "says nothing about %s", what);
}

static int set_coil(struct modbus_map *m, struct config *c, const json_t *at, enum signal_type type)
{
	static const char *const not_of_coils[] = { "bit", "integer_registers", "signed", "word_endianess",
						    "word_order", "byte_endianess", "scale", "offset", NULL };

	if (type != SIGNAL_BOOLEAN)
		return fail(c, at, "type", "coils and discrete inputs are booleans");
	m->kind = MODBUS_COIL;
	m->count = 1;
	warn_unused(c, at, not_of_coils, "a coil");
	return 0;
}

static int set_kind(struct modbus_map *m, struct config *c, const json_t *at,
		    enum signal_type type, const struct entry *e)
{
	static const char *const not_of_bits[] = { "integer_registers", "signed", "word_endianess",
						   "word_order", "scale", "offset", NULL };
	static const char *const not_of_integers[] = { "bit", "scale", "offset", NULL };
	static const char *const not_of_floats[] = { "bit", "signed", NULL };

	if (modbus_table_has_bits(m->table))
		return set_coil(m, c, at, type);
	switch (type) {
	case SIGNAL_BOOLEAN:
		if (!json_object_get(at, "bit"))
			return fail(c, at, "bit", "a boolean needs the bit of its register");
		m->kind = MODBUS_BIT;
		m->bit = (unsigned)e->bit;
		m->count = 1;
		warn_unused(c, at, not_of_bits, "a boolean");
		return 0;
	case SIGNAL_INTEGER:
		m->kind = MODBUS_INTEGER;
		m->count = e->integer_registers ? (unsigned)e->integer_registers : 1;
		warn_unused(c, at, not_of_integers, "an integer");
		return 0;
	case SIGNAL_FLOAT:
		m->kind = e->integer_registers ? MODBUS_SCALED : MODBUS_FLOAT;
		m->count = e->integer_registers ? (unsigned)e->integer_registers : 2;
		warn_unused(c, at, e->integer_registers ? (const char *const[]){ "bit", NULL } :
							  not_of_floats, "a float");
		return 0;
	case SIGNAL_COMPLEX:
		break;
	}
	return fail(c, at, "type", "a complex value has no registers");
}

static int parse_entry(struct modbus_map *m, struct config *c, const json_t *at,
		       enum signal_type type, bool writes)
{
	struct entry e = { 0 };
	int ret;

	if (config_unpack_part(c, at, modbus_signal_keys, MODBUS_SIGNAL_KEYS, &e))
		return -EINVAL;
	m->address = (uint16_t)e.address;
	m->table = (enum modbus_table)e.table;
	m->is_signed = e.is_signed;
	m->high_first = e.word_endianess == LITTLE || e.word_order == HIGH_FIRST;
	m->swapped = e.byte_endianess == LITTLE;
	m->scale = e.scale;
	m->offset = e.offset;
	ret = set_kind(m, c, at, type, &e);
	if (json_object_get(at, "word_endianess") && json_object_get(at, "word_order"))
		ret = fail(c, at, "word_order", "word_endianess says the same, and is given");
	if (!ret && e.address + m->count > 65536)
		ret = fail(c, at, "address", "the last register is beyond 65535");
	if (writes && (m->table == MODBUS_INPUT_REGISTERS || m->table == MODBUS_DISCRETE_INPUTS))
		ret = fail(c, at, "table", "input registers and discrete inputs cannot be written");
	if (e.scale == 0)
		ret = fail(c, at, "scale", "0 leaves nothing of the register");
	return ret;
}

static int plan(struct modbus_side *s, struct config *c, const json_t *at, bool exclusive)
{
	const struct modbus_map *m;

	/* The blocks are made by modbus.c, which knows the limits; here it is about the order. */
	modbus_plan_writes(s->maps, s->count, MODBUS_VALUE_MAX, s->blocks);
	m = exclusive ? modbus_find_overlap(s->maps, s->count) : NULL;
	if (!m)
		return 0;
	config_fail(c, at, "signals", "two signals have %s %u",
		    m->kind == MODBUS_BIT ? "the same bit of register" :
		    m->kind == MODBUS_COIL ? "coil" : "register", m->address);
	return -EINVAL;
}

int modbus_side_parse(struct modbus_side *s, struct config *c, const json_t *at,
		      const struct signal_list *l, bool writes, bool exclusive)
{
	int count = l ? signal_entries(c, at,
				       "each signal needs its address: { type = \"float\"; address = 80; }") : 0;
	int ret = 0;

	if (count <= 0)
		return count;
	s->maps = calloc((unsigned)count, sizeof(*s->maps));
	s->blocks = calloc((unsigned)count, sizeof(*s->blocks));
	if (!s->maps || !s->blocks)
		return -ENOMEM;
	s->count = (unsigned)count;
	for (unsigned i = 0; i < s->count; i++) {
		const json_t *e = signal_entry(at, i);

		s->maps[i].signal = i;
		ret = parse_entry(&s->maps[i], c, e, l->signals[i].type, writes) ?: ret;
	}
	return ret ?: plan(s, c, at, exclusive);
}

size_t modbus_side_words(const struct modbus_side *s)
{
	size_t words = 0;

	for (unsigned i = 0; i < s->block_count; i++)
		words += modbus_block_words(&s->blocks[i]);
	return words;
}

void modbus_side_free(struct modbus_side *s)
{
	free(s->maps);
	free(s->blocks);
	*s = (struct modbus_side){ 0 };
}

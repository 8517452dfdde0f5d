/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals in 16-bit registers of Modbus, and in coils, each of which is a word of 0 or 1 here: values
 * to registers and back, and which registers are read or written by one request. Pure functions.
 */
#ifndef GATEWAY_NODE_MODBUS_REGISTERS_H
#define GATEWAY_NODE_MODBUS_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/sample/sample.h"
#include "wire/grid/modbus.h"

/* Registers that one value has at most. */
#define MODBUS_VALUE_MAX 4

enum modbus_kind {
	MODBUS_FLOAT,   /* a float of 32 bits, times `scale`, plus `offset` */
	MODBUS_SCALED,  /* an integer, times `scale`, plus `offset` */
	MODBUS_INTEGER,
	MODBUS_BIT,     /* of one register */
	MODBUS_COIL,    /* a coil or a discrete input */
};

/* Where a signal is. */
struct modbus_map {
	unsigned signal;        /* index of the value in a sample */
	enum modbus_kind kind;
	enum modbus_table table;
	uint16_t address;       /* of the first register */
	unsigned count;         /* registers: 1 to MODBUS_VALUE_MAX */
	unsigned bit;           /* 0: the least significant one */
	bool is_signed;         /* integers in two's complement; those of 4 registers always are */
	bool high_first;        /* the first register has the most significant bits */
	bool swapped;           /* the two bytes of each register are exchanged */
	double scale, offset;
};

/* The value in the registers from m->address on; `out` is of the type that the signal has:
 * a float, an integer or a boolean. */
void modbus_value_read(const struct modbus_map *m, const uint16_t regs[], union signal_data *out);
/*
 * Puts a value of `type` into the registers from m->address on; of MODBUS_BIT it sets or clears
 * the bit in regs[0]. NULL, or why the registers cannot hold the value; then they stay as they
 * are.
 */
const char *modbus_value_write(const struct modbus_map *m, enum signal_type type,
			       const union signal_data *value, uint16_t regs[]);

/* Registers that one request reads or writes. */
struct modbus_block {
	enum modbus_table table;
	uint16_t address;
	unsigned count;
	bool bits;              /* of a plan to write: bits of one register, which is read first */
	unsigned first, maps;   /* the signals in it: maps[first], maps[first + 1] ... */
};

/*
 * Sorts maps[] by address and puts them into blocks of at most `max` (MODBUS_VALUE_MAX or more)
 * registers. Signals lie in one block as long as the share of its registers that belong to a
 * signal is at least `min_usage`. out[] has room for `count` blocks; returns their number.
 */
unsigned modbus_plan_reads(struct modbus_map maps[], unsigned count, unsigned max, double min_usage,
			   struct modbus_block out[]);
/* The same without registers that belong to no signal; bits have blocks of their own. */
unsigned modbus_plan_writes(struct modbus_map maps[], unsigned count, unsigned max,
			    struct modbus_block out[]);
/* Of sorted maps: the first one that shares a register, or a bit of a register, with one before
 * it; NULL: there is none. */
const struct modbus_map *modbus_find_overlap(const struct modbus_map maps[], unsigned count);

#endif

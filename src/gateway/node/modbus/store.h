/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The registers and coils that a server has: which of them exist, who writes them (the node or its
 * clients), and what they hold. No socket, no clock and no thread.
 */
#ifndef GATEWAY_NODE_MODBUS_STORE_H
#define GATEWAY_NODE_MODBUS_STORE_H

#include "gateway/node/modbus/registers.h"

struct modbus_words {
	uint16_t *words;    /* by address */
	uint8_t *owners;    /* enum in store.c */
	unsigned size;      /* up to the last one that exists; 0: none does */
};

struct modbus_store {
	struct modbus_words tables[MODBUS_TABLES];
	/* Registers that do not exist are read as 0, if they are before the last one of their
	 * table. */
	bool zero_gaps;
};

/*
 * Adds the registers of signals: those that clients write, or those that only the node writes. 0;
 * -ENOMEM; -EEXIST: the register *address of *table exists already, and belongs to the other side.
 */
int modbus_store_add(struct modbus_store *s, const struct modbus_map maps[], unsigned count,
		     bool clients_write, enum modbus_table *table, unsigned *address);
void modbus_store_free(struct modbus_store *s);

static inline uint16_t *modbus_store_at(struct modbus_store *s, enum modbus_table table,
					uint16_t address)
{
	return s->tables[table].words + address;
}

/* Copies what a client asks for. *of_node: the node writes some of it. */
enum modbus_refusal modbus_store_read(const struct modbus_store *s, enum modbus_table table,
				      const struct modbus_range *r, uint16_t to[], bool *of_node);
/* May a client write this? Only whole values, so that no sample has half of one. */
enum modbus_refusal modbus_store_check(const struct modbus_store *s, enum modbus_table table,
				       const struct modbus_range *r);

#endif

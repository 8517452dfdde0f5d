/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of Modbus as a server reads requests and writes answers: Application Protocol 1.1b3, its
 * messages on TCP/IP (1.0b) and on serial lines (RTU, 1.02). Pure functions. What a client needs is
 * libmodbus's.
 */
#ifndef WIRE_GRID_MODBUS_H
#define WIRE_GRID_MODBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum modbus_table {
	MODBUS_COILS,
	MODBUS_DISCRETE_INPUTS,
	MODBUS_HOLDING_REGISTERS,
	MODBUS_INPUT_REGISTERS,
	MODBUS_TABLES,
};

/* Are its values single bits? Then a value of 16 bits below is 0 or 1. */
static inline bool modbus_table_has_bits(enum modbus_table t)
{
	return t == MODBUS_COILS || t == MODBUS_DISCRETE_INPUTS;
}

/* Codes of exceptions. */
enum modbus_refusal {
	MODBUS_ACCEPTED = 0,
	MODBUS_NO_FUNCTION = 1,
	MODBUS_NO_ADDRESS = 2,
	MODBUS_NO_VALUE = 3,
	MODBUS_FAILED = 4,
	MODBUS_BUSY = 6,
	MODBUS_NO_TARGET = 11,
};

enum {
	MODBUS_PDU_BYTES = 253,      /* of a request or an answer, at most */
	MODBUS_TCP_HEAD = 7,
	MODBUS_TCP_BYTES = MODBUS_TCP_HEAD + MODBUS_PDU_BYTES,
	MODBUS_RTU_HEAD = 1,
	MODBUS_RTU_BYTES = MODBUS_RTU_HEAD + MODBUS_PDU_BYTES + 2,
	MODBUS_READ_BITS = 2000,     /* values of a request, at most */
	MODBUS_READ_REGISTERS = 125,
};

struct modbus_range {
	uint16_t address;
	unsigned count;              /* 0: nothing; address + count is 65536 at most */
};

/* A request to read, to write, or to write and then to read. */
struct modbus_pdu {
	uint8_t function;
	enum modbus_table table;
	struct modbus_range read, write;
	bool masks;                  /* register = (register & and_mask) | (or_mask & ~and_mask) */
	uint16_t and_mask, or_mask;
	const uint8_t *values;       /* what is written; for modbus_pdu_value() */
};

/* Takes a request apart, of functions 1 to 6, 15, 16, 22 and 23. Other functions, numbers and
 * lengths that cannot be, and addresses beyond 65535 are refused. */
enum modbus_refusal modbus_pdu_decode(const uint8_t *pdu, size_t len, struct modbus_pdu *p);
/* Of what is written, value `i` below p->write.count; not with p->masks. */
uint16_t modbus_pdu_value(const struct modbus_pdu *p, unsigned i);
/* Writes the answer to the request `pdu`, which was decoded as *p and carried out; values[] are
 * those that were read. Its length. */
size_t modbus_answer_encode(const struct modbus_pdu *p, const uint8_t *pdu,
			    const uint16_t values[], uint8_t to[MODBUS_PDU_BYTES]);
size_t modbus_refusal_encode(uint8_t function, enum modbus_refusal code,
			     uint8_t to[MODBUS_PDU_BYTES]);

struct modbus_frame {
	uint16_t transaction;        /* of TCP */
	uint8_t unit;
	const uint8_t *pdu;
	size_t len;                  /* 1 or more */
};

/* The frame at the start of a stream. Number of its bytes; 0: it is not complete; -1: the stream
 * is none of Modbus, for the reason *why. */
int modbus_tcp_decode(const uint8_t *data, size_t len, struct modbus_frame *f, const char **why);
/* Puts the head before an answer that stands at to + MODBUS_TCP_HEAD. Length of the whole. */
size_t modbus_tcp_encode(uint16_t transaction, uint8_t unit, size_t len,
			 uint8_t to[MODBUS_TCP_BYTES]);

/*
 * The frame at the start of what a serial line has brought: of requests, and of answers of other
 * units, the length is known by the function; of others a silence tells it (`silence`: nothing
 * comes behind these bytes). Number of its bytes; 0: it is not complete; -1: no frame begins here,
 * and one byte is to be skipped.
 */
int modbus_rtu_decode(const uint8_t *data, size_t len, bool silence, struct modbus_frame *f);
/* Puts the unit before an answer that stands at to + MODBUS_RTU_HEAD, and the check sum behind it.
 * Length of the whole. */
size_t modbus_rtu_encode(uint8_t unit, size_t len, uint8_t to[MODBUS_RTU_BYTES]);

#endif

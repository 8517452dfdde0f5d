/* SPDX-License-Identifier: BSD-2-Clause */
/* See modbus.h. */
#include "wire/grid/modbus.h"

#include <string.h>

#include "wire/bytes.h"

enum function {
	READ_COILS = 1,
	READ_DISCRETE_INPUTS,
	READ_HOLDING_REGISTERS,
	READ_INPUT_REGISTERS,
	WRITE_COIL,
	WRITE_REGISTER,
	WRITE_COILS = 15,
	WRITE_REGISTERS = 16,
	MASK_REGISTER = 22,
	WRITE_AND_READ_REGISTERS = 23,
};

#define EXCEPTION 0x80
#define COIL_ON 0xff00
#define WRITE_BITS_MAX 1968
#define WRITE_REGISTERS_MAX 123
#define WRITE_AND_READ_MAX 121
#define ADDRESSES 65536u

/* ---- requests ---- */

static size_t bytes_of(enum modbus_table t, unsigned count)
{
	return modbus_table_has_bits(t) ? (count + 7) / 8 : 2 * (size_t)count;
}

static struct modbus_range range_at(const uint8_t *at)
{
	return (struct modbus_range){ .address = get_16(at), .count = get_16(at + 2) };
}

static bool is_beyond(const struct modbus_range *r)
{
	return r->address + r->count > ADDRESSES;
}

static bool set_table(struct modbus_pdu *p)
{
	static const struct {
		bool is_known;
		enum modbus_table table;
	} rows[] = {
		[READ_COILS] = { true, MODBUS_COILS },
		[READ_DISCRETE_INPUTS] = { true, MODBUS_DISCRETE_INPUTS },
		[READ_HOLDING_REGISTERS] = { true, MODBUS_HOLDING_REGISTERS },
		[READ_INPUT_REGISTERS] = { true, MODBUS_INPUT_REGISTERS },
		[WRITE_COIL] = { true, MODBUS_COILS },
		[WRITE_REGISTER] = { true, MODBUS_HOLDING_REGISTERS },
		[WRITE_COILS] = { true, MODBUS_COILS },
		[WRITE_REGISTERS] = { true, MODBUS_HOLDING_REGISTERS },
		[MASK_REGISTER] = { true, MODBUS_HOLDING_REGISTERS },
		[WRITE_AND_READ_REGISTERS] = { true, MODBUS_HOLDING_REGISTERS },
	};

	if (p->function >= sizeof(rows) / sizeof(*rows) || !rows[p->function].is_known)
		return false;
	p->table = rows[p->function].table;
	return true;
}

/* What the numbers of a list and its bytes have to be. */
static bool is_list(const struct modbus_pdu *p, unsigned max, const uint8_t *bytes, size_t len)
{
	size_t wanted = bytes_of(p->table, p->write.count);

	return p->write.count >= 1 && p->write.count <= max && *bytes == wanted &&
	       len == 1 + wanted;
}

static bool decode_read(struct modbus_pdu *p, const uint8_t *pdu, size_t len)
{
	unsigned max = modbus_table_has_bits(p->table) ? MODBUS_READ_BITS : MODBUS_READ_REGISTERS;

	if (len != 5)
		return false;
	p->read = range_at(pdu + 1);
	return p->read.count >= 1 && p->read.count <= max;
}

static bool decode_single(struct modbus_pdu *p, const uint8_t *pdu, size_t len)
{
	if (len != 5)
		return false;
	p->write = (struct modbus_range){ .address = get_16(pdu + 1), .count = 1 };
	p->values = pdu + 3;
	return p->function != WRITE_COIL || get_16(pdu + 3) == COIL_ON || !get_16(pdu + 3);
}

static bool decode_multiple(struct modbus_pdu *p, const uint8_t *pdu, size_t len)
{
	unsigned max = modbus_table_has_bits(p->table) ? WRITE_BITS_MAX : WRITE_REGISTERS_MAX;

	if (len < 6)
		return false;
	p->write = range_at(pdu + 1);
	p->values = pdu + 6;
	return is_list(p, max, pdu + 5, len - 5);
}

static bool decode_mask(struct modbus_pdu *p, const uint8_t *pdu, size_t len)
{
	if (len != 7)
		return false;
	p->write = (struct modbus_range){ .address = get_16(pdu + 1), .count = 1 };
	p->masks = true;
	p->and_mask = get_16(pdu + 3);
	p->or_mask = get_16(pdu + 5);
	return true;
}

static bool decode_both(struct modbus_pdu *p, const uint8_t *pdu, size_t len)
{
	if (len < 10)
		return false;
	p->read = range_at(pdu + 1);
	p->write = range_at(pdu + 5);
	p->values = pdu + 10;
	return p->read.count >= 1 && p->read.count <= MODBUS_READ_REGISTERS &&
	       is_list(p, WRITE_AND_READ_MAX, pdu + 9, len - 9);
}

static bool decode_body(struct modbus_pdu *p, const uint8_t *pdu, size_t len)
{
	switch (p->function) {
	case WRITE_COIL:
	case WRITE_REGISTER:
		return decode_single(p, pdu, len);
	case WRITE_COILS:
	case WRITE_REGISTERS:
		return decode_multiple(p, pdu, len);
	case MASK_REGISTER:
		return decode_mask(p, pdu, len);
	case WRITE_AND_READ_REGISTERS:
		return decode_both(p, pdu, len);
	default:
		return decode_read(p, pdu, len);
	}
}

enum modbus_refusal modbus_pdu_decode(const uint8_t *pdu, size_t len, struct modbus_pdu *p)
{
	*p = (struct modbus_pdu){ .function = len ? pdu[0] : 0 };
	if (!set_table(p))
		return MODBUS_NO_FUNCTION;
	if (!decode_body(p, pdu, len))
		return MODBUS_NO_VALUE;
	return is_beyond(&p->read) || is_beyond(&p->write) ? MODBUS_NO_ADDRESS : MODBUS_ACCEPTED;
}

uint16_t modbus_pdu_value(const struct modbus_pdu *p, unsigned i)
{
	if (p->function == WRITE_COIL)
		return get_16(p->values) == COIL_ON;
	if (modbus_table_has_bits(p->table))
		return p->values[i / 8] >> i % 8 & 1;
	return get_16(p->values + 2 * i);
}

/* ---- answers ---- */

static size_t encode_values(const struct modbus_pdu *p, const uint16_t values[], uint8_t *to)
{
	size_t bytes = bytes_of(p->table, p->read.count);
	bool bits = modbus_table_has_bits(p->table);

	*to++ = (uint8_t)bytes;
	if (bits)
		memset(to, 0, bytes);
	for (unsigned i = 0; i < p->read.count; i++) {
		if (bits)
			to[i / 8] |= (uint8_t)(!!values[i] << i % 8);
		else
			put_16(to + 2 * i, values[i]);
	}
	return 1 + bytes;
}

size_t modbus_answer_encode(const struct modbus_pdu *p, const uint8_t *pdu,
			    const uint16_t values[], uint8_t to[MODBUS_PDU_BYTES])
{
	size_t len = p->masks ? 7 : 5;

	if (p->read.count) {
		to[0] = p->function;
		return 1 + encode_values(p, values, to + 1);
	}
	memcpy(to, pdu, len);
	return len;
}

size_t modbus_refusal_encode(uint8_t function, enum modbus_refusal code,
			     uint8_t to[MODBUS_PDU_BYTES])
{
	to[0] = (uint8_t)(function | EXCEPTION);
	to[1] = (uint8_t)code;
	return 2;
}

/* ---- TCP ---- */

int modbus_tcp_decode(const uint8_t *data, size_t len, struct modbus_frame *f, const char **why)
{
	size_t rest;

	/* Each field is looked at as soon as it is there: what is something else ends at once. */
	if (len >= 4 && get_16(data + 2)) {
		*why = "its protocol identifier is not 0";
		return -1;
	}
	if (len < 6)
		return 0;
	rest = get_16(data + 4);
	if (rest < 2 || rest > 1 + MODBUS_PDU_BYTES) {
		*why = "its length is not that of a request";
		return -1;
	}
	if (len < 6 + rest)
		return 0;
	*f = (struct modbus_frame){ .transaction = get_16(data), .unit = data[6],
				    .pdu = data + MODBUS_TCP_HEAD, .len = rest - 1 };
	return (int)(6 + rest);
}

size_t modbus_tcp_encode(uint16_t transaction, uint8_t unit, size_t len,
			 uint8_t to[MODBUS_TCP_BYTES])
{
	put_16(put_16(put_16(to, transaction), 0), (uint16_t)(len + 1));
	to[6] = unit;
	return MODBUS_TCP_HEAD + len;
}

/* ---- serial lines ---- */

static uint16_t check_sum(const uint8_t *data, size_t len)
{
	uint16_t crc = 0xffff;

	for (size_t i = 0; i < len; i++) {
		crc ^= data[i];
		for (unsigned bit = 0; bit < 8; bit++)
			crc = (uint16_t)(crc >> 1 ^ (crc & 1 ? 0xa001 : 0));
	}
	return crc;
}

/* With the low byte first. */
static bool is_checked(const uint8_t *data, size_t len)
{
	uint16_t crc = check_sum(data, len - 2);

	return data[len - 2] == (uint8_t)crc && data[len - 1] == crc >> 8;
}

/* Lengths of whole frames by the function, and a byte that has a number of further ones; 0: not
 * known. UINT_MAX: that byte is not there yet. */
static unsigned length_with(const uint8_t *data, size_t len, unsigned fixed, unsigned counter)
{
	return len > counter ? fixed + data[counter] : UINT32_MAX;
}

static unsigned request_length(const uint8_t *data, size_t len)
{
	switch (data[1]) {
	case READ_COILS ... WRITE_REGISTER:
		return 8;
	case WRITE_COILS:
	case WRITE_REGISTERS:
		return length_with(data, len, 9, 6);
	case MASK_REGISTER:
		return 10;
	case WRITE_AND_READ_REGISTERS:
		return length_with(data, len, 13, 10);
	default:
		return 0;
	}
}

static unsigned answer_length(const uint8_t *data, size_t len)
{
	switch (data[1]) {
	case READ_COILS ... READ_INPUT_REGISTERS:
	case WRITE_AND_READ_REGISTERS:
		return length_with(data, len, 5, 2);
	case WRITE_COILS:
	case WRITE_REGISTERS:
		return 8;
	case EXCEPTION ... UINT8_MAX:
		return 5;
	default:
		return 0;
	}
}

int modbus_rtu_decode(const uint8_t *data, size_t len, bool silence, struct modbus_frame *f)
{
	unsigned lengths[3], most = 0;

	if (len < 4)
		return len && silence ? -1 : 0;
	lengths[0] = request_length(data, len);
	lengths[1] = answer_length(data, len);
	lengths[2] = silence && len <= MODBUS_RTU_BYTES ? (unsigned)len : 0;
	for (unsigned i = 0; i < 3; i++) {
		unsigned n = lengths[i];

		if (n > MODBUS_RTU_BYTES && n != UINT32_MAX)
			continue;
		most = n > most ? n : most;
		if (!n || n > len || !is_checked(data, n))
			continue;
		*f = (struct modbus_frame){ .unit = data[0], .pdu = data + 1, .len = n - 3 };
		return (int)n;
	}
	/* A function without a known length waits for the silence. */
	if (!most)
		most = MODBUS_RTU_BYTES;
	return silence || len >= most ? -1 : 0;
}

size_t modbus_rtu_encode(uint8_t unit, size_t len, uint8_t to[MODBUS_RTU_BYTES])
{
	uint16_t crc;

	to[0] = unit;
	crc = check_sum(to, 1 + len);
	to[1 + len] = (uint8_t)crc;
	to[2 + len] = (uint8_t)(crc >> 8);
	return 3 + len;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What clients send to a server of Modbus: the first byte says whether it is TCP or a serial line.
 * Frames lie within what has come; requests are refused, or lie within the registers and within
 * what may be read and written; answers have a length that a frame may have.
 *
 * usage: fuzz_modbus [RUNS [SEED]]
 */
#include <stdlib.h>
#include <string.h>

#include "gateway/node/modbus/store.h"

#define MUTATE_BYTES "\x00\x01\x02\x03\x04\x05\x06\x08\x0f\x10\x16\x17\x7b\x7d\x80\xfd\xff"
#include "drive.h"

static struct modbus_store store;

static void must(bool good)
{
	if (!good)
		abort();
}

static void make_store(void)
{
	const struct modbus_map written[] = {
		{ .kind = MODBUS_INTEGER, .table = MODBUS_HOLDING_REGISTERS, .address = 0, .count = 4 },
		{ .kind = MODBUS_INTEGER, .table = MODBUS_HOLDING_REGISTERS, .address = 4, .count = 1 },
		{ .kind = MODBUS_COIL, .table = MODBUS_COILS, .address = 1, .count = 1 },
	}, read[] = {
		{ .kind = MODBUS_FLOAT, .table = MODBUS_HOLDING_REGISTERS, .address = 7, .count = 2 },
		{ .kind = MODBUS_FLOAT, .table = MODBUS_INPUT_REGISTERS, .address = 65534, .count = 2 },
		{ .kind = MODBUS_COIL, .table = MODBUS_DISCRETE_INPUTS, .address = 3, .count = 1 },
		{ .kind = MODBUS_COIL, .table = MODBUS_COILS, .address = 2, .count = 1 },
	};
	enum modbus_table table;
	unsigned address;

	if (store.tables[MODBUS_COILS].size)
		return;
	must(!modbus_store_add(&store, written, 3, true, &table, &address));
	must(!modbus_store_add(&store, read, 4, false, &table, &address));
}

static void request(const uint8_t *pdu, size_t len)
{
	uint8_t *to = malloc(MODBUS_PDU_BYTES);
	uint16_t values[MODBUS_READ_BITS];
	enum modbus_refusal refusal;
	struct modbus_pdu p;
	bool of_node;
	size_t n;

	must(to);
	refusal = modbus_pdu_decode(pdu, len, &p);
	if (!refusal && p.read.count)
		refusal = modbus_store_read(&store, p.table, &p.read, values, &of_node);
	if (!refusal && p.write.count) {
		refusal = modbus_store_check(&store, p.table, &p.write);
		for (unsigned i = 0; !refusal && i < p.write.count && !p.masks; i++)
			*modbus_store_at(&store, p.table, (uint16_t)(p.write.address + i)) =
				modbus_pdu_value(&p, i);
	}
	n = refusal ? modbus_refusal_encode(p.function, refusal, to) :
		      modbus_answer_encode(&p, pdu, values, to);
	must(n >= 2 && n <= MODBUS_PDU_BYTES);
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool line = size && data[0] & 1;
	struct modbus_frame f;
	const char *why;
	size_t at = 1;

	make_store();
	while (at < size) {
		int n = line ? modbus_rtu_decode(data + at, size - at, data[0] & 2, &f) :
			       modbus_tcp_decode(data + at, size - at, &f, &why);

		if (!n || (n < 0 && !line))
			break;
		if (n > 0) {
			must((size_t)n <= size - at && f.len && f.len <= MODBUS_PDU_BYTES &&
			     f.pdu > data + at && f.pdu + f.len <= data + at + n);
			request(f.pdu, f.len);
		}
		at += n > 0 ? (size_t)n : 1;
	}
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 1000

static size_t make_pdu(uint8_t *to)
{
	static const uint8_t functions[] = { 1, 2, 3, 4, 5, 6, 15, 16, 22, 23, 7 };
	size_t bytes = random_below(12);

	to[0] = functions[random_below(sizeof(functions))];
	for (size_t i = 1; i < 10; i++)
		to[i] = i % 2 ? 0 : (uint8_t)random_below(9);
	if (to[0] <= 6)
		return 5;
	if (to[0] == 22)
		return 7;
	to[to[0] == 23 ? 9 : 5] = (uint8_t)bytes;
	return (to[0] == 23 ? 10 : 6) + bytes;
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = 1;

	bytes[0] = (uint8_t)random_below(4);
	for (unsigned i = (unsigned)random_below(4); i < 4; i++) {
		uint8_t frame[MODBUS_TCP_BYTES + 40] = { 0 };
		bool line = bytes[0] & 1;
		uint8_t *pdu = frame + (line ? MODBUS_RTU_HEAD : MODBUS_TCP_HEAD);
		size_t len = make_pdu(pdu);

		/* Those of lines are changed before they get their check sum. */
		if (line)
			len = mutate_times(pdu, len, 200, random_below(3));
		len = line ? modbus_rtu_encode((uint8_t)random_below(3), len, frame) :
			     modbus_tcp_encode((uint16_t)i, 1, len, frame);
		memcpy(bytes + size, frame, len);
		size += len;
	}
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 200000, SIZE_MAX_BYTES, make);
}
#endif

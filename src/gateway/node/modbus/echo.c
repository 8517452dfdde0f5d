/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests over a serial line whose adapter echoes what is sent. libmodbus would take the echo for the
 * answer. So it sends a request as bytes, the echo is read and compared here, and then it
 * receives the answer. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/modbus/modbus.h"
#include "util/clock.h"
#include "wire/bytes.h"

/* Unit, function, address, number. */
#define HEAD 6
#define CHECKSUM 2
#define COIL_ON 0xff00

enum {
	READ_COILS = 1,
	READ_DISCRETE_INPUTS,
	READ_HOLDING_REGISTERS,
	READ_INPUT_REGISTERS,
	WRITE_COIL,
	WRITE_COILS = 15,
	WRITE_REGISTERS,
	EXCEPTION = 0x80,
};

static int fail(int error)
{
	errno = error;
	return -1;
}

static uint8_t function_of(const struct modbus_op *op)
{
	static const uint8_t reads[MODBUS_TABLES] = {
		[MODBUS_COILS] = READ_COILS,
		[MODBUS_DISCRETE_INPUTS] = READ_DISCRETE_INPUTS,
		[MODBUS_HOLDING_REGISTERS] = READ_HOLDING_REGISTERS,
		[MODBUS_INPUT_REGISTERS] = READ_INPUT_REGISTERS,
	};

	if (!op->writes)
		return reads[op->table];
	if (op->table != MODBUS_COILS)
		return WRITE_REGISTERS;
	return op->count == 1 ? WRITE_COIL : WRITE_COILS;
}

static size_t data_bytes(const struct modbus_op *op)
{
	return modbus_table_has_bits(op->table) ? (op->count + 7) / 8 : 2 * (size_t)op->count;
}

/* The values of a request to write several. Their bytes. */
static size_t put_values(const struct modbus_op *op, const uint16_t regs[], uint8_t *to)
{
	size_t len = data_bytes(op);

	*to++ = (uint8_t)len;
	memset(to, 0, len);
	for (unsigned i = 0; i < op->count; i++) {
		if (op->table == MODBUS_COILS)
			to[i / 8] |= (uint8_t)((regs[i] != 0) << i % 8);
		else
			put_16(to + 2 * i, regs[i]);
	}
	return 1 + len;
}

static size_t put_request(const struct modbus_node *m, const struct modbus_op *op,
			  const uint16_t regs[], uint8_t to[MODBUS_RTU_BYTES])
{
	to[0] = (uint8_t)m->unit;
	to[1] = function_of(op);
	put_16(to + 2, op->address);
	put_16(to + 4, (uint16_t)op->count);
	if (to[1] == WRITE_COIL)
		put_16(to + 4, regs[0] ? COIL_ON : 0);
	return HEAD + (to[1] >= WRITE_COILS ? put_values(op, regs, to + HEAD) : 0);
}

/* Reads `len` bytes, which have to be there in time. 0, or -1 with errno. */
static int read_echo(int fd, uint8_t *to, size_t len, double seconds)
{
	uint64_t now, end_ns = clock_now_ns() + (uint64_t)(seconds * 1e9);

	while (len && (now = clock_now_ns()) < end_ns) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		struct timespec left = timespec_from_ns(end_ns - now);
		ssize_t n;

		if (ppoll(&p, 1, &left, NULL) <= 0)
			continue;
		n = read(fd, to, len);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -1;
		if (!n)
			return fail(EIO);
		len -= n > 0 ? (size_t)n : 0;
		to += n > 0 ? n : 0;
	}
	return len ? fail(ETIMEDOUT) : 0;
}

/* What a server answers to a request; the checksum is right. The number of values, or -1 with errno. */
static int take_answer(const struct modbus_op *op, const uint8_t *request, const uint8_t *answer, int len,
		       uint16_t regs[])
{
	size_t bytes = data_bytes(op);
	const uint8_t *data = answer + 3;

	if (answer[0] != request[0])
		return fail(EMBBADSLAVE);
	if (answer[1] == (request[1] | EXCEPTION))
		return fail(MODBUS_ENOBASE + answer[2]);
	if (answer[1] != request[1])
		return fail(EMBBADDATA);
	if (op->writes)
		return len >= HEAD + CHECKSUM && !memcmp(answer, request, HEAD) ? (int)op->count :
										  fail(EMBBADDATA);
	if (answer[2] != bytes || (size_t)len < 3 + bytes + CHECKSUM)
		return fail(EMBBADDATA);
	for (unsigned i = 0; i < op->count; i++)
		regs[i] = modbus_table_has_bits(op->table) ? data[i / 8] >> i % 8 & 1 : get_16(data + 2 * i);
	return (int)op->count;
}

int modbus_exchange_echoed(struct modbus_node *m, const struct modbus_op *op, uint16_t regs[],
			   double timeout_s)
{
	uint8_t request[MODBUS_RTU_BYTES], echo[MODBUS_RTU_BYTES], answer[MODBUS_MAX_ADU_LENGTH];
	size_t len = put_request(m, op, regs, request);
	int got;

	if (modbus_send_raw_request(m->ctx, request, (int)len) < 0 ||
	    read_echo(modbus_get_socket(m->ctx), echo, len + CHECKSUM, timeout_s))
		return -1;
	got = modbus_receive_confirmation(m->ctx, answer);
	/* Another device has sent at the same time; an answer, if there is one, has been taken from the
	 * line. */
	if (memcmp(request, echo, len))
		return fail(EMBBADDATA);
	if (got < 0)
		return -1;
	return got < 3 + CHECKSUM ? fail(EMBBADDATA) : take_answer(op, request, answer, got, regs);
}

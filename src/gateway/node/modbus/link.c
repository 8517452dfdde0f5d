/* SPDX-License-Identifier: BSD-2-Clause */
/* The connection to a Modbus server, or the serial line, and single requests. */
#define LOG_ROOM "gateway/modbus"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/node/modbus/modbus.h"
#include "util/clock.h"

/* When the node stops: for the request on its way, and for each one that follows. */
#define HURRY_S 0.3
/* Noise on a serial line is no reason to open it again; this is. */
#define FAILURES_MAX 3

/* ---- connecting ---- */

/* The library waits with select(), which ends the process if the descriptor is greater. */
static bool may_be_selected(int fd)
{
	return fd < FD_SETSIZE;
}

static int open_tcp(struct modbus_node *m)
{
	uint64_t until_ns = clock_now_ns() + (uint64_t)(m->outside.connect_timeout_s * 1e9);
	int fd = outside_dial(&m->outside, m->remote, (int)m->port, until_ns);

	if (fd < 0)
		return fd;
	if (!may_be_selected(fd)) {
		close(fd);
		return -EMFILE;
	}
	/* The library is given a connection, so that this address is not used. */
	m->ctx = modbus_new_tcp("127.0.0.1", (int)m->port);
	if (!m->ctx) {
		close(fd);
		return -ENOMEM;
	}
	modbus_set_socket(m->ctx, fd);
	pthread_mutex_lock(&m->gate);
	m->fd = fd;
	pthread_mutex_unlock(&m->gate);
	return 0;
}

int modbus_open_line(struct modbus_node *m)
{
	static const char letters[] = "NEO";

	m->ctx = modbus_new_rtu(m->device, (int)m->baudrate, letters[m->parity], (int)m->data_bits,
				(int)m->stop_bits);
	if (!m->ctx)
		return -errno;
	modbus_set_slave(m->ctx, (int)m->unit);
	if (modbus_connect(m->ctx))
		return -errno;
	/* A server does not use the library to wait. */
	return m->mode == MODBUS_SERVER || may_be_selected(modbus_get_socket(m->ctx)) ? 0 : -EMFILE;
}

/* ---- requests ---- */

static void set_timeouts(struct modbus_node *m, double seconds)
{
	uint32_t s = (uint32_t)seconds, us = (uint32_t)((seconds - s) * 1e6);

	modbus_set_response_timeout(m->ctx, s, us);
	/* The whole answer has to be there in this time. */
	modbus_set_byte_timeout(m->ctx, 0, 0);
}

static int read_bits(struct modbus_node *m, bool coils, int address, int count, uint16_t regs[])
{
	uint8_t bits[MODBUS_MAX_READ_BITS];
	int ret = coils ? modbus_read_bits(m->ctx, address, count, bits) :
			  modbus_read_input_bits(m->ctx, address, count, bits);

	for (int i = 0; i < ret; i++)
		regs[i] = bits[i];
	return ret;
}

/* Some servers have only the function for a single coil, some only that for several. */
static int write_bits(struct modbus_node *m, int address, int count, const uint16_t regs[])
{
	uint8_t bits[MODBUS_MAX_WRITE_BITS];

	for (int i = 0; i < count; i++)
		bits[i] = regs[i] != 0;
	return count == 1 ? modbus_write_bit(m->ctx, address, bits[0]) :
			    modbus_write_bits(m->ctx, address, count, bits);
}

static int exchange(struct modbus_node *m, const struct modbus_op *op, uint16_t regs[])
{
	int address = op->address, count = (int)op->count;

	switch (op->table) {
	case MODBUS_COILS:
		return op->writes ? write_bits(m, address, count, regs) :
				    read_bits(m, true, address, count, regs);
	case MODBUS_DISCRETE_INPUTS:
		return read_bits(m, false, address, count, regs);
	case MODBUS_INPUT_REGISTERS:
		return modbus_read_input_registers(m->ctx, address, count, regs);
	default:
		return op->writes ? modbus_write_registers(m->ctx, address, count, regs) :
				    modbus_read_registers(m->ctx, address, count, regs);
	}
}

static int call(struct modbus_node *m, const struct modbus_op *op, uint16_t regs[])
{
	double timeout_s = m->response_timeout_s;
	bool hurry;
	int ret;

	pthread_mutex_lock(&m->gate);
	hurry = m->stopping;
	m->busy = true;
	m->requests++;
	pthread_mutex_unlock(&m->gate);
	timeout_s = hurry ? MIN(HURRY_S, timeout_s) : timeout_s;
	set_timeouts(m, timeout_s);
	errno = 0;
	ret = m->echo && m->transport == MODBUS_RTU ?
		      modbus_exchange_echoed(m, op, regs, timeout_s) : exchange(m, op, regs);
	ret = ret == (int)op->count ? 0 : -(errno ?: EPROTO);
	pthread_mutex_lock(&m->gate);
	m->busy = false;
	pthread_cond_broadcast(&m->answered);
	pthread_mutex_unlock(&m->gate);
	return ret;
}

static bool is_bad_answer(int error)
{
	return error == EMBBADCRC || error == EMBBADDATA || error == EMBBADEXC ||
	       error == EMBUNKEXC || error == EMBMDATA || error == EPROTO ||
	       error == MODBUS_ENOBASE;
}

/* Counts what `error` of the library is. As modbus_request(). */
static int judge(struct modbus_node *m, int error, const char *what)
{
	struct node *n = m->outside.node;
	int code = error - MODBUS_ENOBASE;

	if (code >= 1 && code <= MODBUS_EXCEPTIONS) {
		node_figure_add(n, MODBUS_EXCEPTION + (unsigned)code - 1, 1);
		m->exception = code;
		m->failures = 0;
		return outside_fail(&m->outside, -EBADMSG, "%s: exception %d, %s", what, code,
				    modbus_strerror(error));
	}
	if (error == ETIMEDOUT) {
		node_figure_add(n, MODBUS_TIMEOUTS, 1);
		outside_fail(&m->outside, 0, "%s: no answer within %g s (response_timeout)", what,
			     m->response_timeout_s);
	} else {
		if (error == EMBBADSLAVE)
			node_figure_add(n, MODBUS_OTHER_UNIT, 1);
		else if (is_bad_answer(error))
			node_figure_add(n, MODBUS_BAD_ANSWERS, 1);
		else
			m->failures = FAILURES_MAX;
		outside_fail(&m->outside, 0, "%s: %s", what, modbus_strerror(error));
	}
	if (m->transport == MODBUS_TCP || ++m->failures >= FAILURES_MAX ||
	    outside_is_ending(&m->outside))
		return -ECONNRESET;
	modbus_flush(m->ctx);
	return -EAGAIN;
}

static int finish(struct modbus_node *m, int ret, const struct modbus_op *op)
{
	static const char *const names[MODBUS_TABLES] = {
		[MODBUS_COILS] = "coils",
		[MODBUS_DISCRETE_INPUTS] = "discrete inputs",
		[MODBUS_HOLDING_REGISTERS] = "holding registers",
		[MODBUS_INPUT_REGISTERS] = "input registers",
	};
	char what[80];

	m->exception = 0;
	if (!ret) {
		m->failures = 0;
		return 0;
	}
	snprintf(what, sizeof(what), "%s %s %u to %u", op->writes ? "writing" : "reading",
		 names[op->table], op->address, op->address + op->count - 1);
	return judge(m, -ret, what);
}

int modbus_request(struct modbus_node *m, const struct modbus_op *op, uint16_t regs[])
{
	int ret;

	/* A path that writes does not wait for the server. */
	outside_unlock(&m->outside);
	ret = call(m, op, regs);
	outside_lock(&m->outside);
	return finish(m, ret, op);
}

void modbus_hurry(struct modbus_node *m)
{
	struct timespec until = timespec_from_ns(clock_monotonic_ns_slow() +
						 (uint64_t)(HURRY_S * 1e9));
	uint64_t request;

	pthread_mutex_lock(&m->gate);
	m->stopping = true;
	request = m->requests;
	while (m->busy && m->requests == request &&
	       !pthread_cond_clockwait(&m->answered, &m->gate, CLOCK_MONOTONIC, &until))
		;
	if (m->busy && m->requests == request && m->fd >= 0)
		shutdown(m->fd, SHUT_RDWR);
	pthread_mutex_unlock(&m->gate);
}

/* ---- for outside ---- */

/* Whether anything answers: a connection, and more so a serial line, may be there without a
 * server. An exception is an answer, too. */
static int probe(struct modbus_node *m)
{
	bool reads = m->outside.node->is_source && m->in.count;
	const struct modbus_block *b = reads ? &m->in.blocks[0] : m->out.block_count ? &m->out.blocks[0] : NULL;
	uint16_t regs[MODBUS_MAX_READ_REGISTERS];
	struct modbus_op op;
	int ret;

	if (!b)
		return 0;
	op = (struct modbus_op){ false, b->table, b->address, b->count };
	do {
		ret = call(m, &op, regs);
		ret = finish(m, ret, &op);
	} while (ret == -EAGAIN && !outside_is_ending(&m->outside));
	return ret == -EBADMSG ? 0 : ret;
}

void modbus_close_line(struct modbus_node *m)
{
	if (!m->ctx)
		return;
	modbus_close(m->ctx);
	modbus_free(m->ctx);
	m->ctx = NULL;
}

static void close_link(struct modbus_node *m)
{
	pthread_mutex_lock(&m->gate);
	m->fd = -1;
	pthread_mutex_unlock(&m->gate);
	modbus_close_line(m);
}

int modbus_open(struct outside *o)
{
	struct modbus_node *m = modbus_of(o);
	int ret = m->transport == MODBUS_TCP ? open_tcp(m) : modbus_open_line(m);

	m->failures = 0;
	m->has_message = false;
	memset(m->known, 0, m->out.block_count * sizeof(*m->known));
	if (!ret && m->transport == MODBUS_TCP && modbus_set_slave(m->ctx, (int)m->unit))
		ret = -errno;
	if (!ret)
		ret = probe(m);
	if (ret) {
		close_link(m);
		return ret;
	}
	timer_grid_start(&m->grid, m->rate, 0, clock_now_ns());
	return 0;
}

void modbus_close_link(struct outside *o)
{
	close_link(modbus_of(o));
}

int modbus_look(struct modbus_node *m)
{
	char byte;
	ssize_t n;

	if (m->transport != MODBUS_TCP)
		return 0;
	n = recv(m->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (!n)
		return outside_fail(&m->outside, -ECONNRESET, "it has ended the connection");
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	node_figure_add(m->outside.node, MODBUS_BAD_ANSWERS, 1);
	return outside_fail(&m->outside, -EPROTO, "it sends what nobody has asked for");
}

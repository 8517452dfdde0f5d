/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `modbus`: samples are registers of a Modbus server (a relay, a meter, an inverter),
 * over TCP or a serial line. Connecting in the background, waiting and accounting are those of
 * gateway/outside; the protocol is libmodbus's.
 */
#define LOG_ROOM "gateway/modbus"
#include "gateway/node/modbus/modbus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"

extern const struct node_type node_modbus;

static const char *const transports[] = { "tcp", "rtu", NULL };
static const char *const parities[] = { "none", "even", "odd", NULL };
static const char *const writes[] = { "all", "changed", NULL };

/* A serial line cannot be woken: a request ends by itself, before a stop takes too long. */
#define RTU_TIMEOUT_MAX_S 1.5
/* Of the address of a unit that is none. */
#define NO_UNIT (-1)

#define OFFSET(field) offsetof(struct modbus_node, field)

static const struct config_key modbus_keys[] = {
	{ "transport", CONFIG_ENUM, OFFSET(transport), .required = true, .names = transports,
	  .help = "tcp, or rtu over a serial line" },
	{ "remote", CONFIG_STRING, OFFSET(remote), .help = "tcp: name or address of the server" },
	{ "port", CONFIG_INT, OFFSET(port), "502", .min = 1, .max = 65535, .help = "tcp: its port" },
	{ "device", CONFIG_STRING, OFFSET(device), .help = "rtu: the serial line, \"/dev/ttyUSB0\"" },
	{ "baudrate", CONFIG_INT, OFFSET(baudrate), "9600", .min = 110, .max = 4000000,
	  .help = "rtu: bits per second, one of the usual rates" },
	{ "parity", CONFIG_ENUM, OFFSET(parity), "none", .names = parities,
	  .help = "rtu: none, even or odd" },
	{ "data_bits", CONFIG_INT, OFFSET(data_bits), "8", .min = 5, .max = 8,
	  .help = "rtu: bits of a byte; the protocol needs 8" },
	{ "stop_bits", CONFIG_INT, OFFSET(stop_bits), "1", .min = 1, .max = 2,
	  .help = "rtu: stop bits" },
	{ "unit", CONFIG_INT, OFFSET(unit), "-1", .min = 0, .max = 255,
	  .help = "Address of the unit; rtu needs it (1 to 247), tcp has 255 without it" },
	{ "rate", CONFIG_REAL, OFFSET(rate), "10.0", .min = 1e-5, .max = 1e5,
	  .help = "How often a second the registers are read" },
	{ "response_timeout", CONFIG_REAL, OFFSET(response_timeout_s), "1.0", .min = 0.001, .max = 60,
	  .help = "Seconds until an answer has to be there; 1.5 at most with rtu" },
	{ "reconnect_interval", CONFIG_REAL, OFFSET(reconnect_s), "10.0", .min = 0.01, .max = 86400,
	  .help = "Seconds between attempts to connect, at most; the first ones follow sooner" },
	{ "connect_timeout", CONFIG_REAL, OFFSET(outside.connect_timeout_s), "5.0", .min = 0.01,
	  .max = 3600, .help = "Seconds after which an attempt to connect is given up" },
	{ "min_block_usage", CONFIG_REAL, OFFSET(min_block_usage), "0.25", .min = 0, .max = 1,
	  .help = "Share of the registers of a request to read that belong to a signal, at least" },
	{ "max_block_size", CONFIG_INT, OFFSET(max_block_size), "32", .min = MODBUS_VALUE_MAX,
	  .max = MODBUS_MAX_WRITE_REGISTERS, .help = "Registers of a request, at most" },
};

static const struct config_key modbus_in_keys[] = { OUTSIDE_IN_KEYS };

static const struct config_key modbus_out_keys[] = {
	{ "write", CONFIG_ENUM, OFFSET(write), "all", .names = writes,
	  .help = "all: each sample writes all registers; changed: those whose value is another one than that written last" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* Keys of one transport say nothing about the other one. */
static void warn_unused(const struct modbus_node *m, struct config *c, const json_t *cfg)
{
	static const struct {
		const char *key;
		enum modbus_transport of;
	} rows[] = {
		{ "remote", MODBUS_TCP }, { "port", MODBUS_TCP }, { "connect_timeout", MODBUS_TCP },
		{ "device", MODBUS_RTU }, { "baudrate", MODBUS_RTU }, { "parity", MODBUS_RTU },
		{ "data_bits", MODBUS_RTU }, { "stop_bits", MODBUS_RTU },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if ((int)rows[i].of != m->transport && json_object_get(cfg, rows[i].key))
			config_warn(c, cfg, rows[i].key, "says nothing with transport = \"%s\"",
				    transports[m->transport]);
}

/* libmodbus takes another one for 9600, without a word. */
static bool is_baudrate(int64_t rate)
{
	static const int known[] = { 110, 300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 57600,
				     115200, 230400, 460800, 500000, 576000, 921600, 1000000,
				     1152000, 1500000, 2500000, 3000000, 3500000, 4000000 };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i] == rate)
			return true;
	return false;
}

static int parse_tcp(struct modbus_node *m, struct config *c, json_t *cfg)
{
	bool number = m->remote && strchr(m->remote, ':');
	int ret = 0;

	if (!m->remote || !*m->remote)
		ret = fail(c, cfg, "remote", "tcp needs the name or address of the server");
	else if (strlen(m->remote) > 255)
		ret = fail(c, cfg, "remote", "is too long");
	/* What libmodbus takes for the address of a unit. */
	if (m->unit > 247 && m->unit != MODBUS_TCP_SLAVE)
		ret = fail(c, cfg, "unit", "possible are 0 to 247, and 255");
	if (m->unit == NO_UNIT)
		m->unit = MODBUS_TCP_SLAVE;
	if (!ret)
		snprintf(m->target, sizeof(m->target), "tcp://%s%s%s:%d", number ? "[" : "",
			 m->remote, number ? "]" : "", (int)m->port);
	return ret;
}

static int parse_rtu(struct modbus_node *m, struct config *c, json_t *cfg)
{
	int ret = 0;

	if (!m->device || !*m->device)
		ret = fail(c, cfg, "device", "rtu needs a serial line");
	else if (strlen(m->device) > 255)
		ret = fail(c, cfg, "device", "is too long");
	if (m->unit < 1 || m->unit > 247)
		ret = fail(c, cfg, "unit", "rtu needs the address of the unit, 1 to 247");
	if (!is_baudrate(m->baudrate))
		ret = fail(c, cfg, "baudrate", "serial lines have no such rate");
	if (m->response_timeout_s > RTU_TIMEOUT_MAX_S)
		ret = fail(c, cfg, "response_timeout",
			   "is 1.5 s at most with rtu, so that the node stops in time");
	if (!ret)
		snprintf(m->target, sizeof(m->target), "rtu:%s", m->device);
	return ret;
}

/* Where the signals of a direction stand. */
static const json_t *signals_of(const struct node_direction *d, const json_t *cfg)
{
	return signal_list_is_given(d->cfg, "signals") ? d->cfg : cfg;
}

/* Makes the blocks; the signals are sorted by address. */
static void plan(struct modbus_node *m)
{
	unsigned max = (unsigned)m->max_block_size;

	m->in.block_count = modbus_plan_reads(m->in.maps, m->in.count, max, m->min_block_usage,
					      m->in.blocks);
	m->out.block_count = modbus_plan_writes(m->out.maps, m->out.count, max, m->out.blocks);
	for (unsigned i = 0; i < m->in.block_count; i++)
		m->in.registers = MAX(m->in.registers, m->in.blocks[i].count);
	m->words = modbus_side_words(&m->out);
}

static int modbus_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct modbus_node *m = n->private_data;
	int ret = m->transport == MODBUS_TCP ? parse_tcp(m, c, cfg) : parse_rtu(m, c, cfg);

	warn_unused(m, c, cfg);
	ret = modbus_side_parse(&m->in, c, signals_of(&n->in, cfg), n->in.signals, false) ?: ret;
	ret = modbus_side_parse(&m->out, c, signals_of(&n->out, cfg), n->out.signals, true) ?: ret;
	m->outside.reconnect_ms = (int64_t)(m->reconnect_s * 1e3);
	outside_set_target(&m->outside, m->target);
	if (!ret)
		plan(m);
	return ret;
}

static int modbus_check(struct node *n, struct config *c, json_t *cfg)
{
	struct modbus_node *m = n->private_data;
	int ret = 0;

	if (n->is_source && !m->in.count)
		ret = fail(c, cfg, NULL, "a path reads the node, but in.signals is missing");
	if (n->is_destination && !m->out.count)
		ret = fail(c, cfg, NULL, "a path writes the node, but out.signals is missing");
	if (n->is_destination && (size_t)m->outside.message_max < m->words * sizeof(uint16_t)) {
		config_fail(c, n->out.cfg, "max_message", "a sample has %zu bytes of registers",
			    m->words * sizeof(uint16_t));
		ret = -EINVAL;
	}
	return ret;
}

static int modbus_check_signals(struct node *n, struct config *c, json_t *cfg)
{
	struct modbus_node *m = n->private_data;
	const struct signal_list *l = n->out.hooked;

	for (unsigned i = 0; l && i < MIN(l->count, m->out.count); i++)
		if (l->signals[i].type == SIGNAL_COMPLEX) {
			config_fail(c, cfg, "out", "the signal '%.60s' is complex, and has no registers",
				    l->signals[i].name);
			return -EINVAL;
		}
	return 0;
}

/* ---- the node ---- */

static const struct outside_ops modbus_ops = {
	.flags = OUTSIDE_MAY_WAIT,
	.open = modbus_open,
	.close = modbus_close_link,
	.send = modbus_send,
	.turn = modbus_turn,
	.wait = modbus_wait,
	.print = modbus_print_sample,
};

static int modbus_init(struct node *n)
{
	struct modbus_node *m = n->private_data;

	m->fd = -1;
	pthread_mutex_init(&m->gate, NULL);
	pthread_cond_init(&m->answered, NULL);
	outside_init(n, &modbus_ops);
	return 0;
}

static void free_memory(struct modbus_node *m)
{
	free(m->image);
	free(m->message);
	free(m->written);
	free(m->known);
	m->image = m->message = m->written = NULL;
	m->known = NULL;
}

static void modbus_destroy(struct node *n)
{
	struct modbus_node *m = n->private_data;

	if (!m->outside.has_thread) {
		free_memory(m);
		modbus_side_free(&m->in);
		modbus_side_free(&m->out);
		pthread_cond_destroy(&m->answered);
		pthread_mutex_destroy(&m->gate);
	}
	outside_destroy(n);
}

static int modbus_start(struct node *n)
{
	struct modbus_node *m = n->private_data;

	m->stopping = m->busy = m->has_message = false;
	/* One more, because nothing may be needed. */
	m->image = calloc(m->in.registers + 1, sizeof(*m->image));
	m->message = calloc(m->words + 1, sizeof(*m->message));
	m->written = calloc(m->words + 1, sizeof(*m->written));
	m->known = calloc(m->out.block_count + 1, sizeof(*m->known));
	if (m->image && m->message && m->written && m->known)
		return outside_start(n);
	free_memory(m);
	return -ENOMEM;
}

static int modbus_stop(struct node *n)
{
	struct modbus_node *m = n->private_data;
	int ret;

	modbus_hurry(m);
	ret = outside_stop(n);
	if (!m->outside.has_thread)
		free_memory(m);
	return ret;
}

static void modbus_print(struct node *n, char *buf, size_t size)
{
	struct modbus_node *m = n->private_data;

	snprintf(buf, size, "%s, unit %d, %u registers in %u requests at %g Hz, %u written in %u requests",
		 m->target, (int)m->unit, m->in.count, m->in.block_count, m->rate, m->out.count,
		 m->out.block_count);
}

static const struct node_figure modbus_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[MODBUS_POLLS] = { "polls", "Times that the registers were to be read", NODE_COUNTER },
	[MODBUS_POLLS_LEFT_OUT] = { "polls_left_out", "Polls for which the answers before them came too late",
				    NODE_COUNTER },
	[MODBUS_POLLS_FAILED] = { "polls_failed", "Polls without a sample, because a request failed",
				  NODE_COUNTER },
	[MODBUS_TIMEOUTS] = { "timeouts", "Requests without an answer in time", NODE_COUNTER },
	[MODBUS_BAD_ANSWERS] = { "bad_answers", "Answers with a wrong checksum, length or content",
				 NODE_COUNTER },
	[MODBUS_OTHER_UNIT] = { "other_unit", "Answers of another unit on the serial line", NODE_COUNTER },
	[MODBUS_EXCEPTION] = { "illegal_function", "Exceptions of code 1: the server lacks the function",
			       NODE_COUNTER },
	[MODBUS_EXCEPTION + 1] = { "illegal_address", "Exceptions of code 2: the server lacks the register",
				   NODE_COUNTER },
	[MODBUS_EXCEPTION + 2] = { "illegal_value", "Exceptions of code 3: the value is not allowed",
				   NODE_COUNTER },
	[MODBUS_EXCEPTION + 3] = { "server_failure", "Exceptions of code 4", NODE_COUNTER },
	[MODBUS_EXCEPTION + 4] = { "acknowledge", "Exceptions of code 5: the server needs long",
				   NODE_COUNTER },
	[MODBUS_EXCEPTION + 5] = { "busy", "Exceptions of code 6", NODE_COUNTER },
	[MODBUS_EXCEPTION + 6] = { "negative_acknowledge", "Exceptions of code 7", NODE_COUNTER },
	[MODBUS_EXCEPTION + 7] = { "memory_parity", "Exceptions of code 8", NODE_COUNTER },
	[MODBUS_EXCEPTION + 8] = { "not_defined", "Exceptions of code 9", NODE_COUNTER },
	[MODBUS_EXCEPTION + 9] = { "gateway_path", "Exceptions of code 10: a gateway has no path to the unit",
				   NODE_COUNTER },
	[MODBUS_EXCEPTION + 10] = { "gateway_target", "Exceptions of code 11: the unit behind a gateway is silent",
				    NODE_COUNTER },
};

const struct node_type node_modbus = {
	.name = "modbus",
	.description = "Samples are registers of a Modbus server",
	.flags = NODE_CAN_READ | NODE_CAN_WRITE | NODE_READ_BLOCKS | NODE_STOP_WAITS,
	.size = sizeof(struct modbus_node),
	.keys = modbus_keys,
	.key_count = ARRAY_SIZE(modbus_keys),
	.in_keys = modbus_in_keys,
	.in_key_count = ARRAY_SIZE(modbus_in_keys),
	.out_keys = modbus_out_keys,
	.out_key_count = ARRAY_SIZE(modbus_out_keys),
	.signal_keys = modbus_signal_keys,
	.signal_key_count = MODBUS_SIGNAL_KEYS,
	.figures = modbus_figures,
	.figure_count = ARRAY_SIZE(modbus_figures),
	OUTSIDE_SAMPLES,
	.init = modbus_init,
	.destroy = modbus_destroy,
	.parse = modbus_parse,
	.check = modbus_check,
	.check_signals = modbus_check_signals,
	.start = modbus_start,
	.stop = modbus_stop,
	.print = modbus_print,
};

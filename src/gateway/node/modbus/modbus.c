/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-type `modbus`: samples are registers and coils of a Modbus server (a relay, a meter, an
 * inverter), over TCP or a serial line; or the node is such a server. Of a client, connecting in
 * the background, waiting and accounting are those of gateway/outside, and the protocol is
 * libmodbus's.
 */
#define LOG_ROOM "gateway/modbus"
#include "gateway/node/modbus/modbus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"

extern const struct node_type node_modbus;

static const char *const modes[] = { [MODBUS_CLIENT] = "client", [MODBUS_SERVER] = "server", NULL };
static const char *const transports[] = { "tcp", "rtu", NULL };
static const char *const parities[] = { "none", "even", "odd", NULL };
static const char *const writes[] = { "all", "changed", NULL };

/* A serial line cannot be woken: a request ends by itself, before a stop takes too long. */
#define RTU_TIMEOUT_MAX_S 1.5
/* Of the address of a unit that is none. */
#define NO_UNIT (-1)

#define OFFSET(field) offsetof(struct modbus_node, field)

static const struct config_key modbus_keys[] = {
	{ "mode", CONFIG_ENUM, OFFSET(mode), "client", .names = modes,
	  .help = "client: reads and writes registers of a server; server: has registers that clients read and write" },
	{ "transport", CONFIG_ENUM, OFFSET(transport), .required = true, .names = transports,
	  .help = "tcp, or rtu over a serial line" },
	{ "remote", CONFIG_STRING, OFFSET(remote), .help = "Client, tcp: name or address of the server" },
	{ "address", CONFIG_STRING, OFFSET(address),
	  .help = "Server, tcp: where to listen, 0.0.0.0 for all interfaces, default 127.0.0.1" },
	{ "port", CONFIG_INT, OFFSET(port), "502", .min = 1, .max = 65535, .help = "tcp: port of the server" },
	{ "device", CONFIG_STRING, OFFSET(device), .help = "rtu: the serial line, \"/dev/ttyUSB0\"" },
	{ "baudrate", CONFIG_INT, OFFSET(baudrate), "9600", .min = 110, .max = 4000000,
	  .help = "rtu: bits per second, one of the usual rates" },
	{ "parity", CONFIG_ENUM, OFFSET(parity), "none", .names = parities,
	  .help = "rtu: none, even or odd" },
	{ "data_bits", CONFIG_INT, OFFSET(data_bits), "8", .min = 5, .max = 8,
	  .help = "rtu: bits of a byte; the protocol needs 8" },
	{ "stop_bits", CONFIG_INT, OFFSET(stop_bits), "1", .min = 1, .max = 2,
	  .help = "rtu: stop bits" },
	{ "echo", CONFIG_BOOL, OFFSET(echo), "false",
	  .help = "rtu: the adapter receives what it sends, as some for two wires do (RS-485)" },
	{ "unit", CONFIG_INT, OFFSET(unit), "-1", .min = 0, .max = 255,
	  .help = "Address of the unit; rtu needs it (1 to 247); without it a client over tcp asks unit 255, and a server answers for all" },
	{ "rate", CONFIG_REAL, OFFSET(rate), "10.0", .min = 1e-5, .max = 1e5,
	  .help = "Client: how often a second the registers are read" },
	{ "response_timeout", CONFIG_REAL, OFFSET(response_timeout_s), "1.0", .min = 0.001, .max = 60,
	  .help = "Client: seconds until an answer has to be there; 1.5 at most with rtu" },
	{ "reconnect_interval", CONFIG_REAL, OFFSET(reconnect_s), "10.0", .min = 0.01, .max = 86400,
	  .help = "Seconds between attempts to connect, or to open a serial line, at most; the first ones follow sooner" },
	{ "connect_timeout", CONFIG_REAL, OFFSET(outside.connect_timeout_s), "5.0", .min = 0.01,
	  .max = 3600, .help = "Client, tcp: seconds after which an attempt to connect is given up" },
	{ "min_block_usage", CONFIG_REAL, OFFSET(min_block_usage), "0.25", .min = 0, .max = 1,
	  .help = "Client: share of the registers of a request to read that belong to a signal, at least" },
	{ "max_block_size", CONFIG_INT, OFFSET(max_block_size), "32", .min = MODBUS_VALUE_MAX,
	  .max = MODBUS_MAX_WRITE_REGISTERS, .help = "Client: registers or coils of a request, at most" },
	{ "peers", CONFIG_JSON, OFFSET(peers_cfg), .form = CONFIG_TEXTS,
	  .help = "Server, tcp: addresses or networks of the clients that may connect; all without" },
	{ "max_clients", CONFIG_INT, OFFSET(clients_max), "16", .min = 1, .max = 1024,
	  .help = "Server, tcp: clients at a time" },
	{ "zero_gaps", CONFIG_BOOL, OFFSET(zero_gaps), "false",
	  .help = "Server: registers of no signal that are before the last one of a signal are read as 0, instead of being refused" },
};

static const struct config_key modbus_in_keys[] = { OUTSIDE_IN_KEYS };

static const struct config_key modbus_out_keys[] = {
	{ "write", CONFIG_ENUM, OFFSET(write), "all", .names = writes,
	  .help = "all: each sample writes all registers; changed: those whose value is another one than that written last" },
	{ "max_age", CONFIG_REAL, OFFSET(max_age_s), "0", .min = 0, .max = 86400 * 365.0,
	  .help = "Server: seconds after the last sample for which clients may read its values; 0: for ever" },
	OUTSIDE_OUT_KEYS,
};

/* ---- settings ---- */

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

/* Keys of one mode or transport say nothing about the other one. */
static void warn_unused(const struct modbus_node *m, struct config *c, const json_t *cfg)
{
	enum { ANY = -1 };
	static const struct {
		const char *key;
		int mode, transport;
	} rows[] = {
		{ "remote", MODBUS_CLIENT, MODBUS_TCP }, { "port", ANY, MODBUS_TCP },
		{ "connect_timeout", MODBUS_CLIENT, MODBUS_TCP }, { "device", ANY, MODBUS_RTU },
		{ "baudrate", ANY, MODBUS_RTU }, { "parity", ANY, MODBUS_RTU },
		{ "data_bits", ANY, MODBUS_RTU }, { "stop_bits", ANY, MODBUS_RTU },
		{ "echo", ANY, MODBUS_RTU },
		{ "rate", MODBUS_CLIENT, ANY }, { "response_timeout", MODBUS_CLIENT, ANY },
		{ "min_block_usage", MODBUS_CLIENT, ANY }, { "max_block_size", MODBUS_CLIENT, ANY },
		{ "address", MODBUS_SERVER, MODBUS_TCP }, { "peers", MODBUS_SERVER, MODBUS_TCP },
		{ "max_clients", MODBUS_SERVER, MODBUS_TCP }, { "zero_gaps", MODBUS_SERVER, ANY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		if (!json_object_get(cfg, rows[i].key))
			continue;
		if (rows[i].transport != ANY && rows[i].transport != m->transport)
			config_warn(c, cfg, rows[i].key, "says nothing with transport = \"%s\"",
				    transports[m->transport]);
		else if (rows[i].mode != ANY && rows[i].mode != m->mode)
			config_warn(c, cfg, rows[i].key, "says nothing with mode = \"%s\"",
				    modes[m->mode]);
	}
}

static void warn_unused_out(const struct modbus_node *m, struct config *c, const json_t *out)
{
	static const char *const of_client[] = { "write", "backlog", "full", "block_timeout", "max_message" };

	for (size_t i = 0; i < ARRAY_SIZE(of_client) && m->mode == MODBUS_SERVER; i++)
		if (json_object_get(out, of_client[i]))
			config_warn(c, out, of_client[i], "says nothing with mode = \"server\"");
	if (m->mode == MODBUS_CLIENT && json_object_get(out, "max_age"))
		config_warn(c, out, "max_age", "says nothing with mode = \"client\"");
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

/* Where a server listens. */
static const char *own_address(struct modbus_node *m, struct config *c, json_t *cfg)
{
	if (m->address)
		return m->address;
	config_warn(c, cfg, NULL,
		    "only clients on this host reach the server, because there is no `address` to listen on");
	return m->address = "127.0.0.1";
}

static int parse_tcp(struct modbus_node *m, struct config *c, json_t *cfg)
{
	bool serves = m->mode == MODBUS_SERVER;
	const char *key = serves ? "address" : "remote";
	const char *host = serves ? own_address(m, c, cfg) : m->remote;
	int ret = 0;

	if (!host || !*host)
		ret = fail(c, cfg, key, serves ? "is no address" :
			   "tcp needs the name or address of the server");
	else if (strlen(host) > SOCKET_ADDRESS_MAX)
		ret = fail(c, cfg, key, "is too long");
	/* What libmodbus takes for the address of a unit. */
	if (m->unit > 247 && m->unit != MODBUS_TCP_SLAVE)
		ret = fail(c, cfg, "unit", "possible are 0 to 247, and 255");
	m->any_unit = m->unit == NO_UNIT;
	if (m->unit == NO_UNIT)
		m->unit = MODBUS_TCP_SLAVE;
	if (!ret)
		snprintf(m->target, sizeof(m->target), strchr(host, ':') ? "tcp://[%s]:%d" : "tcp://%s:%d",
			 host, (int)m->port);
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
	if (m->mode == MODBUS_CLIENT && m->response_timeout_s > RTU_TIMEOUT_MAX_S)
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

static int make_store(struct modbus_node *m, struct config *c, json_t *cfg)
{
	static const char *const names[MODBUS_TABLES] = { "coil", "discrete input", "holding register",
							  "input register" };
	enum modbus_table table = 0;
	unsigned address = 0;
	int ret = modbus_store_add(&m->store, m->in.maps, m->in.count, true, &table, &address) ?:
		  modbus_store_add(&m->store, m->out.maps, m->out.count, false, &table, &address);

	m->store.zero_gaps = m->zero_gaps;
	if (ret == -EEXIST)
		config_fail(c, cfg, NULL, "%s %u is in in.signals and in out.signals; either the node or clients write it",
			    names[table], address);
	return ret;
}

static int modbus_parse(struct node *n, struct config *c, json_t *cfg)
{
	struct modbus_node *m = n->private_data;
	bool serves = m->mode == MODBUS_SERVER;
	int ret = m->transport == MODBUS_TCP ? parse_tcp(m, c, cfg) : parse_rtu(m, c, cfg);

	warn_unused(m, c, cfg);
	warn_unused_out(m, c, n->out.cfg);
	ret = peers_parse(&m->peers, c, cfg, m->peers_cfg) ?: ret;
	ret = modbus_side_parse(&m->in, c, signals_of(&n->in, cfg), n->in.signals, serves,
				serves) ?: ret;
	ret = modbus_side_parse(&m->out, c, signals_of(&n->out, cfg), n->out.signals, !serves,
				true) ?: ret;
	if (!ret && serves)
		ret = make_store(m, c, cfg);
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
	if (m->mode == MODBUS_CLIENT && n->is_destination &&
	    (size_t)m->outside.message_max < m->words * sizeof(uint16_t)) {
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
		modbus_store_free(&m->store);
		peers_free(&m->peers);
		pthread_cond_destroy(&m->answered);
		pthread_mutex_destroy(&m->gate);
	}
	outside_destroy(n);
}

static int modbus_start(struct node *n)
{
	struct modbus_node *m = n->private_data;

	if (m->mode == MODBUS_SERVER)
		return modbus_server_start(m);
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

	if (m->mode == MODBUS_SERVER) {
		modbus_server_stop(m);
		node_figure_set(n, MODBUS_CLIENTS, 0);
		return 0;
	}
	modbus_hurry(m);
	ret = outside_stop(n);
	if (!m->outside.has_thread)
		free_memory(m);
	return ret;
}

/* ---- samples ---- */

static bool serves(const struct node *n)
{
	return ((const struct modbus_node *)n->private_data)->mode == MODBUS_SERVER;
}

static int modbus_read(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	return serves(n) ? modbus_server_read(n->private_data, smps, cnt) :
			   outside_read(n, smps, cnt, release);
}

static int modbus_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	return serves(n) ? modbus_server_write(n->private_data, smps, cnt) :
			   outside_write(n, smps, cnt, release);
}

static void modbus_sleep(struct node *n, uint64_t until_ns)
{
	if (serves(n))
		inbox_sleep_until(modbus_server_inbox(n->private_data), until_ns);
	else
		outside_sleep(n, until_ns);
}

static bool modbus_may_wait(struct node *n)
{
	return !serves(n) && outside_may_wait(n);
}

static void interrupt(struct node *n, bool on)
{
	struct inbox *b = modbus_server_inbox(n->private_data);

	if (b)
		inbox_interrupt(b, on);
}

static void modbus_interrupt(struct node *n)
{
	if (serves(n))
		interrupt(n, true);
	else
		outside_interrupt(n);
}

static void modbus_rearm(struct node *n)
{
	if (serves(n))
		interrupt(n, false);
	else
		outside_rearm(n);
}

static int modbus_poll_fds(struct node *n, int fds[], int max)
{
	struct inbox *b = modbus_server_inbox(n->private_data);

	if (!serves(n))
		return outside_poll_fds(n, fds, max);
	return b ? inbox_poll_fds(b, fds, max) : 0;
}

static void modbus_print(struct node *n, char *buf, size_t size)
{
	struct modbus_node *m = n->private_data;

	if (m->mode == MODBUS_SERVER)
		snprintf(buf, size, "server at %s, %u signals that clients write, %u that they read",
			 m->target, m->in.count, m->out.count);
	else
		snprintf(buf, size, "%s, unit %d, %u registers in %u requests at %g Hz, %u written in %u requests",
		 m->target, (int)m->unit, m->in.count, m->in.block_count, m->rate, m->out.count,
		 m->out.block_count);
}

static const struct node_figure modbus_figures[] = {
	OUTSIDE_FIGURE_TABLE,
	[FAULT_FOREIGN] = { "foreign", "Server: connections of hosts that peers does not have", NODE_COUNTER },
	[FAULT_DROPPED] = { "dropped", "Server: connections that found no place, and answers that the line did not take", NODE_COUNTER },
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
	[MODBUS_CLIENTS] = { "clients", "Server: clients now", NODE_GAUGE },
	[MODBUS_TURNED_AWAY] = { "turned_away", "Server: connections that were not taken", NODE_COUNTER },
	[MODBUS_REQUESTS] = { "requests", "Server: requests that have come", NODE_COUNTER },
	[MODBUS_WRITES] = { "writes", "Server: requests to write that became samples", NODE_COUNTER },
};

const struct node_type node_modbus = {
	.name = "modbus",
	.description = "Samples are registers and coils of a Modbus server, or the node is one",
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
	.read = modbus_read,
	.write = modbus_write,
	.sleep = modbus_sleep,
	.may_wait = modbus_may_wait,
	.interrupt = modbus_interrupt,
	.rearm = modbus_rearm,
	.poll_fds = modbus_poll_fds,
	.init = modbus_init,
	.destroy = modbus_destroy,
	.parse = modbus_parse,
	.check = modbus_check,
	.check_signals = modbus_check_signals,
	.start = modbus_start,
	.stop = modbus_stop,
	.print = modbus_print,
};

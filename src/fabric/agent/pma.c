/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The performance agent: ClassPortInfo, PortCounters with PortXmitWait, PortCountersExtended (IBA volume
 * 1, 16.1.3 and 16.1.4). The engine counts in 64 bits and never goes back; the agent keeps what it had counted
 * when a manager cleared or wrote a counter. Counters of PortCounters stop at their greatest value, and
 * writing them does not change those of PortCountersExtended, which wrap.
 */
#include <string.h>

#include "fabric/agent/attribute.h"
#include "fabric/agent/gmp.h"
#include "wire/mad/perf.h"

#define ALL 0xffff
#define SELECT_XMIT_WAIT 1 /* of counter_select2 */

/* Bits of counter_select; the order of the rows is that of the bits. */
struct counter {
	size_t engine;             /* offset in struct fabric_counters; NONE: it stays 0 here */
	size_t host, bytes;        /* in struct mad_port_counters */
	uint8_t bits;
};
#define NONE SIZE_MAX
#define COUNTER(name, of_engine, width)                                                 \
	{of_engine, offsetof(struct mad_port_counters, name),                           \
	 sizeof(((struct mad_port_counters *)0)->name), width}
#define OF(name) offsetof(struct fabric_counters, name)

static const struct counter counters[] = {
	COUNTER(symbol_errors, OF(symbol_errors), 16),
	COUNTER(link_error_recoveries, OF(link_recovery), 8),
	COUNTER(link_downed, OF(link_downed), 8),
	COUNTER(rcv_errors, OF(rcv_errors), 16),
	COUNTER(rcv_remote_physical_errors, NONE, 16),
	COUNTER(rcv_switch_relay_errors, OF(rcv_switch_relay), 16),
	COUNTER(xmit_discards, OF(xmit_discards), 16),
	COUNTER(xmit_constraint_errors, OF(xmit_constraint), 8),
	COUNTER(rcv_constraint_errors, OF(rcv_constraint), 8),
	COUNTER(local_link_integrity_errors, NONE, 4),
	COUNTER(excessive_buffer_overrun_errors, NONE, 4),
	COUNTER(vl15_dropped, OF(management_dropped), 16),
	COUNTER(xmit_data, OF(xmit_words), 32),
	COUNTER(rcv_data, OF(rcv_words), 32),
	COUNTER(xmit_pkts, OF(xmit_packets), 32),
	COUNTER(rcv_pkts, OF(rcv_packets), 32),
	COUNTER(xmit_wait, OF(xmit_wait), 32), /* counter_select2 bit 0 */
};
#define XMIT_WAIT 16

/* Of PortCountersExtended: the bits of counter_select, then those of counter_select2. */
static const struct {
	size_t engine, host;
} extended[] = {
#define EXTENDED(name, of_engine) {of_engine, offsetof(struct mad_port_counters_extended, name)}
	EXTENDED(xmit_data, OF(xmit_words)),
	EXTENDED(rcv_data, OF(rcv_words)),
	EXTENDED(xmit_pkts, OF(xmit_packets)),
	EXTENDED(rcv_pkts, OF(rcv_packets)),
	EXTENDED(unicast_xmit_pkts, OF(unicast_xmit)),
	EXTENDED(unicast_rcv_pkts, OF(unicast_rcv)),
	EXTENDED(multicast_xmit_pkts, OF(multicast_xmit)),
	EXTENDED(multicast_rcv_pkts, OF(multicast_rcv)),
};

static uint64_t engine_at(const struct fabric_counters *c, size_t offset)
{
	uint64_t value = 0;

	if (offset != NONE)
		memcpy(&value, (const char *)c + offset, sizeof(value));
	return value;
}

static void engine_put(struct fabric_counters *c, size_t offset, uint64_t value)
{
	if (offset != NONE)
		memcpy((char *)c + offset, &value, sizeof(value));
}

/* A member of 1, 2, 4 or 8 bytes. */
static uint64_t member_get(const void *from, size_t offset, size_t bytes)
{
	const char *at = (const char *)from + offset;

	return bytes == 1 ? *(const uint8_t *)at : bytes == 2 ? *(const uint16_t *)(const void *)at :
	       bytes == 4 ? *(const uint32_t *)(const void *)at : *(const uint64_t *)(const void *)at;
}

static void member_put(void *to, size_t offset, size_t bytes, uint64_t value)
{
	char *at = (char *)to + offset;

	if (bytes == 1)
		*(uint8_t *)at = (uint8_t)value;
	else if (bytes == 2)
		*(uint16_t *)(void *)at = (uint16_t)value;
	else if (bytes == 4)
		*(uint32_t *)(void *)at = (uint32_t)value;
	else
		*(uint64_t *)(void *)at = value;
}

/* ---- the ports that are asked ---- */

struct ports {
	uint8_t first, last;
};

static bool select_ports(const struct agent_request *r, uint8_t select, struct ports *s)
{
	const uint8_t lowest = r->node->is_switch ? 0 : 1;

	*s = (struct ports){select, select};
	if (select == MAD_PORT_SELECT_ALL)
		*s = (struct ports){1, r->node->ports};
	return select == MAD_PORT_SELECT_ALL || (select >= lowest && select <= r->node->ports);
}

/* What the port has counted since the base; 0 if the engine counts nothing for it. */
static struct fabric_counters count(const struct agent_request *r, uint8_t port)
{
	struct fabric_counters c = {0};

	if (fabric_get_counters(r->a->engine, r->node->number, port, &c))
		c = (struct fabric_counters){0};
	return c;
}

/* ---- attributes ---- */

static uint16_t get_class_port_info(struct agent_request *r)
{
	return agent_get_class_port_info(r, MAD_VERSION_PERF,
					 MAD_PERF_ALL_PORT_SELECT | MAD_PERF_EXTENDED_WIDTH | MAD_PERF_XMIT_WAIT);
}

static uint16_t get_port_counters(struct agent_request *r)
{
	struct mad_port_counters asked, shown = {0};
	struct ports ports;

	mad_port_counters_unpack(r->data, &asked);
	if (!select_ports(r, asked.port_select, &ports))
		return MAD_STATUS_BAD_VALUE;
	shown.port_select = asked.port_select;
	shown.counter_select = asked.counter_select;
	shown.counter_select2 = asked.counter_select2;
	for (unsigned port = ports.first; port <= ports.last; port++) {
		const struct fabric_counters now = count(r, (uint8_t)port);

		for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
			const struct counter *c = &counters[i];
			const uint64_t most = (UINT64_C(1) << c->bits) - 1;
			const uint64_t one = engine_at(&now, c->engine) -
				engine_at(&r->node->port[port].base, c->engine);
			const uint64_t sum = member_get(&shown, c->host, c->bytes) + MIN(one, most);

			member_put(&shown, c->host, c->bytes, MIN(sum, most));
		}
	}
	mad_port_counters_pack(&shown, r->data);
	return MAD_STATUS_OK;
}

static uint16_t set_port_counters(struct agent_request *r)
{
	struct mad_port_counters want;
	struct ports ports;
	uint32_t select;

	mad_port_counters_unpack(r->data, &want);
	if (!select_ports(r, want.port_select, &ports))
		return MAD_STATUS_BAD_VALUE;
	select = want.counter_select | (want.counter_select2 & SELECT_XMIT_WAIT) << XMIT_WAIT;
	for (unsigned port = ports.first; port <= ports.last; port++) {
		const struct fabric_counters now = count(r, (uint8_t)port);

		for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
			const struct counter *c = &counters[i];

			if (select >> i & 1)
				engine_put(&r->node->port[port].base, c->engine, engine_at(&now, c->engine) -
					   member_get(&want, c->host, c->bytes));
		}
	}
	return MAD_STATUS_OK;
}

static uint16_t get_extended(struct agent_request *r)
{
	struct mad_port_counters_extended asked, shown = {0};
	struct ports ports;

	mad_port_counters_extended_unpack(r->data, &asked);
	if (!select_ports(r, asked.port_select, &ports))
		return MAD_STATUS_BAD_VALUE;
	shown.port_select = asked.port_select;
	shown.counter_select = asked.counter_select;
	for (unsigned port = ports.first; port <= ports.last; port++) {
		const struct fabric_counters now = count(r, (uint8_t)port);

		for (size_t i = 0; i < ARRAY_SIZE(extended); i++) {
			const uint64_t one = engine_at(&now, extended[i].engine) -
				engine_at(&r->node->port[port].base_extended, extended[i].engine);

			member_put(&shown, extended[i].host, sizeof(one),
				   member_get(&shown, extended[i].host, sizeof(one)) + one);
		}
	}
	mad_port_counters_extended_pack(&shown, r->data);
	return MAD_STATUS_OK;
}

static uint16_t set_extended(struct agent_request *r)
{
	struct mad_port_counters_extended want;
	struct ports ports;

	mad_port_counters_extended_unpack(r->data, &want);
	if (!select_ports(r, want.port_select, &ports))
		return MAD_STATUS_BAD_VALUE;
	for (unsigned port = ports.first; port <= ports.last; port++) {
		const struct fabric_counters now = count(r, (uint8_t)port);

		for (size_t i = 0; i < ARRAY_SIZE(extended); i++)
			if (want.counter_select >> i & 1)
				engine_put(&r->node->port[port].base_extended, extended[i].engine,
					   engine_at(&now, extended[i].engine) -
					   member_get(&want, extended[i].host, sizeof(uint64_t)));
	}
	return MAD_STATUS_OK;
}

static const struct agent_attribute attributes[] = {
	{MAD_ATTR_CLASS_PORT_INFO, mad_class_port_info_bytes, AGENT_OF_ALL,
	 get_class_port_info, agent_set_class_port_info},
	{MAD_ATTR_PORT_SAMPLES_CONTROL, mad_port_samples_control_bytes, AGENT_OF_ALL,
	 agent_get_samples_control, agent_set_samples_control},
	{MAD_ATTR_PORT_SAMPLES_RESULT, mad_port_samples_result_bytes, AGENT_OF_ALL,
	 agent_get_samples_result, NULL},
	{MAD_ATTR_PORT_COUNTERS, mad_port_counters_bytes, AGENT_OF_ALL, get_port_counters, set_port_counters},
	{MAD_ATTR_PORT_COUNTERS_EXTENDED, mad_port_counters_extended_bytes, AGENT_OF_ALL,
	 get_extended, set_extended},
};

bool agent_pma(struct fabric_agents *a, struct agent_node *n, uint8_t in_port, uint8_t mad[MAD_BYTES],
	       const struct mad_header *h, uint64_t now_ns)
{
	struct agent_request r = {.a = a, .node = n, .in_port = in_port, .mod = h->attr_mod,
				  .data = mad + MAD_DATA_AT, .data_bytes = MAD_BYTES - MAD_DATA_AT,
				  .now_ns = now_ns};
	const uint16_t status = h->class_version != MAD_VERSION_PERF ? MAD_STATUS_BAD_VERSION :
		agent_carry_out(&r, attributes, ARRAY_SIZE(attributes), h->method, h->attr_id);

	if (mad_make_response(mad, status))
		return true;
	a->counts.bad_mad++;
	return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Periods of sampling of the performance agent: PortSamplesControl and PortSamplesResult (IBA volume 1,
 * 16.1.3.2 and 16.1.3.4). A node has one mechanism, for one port at a time, with 15 counters of 32 bits,
 * each of which may count one of the five mandatory quantities.
 */
#include "fabric/agent/attribute.h"
#include "fabric/agent/gmp.h"
#include "wire/mad/perf.h"

#define WIDTH_32 4
#define TICK 4                /* 4 ns x (TICK + 1): the nearest to the 22 ns of PortXmitWait */
#define TICK_NS 20
#define MANDATORY_1 1         /* of one counter: it may count the mandatory quantities */
#define MANDATORY_9 0x1249249
#define MANDATORY_5 0x1249

enum quantity {
	NOTHING = 0,
	XMIT_DATA = 1,
	RCV_DATA = 2,
	XMIT_PKTS = 3,
	RCV_PKTS = 4,
	XMIT_WAIT = 5,
};

static uint64_t read_counter(const struct fabric_counters *c, uint16_t quantity)
{
	switch (quantity) {
	case XMIT_DATA: return c->xmit_words;
	case RCV_DATA: return c->rcv_words;
	case XMIT_PKTS: return c->xmit_packets;
	case RCV_PKTS: return c->rcv_packets;
	case XMIT_WAIT: return c->xmit_wait;
	}
	return 0;
}

static bool has_port(const struct agent_node *n, uint8_t port)
{
	return port <= n->ports && (port || n->is_switch);
}

uint16_t agent_get_samples_control(struct agent_request *r)
{
	const struct agent_samples *s = &r->node->samples;
	struct mad_port_samples_control asked, shown;

	mad_port_samples_control_unpack(r->data, &asked);
	if (r->mod || !has_port(r->node, asked.port_select))
		return MAD_STATUS_BAD_VALUE;
	shown = (struct mad_port_samples_control){
		.op_code = asked.op_code, .port_select = asked.port_select,
		.tick = TICK, .counter_width = WIDTH_32,
		.counter_mask0 = MANDATORY_1, .counter_masks1to9 = MANDATORY_9,
		.counter_masks10to14 = MANDATORY_5,
		.sample_status = s->state, .sample_start = s->start, .sample_interval = s->interval,
		.tag = s->tag,
	};
	for (unsigned i = 0; i < AGENT_SAMPLES; i++)
		shown.counter_select[i] = s->select[i];
	mad_port_samples_control_pack(&shown, r->data);
	return MAD_STATUS_OK;
}

uint16_t agent_set_samples_control(struct agent_request *r)
{
	struct agent_samples *s = &r->node->samples;
	struct mad_port_samples_control want;

	mad_port_samples_control_unpack(r->data, &want);
	if (r->mod || !has_port(r->node, want.port_select))
		return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < AGENT_SAMPLES; i++)
		if (want.counter_select[i] > XMIT_WAIT)
			return MAD_STATUS_BAD_VALUE;
	if (s->state != AGENT_SAMPLES_DONE)
		return MAD_STATUS_BUSY;
	*s = (struct agent_samples){
		.state = AGENT_SAMPLES_DELAYED, .port = want.port_select, .tag = want.tag,
		.start = want.sample_start, .interval = want.sample_interval,
		.due_ns = r->now_ns + want.sample_start * (uint64_t)TICK_NS,
	};
	for (unsigned i = 0; i < AGENT_SAMPLES; i++)
		s->select[i] = want.counter_select[i];
	agent_time_node(r->a, r->node);
	agent_samples_tick(r->a, r->node, r->now_ns);
	return MAD_STATUS_OK;
}

uint16_t agent_get_samples_result(struct agent_request *r)
{
	const struct agent_samples *s = &r->node->samples;
	struct mad_port_samples_result shown = {.tag = s->tag, .sample_status = s->state};

	if (r->mod)
		return MAD_STATUS_BAD_VALUE;
	for (unsigned i = 0; i < AGENT_SAMPLES && s->state == AGENT_SAMPLES_DONE; i++)
		shown.counter[i] = (uint32_t)MIN(s->counter[i], UINT32_MAX);
	mad_port_samples_result_pack(&shown, r->data);
	return MAD_STATUS_OK;
}

void agent_samples_tick(struct fabric_agents *a, struct agent_node *n, uint64_t now_ns)
{
	struct agent_samples *s = &n->samples;
	struct fabric_counters c;

	while (s->state != AGENT_SAMPLES_DONE && s->due_ns <= now_ns) {
		if (fabric_get_counters(a->engine, n->number, s->port, &c))
			c = (struct fabric_counters){0};
		for (unsigned i = 0; i < AGENT_SAMPLES; i++) {
			const uint64_t value = read_counter(&c, s->select[i]);

			s->counter[i] = s->state == AGENT_SAMPLES_DELAYED ? value : value - s->counter[i];
		}
		if (s->state == AGENT_SAMPLES_RUNNING) {
			s->state = AGENT_SAMPLES_DONE;
		} else {
			s->state = AGENT_SAMPLES_RUNNING;
			s->due_ns = now_ns + s->interval * (uint64_t)TICK_NS;
		}
	}
}

uint64_t agent_samples_due(const struct agent_node *n)
{
	return n->samples.state == AGENT_SAMPLES_DONE ? UINT64_MAX : n->samples.due_ns;
}

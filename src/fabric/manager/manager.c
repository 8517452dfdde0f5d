/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of a subnet manager: phases of a sweep, light sweeps, what comes in; see manager.h. */
#define LOG_ROOM "manager"
#include "fabric/manager/manager.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/manager/state.h"
#include "util/container_of.h"
#include "util/log.h"
#include "wire/mad/notice.h"

#define PREFIX_DEFAULT UINT64_C(0xfe80000000000000)

int manager_open(const struct manager_config *config, const struct manager_ops *ops,
		 struct manager **out)
{
	struct manager *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->ops = *ops;
	if (!m->config.subnet_prefix)
		m->config.subnet_prefix = PREFIX_DEFAULT;
	if (!m->config.lanes)
		m->config.lanes = 1;
	m->sweep_wanted = true;
	m->next_light_ns = UINT64_MAX;
	list_init(&m->queue);
	list_init(&m->flight);
	list_init(&m->answers);
	*out = m;
	return 0;
}

void manager_close(struct manager *m)
{
	if (!m)
		return;
	manager_requests_forget(m);
	manager_long_forget(m);
	manager_nodes_free(m);
	manager_loaded_free(m);
	manager_groups_free(m);
	free(m->lids);
	free(m);
}

void manager_sweep(struct manager *m)
{
	m->sweep_wanted = true;
}

/* ---- phases ---- */

static bool all_active(const struct manager *m)
{
	for (uint32_t i = 0; i < m->node_count; i++) {
		const struct manager_node *n = &m->nodes[i];

		for (unsigned p = 1; p <= n->info.num_ports; p++)
			if (n->ports[p].peer != MANAGER_NONE && n->ports[p].known &&
			    n->ports[p].info.port_state != MAD_PORT_ACTIVE)
				return false;
	}
	return true;
}

static void sweep_end(struct manager *m)
{
	m->phase = MANAGER_IDLE;
	m->report.took_ns = m->now_ns - m->phase_ns;
	m->report.up = !m->report.unanswered && !m->report.other_master && m->node_count && all_active(m);
	/* Nodes that did not answer are asked again soon. */
	m->next_light_ns = m->config.sweep_ns ? m->now_ns + m->config.sweep_ns : UINT64_MAX;
	if (m->report.unanswered)
		m->next_light_ns = MIN(m->next_light_ns, m->now_ns + UINT64_C(1000000000));
	if (m->ops.swept)
		m->ops.swept(m->ops.arg, &m->report);
}

static void sweep_begin(struct manager *m)
{
	m->sweep_wanted = false;
	m->report = (struct manager_report){ 0 };
	m->phase = MANAGER_DISCOVER;
	m->phase_ns = m->now_ns;
	m->act_count++;
	manager_discover(m);
}

static void tables_begin(struct manager *m)
{
	int ret;

	m->phase = MANAGER_TABLES;
	ret = manager_load_tables(m);
	if (ret) {
		log_error("the tables of %u nodes cannot be made: %s", m->node_count, strerror(-ret));
		m->report.unanswered++;
	}
	manager_load_groups(m);
}

/* The phase's requests are answered. */
static void next_phase(struct manager *m)
{
	switch (m->phase) {
	case MANAGER_DISCOVER:
		m->phase = MANAGER_LIDS;
		manager_assign_lids(m);
		break;
	case MANAGER_LIDS:
		tables_begin(m);
		break;
	case MANAGER_TABLES:
		m->phase = MANAGER_ARM;
		manager_set_states(m, MAD_PORT_ARMED);
		break;
	case MANAGER_ARM:
		m->phase = MANAGER_ACTIVATE;
		manager_set_states(m, MAD_PORT_ACTIVE);
		break;
	case MANAGER_ACTIVATE:
		sweep_end(m);
		break;
	case MANAGER_LIGHT:
		m->phase = MANAGER_IDLE;
		m->next_light_ns = m->config.sweep_ns ? m->now_ns + m->config.sweep_ns : UINT64_MAX;
		break;
	default:
		m->phase = MANAGER_IDLE;
	}
}

static void begin_if_due(struct manager *m)
{
	if (m->sweep_wanted) {
		sweep_begin(m);
	} else if (m->groups_changed) {
		m->groups_changed = false;
		m->phase = MANAGER_GROUPS;
		manager_load_groups(m);
	} else if (m->now_ns >= m->next_light_ns) {
		/* After a sweep with nodes that did not answer, a whole one. */
		if (m->report.unanswered) {
			sweep_begin(m);
			return;
		}
		m->phase = MANAGER_LIGHT;
		manager_light(m);
	}
}

void manager_turn(struct manager *m, uint64_t now_ns)
{
	m->now_ns = now_ns;
	if (m->phase == MANAGER_IDLE)
		begin_if_due(m);
	manager_long_turn(m);
	manager_requests_turn(m);
	while (m->phase != MANAGER_IDLE && manager_requests_idle(m)) {
		next_phase(m);
		if (m->phase == MANAGER_IDLE)
			begin_if_due(m);
		manager_requests_turn(m);
	}
}

uint64_t manager_due_ns(const struct manager *m)
{
	const uint64_t long_ns = manager_long_due_ns(m);

	if (m->phase != MANAGER_IDLE)
		return MIN(manager_requests_due_ns(m), long_ns);
	return m->sweep_wanted || m->groups_changed ? 0 : MIN(m->next_light_ns, long_ns);
}

/* ---- what comes in ---- */

static void answer_sm_info(struct manager *m, const struct manager_address *from,
			   const struct mad_smp *request)
{
	const struct mad_sm_info info = {
		.guid = m->config.port_guid,
		.act_count = m->act_count,
		.priority = m->config.priority,
		.state = m->sm_lid ? MAD_SM_MASTER : MAD_SM_DISCOVERING,
	};
	struct mad_smp answer = *request;
	uint8_t mad[MAD_BYTES];

	answer.method = MAD_GET_RESP;
	answer.status = request->method == MAD_GET ? 0 : MAD_STATUS_BAD_METHOD_ATTRIBUTE;
	answer.returning = request->mgmt_class == MAD_CLASS_SUBN_DIRECTED;
	mad_sm_info_pack(&info, answer.data);
	if (mad_smp_pack(&answer, mad))
		m->ops.send(m->ops.arg, from, mad);
}

/* A link has changed, or a port's capabilities: the next sweep finds out what. */
static void take_trap(struct manager *m, const struct manager_address *from,
		      const struct mad_smp *trap)
{
	struct mad_notice notice;
	struct mad_smp answer = *trap;
	uint8_t mad[MAD_BYTES];

	mad_notice_unpack(trap->data, &notice);
	answer.method = MAD_TRAP_REPRESS;
	if (mad_smp_pack(&answer, mad))
		m->ops.send(m->ops.arg, from, mad);
	if (notice.is_generic && notice.trap_number == MAD_TRAP_LINK_STATE_CHANGE)
		m->sweep_wanted = true;
}

static void take_smp(struct manager *m, const struct manager_address *from, const uint8_t *mad)
{
	struct mad_smp smp;

	if (!mad_smp_unpack(mad, MAD_BYTES, &smp))
		return;
	if (smp.method == MAD_GET_RESP)
		manager_requests_answer(m, &smp);
	else if (smp.method == MAD_TRAP)
		take_trap(m, from, &smp);
	else if ((smp.method == MAD_GET || smp.method == MAD_SET) && smp.attr_id == MAD_ATTR_SM_INFO)
		answer_sm_info(m, from, &smp);
}

void manager_receive(struct manager *m, const struct manager_address *from,
		     const uint8_t mad[MAD_BYTES], uint64_t now_ns)
{
	struct mad_header header;

	m->now_ns = now_ns;
	if (!mad_header_read(mad, MAD_BYTES, &header))
		return;
	if (header.mgmt_class == MAD_CLASS_SUBN_LID || header.mgmt_class == MAD_CLASS_SUBN_DIRECTED)
		take_smp(m, from, mad);
	else if (header.mgmt_class == MAD_CLASS_SUBN_ADM && !manager_long_receive(m, from, mad))
		manager_administer(m, from, mad);
	manager_turn(m, now_ns);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What management sets at ports, and their counters. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric/arbiter.h"
#include "engine/fabric/credit.h"
#include "engine/fabric/output.h"
#include "engine/fabric/report.h"
#include "engine/fabric/source.h"

#define PKEYS_MAX 65535

static bool is_setting(const struct fabric_port *o, const struct fabric_port_setting *s)
{
	if (!s || s->state < FABRIC_PORT_DOWN || s->state > FABRIC_PORT_ACTIVE)
		return false;
	if (s->lanes != 1 && s->lanes != 2 && s->lanes != 4 && s->lanes != 8 && s->lanes != 15)
		return false;
	if (s->mtu < 256 || s->mtu > 4096 || (s->mtu & (s->mtu - 1)))
		return false;
	return !o->peer || (s->lanes <= o->link_lanes && s->mtu <= o->mtu);
}

int fabric_set_port(struct fabric *f, uint32_t node, uint8_t port, const struct fabric_port_setting *s)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !is_setting(o, s))
		return -EINVAL;
	o->setting = *s;
	if (!o->up)
		o->setting.state = FABRIC_PORT_DOWN;
	fabric_arbiter_limit(o);
	if (o->lanes) {
		fabric_source_review(f, o);
		fabric_port_wake(f, o);
	}
	fabric_report(f);
	return 0;
}

int fabric_get_port(const struct fabric *f, uint32_t node, uint8_t port, struct fabric_port_setting *s)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !s)
		return -EINVAL;
	*s = o->setting;
	return 0;
}

int fabric_set_pkeys(struct fabric *f, uint32_t node, uint8_t port, const uint16_t *pkeys,
		     unsigned count)
{
	struct fabric_port *o = fabric_port_at(f, node, port);
	uint16_t *to;

	if (!o || (count && !pkeys) || count > PKEYS_MAX)
		return -EINVAL;
	to = malloc((count + 1) * sizeof(*to));
	if (!to)
		return -ENOMEM;
	if (count)
		memcpy(to, pkeys, count * sizeof(*to));
	free(o->pkeys);
	o->pkeys = to;
	o->pkey_count = count;
	return 0;
}

int fabric_get_counters(const struct fabric *f, uint32_t node, uint8_t port,
			struct fabric_counters *c)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !c)
		return -EINVAL;
	*c = o->counters;
	c->xmit_wait = fabric_output_waited(f, o);
	return 0;
}

int fabric_clear_counters(struct fabric *f, uint32_t node, uint8_t port)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o)
		return -EINVAL;
	memset(&o->counters, 0, sizeof(o->counters));
	o->wait_ps = 0;
	if (o->wait_since_ps != FABRIC_NEVER)
		o->wait_since_ps = f->now_ps;
	return 0;
}

int fabric_get_lane(const struct fabric *f, uint32_t node, uint8_t port, uint8_t lane,
		    struct fabric_lane_state *s)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);
	const struct fabric_lane *l;

	if (!o || !s || !o->lanes || (lane >= o->link_lanes && lane != FABRIC_LANE_MANAGEMENT))
		return -EINVAL;
	l = fabric_lane_of(o, lane);
	s->queued_bytes = l->queued_bytes;
	s->credit_blocks = lane == FABRIC_LANE_MANAGEMENT ? 0 : fabric_credit_left(l);
	s->congested = l->congested;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/mkey.h"

#include <string.h>

#include "fabric/agent/trap.h"

#define SECOND_NS UINT64_C(1000000000)

static void trap(struct fabric_agents *a, struct agent_node *n, uint8_t port, const struct mad_smp *smp,
		 const struct agent_address *from, uint64_t now_ns)
{
	const bool directed = smp->mgmt_class == MAD_CLASS_SUBN_DIRECTED;
	struct mad_trap_mkey t = {
		.lid = from->slid,
		.dr_slid = directed ? smp->dr_slid : 0,
		.method = smp->method, .attr_id = smp->attr_id, .attr_mod = smp->attr_mod,
		.mkey = smp->mkey, .dr_notice = directed,
	};
	uint8_t bytes[MAD_NOTICE_DETAILS_BYTES];

	if (directed) {
		t.dr_hop_count = smp->hop_count;
		t.dr_path_truncated = smp->hop_count >= sizeof(t.dr_return_path);
		memcpy(t.dr_return_path, smp->return_path, sizeof(t.dr_return_path));
	}
	mad_trap_mkey_pack(&t, bytes);
	agent_trap_raise(a, n, port, MAD_TRAP_BAD_MKEY, bytes, now_ns);
}

static bool permitted(uint8_t protect_bits, uint8_t method)
{
	return method == MAD_GET && protect_bits < 2;
}

enum agent_mkey agent_mkey_check(struct fabric_agents *a, struct agent_node *n, uint8_t port,
				 const struct mad_smp *smp, const struct agent_address *from,
				 uint64_t now_ns)
{
	struct agent_port *p = &n->port[port];

	if (p->mkey_lease_end_ns && now_ns >= p->mkey_lease_end_ns) {
		p->mkey_lease_end_ns = 0;
		p->info.mkey_protect_bits = 0;
	}
	if (!p->info.mkey || smp->mkey == p->info.mkey) {
		p->mkey_lease_end_ns = 0;
		return AGENT_MKEY_MATCHES;
	}
	/* Level 0 shows the key to everybody. */
	if (permitted(p->info.mkey_protect_bits, smp->method))
		return p->info.mkey_protect_bits ? AGENT_MKEY_DIFFERS : AGENT_MKEY_MATCHES;
	a->counts.bad_key++;
	p->info.mkey_violations += p->info.mkey_violations < UINT16_MAX;
	if (p->info.mkey_lease_period && !p->mkey_lease_end_ns)
		p->mkey_lease_end_ns = now_ns + p->info.mkey_lease_period * SECOND_NS;
	trap(a, n, port, smp, from, now_ns);
	return AGENT_MKEY_REFUSED;
}

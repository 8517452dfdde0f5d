/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may ask and change what: the M_Key of an end port, its protection levels and its lease (IBA volume
 * 1, 14.2.4). Private to the agents.
 */
#ifndef FABRIC_AGENT_MKEY_H
#define FABRIC_AGENT_MKEY_H

#include "fabric/agent/state.h"

enum agent_mkey {
	AGENT_MKEY_REFUSED, /* discard the SMP; it was counted, and trap 256 raised */
	AGENT_MKEY_DIFFERS, /* the protection level permits it: carry it out, but show no M_Key */
	AGENT_MKEY_MATCHES,
};

/* `port`: the end port. Ends a lease that ran out; a right key stops a lease, a wrong one starts it. */
enum agent_mkey agent_mkey_check(struct fabric_agents *a, struct agent_node *n, uint8_t port,
				 const struct mad_smp *smp, const struct agent_address *from,
				 uint64_t now_ns);

#endif

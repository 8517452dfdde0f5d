/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traps: notices that a node sends to its subnet manager, at once and then again until the manager
 * represses them (IBA volume 1, 13.4.9 and 14.2.5.1). A notice is not sent more often than once in the
 * port's SubnetTimeOut, and each repetition waits twice as long as the one before, up to 64 times the
 * SubnetTimeOut. Without a manager (MasterSMLID 0) nothing is sent nor kept. Private to the agents.
 */
#ifndef FABRIC_AGENT_TRAP_H
#define FABRIC_AGENT_TRAP_H

#include "fabric/agent/state.h"

/*
 * Raises the trap for `port` of the node; `end_port` is the one that sends it. While the same trap of the
 * same port waits, its details and its transaction are replaced. When the node has too many that wait, the trap is lost: the
 * manager's next sweep finds out.
 */
void agent_trap_raise(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint16_t trap,
		      const uint8_t details[MAD_NOTICE_DETAILS_BYTES], uint64_t now_ns);
/* A TrapRepress with this transaction came. Its upper 32 bits may be the manager's: interfaces to processes
 * use them to find whose an answer is. */
void agent_trap_repress(struct fabric_agents *a, struct agent_node *n, uint64_t tid);
/* Sends what is due at the node. */
void agent_trap_tick(struct fabric_agents *a, struct agent_node *n, uint64_t now_ns);
/* When the next one is due; UINT64_MAX: none. */
uint64_t agent_trap_due(const struct agent_node *n);

/* Trap 128 of a switch. Traps 129 to 131 (link integrity, overrun of buffers, flow control) have no cause in
 * the engine, whose links keep their credits. */
void agent_trap_link_state(struct fabric_agents *a, struct agent_node *n, uint64_t now_ns);

#endif

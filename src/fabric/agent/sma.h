/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agent (SMA): answers SMPs for a node (IBA volume 1, 14.2.4 and 14.2.5). How SMPs
 * come and go is in smi.h. Private to the agents.
 *
 * Not here, answered with the status of an attribute that is not supported: RandomForwardingTable,
 * VendorDiag, Notice (Get and Set), PortInfoExtended and vendors' attributes.
 */
#ifndef FABRIC_AGENT_SMA_H
#define FABRIC_AGENT_SMA_H

#include "fabric/agent/state.h"

enum agent_outcome {
	AGENT_NOTHING,  /* no answer: discarded, or there is none to give */
	AGENT_ANSWER,   /* the MAD is the answer now */
	AGENT_PROCESS,  /* the MAD is for a process that is plugged into the port */
};

/* `in_port`: where it came in, of a switch perhaps 0. */
enum agent_outcome agent_sma(struct fabric_agents *a, struct agent_node *n, uint8_t in_port,
			     uint8_t mad[MAD_BYTES], const struct agent_address *from, uint64_t now_ns);

/* ---- attributes: sma_node.c, sma_port.c, sma_tables.c ---- */

uint16_t agent_get_node_description(struct agent_request *r);
uint16_t agent_get_node_info(struct agent_request *r);
uint16_t agent_get_switch_info(struct agent_request *r);
uint16_t agent_set_switch_info(struct agent_request *r);
uint16_t agent_get_guid_info(struct agent_request *r);
uint16_t agent_set_guid_info(struct agent_request *r);
uint16_t agent_get_led_info(struct agent_request *r);
uint16_t agent_set_led_info(struct agent_request *r);

uint16_t agent_get_port_info(struct agent_request *r);
uint16_t agent_set_port_info(struct agent_request *r);

uint16_t agent_get_pkeys(struct agent_request *r);
uint16_t agent_set_pkeys(struct agent_request *r);
uint16_t agent_get_sl_to_vl(struct agent_request *r);
uint16_t agent_set_sl_to_vl(struct agent_request *r);
uint16_t agent_get_arbitration(struct agent_request *r);
uint16_t agent_set_arbitration(struct agent_request *r);
uint16_t agent_get_linear(struct agent_request *r);
uint16_t agent_set_linear(struct agent_request *r);
uint16_t agent_get_multicast(struct agent_request *r);
uint16_t agent_set_multicast(struct agent_request *r);

#endif

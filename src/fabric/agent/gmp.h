/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agents of general services, which answer at queue pair 1: the performance agent (PMA: IBA volume 1,
 * 16.1; pma.c, samples.c) and the congestion control agent (annex A10; cc.c, cc_log.c). Private to the
 * agents.
 */
#ifndef FABRIC_AGENT_GMP_H
#define FABRIC_AGENT_GMP_H

#include "fabric/agent/state.h"

/* Requests. True: the MAD is the answer now; false: discarded and counted. `in_port`: of an adapter
 * the port that is asked. */
bool agent_pma(struct fabric_agents *a, struct agent_node *n, uint8_t in_port, uint8_t mad[MAD_BYTES],
	       const struct mad_header *h, uint64_t now_ns);
bool agent_cc(struct fabric_agents *a, struct agent_node *n, uint8_t in_port, uint8_t mad[MAD_BYTES],
	      const struct mad_header *h, uint64_t now_ns);

/* Attributes PortSamplesControl and PortSamplesResult. */
uint16_t agent_get_samples_control(struct agent_request *r);
uint16_t agent_set_samples_control(struct agent_request *r);
uint16_t agent_get_samples_result(struct agent_request *r);
void agent_samples_tick(struct fabric_agents *a, struct agent_node *n, uint64_t now_ns);
/* When the period begins or ends; UINT64_MAX: none runs. */
uint64_t agent_samples_due(const struct agent_node *n);

/* Attributes CongestionLog and TimeStamp. */
uint16_t agent_get_congestion_log(struct agent_request *r);
uint16_t agent_get_time_stamp(struct agent_request *r);

#endif

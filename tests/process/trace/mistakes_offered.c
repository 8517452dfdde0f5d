/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs that the device does not have are in the trace, too. */
#include "mistakes.h"

void mistakes_not_offered(void)
{
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow),
				      .port = 1 };
	struct ibv_counters_init_attr counters = { 0 };
	struct ibv_qp *ud = qp_new(IBV_QPT_UD);

	NEED(!ibv_create_flow(ud, &flow));
	BECAUSE("ibv_create_flow", "= NULL EOPNOTSUPP", "qp 0x");
	NEED(!ibv_create_counters(context, &counters));
	BECAUSE("ibv_create_counters", "= NULL EOPNOTSUPP", "soft0");
	NEED(!ibv_destroy_qp(ud));
}

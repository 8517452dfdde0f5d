/* SPDX-License-Identifier: BSD-2-Clause */
/* All transports that are built: a line each, and the only place that knows them all. */
#include "hca/path/path.h"
#include "transport/list.h"

static const struct hca_transport_ops *const list[] = {
	&shm_ops,
	&roce_ops,
	&loop_ops,
	&iwarp_ops,
	&fabric_ops,
	NULL,
};

__attribute__((constructor)) static void transports_register(void)
{
	hca_transports_register(list);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verbs that this adapter does not offer yet. They fail with EOPNOTSUPP, as an
 * adapter without the feature does; busbar-adapter(7) lists them.
 */
#include <errno.h>

#include "hca/hca.h"

int hca_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return -EOPNOTSUPP;
}

int hca_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return -EOPNOTSUPP;
}

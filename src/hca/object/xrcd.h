/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC domains. */
#ifndef HCA_XRCD_H
#define HCA_XRCD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>

#include "hca/object/public.h"
#include "util/container_of.h"
#include "util/list.h"

struct hca_xrcd {
	struct ibv_xrcd ibv;
	struct hca_xrcd_id id;
	int name_fd;       /* socket whose name marks the inode's domain as open on this host */
	atomic_int users;  /* target QPs and XRC SRQs */
	struct list entry;
};

static inline struct hca_xrcd *hca_xrcd(struct ibv_xrcd *xrcd)
{
	return container_of(xrcd, struct hca_xrcd, ibv);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A library to preload: devices refuse ibv_advise_mr(), as adapters without prefetch do. */
#include <errno.h>
#include <infiniband/verbs.h>

#include "preload/real.h"

__attribute__((visibility("default"))) struct ibv_context *ibv_open_device(struct ibv_device *device);

static int refuse(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		  struct ibv_sge *list, uint32_t count)
{
	return EOPNOTSUPP;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *) =
		real_find("ibv_open_device", "IBVERBS_1.1");
	struct ibv_context *context = real(device);

	if (context)
		verbs_get_ctx(context)->advise_mr = refuse;
	return context;
}

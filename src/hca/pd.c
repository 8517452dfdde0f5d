/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains: a number that keys and queue pairs share. */
#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"
#include "hca/objects.h"

int hca_pd_alloc(struct ibv_context *ibctx, struct ibv_pd **out)
{
	static _Atomic uint32_t next_id = 1;
	struct hca_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return -ENOMEM;
	pd->ibv.context = ibctx;
	pd->id = atomic_fetch_add(&next_id, 1);
	pd->ibv.handle = pd->id;
	hca_context_get(hca_context(ibctx));
	*out = &pd->ibv;
	return 0;
}

int hca_pd_dealloc(struct ibv_pd *ibpd)
{
	struct hca_pd *pd = hca_pd(ibpd);

	if (atomic_load(&pd->users) > 0)
		return -EBUSY;
	hca_domain_release(pd);
	hca_context_put(hca_context(ibpd->context));
	free(pd);
	return 0;
}

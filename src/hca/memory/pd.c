/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection domains: a number that keys and queue pairs share. An imported domain
 * (ibv_import_pd(3)) has the number of its original, which exists as long as the import.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"
#include "hca/memory/domain.h"
#include "hca/memory/import.h"
#include "hca/object/context.h"
#include "hca/object/importable.h"
#include "hca/object/live.h"
#include "hca/object/quota.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/list.h"

/* Allocated domains, which can be imported. */
static struct list domains = { &domains, &domains };

int hca_pd_alloc(struct ibv_context *ibctx, struct ibv_pd **out)
{
	static _Atomic uint32_t next_id = 1;
	struct hca_pd *pd;

	if (hca_quota_take(HCA_QUOTA_PD))
		return -ENOMEM;
	pd = calloc(1, sizeof(*pd));
	if (!pd) {
		hca_quota_give(HCA_QUOTA_PD);
		return -ENOMEM;
	}
	pd->ibv.context = ibctx;
	pd->id = atomic_fetch_add(&next_id, 1);
	pd->ibv.handle = pd->id;
	hca_context_get(hca_context(ibctx));
	hca_importable_add(&domains, &pd->shared, ibctx, pd->ibv.handle);
	hca_live_begin(&pd->ibv, HCA_PD);
	*out = &pd->ibv;
	return 0;
}

int hca_pd_dealloc(struct ibv_pd *ibpd)
{
	struct hca_pd *pd = hca_pd(ibpd);

	if (!hca_live(ibpd, HCA_PD))
		return -EINVAL;
	if (pd->imported_from) {
		if (atomic_load(&pd->shared.users) > 1)
			return -EBUSY;
		hca_live_end(ibpd, HCA_PD);
		hca_pd_put(pd);
		return 0;
	}
	/* A parent domain is in no list. */
	if (pd->domain ? atomic_load(&pd->shared.users) > 0 : !hca_importable_remove(&pd->shared))
		return -EBUSY;
	hca_live_end(ibpd, HCA_PD);
	if (pd->domain)
		hca_domain_release(pd);
	else
		hca_quota_give(HCA_QUOTA_PD);
	hca_context_put(hca_context(ibpd->context));
	free(pd);
	return 0;
}

int hca_pd_import(struct ibv_context *ctx, uint32_t handle, struct ibv_pd **out)
{
	struct hca_importable *found;
	struct hca_pd *pd, *from;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	found = hca_importable_get(&domains, ctx, handle);
	if (!found) {
		free(pd);
		return -EINVAL;
	}
	from = container_of(found, struct hca_pd, shared);
	pd->ibv.context = ctx;
	pd->ibv.handle = handle;
	pd->id = from->id;
	pd->imported_from = from;
	atomic_init(&pd->shared.users, 1); /* the program */
	hca_context_get(hca_context(ctx));
	hca_live_begin(&pd->ibv, HCA_PD);
	*out = &pd->ibv;
	return 0;
}

void hca_pd_unimport(struct ibv_pd *pd)
{
	if (!hca_live(pd, HCA_PD) || !hca_pd(pd)->imported_from)
		return;
	hca_live_end(pd, HCA_PD);
	hca_pd_put(hca_pd(pd));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Importing regions (ibv_import_mr(3)): further handles of regions of this process.
 * Protection domains are imported in pd.c, device memory in dm.c, contexts in cmd_fd.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"
#include "hca/memory/domain.h"
#include "hca/memory/import.h"
#include "hca/memory/key.h"
#include "hca/object/live.h"
#include "hca/object/mr.h"
#include "hca/share/process.h"
#include "util/spin.h"

int hca_mr_import(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **out)
{
	struct hca_mr *mr, *from = NULL;

	if (!hca_live(pd, HCA_PD))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	spin_lock(&hca_key_lock);
	if (handle < HCA_KEYS)
		from = hca_key_mr(handle);
	if (from && hca_pd(from->ibv.pd)->id == hca_pd(pd)->id &&
	    !hca_context_inherited(from->ibv.context)) {
		*mr = (struct hca_mr){
			.ibv = { .length = from->ibv.length,
				 .handle = handle,
				 .lkey = from->ibv.lkey,
				 .rkey = from->ibv.rkey },
			.index = from->index,
			.access = from->access,
			.null = from->null,
			.imported = true,
		};
	}
	spin_unlock(&hca_key_lock);
	if (!mr->imported) {
		free(mr);
		return -EINVAL;
	}
	/* `addr` remains NULL: the address is of the registering process, ibv_import_mr(3). */
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	hca_pd_get(hca_pd(pd));
	hca_live_begin(&mr->ibv, HCA_MR);
	*out = &mr->ibv;
	return 0;
}

void hca_mr_end_import(struct hca_mr *mr)
{
	hca_live_end(&mr->ibv, HCA_MR);
	hca_pd_put(hca_pd(mr->ibv.pd));
	free(mr);
}

void hca_mr_unimport(struct ibv_mr *mr)
{
	if (hca_live(mr, HCA_MR) && hca_mr(mr)->imported)
		hca_mr_end_import(hca_mr(mr));
}

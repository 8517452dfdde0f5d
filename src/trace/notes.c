/* SPDX-License-Identifier: BSD-2-Clause */
/* Actions of the trace after a successful call. */
#include "trace/calls.h"

void note_ibv_open_device(struct ibv_context *context, struct ibv_device *device)
{
	context_patch(context);
}

void note_ibv_import_device(struct ibv_context *context, int cmd_fd)
{
	context_patch(context);
}

void note_ibv_create_cq_ex(struct ibv_cq_ex *cq, struct ibv_context *context,
			   struct ibv_cq_init_attr_ex *attr)
{
	object_add(OBJECT_CQ, cq);
	data_patch_cq(cq);
}

/* Replaces the functions of the extended QP, before the program asks for it. */
void note_ibv_create_qp_ex(struct ibv_qp *qp, struct ibv_context *context,
			   struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_ex *(*to_ex)(struct ibv_qp *) =
		__extension__(__typeof__(to_ex))real_find("ibv_qp_to_qp_ex", "IBVERBS_1.6");
	struct ibv_qp_ex *ex = to_ex && attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ?
				       to_ex(qp) : NULL;

	if (ex)
		data_patch_qp(ex);
}

void note_ibv_qp_to_qp_ex(struct ibv_qp_ex *ex, struct ibv_qp *qp)
{
	if (ex)
		data_patch_qp(ex);
}

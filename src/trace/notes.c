/* SPDX-License-Identifier: BSD-2-Clause */
/* Actions of the trace after a successful call. */
#include "trace/calls.h"

/* The context has just been opened: no other thread uses it yet. */
static void context_patch(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);

	if (!saved_keep_context(context))
		return;
	data_patch_ops(context);
	calls_patch_ops(context);
	if (verbs)
		calls_patch_verbs(verbs);
}

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

/* Of a queue pair that the program made by a function of its adapter alone. One that is known has
 * the functions already; those of a library above this one may stand over them. */
void note_ibv_qp_to_qp_ex(struct ibv_qp_ex *ex, struct ibv_qp *qp)
{
	if (ex && !saved_find(ex)->key)
		data_patch_qp(ex);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of verbs as text. Members of an object are read only if the object
 * is known to exist: a program may pass any pointer. */
#include <endian.h>
#include <inttypes.h>

#include "trace/calls.h"

static void open_members(struct text *t)
{
	text_add(t, "{");
	t->item = false;
}

static void close_members(struct text *t)
{
	text_add(t, "}");
	t->item = true;
}

static void pointer(struct text *t, const char *kind, const void *p)
{
	if (p)
		text_add(t, "%s%s%p", kind, *kind ? " " : "", p);
	else
		text_add(t, "NULL");
}

#define POINTER(name, type, kind)                    \
	void show_##name(struct text *t, type p)     \
	{                                            \
		pointer(t, kind, (const void *)p);   \
	}
#define NUMBER(name, type, format)                   \
	void show_##name(struct text *t, type value) \
	{                                            \
		text_add(t, format, value);          \
	}

POINTER(pd, struct ibv_pd *, "pd")
POINTER(mw, struct ibv_mw *, "mw")
POINTER(dm, struct ibv_dm *, "dm")
POINTER(channel, struct ibv_comp_channel *, "channel")
POINTER(qp_ex, struct ibv_qp_ex *, "qp")
POINTER(srq, struct ibv_srq *, "srq")
POINTER(ah, struct ibv_ah *, "ah")
POINTER(xrcd, struct ibv_xrcd *, "xrcd")
POINTER(td, struct ibv_td *, "td")
POINTER(flow, struct ibv_flow *, "flow")
POINTER(counters, struct ibv_counters *, "counters")
POINTER(wq, struct ibv_wq *, "wq")
POINTER(ind_table, struct ibv_rwq_ind_table *, "table")
POINTER(action, struct ibv_flow_action *, "action")
POINTER(cq, struct ibv_cq *, "cq")
POINTER(cq_ex, struct ibv_cq_ex *, "cq")
POINTER(ptr, void *, "")
POINTER(cptr, const void *, "")
POINTER(count, int *, "")
POINTER(device_input, const struct ibv_query_device_ex_input *, "")
POINTER(wc, struct ibv_wc *, "")
POINTER(grh, struct ibv_grh *, "")
POINTER(td_init, struct ibv_td_init_attr *, "")
POINTER(flow_attr, struct ibv_flow_attr *, "")
POINTER(counters_init, struct ibv_counters_init_attr *, "")
POINTER(counters_attach, struct ibv_counter_attach_attr *, "")
POINTER(wq_init, struct ibv_wq_init_attr *, "")
POINTER(wq_attr, struct ibv_wq_attr *, "")
POINTER(ind_init, struct ibv_rwq_ind_table_init_attr *, "")
POINTER(values, struct ibv_values_ex *, "")
POINTER(ops_wr, struct ibv_ops_wr *, "")
POINTER(ops_bad, struct ibv_ops_wr **, "")
POINTER(esp_attr, struct ibv_flow_action_esp_attr *, "")
POINTER(rate_attr, struct ibv_qp_rate_limit_attr *, "")
POINTER(u64_out, uint64_t *, "")
POINTER(mac, uint8_t *, "")
POINTER(vid, uint16_t *, "")
POINTER(port_old, struct _compat_ibv_port_attr *, "")
NUMBER(int, int, "%d")
NUMBER(uint, unsigned int, "%u")
NUMBER(u8, uint8_t, "%u")
NUMBER(u16, uint16_t, "%u")
NUMBER(u32, uint32_t, "%u")
NUMBER(hex32, uint32_t, "0x%x")
NUMBER(u64, uint64_t, "0x%" PRIx64)
NUMBER(size, size_t, "%zu")
NUMBER(mr_flags, int, "0x%x")
NUMBER(srq_mask, int, "0x%x")

void show_be16(struct text *t, __be16 value)
{
	text_add(t, "0x%04x", be16toh(value));
}

void show_context(struct text *t, struct ibv_context *context)
{
	/* A context that was opened through the trace has saved functions. */
	if (context && saved_find(context)->key)
		text_add(t, "%s", context->device->name);
	else
		pointer(t, "context", context);
}

void show_device(struct text *t, struct ibv_device *device)
{
	text_add(t, "%s", device ? device->name : "NULL");
}

void show_mr(struct text *t, struct ibv_mr *mr)
{
	pointer(t, "mr", mr);
	if (mr && object_lives(OBJECT_MR, mr))
		text_add(t, " (lkey 0x%x, rkey 0x%x)", mr->lkey, mr->rkey);
}

void show_qp(struct text *t, struct ibv_qp *qp)
{
	if (qp && object_lives(OBJECT_QP, qp))
		text_add(t, "qp 0x%x", qp->qp_num);
	else
		pointer(t, "qp", qp);
}

void show_access(struct text *t, int access)
{
	text_access(t, (unsigned)access);
}

void show_uaccess(struct text *t, unsigned int access)
{
	text_access(t, access);
}

void show_text(struct text *t, const char *text)
{
	if (text)
		text_add(t, "\"%s\"", text);
	else
		text_add(t, "NULL");
}

void show_devices(struct text *t, struct ibv_device **list)
{
	open_members(t);
	for (; list && *list; list++)
		text_item(t, "%s", (*list)->name);
	close_members(t);
}

void show_contexts(struct text *t, struct ibv_context **list)
{
	open_members(t);
	for (; list && *list; list++)
		text_item(t, "%s", (*list)->device->name);
	close_members(t);
}

void show_u32_out(struct text *t, uint32_t *n)
{
	text_add(t, "0x%x", *n);
}

void show_cq_out(struct text *t, struct ibv_cq **cq)
{
	show_cq(t, *cq);
}

void show_ptr_out(struct text *t, void **p)
{
	pointer(t, "", *p);
}

void show_async(struct text *t, struct ibv_async_event *e)
{
	text_event(t, e->event_type);
	switch (e->event_type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
	case IBV_EVENT_GID_CHANGE:
		text_add(t, " of port %d", e->element.port_num);
		break;
	case IBV_EVENT_CQ_ERR:
		text_add(t, " of ");
		show_cq(t, e->element.cq);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		text_add(t, " of ");
		show_srq(t, e->element.srq);
		break;
	case IBV_EVENT_DEVICE_FATAL:
	case IBV_EVENT_WQ_FATAL:
		break;
	default:
		text_add(t, " of ");
		show_qp(t, e->element.qp);
	}
}

void show_device_attr(struct text *t, struct ibv_device_attr *a)
{
	open_members(t);
	text_item(t, "fw_ver \"%s\"", a->fw_ver);
	text_item(t, "max_qp %d", a->max_qp);
	text_item(t, "max_qp_wr %d", a->max_qp_wr);
	text_item(t, "max_sge %d", a->max_sge);
	text_item(t, "max_cqe %d", a->max_cqe);
	text_item(t, "max_mr %d", a->max_mr);
	text_item(t, "max_qp_rd_atom %d", a->max_qp_rd_atom);
	text_item(t, "device_cap_flags 0x%x", a->device_cap_flags);
	text_item(t, "ports %u", a->phys_port_cnt);
	close_members(t);
}

void show_device_attr_ex(struct text *t, struct ibv_device_attr_ex *a)
{
	show_device_attr(t, &a->orig_attr);
}

void show_port_attr(struct text *t, struct ibv_port_attr *a)
{
	static const char *const states[] = { "NOP", "DOWN", "INIT", "ARMED", "ACTIVE",
					      "ACTIVE_DEFER" };

	open_members(t);
	text_item(t, "%s", a->state < COUNT(states) ? states[a->state] : "?");
	text_item(t, "active_mtu %u", 128u << a->active_mtu);
	text_item(t, "gid_tbl_len %d", a->gid_tbl_len);
	text_item(t, "lid %u", a->lid);
	text_item(t, "%s", a->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
	close_members(t);
}

void show_gid(struct text *t, const union ibv_gid *gid)
{
	if (gid)
		text_gid(t, gid);
	else
		text_add(t, "NULL");
}

void show_gid_out(struct text *t, union ibv_gid *gid)
{
	text_gid(t, gid);
}

void show_gid_entry(struct text *t, struct ibv_gid_entry *e)
{
	text_gid(t, &e->gid);
}

void show_pkey_out(struct text *t, __be16 *pkey)
{
	show_be16(t, *pkey);
}

static void show_cap(struct text *t, const struct ibv_qp_cap *c)
{
	text_item(t, "max_send_wr %u", c->max_send_wr);
	text_item(t, "max_recv_wr %u", c->max_recv_wr);
	text_item(t, "max_send_sge %u", c->max_send_sge);
	text_item(t, "max_recv_sge %u", c->max_recv_sge);
	text_item(t, "max_inline_data %u", c->max_inline_data);
}

void show_qp_init(struct text *t, struct ibv_qp_init_attr *a)
{
	if (!a) {
		text_add(t, "NULL");
		return;
	}
	open_members(t);
	text_next(t, ", ");
	text_qp_type(t, a->qp_type);
	text_item(t, "send_cq %p", (void *)a->send_cq);
	text_item(t, "recv_cq %p", (void *)a->recv_cq);
	if (a->srq)
		text_item(t, "srq %p", (void *)a->srq);
	show_cap(t, &a->cap);
	text_item(t, "sq_sig_all %d", a->sq_sig_all);
	close_members(t);
}

void show_qp_init_ex(struct text *t, struct ibv_qp_init_attr_ex *a)
{
	if (!a) {
		text_add(t, "NULL");
		return;
	}
	open_members(t);
	text_next(t, ", ");
	text_qp_type(t, a->qp_type);
	text_item(t, "comp_mask 0x%x", a->comp_mask);
	if (a->comp_mask & IBV_QP_INIT_ATTR_PD)
		text_item(t, "pd %p", (void *)a->pd);
	text_item(t, "send_cq %p", (void *)a->send_cq);
	text_item(t, "recv_cq %p", (void *)a->recv_cq);
	if (a->srq)
		text_item(t, "srq %p", (void *)a->srq);
	show_cap(t, &a->cap);
	text_item(t, "sq_sig_all %d", a->sq_sig_all);
	if (a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS)
		text_item(t, "create_flags 0x%x", a->create_flags);
	if (a->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		text_item(t, "send_ops_flags 0x%" PRIx64, a->send_ops_flags);
	close_members(t);
}

void show_ah_vector(struct text *t, const struct ibv_ah_attr *a)
{
	open_members(t);
	text_item(t, "port %u", a->port_num);
	text_item(t, "sl %u", a->sl);
	if (a->dlid)
		text_item(t, "dlid %u", a->dlid);
	if (a->is_global) {
		text_item(t, "dgid ");
		text_gid(t, &a->grh.dgid);
		text_item(t, "sgid_index %u", a->grh.sgid_index);
		text_item(t, "hop_limit %u", a->grh.hop_limit);
	}
	close_members(t);
}

void show_ah_attr(struct text *t, struct ibv_ah_attr *a)
{
	if (a)
		show_ah_vector(t, a);
	else
		text_add(t, "NULL");
}

/* The members whose bits are set in the mask. */
static void show_attr_members(struct text *t, const struct ibv_qp_attr *a, int mask)
{
#define MEMBER(bit, member, format)                                  \
	if (mask & IBV_QP_##bit)                                     \
		text_item(t, #member " " format, (unsigned)a->member)
	MEMBER(PKEY_INDEX, pkey_index, "%u");
	MEMBER(PORT, port_num, "%u");
	MEMBER(QKEY, qkey, "0x%x");
	if (mask & IBV_QP_ACCESS_FLAGS) {
		text_item(t, "access ");
		text_access(t, a->qp_access_flags);
	}
	if (mask & IBV_QP_AV) {
		text_item(t, "ah_attr ");
		show_ah_vector(t, &a->ah_attr);
	}
	if (mask & IBV_QP_PATH_MTU)
		text_item(t, "path_mtu %u", a->path_mtu < 16 ? 128u << a->path_mtu : 0);
	MEMBER(DEST_QPN, dest_qp_num, "0x%x");
	MEMBER(RQ_PSN, rq_psn, "0x%x");
	MEMBER(SQ_PSN, sq_psn, "0x%x");
	MEMBER(TIMEOUT, timeout, "%u");
	MEMBER(RETRY_CNT, retry_cnt, "%u");
	MEMBER(RNR_RETRY, rnr_retry, "%u");
	MEMBER(MIN_RNR_TIMER, min_rnr_timer, "%u");
	MEMBER(MAX_QP_RD_ATOMIC, max_rd_atomic, "%u");
	MEMBER(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, "%u");
	MEMBER(PATH_MIG_STATE, path_mig_state, "%u");
#undef MEMBER
}

void show_qp_change(struct text *t, const struct ibv_qp *qp, const struct ibv_qp_attr *a,
		    int mask)
{
	if (qp && object_lives(OBJECT_QP, qp)) {
		text_state(t, qp->state);
		text_add(t, " -> ");
		text_state(t, a && mask & IBV_QP_STATE ? a->qp_state : qp->state);
		text_add(t, ", ");
	}
	if (!a) {
		text_add(t, "NULL");
		return;
	}
	open_members(t);
	show_attr_members(t, a, mask);
	close_members(t);
}

void show_qp_attr(struct text *t, struct ibv_qp_attr *a)
{
	open_members(t);
	text_next(t, ", ");
	text_state(t, a->qp_state);
	close_members(t);
}

void show_qp_mask(struct text *t, int mask)
{
	text_qp_mask(t, (unsigned)mask);
}

void show_qp_open(struct text *t, struct ibv_qp_open_attr *a)
{
	text_add(t, "{qp_num 0x%x}", a->qp_num);
}

void show_opcode(struct text *t, enum ibv_wr_opcode opcode)
{
	text_send_opcode(t, opcode);
}

void show_srq_attr(struct text *t, struct ibv_srq_attr *a)
{
	text_add(t, "{max_wr %u, max_sge %u, srq_limit %u}", a->max_wr, a->max_sge,
		 a->srq_limit);
}

void show_srq_init(struct text *t, struct ibv_srq_init_attr *a)
{
	if (a)
		show_srq_attr(t, &a->attr);
	else
		text_add(t, "NULL");
}

void show_srq_init_ex(struct text *t, struct ibv_srq_init_attr_ex *a)
{
	if (!a) {
		text_add(t, "NULL");
		return;
	}
	text_add(t, "{comp_mask 0x%x, type %d, ", a->comp_mask,
		 a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? (int)a->srq_type : 0);
	show_srq_attr(t, &a->attr);
	text_add(t, "}");
}

void show_cq_init_ex(struct text *t, struct ibv_cq_init_attr_ex *a)
{
	text_add(t, "{cqe %u, channel %p, comp_vector %u, wc_flags 0x%" PRIx64 ", comp_mask 0x%x}",
		 a->cqe, (void *)a->channel, a->comp_vector, a->wc_flags, a->comp_mask);
}

void show_cq_modify(struct text *t, struct ibv_modify_cq_attr *a)
{
	text_add(t, "{attr_mask 0x%x, cq_count %u, cq_period %u}", a->attr_mask,
		 a->moderate.cq_count, a->moderate.cq_period);
}

void show_ece(struct text *t, struct ibv_ece *e)
{
	text_add(t, "{vendor_id 0x%x, options 0x%x}", e->vendor_id, e->options);
}

void show_mw_type(struct text *t, enum ibv_mw_type type)
{
	text_add(t, "type %d", (int)type);
}

void show_mw_bind(struct text *t, struct ibv_mw_bind *b)
{
	text_add(t, "{mr %p, addr 0x%" PRIx64 ", length %" PRIu64 ", access ",
		 (void *)b->bind_info.mr, b->bind_info.addr, b->bind_info.length);
	text_access(t, b->bind_info.mw_access_flags);
	text_add(t, "}");
}

void show_dm_attr(struct text *t, struct ibv_alloc_dm_attr *a)
{
	text_add(t, "{length %zu, log_align_req %u}", a->length, a->log_align_req);
}

void show_advice(struct text *t, enum ibv_advise_mr_advice advice)
{
	text_add(t, "advice %d", (int)advice);
}

void show_sges(struct text *t, struct ibv_sge *sge)
{
	if (sge)
		text_add(t, "{{addr 0x%" PRIx64 ", length %u, lkey 0x%x}, ...}", sge->addr,
			 sge->length, sge->lkey);
	else
		text_add(t, "NULL");
}

void show_xrcd_init(struct text *t, struct ibv_xrcd_init_attr *a)
{
	text_add(t, "{comp_mask 0x%x, fd %d, oflags 0x%x}", a->comp_mask, a->fd,
		 (unsigned)a->oflags);
}

void show_parent_init(struct text *t, struct ibv_parent_domain_init_attr *a)
{
	text_add(t, "{pd %p, td %p}", (void *)a->pd, (void *)a->td);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every forwarded public function once on soft0's objects, while the stand-in is
 * open: none of the calls may get there. That they do what they should is other
 * tests' matter, so most of them fail or are given nothing to do.
 */
#include "forward.h"

#include <string.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova
#undef ibv_query_port

static const char *called[128];
static size_t called_count;

/* One call, by its name, that must not come out at the stand-in. */
#define OWN(name, ...)                                                     \
	({                                                                 \
		unsigned long before_ = atomic_load(&standin()->calls);    \
		__typeof__(name(__VA_ARGS__)) ret_ = name(__VA_ARGS__);    \
		CHECK_FOR(#name, atomic_load(&standin()->calls) == before_); \
		called[called_count++] = #name;                            \
		ret_;                                                      \
	})
#define OWN_VOID(name, ...)                                                \
	do {                                                               \
		unsigned long before_ = atomic_load(&standin()->calls);    \
		name(__VA_ARGS__);                                         \
		CHECK_FOR(#name, atomic_load(&standin()->calls) == before_); \
		called[called_count++] = #name;                            \
	} while (0)

static char memory[4096];

static void device_and_context(struct ibv_context *c)
{
	struct ibv_device_attr device;
	struct _compat_ibv_port_attr *port = (void *)memory;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_grh grh = { 0 };
	struct ibv_ah_attr ah = { .is_global = 0 };
	uint8_t mac[6];
	uint16_t vlan;

	CHECK(OWN(ibv_get_device_guid, c->device) != 0);
	CHECK(OWN(ibv_get_device_index, c->device) >= 0);
	CHECK(OWN(ibv_query_device, c, &device) == 0);
	CHECK(OWN(ibv_query_port, c, 1, port) == 0);
	CHECK(OWN(ibv_query_gid, c, 1, 0, &gid) == 0);
	CHECK(OWN(_ibv_query_gid_ex, c, 1, 0, &entry, 0, sizeof(entry)) == 0);
	CHECK(OWN(_ibv_query_gid_table, c, (void *)memory,
		  sizeof(memory) / sizeof(entry), 0, sizeof(entry)) > 0);
	CHECK(OWN(ibv_query_pkey, c, 1, 0, &pkey) == 0);
	CHECK(OWN(ibv_get_pkey_index, c, 1, pkey) == 0);
	OWN(ibv_init_ah_from_wc, c, 1, &wc, &grh, &ah);
	OWN(ibv_resolve_eth_l2_from_gid, c, &ah, mac, &vlan);
	CHECK(!OWN(ibv_import_pd, c, UINT32_MAX));
	CHECK(!OWN(ibv_import_dm, c, UINT32_MAX));
}

static void memory_objects(struct ibv_pd *pd)
{
	struct ibv_mr *mr;
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(pd->context, &attr);

	OWN(ibv_reg_dmabuf_mr, pd, 0, 4096, 0, -1, 0);
	CHECK(!OWN(ibv_import_mr, pd, UINT32_MAX));
	mr = OWN(ibv_reg_mr_iova2, pd, memory, 64, 0, 0);
	CHECK(mr);
	CHECK(OWN(ibv_dereg_mr, mr) == 0);
	mr = OWN(ibv_reg_mr_iova, pd, memory, 64, 0, 0);
	CHECK(mr && ibv_dereg_mr(mr) == 0);
	mr = OWN(ibv_reg_mr, pd, memory, 64, 0);
	CHECK(mr);
	OWN(ibv_rereg_mr, mr, IBV_REREG_MR_CHANGE_ACCESS, pd, memory, 64,
	    IBV_ACCESS_LOCAL_WRITE);
	OWN_VOID(ibv_unimport_mr, mr);
	CHECK(ibv_dereg_mr(mr) == 0);
	OWN_VOID(ibv_unimport_pd, pd);
	CHECK(dm);
	OWN_VOID(ibv_unimport_dm, dm);
	CHECK(ibv_free_dm(dm) == 0);
}

static void queue_pair(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_async_event event = { .event_type = IBV_EVENT_COMM_EST };
	struct ibv_ece ece = { 0 };
	union ibv_gid gid = { .raw = { 0xff } };
	struct ibv_qp *qp = OWN(ibv_create_qp, pd, &init);

	CHECK(qp);
	CHECK(OWN(ibv_query_qp, qp, &attr, IBV_QP_STATE, &init) == 0);
	CHECK(OWN(ibv_modify_qp, qp, &attr, IBV_QP_STATE) == 0);
	OWN(ibv_qp_to_qp_ex, qp);
	OWN(ibv_query_ece, qp, &ece);
	OWN(ibv_set_ece, qp, &ece);
	OWN(ibv_query_qp_data_in_order, qp, IBV_WR_SEND, 0);
	OWN(ibv_attach_mcast, qp, &gid, 0);
	OWN(ibv_detach_mcast, qp, &gid, 0);
	event.element.qp = qp;
	/* Of nobody's port: an event of the queue pair would have to be got. */
	event.event_type = IBV_EVENT_PORT_ACTIVE;
	OWN_VOID(ibv_ack_async_event, &event);
	CHECK(OWN(ibv_destroy_qp, qp) == 0);
}

static void other_objects(struct ibv_pd *pd)
{
	struct ibv_ah_attr ah_attr = { .port_num = 1, .dlid = 1 };
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 1, .max_sge = 1 }
	};
	struct ibv_srq_attr attr;
	struct ibv_wc wc = { .wc_flags = 0 };
	struct ibv_grh grh = { 0 };
	struct ibv_ah *ah = OWN(ibv_create_ah, pd, &ah_attr);
	struct ibv_srq *srq = OWN(ibv_create_srq, pd, &init);

	CHECK(ah && srq);
	CHECK(OWN(ibv_destroy_ah, ah) == 0);
	ah = OWN(ibv_create_ah_from_wc, pd, &wc, &grh, 1);
	if (ah)
		ibv_destroy_ah(ah);
	CHECK(OWN(ibv_query_srq, srq, &attr) == 0);
	OWN(ibv_modify_srq, srq, &attr, 0);
	CHECK(OWN(ibv_destroy_srq, srq) == 0);
}

void public_functions_of_soft0_are_ours(void)
{
	/* Needs an event to happen, or ends what the rest needs. */
	static const char *const elsewhere[] = {
		"ibv_get_cq_event", "ibv_get_async_event", "ibv_open_device",
	};
	struct ibv_context *c = open_named("soft0");
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	device_and_context(c);
	channel = OWN(ibv_create_comp_channel, c);
	pd = OWN(ibv_alloc_pd, c);
	cq = OWN(ibv_create_cq, c, 4, NULL, channel, 0);
	CHECK(channel && pd && cq);
	OWN_VOID(ibv_ack_cq_events, cq, 0);
	OWN(ibv_resize_cq, cq, 8);
	memory_objects(pd);
	queue_pair(pd, cq);
	other_objects(pd);
	CHECK(OWN(ibv_destroy_cq, cq) == 0);
	CHECK(OWN(ibv_destroy_comp_channel, channel) == 0);
	CHECK(OWN(ibv_dealloc_pd, pd) == 0);
	CHECK(OWN(ibv_close_device, c) == 0);
	for (size_t i = 0; i < public_symbol_count; i++) {
		const struct public_symbol *s = &public_symbols[i];
		bool done = s->owner == OWNER_both || s->owner == OWNER_here;

		for (size_t j = 0; j < called_count; j++)
			done |= !strcmp(called[j], s->name);
		for (size_t j = 0; j < 3; j++)
			done |= !strcmp(elsewhere[j], s->name);
		CHECK_FOR(s->name, done);
	}
}

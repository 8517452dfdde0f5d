/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every verb, object and flag that soft0 does not offer answers with the error that
 * busbar-adapter(7) names, and does nothing else.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *ud;
static struct ibv_srq *srq;
static unsigned count, failed;

static void looked(const char *what, int got, int want)
{
	count++;
	if (got == want)
		return;
	failed++;
	printf("%s: %d (%s), wanted %d (%s)\n", what, got, strerror(got), want,
	       strerror(want));
}

/* NULL with errno, and a positive errno. */
#define NONE(call, want)                                     \
	do {                                                 \
		errno = 0;                                   \
		looked(#call, (call) ? 0 : errno, want);     \
	} while (0)
#define ERRNO(call, want) looked(#call, call, want)

static void flows(void)
{
	struct ibv_flow_attr flow_attr = { .type = IBV_FLOW_ATTR_NORMAL,
					   .size = sizeof(flow_attr), .port = 1 };
	struct ibv_flow_attr sniffer = { .type = IBV_FLOW_ATTR_SNIFFER,
					 .size = sizeof(sniffer), .port = 1 };
	struct ibv_flow_action_esp_attr esp = { .comp_mask = 0 };
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counter_attach_attr attach = { .counter_desc = IBV_COUNTER_PACKETS };
	/* What a program would have of another device. */
	struct ibv_flow flow = { .context = context };
	struct ibv_flow_action action = { .context = context };
	struct ibv_counters counters = { .context = context };
	uint64_t value = 0;

	NONE(ibv_create_flow(ud, &flow_attr), EOPNOTSUPP);
	NONE(ibv_create_flow(ud, &sniffer), EOPNOTSUPP);
	ERRNO(ibv_destroy_flow(&flow), EOPNOTSUPP);
	NONE(ibv_create_flow_action_esp(context, &esp), EOPNOTSUPP);
	ERRNO(ibv_modify_flow_action_esp(&action, &esp), EOPNOTSUPP);
	ERRNO(ibv_destroy_flow_action(&action), EOPNOTSUPP);
	NONE(ibv_create_counters(context, &init), EOPNOTSUPP);
	ERRNO(ibv_attach_counters_point_flow(&counters, &attach, &flow), EOPNOTSUPP);
	ERRNO(ibv_read_counters(&counters, &value, 1, 0), EOPNOTSUPP);
	ERRNO(ibv_destroy_counters(&counters), EOPNOTSUPP);
}

static void raw_packets(void)
{
	struct ibv_qp_init_attr plain = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_wq_init_attr wq_init = { .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1,
					    .pd = pd, .cq = cq };
	struct ibv_wq wq = { .context = context };
	struct ibv_wq *wqs[] = { &wq };
	struct ibv_rwq_ind_table_init_attr table_init = { .ind_tbl = wqs };
	struct ibv_rwq_ind_table table = { .context = context };
	struct ibv_wq_attr wq_attr = { .attr_mask = IBV_WQ_ATTR_STATE };
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1000 };

	NONE(ibv_create_qp(pd, &plain), EOPNOTSUPP);
	plain.qp_type = IBV_QPT_DRIVER;
	NONE(ibv_create_qp(pd, &plain), EOPNOTSUPP);
	NONE(ibv_create_wq(context, &wq_init), EOPNOTSUPP);
	ERRNO(ibv_modify_wq(&wq, &wq_attr), EOPNOTSUPP);
	ERRNO(ibv_destroy_wq(&wq), EOPNOTSUPP);
	NONE(ibv_create_rwq_ind_table(context, &table_init), EOPNOTSUPP);
	ERRNO(ibv_destroy_rwq_ind_table(&table), EOPNOTSUPP);
	ERRNO(ibv_modify_qp_rate_limit(ud, &rate), EOPNOTSUPP);
}

static void extended_queue_pairs(void)
{
	const struct ibv_qp_init_attr_ex good = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	static const uint32_t flags[] = { IBV_QP_CREATE_SCATTER_FCS,
					  IBV_QP_CREATE_CVLAN_STRIPPING,
					  IBV_QP_CREATE_SOURCE_QPN,
					  IBV_QP_CREATE_PCI_WRITE_END_PADDING };
	static const uint32_t parts[] = { IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
					  IBV_QP_INIT_ATTR_IND_TABLE,
					  IBV_QP_INIT_ATTR_RX_HASH };
	struct ibv_qp_init_attr_ex a;

	for (unsigned i = 0; i < 4; i++) {
		a = good;
		a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		a.create_flags = flags[i];
		NONE(ibv_create_qp_ex(context, &a), EOPNOTSUPP);
	}
	for (unsigned i = 0; i < 3; i++) {
		a = good;
		a.comp_mask |= parts[i];
		NONE(ibv_create_qp_ex(context, &a), EOPNOTSUPP);
	}
	a = good;
	a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	a.send_ops_flags = IBV_QP_EX_WITH_TSO;
	NONE(ibv_create_qp_ex(context, &a), EOPNOTSUPP);
	a = good;
	a.qp_type = IBV_QPT_RAW_PACKET;
	NONE(ibv_create_qp_ex(context, &a), EOPNOTSUPP);
}

static void tags(void)
{
	struct ibv_srq_init_attr_ex init = {
		.pd = pd, .cq = cq, .srq_type = IBV_SRQT_TM,
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.tm_cap = { .max_num_tags = 1, .max_ops = 1 },
	};
	static const uint64_t fields[] = { IBV_WC_EX_WITH_TM_INFO, IBV_WC_EX_WITH_FLOW_TAG,
					   IBV_WC_EX_WITH_CVLAN };
	struct ibv_ops_wr op = { .opcode = IBV_WR_TAG_SYNC }, *bad;

	NONE(ibv_create_srq_ex(context, &init), EOPNOTSUPP);
	ERRNO(ibv_post_srq_ops(srq, &op, &bad), EOPNOTSUPP);
	for (unsigned i = 0; i < 3; i++) {
		struct ibv_cq_init_attr_ex cq_init = { .cqe = 1, .wc_flags = fields[i] };

		NONE(ibv_create_cq_ex(context, &cq_init), EOPNOTSUPP);
	}
}

static void others(void)
{
	struct ibv_device_attr_ex all = { 0 };
	struct ibv_ece ece = { .vendor_id = 1, .options = 1 };

	ERRNO(ibv_set_ece(ud, &ece), EOPNOTSUPP);
	/* And nothing of it is promised. */
	ERRNO(ibv_query_device_ex(context, NULL, &all), 0);
	looked("raw_packet_caps", (int)all.raw_packet_caps, 0);
	looked("tm_caps.max_num_tags", (int)all.tm_caps.max_num_tags, 0);
	looked("rss_caps.supported_qpts", (int)all.rss_caps.supported_qpts, 0);
	looked("max_wq_type_rq", (int)all.max_wq_type_rq, 0);
	looked("tso_caps.max_tso", (int)all.tso_caps.max_tso, 0);
	looked("packet_pacing_caps", (int)all.packet_pacing_caps.supported_qpts, 0);
	looked("max_raw_ipv6_qp", all.orig_attr.max_raw_ipv6_qp, 0);
	looked("max_raw_ethy_qp", all.orig_attr.max_raw_ethy_qp, 0);
}

/* Inline verbs call these without a look. */
static void tables(void)
{
	const struct ibv_context_ops *ops = &context->ops;

	looked("functions of the context",
	       ops->poll_cq && ops->req_notify_cq && ops->post_send && ops->post_recv &&
		       ops->post_srq_recv && ops->alloc_mw && ops->bind_mw && ops->dealloc_mw,
	       1);
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 4, NULL, NULL, 0) : NULL;
	srq = cq ? ibv_create_srq(pd, &srq_init) : NULL;
	init.send_cq = init.recv_cq = cq;
	ud = srq ? ibv_create_qp(pd, &init) : NULL;
	if (!ud) {
		perror("soft0");
		return 1;
	}
	tables();
	flows();
	raw_packets();
	extended_queue_pairs();
	tags();
	others();
	/* What was refused holds nothing. */
	ERRNO(ibv_destroy_qp(ud), 0);
	ERRNO(ibv_destroy_srq(srq), 0);
	ERRNO(ibv_destroy_cq(cq), 0);
	ERRNO(ibv_dealloc_pd(pd), 0);
	ERRNO(ibv_close_device(context), 0);
	ibv_free_device_list(list);
	printf("%u answers, %u wrong\n", count, failed);
	return failed != 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BUSBAR_WITHOUT: what it names is not offered, its attributes are 0, and all else is as
 * ever. Arguments: the names that it has; with none, everything is there.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static int names;
static char **name;

static void expect_that(int line, const char *what, int holds)
{
	if (holds)
		return;
	printf("%s:%d: failed: %s (%s)\n", __FILE__, line, what, strerror(errno));
	exit(1);
}
#define expect(condition) expect_that(__LINE__, #condition, !!(condition))
/* Either it is there, or not and the call has said that it is not supported. */
#define expect_offered(got, offered) \
	expect((offered) ? !!(got) : !(got) && errno == EOPNOTSUPP)

static bool has(const char *what)
{
	for (int i = 0; i < names; i++)
		if (!strcasecmp(name[i], what))
			return false;
	return true;
}

static struct ibv_qp *make(enum ibv_qp_type type, bool offered)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq, .recv_cq = cq, .qp_type = type,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(pd, &a);
	expect_offered(qp, offered);
	return qp;
}

static void queue_pairs(void)
{
	const union ibv_gid group = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [15] = 1 } };
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };
	struct ibv_qp *rc = make(IBV_QPT_RC, true), *uc = make(IBV_QPT_UC, has("uc")),
		      *ud = make(IBV_QPT_UD, has("ud")),
		      *xrc = make(IBV_QPT_XRC_SEND, has("xrc"));
	struct ibv_ah *ah;

	errno = 0;
	ah = ibv_create_ah(pd, &attr);
	expect_offered(ah, has("ud"));
	expect(!ah || !ibv_destroy_ah(ah));
	if (ud && has("multicast")) {
		expect(!ibv_attach_mcast(ud, &group, 0) && !ibv_detach_mcast(ud, &group, 0));
	} else if (ud) {
		expect(ibv_attach_mcast(ud, &group, 0) == EOPNOTSUPP);
	} else {
		/* No queue pair that is left may be attached to anything. */
		expect(ibv_attach_mcast(rc, &group, 0) == EOPNOTSUPP);
	}
	expect(!ibv_destroy_qp(rc) && (!uc || !ibv_destroy_qp(uc)) &&
	       (!ud || !ibv_destroy_qp(ud)) && (!xrc || !ibv_destroy_qp(xrc)));
}

static void others(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
	};
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_mw *mw;

	errno = 0;
	srq = ibv_create_srq(pd, &attr);
	expect_offered(srq, has("srq"));
	expect(!srq || !ibv_destroy_srq(srq));
	errno = 0;
	xrcd = ibv_open_xrcd(context, &domain);
	expect_offered(xrcd, has("xrc"));
	expect(!xrcd || !ibv_close_xrcd(xrcd));
	errno = 0;
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	expect_offered(mw, has("windows"));
	expect(!mw || !ibv_dealloc_mw(mw));
}

static void attributes(void)
{
	struct ibv_device_attr_ex ex;
	const struct ibv_device_attr *a = &ex.orig_attr;
	const struct ibv_odp_caps *odp = &ex.odp_caps;

	expect(!ibv_query_device_ex(context, NULL, &ex));
	expect((a->max_ah > 0) == has("ud"));
	expect((a->max_mcast_grp > 0) == (has("ud") && has("multicast")));
	expect((a->max_total_mcast_qp_attach > 0) == (a->max_mcast_grp > 0));
	expect((a->max_mcast_qp_attach > 0) == (a->max_mcast_grp > 0));
	expect((a->max_srq > 0) == has("srq") && (a->max_srq_wr > 0) == has("srq"));
	expect((a->max_mw > 0) == has("windows"));
	expect(!!(a->device_cap_flags & IBV_DEVICE_XRC) == has("xrc"));
	expect(!!(a->device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) == has("windows"));
	expect(!!(a->device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == has("srq"));
	expect(!!odp->per_transport_caps.ud_odp_caps == has("ud"));
	expect(!!odp->per_transport_caps.uc_odp_caps == has("uc"));
	expect(!!ex.xrc_odp_caps == has("xrc"));
	/* What all adapters have. */
	expect(a->max_qp > 0 && a->max_qp_rd_atom > 0 && odp->per_transport_caps.rc_odp_caps);
}

int main(int argc, char **argv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	names = argc - 1;
	name = argv + 1;
	expect(list && list[0] && (context = ibv_open_device(list[0])));
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	expect(pd && cq);
	attributes();
	queue_pairs();
	others();
	expect(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
	ibv_free_device_list(list);
	return 0;
}

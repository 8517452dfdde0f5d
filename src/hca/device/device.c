/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices, their attributes and contexts. There are two, with one Ethernet port each: soft0
 * speaks RoCE v2, soft1 iWARP; BUSBAR_DEVICES says which of them programs see. Capability fields
 * tell what is implemented, zero elsewhere. As a port of a simulated fabric soft0 is of InfiniBand, and
 * what that makes different is in infiniband.c.
 */
#define LOG_ROOM "hca"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/device/adapter.h"
#include "hca/device/device.h"
#include "hca/device/infiniband.h"
#include "hca/event/async.h"
#include "hca/hca.h"
#include "hca/host/gid.h"
#include "hca/host/settings.h"
#include "hca/host/subnet.h"
#include "hca/limits.h"
#include "hca/memory/device_memory.h"
#include "hca/memory/domain.h"
#include "hca/memory/import.h"
#include "hca/object/context.h"
#include "hca/object/dm.h"
#include "hca/object/live.h"
#include "hca/object/quota.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/object/srq.h"
#include "hca/path/gsi.h"
#include "hca/qp/address.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "hca/share/process.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"
#include "util/wakeup.h"

#define DEVICES 2
#define VENDOR_ID 0xffffff /* no vendor */
#define VENDOR_PART_ID 0xb05ba
/* The kernel numbers its devices from 0; a program may see devices of both kinds. */
#define INDEX_BASE (1 << 20)

static struct hca_device devices[DEVICES];
static pthread_once_t devices_once = PTHREAD_ONCE_INIT;

/* Locally administered EUI-64 that stays the same on one host. */
static uint64_t guid_of(int index)
{
	char id[64] = "";
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	FILE *f = fopen("/etc/machine-id", "re");

	if (f) {
		if (!fgets(id, sizeof(id), f))
			id[0] = '\0';
		fclose(f);
	}
	if (!id[0])
		gethostname(id, sizeof(id) - 1);
	for (const char *c = id; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	hash = (hash & ~UINT64_C(0xff)) | (uint64_t)index;
	return (hash & ~(UINT64_C(3) << 56)) | UINT64_C(2) << 56;
}

/* What an RNIC does not have: it has connections over streams alone. */
static unsigned without_of_rnic(void)
{
	return HCA_WITHOUT_UD | HCA_WITHOUT_UC | HCA_WITHOUT_XRC | HCA_WITHOUT_MULTICAST |
	       HCA_WITHOUT_WINDOWS |
	       (hca_settings.rnic_extensions ?
			HCA_WITHOUT_ATOMIC_WRITE | HCA_WITHOUT_SEND_IMMEDIATE :
			HCA_WITHOUT_ATOMICS | HCA_WITHOUT_IMMEDIATE);
}

static void devices_init(void)
{
	hca_settings_init();
	clock_init();
	for (int i = 0; i < DEVICES; i++) {
		struct hca_device *d = &devices[i];

		d->index = i;
		d->guid = htobe64(guid_of(i));
		d->ibv.node_type = i == 0 ? IBV_NODE_CA : IBV_NODE_RNIC;
		d->ibv.transport_type = i == 0 ? IBV_TRANSPORT_IB : IBV_TRANSPORT_IWARP;
		d->without = hca_settings.without | (i == 0 ? 0 : without_of_rnic());
		snprintf(d->ibv.name, sizeof(d->ibv.name), "soft%d", i);
		snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name),
			 "uverbs-soft%d", i);
		/* The sysfs entries do not exist; these are the names that they would have. */
		snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path),
			 "/sys/class/infiniband_verbs/uverbs-soft%d", i);
		snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path),
			 "/sys/class/infiniband/soft%d", i);
	}
	if (hca_subnet_on() && hca_settings.devices & HCA_DEVICES_SOFT0 &&
	    hca_infiniband_init(&devices[0]))
		hca_settings.devices &= ~(unsigned)HCA_DEVICES_SOFT0;
}

int hca_devices(struct ibv_device ***list, int *count)
{
	struct ibv_device **l = calloc(DEVICES + 1, sizeof(*l));
	int n = 0;

	if (!l)
		return -ENOMEM;
	pthread_once(&devices_once, devices_init);
	for (int i = 0; i < DEVICES; i++)
		if (hca_settings.devices & (i == 0 ? HCA_DEVICES_SOFT0 : HCA_DEVICES_SOFT1))
			l[n++] = &devices[i].ibv;
	*list = l;
	*count = n;
	return 0;
}

void hca_devices_free(struct ibv_device **list)
{
	free(list);
}

const char *hca_device_name(uint32_t index)
{
	pthread_once(&devices_once, devices_init);
	return index < DEVICES ? devices[index].ibv.name : NULL;
}

bool hca_owns_device(const struct ibv_device *dev)
{
	return dev >= &devices[0].ibv && dev <= &devices[DEVICES - 1].ibv;
}

__be64 hca_device_guid(struct ibv_device *dev)
{
	return hca_device(dev)->guid;
}

int hca_device_index(struct ibv_device *dev)
{
	return INDEX_BASE + hca_device(dev)->index;
}

/* Takes what the device does not have out of the attributes. */
static void leave_out(struct ibv_device_attr *a, unsigned without)
{
	if (without & HCA_WITHOUT_UD)
		a->max_ah = 0;
	if (without & HCA_WITHOUT_XRC)
		a->device_cap_flags &= ~(unsigned)IBV_DEVICE_XRC;
	if (without & HCA_WITHOUT_MULTICAST)
		a->max_mcast_grp = a->max_mcast_qp_attach = a->max_total_mcast_qp_attach = 0;
	if (without & HCA_WITHOUT_SRQ) {
		a->max_srq = a->max_srq_wr = a->max_srq_sge = 0;
		a->device_cap_flags &= ~(unsigned)IBV_DEVICE_SRQ_RESIZE;
	}
	if (without & HCA_WITHOUT_WINDOWS) {
		a->max_mw = 0;
		a->device_cap_flags &= ~(unsigned)(IBV_DEVICE_MEM_WINDOW |
						   IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	}
	if (without & HCA_WITHOUT_ATOMICS)
		a->atomic_cap = IBV_ATOMIC_NONE;
}

int hca_device_query(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	struct hca_device *d = hca_context(ctx)->device;

	*attr = (struct ibv_device_attr){
		.fw_ver = "busbar",
		.node_guid = d->guid,
		.sys_image_guid = d->guid,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = ~UINT64_C(0xfff),
		.vendor_id = VENDOR_ID,
		.vendor_part_id = VENDOR_PART_ID,
		.hw_ver = 1,
		.max_qp = HCA_BLOCKS_PER_PROCESS * HCA_QPN_BLOCK_SIZE,
		.max_qp_wr = HCA_MAX_QP_WR,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD |
				    IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SYS_IMAGE_GUID |
				    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC |
				    IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = HCA_MAX_SGE,
		.max_sge_rd = HCA_MAX_SGE,
		.max_cq = HCA_MAX_CQ,
		.max_cqe = HCA_MAX_CQE,
		.max_mr = HCA_KEYS - 1,
		.max_mw = HCA_KEYS - 1, /* of the same table */
		.max_pd = HCA_MAX_PD,
		.max_qp_rd_atom = HCA_MAX_RD_ATOM,
		.max_res_rd_atom = 1 << 22,
		.max_qp_init_rd_atom = HCA_MAX_RD_ATOM,
		/* As adapters report. pci_atomic_caps says that these operations are atomic
		 * with the processor's instructions, too. */
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mcast_grp = HCA_MCAST_GROUPS,
		.max_mcast_qp_attach = HCA_MCAST_MEMBERS,
		.max_total_mcast_qp_attach = HCA_MCAST_MEMBERS,
		.max_ah = HCA_MAX_AH,
		.max_srq = HCA_MAX_SRQ,
		.max_srq_wr = HCA_MAX_QP_WR,
		.max_srq_sge = HCA_MAX_SGE,
		.max_pkeys = 1,
		.local_ca_ack_delay = 15,
		.phys_port_cnt = 1,
	};
	if (hca_subnet_on())
		hca_infiniband_device(attr);
	leave_out(attr, d->without);
	/* A message that finds no receive ends the connection. */
	if (hca_is_rnic(ctx))
		attr->device_cap_flags &= ~(unsigned)IBV_DEVICE_RC_RNR_NAK_GEN;
	return 0;
}

/* Writes the first `size` bytes of `from` into `to`, zero behind them. */
static void copy_sized(void *to, size_t size, const void *from, size_t from_size)
{
	memset(to, 0, size);
	memcpy(to, from, MIN(size, from_size));
}

/* Only in device_cap_flags_ex; <infiniband/verbs.h> has no name for the kernel's bit. */
#define CAP_ATOMIC_WRITE (UINT64_C(1) << 40)

/* All operations are supported on memory on demand. */
#define ODP_DATAGRAM \
	(IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV)
static const struct ibv_odp_caps odp_caps = {
	.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT,
	.per_transport_caps = {
		.rc_odp_caps = ODP_DATAGRAM | IBV_ODP_SUPPORT_WRITE |
			       IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC,
		/* Which has no shared receive queues. */
		.uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			       IBV_ODP_SUPPORT_WRITE,
		.ud_odp_caps = ODP_DATAGRAM,
	},
};

int hca_device_query_ex(struct ibv_context *ctx,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	const unsigned without = hca_without(ctx);
	struct ibv_device_attr_ex full;

	if (input && input->comp_mask)
		return -EINVAL;
	if (size < sizeof(full.orig_attr))
		return -EINVAL;
	memset(&full, 0, sizeof(full));
	hca_device_query(ctx, &full.orig_attr);
	/* The clock of clock_ticks(), in kHz. */
	full.completion_timestamp_mask = UINT64_MAX;
	full.hca_core_clock = clock_state.tick_hz / 1000;
	full.cq_mod_caps.max_cq_count = UINT16_MAX;
	full.cq_mod_caps.max_cq_period = UINT16_MAX;
	full.phys_port_cnt_ex = 1;
	full.device_cap_flags_ex = (uint32_t)full.orig_attr.device_cap_flags |
				   (without & (HCA_WITHOUT_ATOMICS | HCA_WITHOUT_ATOMIC_WRITE) ?
					    0 : CAP_ATOMIC_WRITE);
	full.odp_caps = odp_caps;
	if (without & HCA_WITHOUT_ATOMICS)
		full.odp_caps.per_transport_caps.rc_odp_caps &= ~(uint32_t)IBV_ODP_SUPPORT_ATOMIC;
	full.xrc_odp_caps = full.odp_caps.per_transport_caps.rc_odp_caps;
	if (without & HCA_WITHOUT_UD)
		full.odp_caps.per_transport_caps.ud_odp_caps = 0;
	if (without & HCA_WITHOUT_UC)
		full.odp_caps.per_transport_caps.uc_odp_caps = 0;
	if (without & HCA_WITHOUT_XRC)
		full.xrc_odp_caps = 0;
	full.max_dm_size = HCA_MAX_DM_BYTES;
	if (!(without & HCA_WITHOUT_ATOMICS)) {
		full.pci_atomic_caps.fetch_add = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
		full.pci_atomic_caps.compare_swap = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
	}
	copy_sized(attr, size, &full, sizeof(full));
	return 0;
}

/* Programs take it as path MTU, between hosts too, and no packet should leave in fragments just
 * because nobody chose. Inside of a host it matters to datagrams alone, which may be longer. */
static enum ibv_mtu active_mtu(void)
{
	if (hca_settings.mtu)
		return (enum ibv_mtu)hca_settings.mtu;
	return hca_gsi_exists() ? hca_port_network_mtu() : IBV_MTU_4096;
}

int hca_port_query(struct ibv_context *ctx, uint8_t port,
		   struct ibv_port_attr *attr, size_t size)
{
	const bool rnic = hca_is_rnic(ctx);
	const bool infiniband = !rnic && hca_settings.link_layer == HCA_LINK_INFINIBAND;
	const bool up = hca_port_is_up();
	/* The speed is that of shared memory: see event/port.h. */
	struct ibv_port_attr full = {
		.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = hca_settings.mtu ? (enum ibv_mtu)hca_settings.mtu : IBV_MTU_4096,
		.active_mtu = active_mtu(),
		.gid_tbl_len = rnic ? 1 : HCA_MAX_GIDS,
		.port_cap_flags = IBV_PORT_CM_SUP |
				  (infiniband || rnic ? 0 : IBV_PORT_IP_BASED_GIDS),
		.max_msg_sz = HCA_MAX_MSG_BYTES,
		.pkey_tbl_len = 1,
		.lid = HCA_PORT_LID,
		.max_vl_num = 1,
		.active_width = 2,  /* 4X */
		.active_speed = 32, /* EDR, 25 Gb/s per lane */
		.phys_state = up ? 5 : 3, /* LinkUp, Disabled */
		.link_layer = infiniband ? IBV_LINK_LAYER_INFINIBAND :
					   IBV_LINK_LAYER_ETHERNET,
		.flags = infiniband || rnic ? 0 : IBV_QPF_GRH_REQUIRED,
	};

	if (port != 1)
		return -EINVAL;
	if (hca_subnet_on())
		hca_infiniband_port(&full);
	copy_sized(attr, size, &full, sizeof(full));
	return 0;
}

int hca_gid_query(struct ibv_context *ctx, uint32_t port, uint32_t index,
		  struct ibv_gid_entry *entry)
{
	if (port != 1)
		return -EINVAL;
	if (!hca_is_rnic(ctx))
		return hca_gid_by_index(index, entry);
	if (index)
		return -EINVAL;
	*entry = (struct ibv_gid_entry){ .port_num = 1, .gid_type = IBV_GID_TYPE_IB };
	hca_gid_of_hardware(&entry->gid, &entry->ndev_ifindex);
	return 0;
}

ssize_t hca_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
		      size_t max)
{
	size_t n = 0;

	while (n < max && !hca_gid_query(ctx, 1, (uint32_t)n, &entries[n]))
		n++;
	return (ssize_t)n;
}

int hca_pkey_query(struct ibv_context *ctx, uint8_t port, int index,
		   __be16 *pkey)
{
	if (port == 1 && hca_subnet_on())
		return hca_infiniband_pkey(index, pkey);
	if (port != 1 || index != 0)
		return -EINVAL;
	*pkey = htobe16(0xffff);
	return 0;
}

int hca_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	if (port == 1 && hca_subnet_on())
		return hca_infiniband_pkey_index(pkey);
	return port == 1 && pkey == htobe16(0xffff) ? 0 : -EINVAL;
}

/* The verbs_context table returns positive errno values. */
static int op_query_port(struct ibv_context *ctx, uint8_t port,
			 struct ibv_port_attr *attr, size_t size)
{
	return -hca_port_query(ctx, port, attr, size);
}

static int op_query_device_ex(struct ibv_context *ctx,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr, size_t size)
{
	return -hca_device_query_ex(ctx, input, attr, size);
}

static int op_compat_query_device(struct ibv_context *ctx,
				  struct ibv_device_attr *attr)
{
	return -hca_device_query(ctx, attr);
}

static struct ibv_qp *op_create_qp_ex(struct ibv_context *ctx,
				      struct ibv_qp_init_attr_ex *attr)
{
	CANCEL_OFF;
	struct ibv_qp *qp;
	int ret = hca_qp_create(ctx, attr, &qp);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return qp;
}

static struct ibv_srq *op_create_srq_ex(struct ibv_context *ctx,
					struct ibv_srq_init_attr_ex *attr)
{
	CANCEL_OFF;
	struct ibv_srq *srq;
	int ret = hca_srq_create_ex(ctx, attr, &srq);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return srq;
}

static int op_get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	return -hca_srq_number(srq, number);
}

static struct ibv_xrcd *op_open_xrcd(struct ibv_context *ctx,
				     struct ibv_xrcd_init_attr *attr)
{
	CANCEL_OFF;
	struct ibv_xrcd *xrcd;
	int ret = hca_xrcd_open(ctx, attr, &xrcd);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return xrcd;
}

static int op_close_xrcd(struct ibv_xrcd *xrcd)
{
	CANCEL_OFF;
	return -hca_xrcd_close(xrcd);
}

static struct ibv_qp *op_open_qp(struct ibv_context *ctx,
				 struct ibv_qp_open_attr *attr)
{
	CANCEL_OFF;
	struct ibv_qp *qp;
	int ret = hca_qp_open(ctx, attr, &qp);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return qp;
}

/* The last reference was dropped. */
static void context_end(struct hca_context *ctx)
{
	struct ibv_context *ibctx = &ctx->verbs.context;

	pthread_mutex_lock(&hca_process.lock);
	list_remove(&ctx->entry);
	pthread_mutex_unlock(&hca_process.lock);
	hca_async_fini(ctx);
	close(ibctx->async_fd);
	close(ibctx->cmd_fd);
	pthread_mutex_destroy(&ibctx->mutex);
	if (ctx->forks == hca_process.forks)
		hca_process_close();
	free(ctx);
}

int hca_context_make(struct hca_device *device, int cmd_fd,
		     struct ibv_context **out)
{
	struct hca_context *ctx;
	struct verbs_context *v;
	int ret = hca_process_open();

	if (ret)
		return ret;
	ret = -ENOMEM;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		goto err_process;
	ctx->device = device;
	atomic_init(&ctx->references, 1);
	ctx->end = context_end;
	ctx->forks = hca_process.forks;
	hca_async_init(ctx);
	v = &ctx->verbs;
	v->sz = sizeof(*v);
	v->query_port = op_query_port;
	v->query_device_ex = op_query_device_ex;
	v->create_qp_ex = op_create_qp_ex;
	v->create_srq_ex = op_create_srq_ex;
	v->get_srq_num = op_get_srq_num;
	v->open_xrcd = op_open_xrcd;
	v->close_xrcd = op_close_xrcd;
	v->open_qp = op_open_qp;
	hca_cq_ex_ops_init(v);
	hca_domain_ops_init(v);
	hca_dm_ops_init(v);
	v->context.device = &device->ibv;
	v->context.num_comp_vectors = 1;
	v->context.cmd_fd = cmd_fd;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&v->context.mutex, NULL);
	v->context.ops = (struct ibv_context_ops){
		._compat_query_device = op_compat_query_device,
		.poll_cq = hca_poll_cq,
		.req_notify_cq = hca_req_notify_cq,
		.post_send = hca_post_send,
		.post_recv = hca_post_recv,
		.post_srq_recv = hca_post_srq_recv,
	};
	hca_memory_ops_init(v);
	v->context.async_fd = wakeup_open_counter();
	if (v->context.async_fd < 0) {
		ret = v->context.async_fd;
		goto err_ctx;
	}
	pthread_mutex_lock(&hca_process.lock);
	list_push(&hca_process.contexts, &ctx->entry);
	pthread_mutex_unlock(&hca_process.lock);
	hca_live_begin(&v->context, HCA_CONTEXT);
	*out = &v->context;
	return 0;

err_ctx:
	free(ctx);
err_process:
	hca_process_close();
	return ret;
}

int hca_context_open(struct ibv_device *dev, struct ibv_context **out)
{
	int ret, fd;

	if (!hca_owns_device(dev))
		return -ENODEV;
	fd = hca_cmd_fd_create();
	if (fd < 0)
		return fd;
	ret = hca_context_make(hca_device(dev), fd, out);
	if (ret)
		close(fd);
	return ret;
}

int hca_context_close(struct ibv_context *ibctx)
{
	struct hca_context *ctx = hca_context(ibctx);

	if (!hca_live(ibctx, HCA_CONTEXT))
		return -EINVAL;
	hca_live_end(ibctx, HCA_CONTEXT);
	if (atomic_load(&ctx->references) > 1)
		log_debug("device %s closed with %d objects left",
			  ctx->device->ibv.name,
			  atomic_load(&ctx->references) - 1);
	hca_context_put(ctx);
	return 0;
}

bool hca_context_failed(struct ibv_context *ctx)
{
	return hca_context_check(ctx);
}

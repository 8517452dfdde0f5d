/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake_hca.h. */
#include "fake_hca.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/hca.h"
#include "hca/host/settings.h"
#include "hca/run/progress.h"

struct fake_hca fake_hca = {
	.device = { .node_type = IBV_NODE_CA, .name = "fake0" },
	.context = { .device = &fake_hca.device, .num_comp_vectors = 1 },
	.pd = { .context = &fake_hca.context },
	.mr = { .context = &fake_hca.context, .pd = &fake_hca.pd },
	.channel = { .context = &fake_hca.context },
	.cq = { .context = &fake_hca.context },
	.qp = { .context = &fake_hca.context, .pd = &fake_hca.pd },
	.srq = { .context = &fake_hca.context, .pd = &fake_hca.pd },
	.ah = { .context = &fake_hca.context, .pd = &fake_hca.pd },
	.gid_count = 3,
};

/* Only the fake adapter, no system library. */
struct hca_settings hca_settings = { .devices = HCA_DEVICES_SOFT0 };

void hca_settings_init(void)
{
}

static int answer(void)
{
	fake_hca.calls++;
	return fake_hca.answer;
}

#define GIVE(out, object)                  \
	do {                               \
		int ret_ = answer();       \
		if (ret_ == 0)             \
			*(out) = (object); \
		return ret_;               \
	} while (0)

int hca_devices(struct ibv_device ***list, int *count)
{
	int ret = answer();

	if (ret)
		return ret;
	*list = calloc(2, sizeof(**list));
	if (!*list)
		return -ENOMEM;
	(*list)[0] = &fake_hca.device;
	*count = 1;
	return 0;
}

void hca_devices_free(struct ibv_device **list)
{
	free(list);
}

bool hca_owns_device(const struct ibv_device *dev)
{
	return dev == &fake_hca.device;
}

__be64 hca_device_guid(struct ibv_device *dev)
{
	return 0x1122334455667788;
}

int hca_device_index(struct ibv_device *dev)
{
	return 7;
}

int hca_context_open(struct ibv_device *dev, struct ibv_context **out)
{
	GIVE(out, &fake_hca.context);
}

int hca_context_close(struct ibv_context *ctx)
{
	return answer();
}

bool hca_owns_cmd_fd(int cmd_fd)
{
	return false;
}

int hca_context_import(int cmd_fd, struct ibv_context **out)
{
	GIVE(out, &fake_hca.context);
}

int hca_pd_import(struct ibv_context *ctx, uint32_t handle, struct ibv_pd **out)
{
	GIVE(out, &fake_hca.pd);
}

void hca_pd_unimport(struct ibv_pd *pd)
{
}

int hca_mr_import(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **out)
{
	GIVE(out, &fake_hca.mr);
}

void hca_mr_unimport(struct ibv_mr *mr)
{
}

int hca_dm_import(struct ibv_context *ctx, uint32_t handle, struct ibv_dm **out)
{
	return -EOPNOTSUPP;
}

void hca_dm_unimport(struct ibv_dm *dm)
{
}

int hca_device_query(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	return answer();
}

int hca_device_query_ex(struct ibv_context *ctx,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size)
{
	return answer();
}

int hca_port_query(struct ibv_context *ctx, uint8_t port,
		   struct ibv_port_attr *attr, size_t size)
{
	int ret = answer();

	if (ret == 0) {
		fake_hca.port_attr_size = size;
		memset(attr, 0x55, size);
	}
	return ret;
}

static void gid_entry_fill(struct ibv_gid_entry *entry, uint32_t index)
{
	memset(entry, 0, sizeof(*entry));
	memset(&entry->gid, 0x40 + (int)index, sizeof(entry->gid));
	entry->gid_index = index;
	entry->port_num = 1;
	entry->gid_type = IBV_GID_TYPE_ROCE_V2;
	entry->ndev_ifindex = 9;
}

int hca_gid_query(struct ibv_context *ctx, uint32_t port, uint32_t index,
		  struct ibv_gid_entry *entry)
{
	int ret = answer();

	if (ret == 0)
		gid_entry_fill(entry, index);
	return ret;
}

ssize_t hca_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
		      size_t max)
{
	int ret = answer();
	size_t i, n = (size_t)fake_hca.gid_count;

	if (ret)
		return ret;
	if (n > max)
		n = max;
	for (i = 0; i < n; i++)
		gid_entry_fill(&entries[i], (uint32_t)i);
	return (ssize_t)n;
}

int hca_pkey_query(struct ibv_context *ctx, uint8_t port, int index,
		   __be16 *pkey)
{
	GIVE(pkey, 0xffff);
}

int hca_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	int ret = answer();

	return ret ? ret : 5;
}

int hca_pd_alloc(struct ibv_context *ctx, struct ibv_pd **out)
{
	GIVE(out, &fake_hca.pd);
}

int hca_pd_dealloc(struct ibv_pd *pd)
{
	return answer();
}

int hca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		    unsigned access, struct ibv_mr **out)
{
	fake_hca.mr_iova = iova;
	fake_hca.mr_access = access;
	GIVE(out, &fake_hca.mr);
}

int hca_mr_register_file(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			 int fd, unsigned access, struct ibv_mr **out)
{
	fake_hca.mr_iova = iova;
	fake_hca.mr_access = access;
	GIVE(out, &fake_hca.mr);
}

bool hca_mr_may_change(struct ibv_mr *mr)
{
	return mr != NULL;
}

int hca_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
		      void *addr, size_t length, int access)
{
	fake_hca.rereg_access = access;
	return answer();
}

int hca_mr_deregister(struct ibv_mr *mr)
{
	return answer();
}

int hca_channel_create(struct ibv_context *ctx, struct ibv_comp_channel **out)
{
	GIVE(out, &fake_hca.channel);
}

int hca_channel_destroy(struct ibv_comp_channel *ch)
{
	return answer();
}

int hca_channel_get_event(struct ibv_comp_channel *ch, struct ibv_cq **cq,
			  void **cq_context)
{
	GIVE(cq, &fake_hca.cq);
}

int hca_cq_create(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
		  struct ibv_cq **out)
{
	fake_hca.cq_attr = *attr;
	GIVE(out, &fake_hca.cq);
}

int hca_cq_resize(struct ibv_cq *cq, int cqe)
{
	return answer();
}

int hca_cq_destroy(struct ibv_cq *cq)
{
	return answer();
}

void hca_cq_ack_events(struct ibv_cq *cq, unsigned count)
{
	answer();
}

int hca_qp_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		  struct ibv_qp **out)
{
	fake_hca.qp_attr = *attr;
	attr->cap.max_send_wr = 4711;
	GIVE(out, &fake_hca.qp);
}

int hca_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	return answer();
}

int hca_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	return answer();
}

int hca_qp_destroy(struct ibv_qp *qp)
{
	return answer();
}

struct ibv_qp_ex *hca_qp_to_ex(struct ibv_qp *qp)
{
	answer();
	return NULL;
}

int hca_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr,
		  struct ibv_ah **out)
{
	GIVE(out, &fake_hca.ah);
}

int hca_ah_destroy(struct ibv_ah *ah)
{
	return answer();
}

int hca_ah_init_from_wc(struct ibv_context *ctx, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	return answer();
}

int hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr,
		   struct ibv_srq **out)
{
	GIVE(out, &fake_hca.srq);
}

int hca_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	return answer();
}

int hca_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return answer();
}

int hca_srq_destroy(struct ibv_srq *srq)
{
	return answer();
}

int hca_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return answer();
}

int hca_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return answer();
}

int hca_async_event_get(struct ibv_context *ctx, struct ibv_async_event *event)
{
	return answer();
}

void hca_async_event_ack(struct ibv_async_event *event)
{
	answer();
}

int progress_hold(void)
{
	return answer();
}

void progress_release(void)
{
}

int progress_watch(int fd, uint32_t events,
		   void (*fn)(void *arg, uint32_t events), void *arg)
{
	return answer();
}

int progress_rewatch(int fd, uint32_t events)
{
	return answer();
}

void progress_unwatch(int fd)
{
}

void progress_timer_init(struct progress_timer *t,
			 void (*fn)(struct progress_timer *t))
{
}

void progress_timer_arm(struct progress_timer *t, uint64_t deadline_ns)
{
}

void progress_timer_cancel(struct progress_timer *t)
{
}

bool progress_is_self(void)
{
	return false;
}

void progress_kick(void)
{
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software adapter's verbs, as the verbs room calls them.
 *
 * Objects are handed out as the public structures of <infiniband/verbs.h>; the
 * functions below own the structures around them. All return 0 or a negative
 * errno, and write their outputs only on success. Meaning, ownership and errors are those
 * in the manual page of the ibv_ function of the same name; the verbs room only converts
 * the result to that page's convention.
 */
#ifndef HCA_HCA_H
#define HCA_HCA_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

/* NULL-terminated array of devices, in memory that hca_devices_free() frees.
 * The devices themselves live as long as the process. */
int hca_devices(struct ibv_device ***list, int *count);
void hca_devices_free(struct ibv_device **list);
bool hca_owns_device(const struct ibv_device *dev);
__be64 hca_device_guid(struct ibv_device *dev);
int hca_device_index(struct ibv_device *dev);

int hca_context_open(struct ibv_device *dev, struct ibv_context **out);
int hca_context_close(struct ibv_context *ctx);
/* Another context of the device whose context has this descriptor, or one that was
 * duplicated from it; the new context closes it at its end. -EOPNOTSUPP: it belongs to
 * another process; -EINVAL: to no context of this adapter. */
int hca_context_import(int cmd_fd, struct ibv_context **out);
/* Does the descriptor belong to a context of this adapter, in any process? */
bool hca_owns_cmd_fd(int cmd_fd);
/* Has the context's device failed (device/fail.h)? */
bool hca_context_failed(struct ibv_context *ctx);

int hca_device_query(struct ibv_context *ctx, struct ibv_device_attr *attr);
/* Writes at most `size` bytes of `attr`. */
int hca_device_query_ex(struct ibv_context *ctx,
			const struct ibv_query_device_ex_input *input,
			struct ibv_device_attr_ex *attr, size_t size);
int hca_port_query(struct ibv_context *ctx, uint8_t port,
		   struct ibv_port_attr *attr, size_t size);
int hca_gid_query(struct ibv_context *ctx, uint32_t port, uint32_t index,
		  struct ibv_gid_entry *entry);
/* Returns the number of valid entries (at most `max`) or a negative errno. */
ssize_t hca_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
		      size_t max);
int hca_pkey_query(struct ibv_context *ctx, uint8_t port, int index,
		   __be16 *pkey);
int hca_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey);

int hca_pd_alloc(struct ibv_context *ctx, struct ibv_pd **out);
int hca_pd_dealloc(struct ibv_pd *pd);
/* Further handles of objects of this process; -EINVAL: there is no such handle. They
 * hold a reference to the domain or device memory. */
int hca_pd_import(struct ibv_context *ctx, uint32_t handle, struct ibv_pd **out);
void hca_pd_unimport(struct ibv_pd *pd);
int hca_mr_import(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **out);
void hca_mr_unimport(struct ibv_mr *mr);
int hca_dm_import(struct ibv_context *ctx, uint32_t handle, struct ibv_dm **out);
void hca_dm_unimport(struct ibv_dm *dm);

int hca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
		    unsigned access, struct ibv_mr **out);
/* Bytes [offset, offset + length) of a memory file (hca_region_adopt()), which is kept open and
 * mapped until the end of the region. */
int hca_mr_register_file(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
			 int fd, unsigned access, struct ibv_mr **out);
/* Is it a region that re-registration can change? `mr` may be no region at all. */
bool hca_mr_may_change(struct ibv_mr *mr);
/* Changes all or nothing. Of a region that may change; `flags` are known ones. */
int hca_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
		      void *addr, size_t length, int access);
int hca_mr_deregister(struct ibv_mr *mr);
int hca_mr_alloc_null(struct ibv_pd *pd, struct ibv_mr **out);
int hca_mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		  uint32_t flags, const struct ibv_sge *sge, uint32_t count);

int hca_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **out);
/* Posts the binding of a window of type 1. */
int hca_mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int hca_mw_dealloc(struct ibv_mw *mw);
/* Fills in the entries of memory objects in a context's tables. */
void hca_memory_ops_init(struct verbs_context *ctx);

int hca_channel_create(struct ibv_context *ctx, struct ibv_comp_channel **out);
int hca_channel_destroy(struct ibv_comp_channel *ch);
/* Blocks unless the descriptor is O_NONBLOCK; a cancellation point. */
int hca_channel_get_event(struct ibv_comp_channel *ch, struct ibv_cq **cq,
			  void **cq_context);

int hca_cq_create(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr,
		  struct ibv_cq **out);
int hca_cq_resize(struct ibv_cq *cq, int cqe);
int hca_cq_modify(struct ibv_cq *cq, const struct ibv_modify_cq_attr *attr);
int hca_cq_destroy(struct ibv_cq *cq);
void hca_cq_ack_events(struct ibv_cq *cq, unsigned count);

/* `attr->cap` is updated to what was granted, on success. */
int hca_qp_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		  struct ibv_qp **out);
int hca_qp_modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int hca_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init);
int hca_qp_destroy(struct ibv_qp *qp);
struct hca_stream;
/* Attaches a connection (path/stream.h) to the QP of an RNIC, in INIT, which goes to RTS. On success
 * the descriptor is the adapter's. -EINVAL: there is no such QP, or not in this state. */
int hca_stream_attach(uint32_t qpn, const struct hca_stream *stream);
/* Both concern the stream with this hca_stream.arg; if the QP is gone, or has another one, they do
 * nothing. The first disconnects in order: what was posted is sent, then the end. -ENOTCONN: it has
 * no connection. Behind the second one hca_stream.tell is not called any more, nor running. */
int hca_stream_close(uint32_t qpn, const void *arg);
void hca_stream_forget(uint32_t qpn, const void *arg);
/* Does this QP exist, with this number? `qp` is not dereferenced. */
bool hca_qp_exists(const struct ibv_qp *qp, uint32_t qpn);
struct ibv_qp_ex *hca_qp_to_ex(struct ibv_qp *qp); /* NULL: not extended */
/* Another handle of an XRC target QP of this process. */
int hca_qp_open(struct ibv_context *ctx, const struct ibv_qp_open_attr *attr,
		struct ibv_qp **out);

int hca_xrcd_open(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *attr,
		  struct ibv_xrcd **out);
int hca_xrcd_close(struct ibv_xrcd *xrcd);

int hca_ah_create(struct ibv_pd *pd, struct ibv_ah_attr *attr,
		  struct ibv_ah **out);
int hca_ah_destroy(struct ibv_ah *ah);
/* Address vector of the sender of a received datagram. */
int hca_ah_init_from_wc(struct ibv_context *ctx, uint8_t port,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr);

int hca_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr,
		   struct ibv_srq **out);
int hca_srq_create_ex(struct ibv_context *ctx,
		      struct ibv_srq_init_attr_ex *attr, struct ibv_srq **out);
/* -EINVAL for an SRQ that is not of type XRC: it has no number. */
int hca_srq_number(struct ibv_srq *srq, uint32_t *number);
int hca_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int hca_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int hca_srq_destroy(struct ibv_srq *srq);

int hca_mcast_attach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int hca_mcast_detach(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

int hca_async_event_get(struct ibv_context *ctx, struct ibv_async_event *event);
void hca_async_event_ack(struct ibv_async_event *event);
/* Is it an event of a QP, of an SRQ? */
static inline bool hca_event_of_qp(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return true;
	default:
		return false;
	}
}

static inline bool hca_event_of_srq(const struct ibv_async_event *e)
{
	return e->event_type == IBV_EVENT_SRQ_LIMIT_REACHED ||
	       e->event_type == IBV_EVENT_SRQ_ERR;
}

#endif

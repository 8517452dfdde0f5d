/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that make contexts, queue pairs and completion queues: what they made is heard. */
#include "preload/data.h"

#include <errno.h>
#include <stddef.h>

#include "preload/build.h"
#include "preload/listener.h"
#include "preload/poll.h"
#include "preload/post.h"
#include "preload/real.h"
#include "preload/record.h"
#include "preload/saved.h"

#define PRELOAD_EXPORT __attribute__((visibility("default")))
#define HAS(verbs, member) \
	((verbs)->sz >= sizeof(*(verbs)) - offsetof(struct verbs_context, member) && (verbs)->member)

PRELOAD_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device);
PRELOAD_EXPORT struct ibv_context *ibv_import_device(int cmd_fd);
PRELOAD_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
PRELOAD_EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
				struct ibv_qp_init_attr *init);
PRELOAD_EXPORT int ibv_destroy_qp(struct ibv_qp *qp);

/* ---- queue pairs ---- */

static struct ibv_qp *made(struct ibv_qp *qp, bool completes_all, uint32_t more_send_wr)
{
	struct record *r = qp ? record_make(qp) : NULL;

	if (r) {
		r->completes_all = completes_all;
		r->more_send_wr = more_send_wr;
		preload_listener.qp_made(qp, completes_all);
	}
	return qp;
}

/* Both functions' attributes begin alike. `make` gets them with the capacities that the listener
 * asks for, or else with the program's. */
static struct ibv_qp *make_qp(struct ibv_qp *(*make)(void *with, void *attr), void *with, void *attr)
{
	struct ibv_qp_init_attr *asked = attr;
	const struct ibv_qp_cap own = asked->cap;
	bool all = asked->sq_sig_all;
	struct ibv_qp *qp = NULL;
	uint32_t more;

	preload_listener.qp_asks(asked, &asked->cap);
	more = asked->cap.max_send_wr - own.max_send_wr;
	if (more)
		qp = make(with, attr);
	if (qp) {
		asked->cap.max_send_wr -= more;
		return made(qp, all, more);
	}
	asked->cap = own;
	return made(make(with, attr), all, 0);
}

static struct ibv_qp *make_plain(void *pd, void *attr)
{
	struct ibv_qp *(*real)(struct ibv_pd *, struct ibv_qp_init_attr *) =
		real_find("ibv_create_qp", "IBVERBS_1.1");

	return real(pd, attr);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return make_qp(make_plain, pd, attr);
}

static struct ibv_qp *make_extended(void *context, void *attr)
{
	return saved_find(context)->verbs.create_qp_ex(context, attr);
}

static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_ex *(*to_ex)(struct ibv_qp *) = real_find("ibv_qp_to_qp_ex", "IBVERBS_1.6");
	struct ibv_qp *qp = make_qp(make_extended, context, attr);
	struct ibv_qp_ex *ex = NULL;

	if (qp && to_ex && attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		ex = to_ex(qp);
	if (ex)
		build_hear(ex);
	return qp;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int, struct ibv_qp_init_attr *) =
		real_find("ibv_query_qp", "IBVERBS_1.1");
	uint32_t more = preload_more_send_wr(qp);
	int ret = real(qp, attr, mask, init);

	if (ret || init->cap.max_send_wr <= more)
		return ret;
	/* Not every adapter fills in what was not asked for. */
	if (attr->cap.max_send_wr == init->cap.max_send_wr)
		attr->cap.max_send_wr -= more;
	init->cap.max_send_wr -= more;
	return ret;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	int (*real)(struct ibv_qp *) = real_find("ibv_destroy_qp", "IBVERBS_1.1");
	const struct record *r = record_of(qp);
	int ret;

	if (!r)
		return real(qp);
	preload_listener.qp_goes(qp);
	ret = real(qp);
	if (ret)
		preload_listener.qp_made(qp, r->completes_all);
	return ret;
}

/* ---- completion queues and contexts ---- */

/* The listener has to know of which queue pair a completion is. */
static struct ibv_cq_ex *create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct ibv_cq_ex *(*real)(struct ibv_context *, struct ibv_cq_init_attr_ex *) =
		saved_find(context)->verbs.create_cq_ex;
	const uint64_t own_flags = attr->wc_flags;
	struct ibv_cq_ex *cq;

	attr->wc_flags |= IBV_WC_EX_WITH_QP_NUM;
	cq = real(context, attr);
	attr->wc_flags = own_flags;
	if (!cq)
		cq = real(context, attr);
	if (cq)
		poll_hear(cq);
	return cq;
}

/* The context has just been opened: no other thread uses it yet. */
static struct ibv_context *hear(struct ibv_context *context)
{
	struct verbs_context *verbs = context ? verbs_get_ctx(context) : NULL;

	if (!context || !saved_keep_context(context))
		return context;
	context->ops.post_send = post_heard;
	context->ops.poll_cq = poll_heard;
	if (verbs && HAS(verbs, create_qp_ex))
		verbs->create_qp_ex = create_qp_ex;
	if (verbs && HAS(verbs, create_cq_ex))
		verbs->create_cq_ex = create_cq_ex;
	return context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *) =
		real_find("ibv_open_device", "IBVERBS_1.1");

	return hear(real(device));
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *(*real)(int) = real_find("ibv_import_device", "IBVERBS_1.10");

	if (!real) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return hear(real(cmd_fd));
}

/* ---- the listener ---- */

#define TAKE(member) \
	if (listener->member) \
		preload_listener.member = listener->member

/* Here, so that a library which listens has the functions above. */
void preload_listen(const struct preload_listener *listener)
{
	TAKE(posting);
	TAKE(refused);
	TAKE(completion);
	TAKE(qp_asks);
	TAKE(qp_made);
	TAKE(qp_goes);
}

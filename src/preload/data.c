/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that make contexts, queue pairs and completion queues: what they made is heard. */
#include "preload/data.h"

#include <errno.h>
#include <stddef.h>

#include "preload/cq.h"
#include "preload/hear.h"
#include "preload/listener.h"
#include "preload/real.h"
#include "preload/record.h"
#include "preload/saved.h"

#define PRELOAD_EXPORT __attribute__((visibility("default")))
#define HAS(verbs, member) \
	((verbs)->sz >= sizeof(*(verbs)) - offsetof(struct verbs_context, member) && (verbs)->member)

PRELOAD_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device);
PRELOAD_EXPORT struct ibv_context *ibv_import_device(int cmd_fd);
/* A library may have its own instead; see data.h. */
__attribute__((weak)) PRELOAD_EXPORT int ibv_close_device(struct ibv_context *context);
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
		hear_qp(ex);
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
	struct record *r = record_of(qp);
	uint32_t more = r ? r->more_send_wr : 0;
	int ret;

	if (!r)
		return real(qp);
	preload_listener.qp_goes(qp);
	hear_goes(qp);
	/* The next one at the address may be unknown. */
	r->more_send_wr = 0;
	ret = real(qp);
	if (!ret)
		return 0;
	hear_stays(qp);
	made(qp, r->completes_all, more);
	return ret;
}

/* ---- domains ---- */

static struct ibv_pd *alloc_parent_domain(struct ibv_context *context,
					  struct ibv_parent_domain_init_attr *attr)
{
	struct ibv_pd *pd = saved_find(context)->verbs.alloc_parent_domain(context, attr);
	struct saved *s = pd ? saved_make(pd) : NULL;

	if (s)
		s->one_thread = attr->td != NULL;
	return pd;
}

bool preload_may_post(const struct ibv_qp *qp)
{
	return !saved_find(qp->pd)->one_thread;
}

/* ---- contexts ---- */

/* The context has just been opened: no other thread uses it yet. */
static struct ibv_context *opened(struct ibv_context *context)
{
	struct verbs_context *verbs = context ? verbs_get_ctx(context) : NULL;

	if (!context || !saved_keep_context(context))
		return context;
	hear_context(context);
	if (verbs && HAS(verbs, create_qp_ex))
		verbs->create_qp_ex = create_qp_ex;
	if (verbs && HAS(verbs, alloc_parent_domain))
		verbs->alloc_parent_domain = alloc_parent_domain;
	if (verbs && HAS(verbs, create_cq_ex))
		verbs->create_cq_ex = cq_create_ex;
	return context;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*real)(struct ibv_device *) =
		real_find("ibv_open_device", "IBVERBS_1.1");

	return opened(real(device));
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *(*real)(int) = real_find("ibv_import_device", "IBVERBS_1.10");

	if (!real) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return opened(real(cmd_fd));
}

int ibv_close_device(struct ibv_context *context)
{
	int (*real)(struct ibv_context *) = real_find("ibv_close_device", "IBVERBS_1.1");
	int ret;

	preload_listener.context_goes(context);
	hear_goes(context);
	ret = real(context);
	if (ret)
		hear_stays(context);
	return ret;
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
	TAKE(cq_asks);
	TAKE(qp_made);
	TAKE(qp_goes);
	TAKE(context_goes);
	preload_listener.later = listener->later;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What an identifier does, over streams of iWARP. */
#include <errno.h>
#include <stdlib.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "rdmacm/device/device.h"
#include "rdmacm/mpa/mpa.h"
#include "rdmacm/qp/qp.h"
#include "verbs/private.h"

#define NSEC_PER_MSEC UINT64_C(1000000)

static int find_way(bool local)
{
	if (!cma_devices_have(IBV_TRANSPORT_IWARP))
		return -ENETUNREACH;
	return local ? 0 : 1;
}

static size_t room(const struct cma_id *id, enum cma_message message)
{
	(void)id;
	(void)message;
	return MPA_PRIVATE_MAX;
}

static int connect_to(struct cma_id *id)
{
	const struct rdma_addr *a = &id->pub.route.addr;
	struct mpa_side *s = mpa_side_of(id);
	struct iwarp_setup_params p;
	union ibv_gid gid;
	int ret;

	cma_addr_to_gid(&a->src_addr, &gid);
	if (!busbar_network_allows(&gid))
		return -ENETUNREACH;
	mpa_params(&p, true);
	p.ird = id->conn.responder_resources;
	p.ord = id->conn.initiator_depth;
	/* A READ as the first message takes one of them, also where the program wants none. */
	if (p.peer_to_peer && p.rtr == IWARP_RTR_READ)
		p.ord = MAX(p.ord, 1);
	p.private_data = id->conn.private_data;
	p.private_bytes = id->conn.private_len;
	ret = mpa_call_open(&s->call, &a->src_addr, &a->dst_addr, &p,
			    cma_settings.timeout_ms * NSEC_PER_MSEC);
	if (ret)
		return ret;
	s->state = MPA_CALLING;
	if (s->call.result)
		mpa_called_back(s);
	mpa_side_update(s);
	return 0;
}

static int listen_on(struct cma_id *id)
{
	return mpa_listen(mpa_side_of(id));
}

static int accept_check(const struct cma_id *id)
{
	return mpa_side_of(id)->state == MPA_CALLED ? 0 : -EINVAL;
}

/* 0; -ECONNRESET: the caller has gone; -EPROTO: it has sent more before the reply. */
static int check_caller(int fd)
{
	uint8_t byte;
	ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n > 0)
		return -EPROTO;
	return n < 0 && errno == EAGAIN ? 0 : -ECONNRESET;
}

/* Sends the reply, for which a new connection always has room. */
static int reply(struct mpa_side *s)
{
	struct cma_id *id = s->id;
	int ret = check_caller(s->call.fd);

	if (!ret)
		ret = iwarp_setup_accept(&s->call.setup, id->conn.responder_resources,
					 id->conn.initiator_depth, id->conn.private_data,
					 id->conn.private_len);

	if (ret)
		return ret;
	mpa_call_step(&s->call);
	if (s->call.setup.state == IWARP_SETUP_DONE)
		return 0;
	return s->call.result ? s->call.result : -ECONNRESET;
}

static int accept_request(struct cma_id *id)
{
	struct mpa_side *s = mpa_side_of(id);
	int ret;

	cma_qp_enter(id);
	pthread_mutex_lock(&id->lock);
	ret = s->state == MPA_CALLED ? reply(s) : -EINVAL;
	if (!ret) {
		ret = mpa_attach(s);
	} else if (s->state == MPA_CALLED) {
		mpa_call_close(&s->call);
		s->state = MPA_ENDED;
	}
	pthread_mutex_unlock(&id->lock);
	cma_qp_leave(id);
	if (ret)
		cma_qp_fail(id);
	return ret;
}

static int reject(struct cma_id *id, bool for_ece)
{
	struct mpa_side *s = mpa_side_of(id);
	int ret;

	(void)for_ece;
	if (s->state != MPA_CALLED)
		return -EINVAL;
	ret = iwarp_setup_reject(&s->call.setup, id->conn.private_data, id->conn.private_len);
	if (ret)
		return ret;
	mpa_call_step(&s->call);
	mpa_call_close(&s->call);
	s->state = MPA_ENDED;
	return 0;
}

/* The queue pair is ready when the program has taken the event of the reply. */
static int establish(struct cma_id *id)
{
	return mpa_side_of(id)->state == MPA_ATTACHED ? 0 : -EINVAL;
}

static int notify(struct cma_id *id)
{
	return establish(id);
}

/* Another thread may be about to destroy the queue pair. */
static void close_stream(struct mpa_side *s)
{
	struct cma_id *id = s->id;

	cma_qp_enter(id);
	if (id->pub.qp || s->qpn != id->qpn)
		busbar_stream_close(s->qpn, s);
	cma_qp_leave(id);
}

static int disconnect(struct cma_id *id)
{
	struct mpa_side *s = mpa_side_of(id);
	int ret;

	pthread_mutex_lock(&id->lock);
	ret = s->state == MPA_ATTACHED ? 0 : s->state == MPA_ENDED ? -EALREADY : -EINVAL;
	pthread_mutex_unlock(&id->lock);
	if (!ret)
		close_stream(s);
	if (ret != -EINVAL)
		cma_qp_fail(id);
	return ret;
}

/* A queue pair is ready when it has its stream; programs that apply these attributes change
 * nothing. */
static int qp_attr(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	*mask = 0;
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
		attr->port_num = id->pub.port_num;
		attr->pkey_index = 0;
		/* Once it has its stream the attributes are those of the connection. */
		*mask = IBV_QP_ACCESS_FLAGS | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_STATE;
		return 0;
	case IBV_QPS_RTR:
	case IBV_QPS_RTS:
		return 0;
	default:
		return -EINVAL;
	}
}

/* The lock is held, or no other thread knows the identifier. */
static void end(struct mpa_side *s)
{
	if (s->state == MPA_CALLED && !iwarp_setup_reject(&s->call.setup, NULL, 0))
		mpa_call_step(&s->call);
	mpa_side_unwatch(s);
	mpa_call_close(&s->call);
	mpa_unlisten(s);
	s->state = MPA_ENDED;
}

/* On the progress thread: no callback runs. */
static void side_remove(struct cma_id *id)
{
	struct mpa_side *s = mpa_side_of(id);

	if (s->listen_fd >= 0)
		busbar_progress_unwatch_async(s->listen_fd);
	end(s);
}

static void side_close(struct cma_id *id)
{
	struct mpa_side *s = mpa_side_of(id);
	bool attached;

	mpa_side_settle(s);
	if (s->listen_fd >= 0)
		busbar_progress_unwatch(s->listen_fd);
	busbar_progress_timer_cancel(&s->timer);
	mpa_callers_settle(s);
	pthread_mutex_lock(&id->lock);
	attached = s->state == MPA_ATTACHED;
	end(s);
	pthread_mutex_unlock(&id->lock);
	if (!s->qpn)
		return;
	busbar_stream_forget(s->qpn, s);
	if (attached)
		busbar_stream_close(s->qpn, s);
}

/* ---- all of them ---- */

static pthread_mutex_t sides_lock = PTHREAD_MUTEX_INITIALIZER;
static struct list sides = { &sides, &sides };

static int side_open(struct cma_id *id)
{
	int ret = mpa_side_open(id);

	if (ret)
		return ret;
	pthread_mutex_lock(&sides_lock);
	list_push(&sides, &mpa_side_of(id)->entry);
	pthread_mutex_unlock(&sides_lock);
	return 0;
}

static void side_free(struct cma_id *id)
{
	if (!mpa_side_of(id))
		return;
	pthread_mutex_lock(&sides_lock);
	list_remove(&mpa_side_of(id)->entry);
	pthread_mutex_unlock(&sides_lock);
	free(mpa_side_of(id));
}

static const struct cma_connector connector = {
	.transport = IBV_TRANSPORT_IWARP,
	.find_way = find_way,
	.open = side_open,
	.room = room,
	.connect = connect_to,
	.listen = listen_on,
	.accept_check = accept_check,
	.accept = accept_request,
	.reject = reject,
	.establish = establish,
	.notify = notify,
	.disconnect = disconnect,
	.qp_attr = qp_attr,
	.remove = side_remove,
	.close = side_close,
	.free = side_free,
};

/* Otherwise peers would not see the end of the parent while the child lives. */
static void sides_forked(void)
{
	struct list *entry;

	pthread_mutex_init(&sides_lock, NULL);
	while ((entry = list_pop(&sides)))
		mpa_side_forked(list_entry(entry, struct mpa_side, entry));
}

__attribute__((constructor)) static void connector_load(void)
{
	pthread_atfork(NULL, NULL, sides_forked);
	cma_connectors[CMA_CONNECTOR_MPA] = &connector;
}

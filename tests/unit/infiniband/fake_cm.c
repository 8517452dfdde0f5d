/* SPDX-License-Identifier: BSD-2-Clause */
/* See fake_cm.h. One lock for everything; no speed is wanted here. */
#include <arpa/inet.h>
#include <busbar/rdma_cma.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake_cm.h"
#include "util/container_of.h"

#define EVENTS 64
#define COMPLETIONS 4096

struct fake_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[COMPLETIONS];
	unsigned first, count;
	bool armed;
	unsigned unacked;
};

struct fake_qp {
	struct ibv_qp qp;
	uint64_t receives[COMPLETIONS]; /* open ones */
	unsigned receive_count;
	bool error;
};

struct fake_id {
	struct rdma_cm_id id;
	bool listens, connected;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_context contexts[2];
static struct ibv_device devices[2] = { { .name = "fake0" },
					{ .name = "fake1" } };
static enum fake_peer peer;
static bool other_adapter;
static in_addr_t only_address; /* 0: all are there */
static uint32_t remote_qpn;
static struct fake_objects objects;
static unsigned resolves, connects, accepts, rejects, disconnects, sent, arms;
static struct rdma_event_channel channel;
static struct rdma_cm_event events[EVENTS];
static unsigned event_first, event_count;
static struct fake_id *listener, *active;
static struct fake_cq *last_event; /* one queue at most has events here */

static struct fake_id *id_of(struct rdma_cm_id *id)
{
	return container_of(id, struct fake_id, id);
}

static struct fake_qp *qp_of(struct ibv_qp *qp)
{
	return container_of(qp, struct fake_qp, qp);
}

static struct fake_cq *cq_of(struct ibv_cq *cq)
{
	return container_of(cq, struct fake_cq, cq);
}

static void push_event(struct rdma_cm_id *id, enum rdma_cm_event_type type,
		       int status)
{
	const uint64_t one = 1;

	if (event_count == EVENTS)
		abort();
	events[(event_first + event_count++) % EVENTS] =
		(struct rdma_cm_event){ .id = id, .event = type,
					.status = status,
					.param.ud.qp_num = remote_qpn };
	if (write(channel.fd, &one, sizeof(one)) < 0)
		abort();
}

static void complete(struct ibv_cq *cq, uint64_t wr_id,
		     enum ibv_wc_status status)
{
	struct fake_cq *c = cq_of(cq);

	if (c->count == COMPLETIONS)
		abort();
	c->wc[(c->first + c->count++) % COMPLETIONS] =
		(struct ibv_wc){ .wr_id = wr_id, .status = status };
	if (c->armed) {
		const uint64_t one = 1;

		c->armed = false;
		last_event = c;
		if (write(cq->channel->fd, &one, sizeof(one)) < 0)
			abort();
	}
}

static void flush(struct fake_qp *q)
{
	q->error = true;
	for (unsigned i = 0; i < q->receive_count; i++)
		complete(q->qp.recv_cq, q->receives[i], IBV_WC_WR_FLUSH_ERR);
	q->receive_count = 0;
}

/* The three calls of the data path. */

static int fake_poll_cq(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	struct fake_cq *c = cq_of(cq);
	int n = 0;

	pthread_mutex_lock(&lock);
	for (; n < max && c->count; n++, c->count--)
		wc[n] = c->wc[c->first++ % COMPLETIONS];
	pthread_mutex_unlock(&lock);
	return n;
}

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			  struct ibv_recv_wr **bad)
{
	struct fake_qp *q = qp_of(qp);

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		if (q->error)
			complete(qp->recv_cq, wr->wr_id, IBV_WC_WR_FLUSH_ERR);
		else
			q->receives[q->receive_count++] = wr->wr_id;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
			  struct ibv_send_wr **bad)
{
	struct fake_qp *q = qp_of(qp);

	pthread_mutex_lock(&lock);
	for (; wr; wr = wr->next) {
		sent += wr->opcode == IBV_WR_SEND;
		if (q->error || wr->send_flags & IBV_SEND_SIGNALED)
			complete(qp->send_cq, wr->wr_id,
				 q->error ? IBV_WC_WR_FLUSH_ERR :
					    IBV_WC_SUCCESS);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

static int fake_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	pthread_mutex_lock(&lock);
	cq_of(cq)->armed = true;
	arms++;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* librdmacm */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	channel.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK);
	objects.channels++;
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	close(c->fd);
	objects.channels--;
}

static struct fake_id *new_id(struct rdma_event_channel *c, void *context)
{
	struct fake_id *f = calloc(1, sizeof(*f));

	f->id.channel = c;
	f->id.context = context;
	f->id.port_num = 1;
	objects.ids++;
	return f;
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	pthread_mutex_lock(&lock);
	*id = &new_id(c, context)->id;
	(*id)->ps = ps;
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_create_id2(struct rdma_event_channel *c, struct rdma_cm_id **id,
		    void *context, enum rdma_port_space ps, enum ibv_qp_type type)
{
	int ret = rdma_create_id(c, id, context, ps);

	(*id)->qp_type = type;
	return ret;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct fake_id *f = id_of(id);

	pthread_mutex_lock(&lock);
	if (id->qp)
		abort();
	/* Events of an identifier that is gone are never seen. */
	for (unsigned i = 0; i < event_count; i++)
		if (events[(event_first + i) % EVENTS].id == id)
			events[(event_first + i) % EVENTS].id = NULL;
	if (f == listener)
		listener = NULL;
	if (f == active)
		active = NULL;
	objects.listeners -= f->listens;
	objects.ids--;
	free(f);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	id->verbs = &contexts[0];
	return 0;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	pthread_mutex_lock(&lock);
	id_of(id)->listens = true;
	listener = id_of(id);
	objects.listeners++;
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout_ms)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)dst;

	pthread_mutex_lock(&lock);
	resolves++;
	if (peer == FAKE_PEER_NO_ADDRESS ||
	    (only_address && v4->sin_addr.s_addr != only_address)) {
		push_event(id, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
	} else {
		id->verbs = &contexts[other_adapter];
		push_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	pthread_mutex_lock(&lock);
	push_event(id, peer == FAKE_PEER_NO_ROUTE ?
			       RDMA_CM_EVENT_ROUTE_ERROR :
			       RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	pthread_mutex_lock(&lock);
	connects++;
	active = id_of(id);
	switch (peer) {
	case FAKE_PEER_ACCEPTS:
		active->connected = true;
		push_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
		break;
	case FAKE_PEER_REJECTS:
		push_event(id, RDMA_CM_EVENT_REJECTED, 8);
		break;
	case FAKE_PEER_SILENT:
		break;
	default:
		push_event(id, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	pthread_mutex_lock(&lock);
	accepts++;
	if (id->ps != RDMA_PS_UDP) {
		active = id_of(id);
		active->connected = true;
		push_event(id, RDMA_CM_EVENT_ESTABLISHED, 0);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	pthread_mutex_lock(&lock);
	rejects++;
	pthread_mutex_unlock(&lock);
	return 0;
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct fake_id *f = id_of(id);
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (f->connected) {
		disconnects++;
		f->connected = false;
		flush(qp_of(id->qp));
		push_event(id, RDMA_CM_EVENT_DISCONNECTED, 0);
	} else {
		errno = EINVAL;
		ret = -1;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct fake_qp *q = calloc(1, sizeof(*q));

	pthread_mutex_lock(&lock);
	q->qp.context = id->verbs;
	q->qp.send_cq = attr->send_cq;
	q->qp.recv_cq = attr->recv_cq;
	q->qp.qp_num = 0x11;
	id->qp = &q->qp;
	objects.qps++;
	pthread_mutex_unlock(&lock);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	pthread_mutex_lock(&lock);
	free(qp_of(id->qp));
	id->qp = NULL;
	objects.qps--;
	pthread_mutex_unlock(&lock);
}

int rdma_get_cm_event(struct rdma_event_channel *c,
		      struct rdma_cm_event **event)
{
	uint64_t count;

	*event = NULL;
	pthread_mutex_lock(&lock);
	while (event_count && !*event) {
		struct rdma_cm_event *e = &events[event_first++ % EVENTS];

		event_first %= EVENTS;
		event_count--;
		if (read(c->fd, &count, sizeof(count)) < 0)
			abort();
		if (e->id) {
			*event = malloc(sizeof(**event));
			**event = *e;
		}
	}
	pthread_mutex_unlock(&lock);
	errno = EAGAIN;
	return *event ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	free(event);
	return 0;
}

struct ibv_context **rdma_get_devices(int *num)
{
	static struct ibv_context *list[] = { &contexts[0], NULL };

	*num = 1;
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return "event";
}

/* libibverbs */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *pd = calloc(1, sizeof(*pd));

	pd->context = context;
	objects.pds++;
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	objects.pds--;
	free(pd);
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	struct ibv_mr *mr = calloc(1, sizeof(*mr));

	mr->lkey = 0x77;
	objects.mrs++;
	return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	objects.mrs--;
	free(mr);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
			     void *cq_context, struct ibv_comp_channel *c,
			     int vector)
{
	struct fake_cq *cq = calloc(1, sizeof(*cq));

	cq->cq.context = context;
	cq->cq.channel = c;
	pthread_mutex_lock(&lock);
	objects.cqs++;
	pthread_mutex_unlock(&lock);
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	uint64_t count;

	pthread_mutex_lock(&lock);
	/* A real one would wait for the acknowledgement for ever. */
	if (cq_of(cq)->unacked)
		abort();
	/* Events that were not taken are removed with it. */
	if (cq->channel && read(cq->channel->fd, &count, sizeof(count)) > 0)
		last_event = NULL;
	objects.cqs--;
	pthread_mutex_unlock(&lock);
	free(cq_of(cq));
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *c = calloc(1, sizeof(*c));

	c->fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	pthread_mutex_lock(&lock);
	objects.comp_channels++;
	pthread_mutex_unlock(&lock);
	return c;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *c)
{
	pthread_mutex_lock(&lock);
	objects.comp_channels--;
	pthread_mutex_unlock(&lock);
	close(c->fd);
	free(c);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **cq,
		     void **context)
{
	uint64_t count;

	if (read(c->fd, &count, sizeof(count)) < 0)
		return -1;
	pthread_mutex_lock(&lock);
	last_event->unacked++;
	*cq = &last_event->cq;
	pthread_mutex_unlock(&lock);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned count)
{
	pthread_mutex_lock(&lock);
	cq_of(cq)->unacked -= count;
	pthread_mutex_unlock(&lock);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	pthread_mutex_lock(&lock);
	if (attr->qp_state == IBV_QPS_ERR)
		flush(qp_of(qp));
	pthread_mutex_unlock(&lock);
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	pthread_mutex_lock(&lock);
	objects.ahs++;
	pthread_mutex_unlock(&lock);
	return calloc(1, sizeof(struct ibv_ah));
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	pthread_mutex_lock(&lock);
	objects.ahs--;
	pthread_mutex_unlock(&lock);
	free(ah);
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	*attr = (struct ibv_device_attr){ .max_qp_wr = 4096, .max_cqe = 8192 };
	return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port,
		   struct _compat_ibv_port_attr *attr)
{
	((struct ibv_port_attr *)attr)->active_mtu = IBV_MTU_1024;
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return "status";
}

/* What the test does and sees. */

void fake_reset(void)
{
	memset(&objects, 0, sizeof(objects));
	memset(contexts, 0, sizeof(contexts));
	remote_qpn = 0;
	for (int i = 0; i < 2; i++) {
		contexts[i].device = &devices[i];
		contexts[i].ops.poll_cq = fake_poll_cq;
		contexts[i].ops.post_recv = fake_post_recv;
		contexts[i].ops.post_send = fake_post_send;
		contexts[i].ops.req_notify_cq = fake_req_notify_cq;
	}
	peer = FAKE_PEER_ACCEPTS;
	other_adapter = false;
	only_address = 0;
	resolves = connects = accepts = rejects = disconnects = sent = arms = 0;
	event_first = event_count = 0;
}

#define LOCKED(...)                       \
	do {                              \
		pthread_mutex_lock(&lock); \
		__VA_ARGS__;              \
		pthread_mutex_unlock(&lock); \
	} while (0)

void fake_set_peer(enum fake_peer p)
{
	LOCKED(peer = p);
}

void fake_set_remote_qpn(uint32_t qpn)
{
	pthread_mutex_lock(&lock);
	remote_qpn = qpn;
	pthread_mutex_unlock(&lock);
}

void fake_set_only_address(const char *host)
{
	LOCKED(only_address = host ? inet_addr(host) : 0);
}

void fake_set_other_adapter(bool other)
{
	LOCKED(other_adapter = other);
}

void fake_request(void)
{
	struct fake_id *f;

	pthread_mutex_lock(&lock);
	if (!listener)
		abort();
	f = new_id(&channel, listener->id.context);
	f->id.verbs = &contexts[0];
	f->id.ps = listener->id.ps;
	push_event(&f->id, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pthread_mutex_unlock(&lock);
}

void fake_event(enum rdma_cm_event_type type, int status)
{
	pthread_mutex_lock(&lock);
	if (!active)
		abort();
	push_event(&active->id, type, status);
	pthread_mutex_unlock(&lock);
}

void fake_break(void)
{
	LOCKED(flush(qp_of(active->id.qp)));
}

struct fake_objects fake_objects(void)
{
	struct fake_objects o;

	LOCKED(o = objects);
	return o;
}

static unsigned locked(const unsigned *value)
{
	unsigned v;

	LOCKED(v = *value);
	return v;
}

unsigned fake_resolves(void)
{
	return locked(&resolves);
}

unsigned fake_connects(void)
{
	return locked(&connects);
}

unsigned fake_accepts(void)
{
	return locked(&accepts);
}

unsigned fake_rejects(void)
{
	return locked(&rejects);
}

unsigned fake_disconnects(void)
{
	return locked(&disconnects);
}

unsigned fake_sent(void)
{
	return locked(&sent);
}

unsigned fake_arms(void)
{
	return locked(&arms);
}

unsigned fake_receives(void)
{
	unsigned n;

	LOCKED(n = active && active->id.qp ?
		       qp_of(active->id.qp)->receive_count : 0);
	return n;
}

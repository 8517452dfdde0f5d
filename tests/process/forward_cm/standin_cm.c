/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-in of the system's librdmacm.so.1; see standin_cm.h. One lock guards
 * everything. It is linked to libibverbs.so.1, as the system's is, and so gets
 * the library under test.
 */
#include "standin_cm.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>


struct stand_id {
	struct rdma_cm_id id;
	struct stand_id *next;
	struct stand_id *peer;
	bool listening, connected;
	unsigned reported, completed;
};

struct stand_event {
	struct rdma_cm_event event;
	struct stand_event *next;
	struct stand_id *owner;
	struct rdma_event_channel *channel;
	char private_data[64];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;
static struct stand_id *ids;
static struct stand_event *events;
static struct rdma_cm_id *newest;
static struct ibv_context *verbs;
static struct ibv_pd pd;
static uint16_t next_port;

static struct {
	const char *name;
	unsigned count;
	long args[STANDIN_CM_ARGS];
} records[64];

static unsigned count_of(const char *name);
static long arg_of(const char *name, int index);
static struct rdma_cm_id *newest_id(void);
static void play(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status);

extern struct standin_cm_state standin_cm_state;
struct standin_cm_state standin_cm_state = {
	.count = count_of,
	.arg = arg_of,
	.newest = newest_id,
	.play = play,
};

/* ---- the record; the lock is held ---- */

static size_t record_find(const char *name)
{
	size_t i = 0;

	while (records[i].name && strcmp(records[i].name, name) != 0)
		i++;
	records[i].name = name;
	return i;
}

static void record(const char *name, long a, long b, long c, long d)
{
	const long args[STANDIN_CM_ARGS] = { a, b, c, d };
	size_t i = record_find(name);

	records[i].count++;
	memcpy(records[i].args, args, sizeof(args));
}

#define ENTER(a, b, c, d)                                              \
	do {                                                           \
		pthread_mutex_lock(&lock);                             \
		record(__func__, (long)(a), (long)(b), (long)(c), (long)(d)); \
	} while (0)

static int leave(int error)
{
	pthread_mutex_unlock(&lock);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static unsigned count_of(const char *name)
{
	unsigned count;

	pthread_mutex_lock(&lock);
	count = records[record_find(name)].count;
	pthread_mutex_unlock(&lock);
	return count;
}

static long arg_of(const char *name, int index)
{
	long arg;

	pthread_mutex_lock(&lock);
	arg = records[record_find(name)].args[index];
	pthread_mutex_unlock(&lock);
	return arg;
}

static struct rdma_cm_id *newest_id(void)
{
	struct rdma_cm_id *id;

	pthread_mutex_lock(&lock);
	id = newest;
	pthread_mutex_unlock(&lock);
	return id;
}

/* ---- events; the lock is held ---- */

static struct stand_id *stand(struct rdma_cm_id *id)
{
	return (struct stand_id *)(void *)id;
}

static void channel_count(struct rdma_event_channel *channel, bool more)
{
	uint64_t one = 1;

	if ((more ? write(channel->fd, &one, sizeof(one)) :
		    read(channel->fd, &one, sizeof(one))) != sizeof(one))
		abort();
}

static struct stand_event *event_add(struct stand_id *owner, struct stand_id *id,
				     enum rdma_cm_event_type type, int status)
{
	struct stand_event *ev = calloc(1, sizeof(*ev)), **end = &events;

	ev->owner = owner;
	ev->channel = owner->id.channel;
	ev->event.id = &id->id;
	ev->event.event = type;
	ev->event.status = status;
	while (*end)
		end = &(*end)->next;
	*end = ev;
	atomic_fetch_add(&standin_cm_state.events, 1);
	channel_count(ev->channel, true);
	return ev;
}

static void event_free(struct stand_event *ev)
{
	atomic_fetch_sub(&standin_cm_state.events, 1);
	free(ev);
}

static void play(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	pthread_mutex_lock(&lock);
	event_add(stand(id), stand(id), type, status);
	pthread_mutex_unlock(&lock);
}

/* ---- the library's calls to itself ---- */

/*
 * As the system's library does in its first call: by name, through the loader,
 * under a lock of its own, with identifiers of its own.
 */
static void call_myself(void)
{
	int (*create)(struct rdma_event_channel *, struct rdma_cm_id **, void *,
		      enum rdma_port_space) = dlsym(RTLD_DEFAULT, "rdma_create_id");
	int (*destroy)(struct rdma_cm_id *) = dlsym(RTLD_DEFAULT, "rdma_destroy_id");
	struct rdma_event_channel channel = { .fd = -1 };
	unsigned before = count_of("rdma_create_id");
	struct rdma_cm_id *id;

	if (create(&channel, &id, &channel, RDMA_PS_TCP) ||
	    id->context != &channel || count_of("rdma_create_id") != before + 1 ||
	    destroy(id))
		abort();
	atomic_fetch_add(&standin_cm_state.calls_to_itself, 1);
}

static _Thread_local bool initialising;

static void init(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	initialising = true;
	for (size_t i = 0; list && list[i] && !verbs; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "stand0"))
			verbs = ibv_open_device(list[i]);
	if (!verbs)
		abort();
	ibv_free_device_list(list);
	pd.context = verbs;
	next_port = standin_cm_port();
	call_myself();
	initialising = false;
}

static void init_once(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!initialising)
		pthread_once(&once, init);
}

/* ---- devices, channels, identifiers ---- */

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = calloc(2, sizeof(*list));

	init_once();
	ENTER(num_devices, 0, 0, 0);
	list[0] = verbs;
	*num_devices = 1;
	leave(0);
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	ENTER(list, 0, 0, 0);
	if (list[0] != verbs || list[1])
		abort();
	free(list);
	leave(0);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = calloc(1, sizeof(*channel));

	init_once();
	ENTER(0, 0, 0, 0);
	channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	atomic_fetch_add(&standin_cm_state.channels, 1);
	leave(0);
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	ENTER(channel, 0, 0, 0);
	atomic_fetch_sub(&standin_cm_state.channels, 1);
	close(channel->fd);
	free(channel);
	leave(0);
}

static struct stand_id *id_add(struct rdma_event_channel *channel, void *context,
			       enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct stand_id *made = calloc(1, sizeof(*made));

	made->id.channel = channel;
	made->id.context = context;
	made->id.ps = ps;
	made->id.qp_type = type;
	made->next = ids;
	ids = made;
	newest = &made->id;
	atomic_fetch_add(&standin_cm_state.identifiers, 1);
	return made;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	enum ibv_qp_type type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;

	init_once();
	ENTER(channel, id, context, ps);
	*id = &id_add(channel, context, ps, type)->id;
	return leave(0);
}

static void events_drop(struct stand_id *owner)
{
	for (struct stand_event **at = &events; *at;) {
		struct stand_event *ev = *at;

		if (ev->owner != owner) {
			at = &ev->next;
			continue;
		}
		*at = ev->next;
		channel_count(ev->channel, false);
		event_free(ev);
	}
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	struct stand_id *own = stand(id), **at = &ids;

	ENTER(id, 0, 0, 0);
	events_drop(own);
	while (own->completed < own->reported)
		pthread_cond_wait(&acked, &lock);
	while (*at != own)
		at = &(*at)->next;
	*at = own->next;
	if (own->peer)
		own->peer->peer = NULL;
	free(id->route.path_rec);
	free(own);
	atomic_fetch_sub(&standin_cm_state.identifiers, 1);
	return leave(0);
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	ENTER(id, channel, 0, 0);
	for (struct stand_event *ev = events; ev; ev = ev->next) {
		if (ev->owner != stand(id))
			continue;
		channel_count(ev->channel, false);
		ev->channel = channel;
		channel_count(channel, true);
	}
	id->channel = channel;
	while (stand(id)->completed < stand(id)->reported)
		pthread_cond_wait(&acked, &lock);
	return leave(0);
}

/* ---- addresses ---- */

static struct sockaddr_in *in4(struct sockaddr *addr)
{
	return (struct sockaddr_in *)(void *)addr;
}

static bool is_any(struct sockaddr *addr)
{
	return in4(addr)->sin_addr.s_addr == INADDR_ANY;
}

static bool is_mine(struct sockaddr *addr)
{
	const char *mine = getenv("STANDIN_CM_ADDRESS");

	return mine && in4(addr)->sin_addr.s_addr == inet_addr(mine);
}

static void device_take(struct stand_id *own)
{
	own->id.verbs = verbs;
	own->id.pd = &pd;
	own->id.port_num = 1;
}

static bool port_taken(const struct stand_id *own, enum rdma_port_space ps,
		       uint16_t port)
{
	for (struct stand_id *i = ids; i; i = i->next)
		if (i != own && i->id.ps == ps && !i->peer &&
		    i->id.route.addr.src_sin.sin_port == port)
			return true;
	return false;
}

static int bind_locked(struct stand_id *own, struct sockaddr *addr)
{
	uint16_t port = in4(addr)->sin_port;

	if (is_any(addr) &&
	    atomic_load(&standin_cm_state.wildcard_refusals) > 0) {
		atomic_fetch_sub(&standin_cm_state.wildcard_refusals, 1);
		return atomic_load(&standin_cm_state.wildcard_errno);
	}
	if (!is_any(addr) && !is_mine(addr))
		return ENODEV;
	if (port && port_taken(own, own->id.ps, port))
		return EADDRINUSE;
	if (!is_any(addr))
		device_take(own);
	own->id.route.addr.src_sin = *in4(addr);
	own->id.route.addr.src_sin.sin_port = port ? port : htons(next_port++);
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	ENTER(id, ntohs(in4(addr)->sin_port), 0, 0);
	return leave(bind_locked(stand(id), addr));
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src,
		      struct sockaddr *dst, int timeout_ms)
{
	ENTER(id, src, dst, timeout_ms);
	id->route.addr.dst_sin = *in4(dst);
	if (src)
		id->route.addr.src_sin = *in4(src);
	device_take(stand(id));
	event_add(stand(id), stand(id), RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return leave(0);
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	ENTER(id, timeout_ms, 0, 0);
	free(id->route.path_rec);
	id->route.path_rec = calloc(1, sizeof(*id->route.path_rec));
	id->route.num_paths = 1;
	event_add(stand(id), stand(id), RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return leave(0);
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
		   struct ibv_pd *domain, struct ibv_qp_init_attr *attr)
{
	struct stand_id *made;
	int error;

	init_once();
	ENTER(res->ai_port_space, res->ai_qp_type, res->ai_flags, attr);
	made = id_add(NULL, NULL, (enum rdma_port_space)res->ai_port_space,
		      (enum ibv_qp_type)res->ai_qp_type);
	error = bind_locked(made, res->ai_src_addr);
	if (error)
		abort(); /* no case of the test */
	*id = &made->id;
	return leave(0);
}

/* ---- connections ---- */

static struct stand_id *listener_find(const struct stand_id *caller)
{
	for (struct stand_id *i = ids; i; i = i->next)
		if (i->listening && i->id.ps == caller->id.ps &&
		    i->id.route.addr.src_sin.sin_port ==
			    caller->id.route.addr.dst_sin.sin_port)
			return i;
	return NULL;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	ENTER(id, backlog, 0, 0);
	stand(id)->listening = true;
	return leave(0);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct stand_id *listener, *child;
	struct stand_event *ev;

	ENTER(id, param, id->qp, 0);
	if (param && param->private_data_len) {
		standin_cm_state.private_len = param->private_data_len;
		memcpy(standin_cm_state.private_data, param->private_data,
		       param->private_data_len);
	}
	listener = listener_find(stand(id));
	if (!listener) {
		event_add(stand(id), stand(id), RDMA_CM_EVENT_REJECTED, 8);
		return leave(0);
	}
	child = id_add(listener->id.channel, listener->id.context,
		       listener->id.ps, listener->id.qp_type);
	child->id.route.addr.src_sin = id->route.addr.dst_sin;
	child->id.route.addr.dst_sin = id->route.addr.src_sin;
	device_take(child);
	child->peer = stand(id);
	stand(id)->peer = child;
	ev = event_add(listener, child, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	ev->event.listen_id = &listener->id;
	if (param && param->private_data_len) {
		memcpy(ev->private_data, param->private_data,
		       param->private_data_len);
		ev->event.param.conn.private_data = ev->private_data;
		ev->event.param.conn.private_data_len = param->private_data_len;
	}
	return leave(0);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct stand_id *peer = stand(id)->peer;

	ENTER(id, param, id->qp, 0);
	if (!peer)
		return leave(0); /* the record is all that is asked for */
	event_add(stand(id), stand(id), RDMA_CM_EVENT_ESTABLISHED, 0);
	event_add(peer, peer,
		  peer->id.qp ? RDMA_CM_EVENT_ESTABLISHED :
				RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	stand(id)->connected = peer->connected = true;
	return leave(0);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	ENTER(id, private_data, len, 0);
	if (stand(id)->peer)
		event_add(stand(id)->peer, stand(id)->peer,
			  RDMA_CM_EVENT_REJECTED, 28);
	return leave(0);
}

int rdma_disconnect(struct rdma_cm_id *id)
{
	struct stand_id *own = stand(id);

	ENTER(id, id->qp, 0, 0);
	if (own->connected && own->peer) {
		event_add(own, own, RDMA_CM_EVENT_DISCONNECTED, 0);
		event_add(own->peer, own->peer, RDMA_CM_EVENT_DISCONNECTED, 0);
		own->connected = own->peer->connected = false;
	}
	return leave(0);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	struct stand_event *ev;

	ENTER(id, addr, context, 0);
	ev = event_add(stand(id), stand(id), RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	ev->event.param.ud.private_data = context;
	return leave(0);
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value,
		    size_t len)
{
	ENTER(id, level, name, len);
	standin_cm_state.last_option =
		len == 1 ? *(uint8_t *)value : *(int *)value;
	return leave(0);
}

/* ---- what only has to be called ---- */

#define RECORDED(name, parameters, a, b, c) \
	int name parameters                 \
	{                                   \
		ENTER(a, b, c, 0);          \
		return leave(0);            \
	}

RECORDED(rdma_reject_ece, (struct rdma_cm_id *id, const void *data, uint8_t len),
	 id, data, len)
RECORDED(rdma_establish, (struct rdma_cm_id *id), id, id->qp, 0)
RECORDED(rdma_notify, (struct rdma_cm_id *id, enum ibv_event_type event), id,
	 event, 0)
RECORDED(rdma_join_multicast_ex,
	 (struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
	  void *context), id, attr, context)
RECORDED(rdma_leave_multicast, (struct rdma_cm_id *id, struct sockaddr *addr), id,
	 addr, 0)
RECORDED(rdma_init_qp_attr,
	 (struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask), id, attr,
	 mask)
RECORDED(rdma_set_local_ece, (struct rdma_cm_id *id, struct ibv_ece *ece), id,
	 ece, 0)
RECORDED(rdma_get_remote_ece, (struct rdma_cm_id *id, struct ibv_ece *ece), id,
	 ece, 0)

/* Ours makes these by others, or only the system's library calls them. */
RECORDED(rdma_create_qp, (struct rdma_cm_id *id, struct ibv_pd *domain,
			  struct ibv_qp_init_attr *attr), id, domain, attr)
RECORDED(rdma_create_srq, (struct rdma_cm_id *id, struct ibv_pd *domain,
			   struct ibv_srq_init_attr *attr), id, domain, attr)
RECORDED(rdma_get_request, (struct rdma_cm_id *id, struct rdma_cm_id **out), id,
	 out, 0)
RECORDED(rdma_getaddrinfo, (const char *node, const char *service,
			    const struct rdma_addrinfo *hints,
			    struct rdma_addrinfo **res), node, service, hints)

void rdma_freeaddrinfo(struct rdma_addrinfo *res) {}
void rdma_destroy_ep(struct rdma_cm_id *id) {}
void rdma_destroy_srq(struct rdma_cm_id *id) {}
const char *rdma_event_str(enum rdma_cm_event_type event) { return ""; }
__be16 rdma_get_src_port(struct rdma_cm_id *id) { return 0; }
__be16 rdma_get_dst_port(struct rdma_cm_id *id) { return 0; }

/* ---- queue pairs ---- */

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	ENTER(id, attr->send_cq, attr->recv_cq, attr->qp_type);
	id->qp = calloc(1, sizeof(*id->qp));
	id->qp->context = id->verbs;
	id->qp->pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD && attr->pd ?
			     attr->pd : id->pd;
	id->qp->qp_type = attr->qp_type;
	id->qp->qp_num = 0x77;
	id->pd = id->qp->pd;
	return leave(0);
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ENTER(id, id->qp, 0, 0);
	free(id->qp);
	id->qp = NULL;
	leave(0);
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	ENTER(id, attr->cq, attr->srq_type, 0);
	return leave(ENOMEM);
}

/* ---- taking events ---- */

int rdma_get_cm_event(struct rdma_event_channel *channel,
		      struct rdma_cm_event **event)
{
	struct stand_event **at = &events, *ev;
	uint64_t one;

	if (read(channel->fd, &one, sizeof(one)) != sizeof(one))
		return -1;
	ENTER(channel, event, 0, 0);
	while (*at && (*at)->channel != channel)
		at = &(*at)->next;
	ev = *at;
	if (!ev)
		return leave(EAGAIN); /* dropped between the two */
	*at = ev->next;
	ev->owner->reported++;
	*event = &ev->event;
	return leave(0);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct stand_event *ev = (struct stand_event *)(void *)event;

	ENTER(event, 0, 0, 0);
	ev->owner->completed++;
	pthread_cond_broadcast(&acked);
	event_free(ev);
	return leave(0);
}

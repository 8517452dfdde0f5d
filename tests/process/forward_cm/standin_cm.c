/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stand-in of the system's librdmacm.so.1; see standin_cm.h. One lock guards
 * everything. It is linked to libibverbs.so.1, as the system's is, and so gets
 * the library under test.
 */
#include "standin_cm_private.h"

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

pthread_mutex_t stand_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;
struct stand_id *stand_ids;
static struct stand_event *events;
static struct rdma_cm_id *newest;
struct ibv_context *stand_verbs;
struct ibv_pd stand_pd;
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

void stand_record(const char *name, long a, long b, long c, long d)
{
	const long args[STANDIN_CM_ARGS] = { a, b, c, d };
	size_t i = record_find(name);

	records[i].count++;
	memcpy(records[i].args, args, sizeof(args));
}

int stand_leave(int error)
{
	pthread_mutex_unlock(&stand_lock);
	if (!error)
		return 0;
	errno = error;
	return -1;
}

static unsigned count_of(const char *name)
{
	unsigned count;

	pthread_mutex_lock(&stand_lock);
	count = records[record_find(name)].count;
	pthread_mutex_unlock(&stand_lock);
	return count;
}

static long arg_of(const char *name, int index)
{
	long arg;

	pthread_mutex_lock(&stand_lock);
	arg = records[record_find(name)].args[index];
	pthread_mutex_unlock(&stand_lock);
	return arg;
}

static struct rdma_cm_id *newest_id(void)
{
	struct rdma_cm_id *id;

	pthread_mutex_lock(&stand_lock);
	id = newest;
	pthread_mutex_unlock(&stand_lock);
	return id;
}

/* ---- events; the lock is held ---- */

static void channel_count(struct rdma_event_channel *channel, bool more)
{
	uint64_t one = 1;

	if ((more ? write(channel->fd, &one, sizeof(one)) :
		    read(channel->fd, &one, sizeof(one))) != sizeof(one))
		abort();
}

struct stand_event *stand_event_add(struct stand_id *owner, struct stand_id *id,
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
	pthread_mutex_lock(&stand_lock);
	stand_event_add(stand(id), stand(id), type, status);
	pthread_mutex_unlock(&stand_lock);
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
	for (size_t i = 0; list && list[i] && !stand_verbs; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "stand0"))
			stand_verbs = ibv_open_device(list[i]);
	if (!stand_verbs)
		abort();
	ibv_free_device_list(list);
	stand_pd.context = stand_verbs;
	next_port = standin_cm_port();
	call_myself();
	initialising = false;
}

void stand_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!initialising)
		pthread_once(&once, init);
}

uint16_t stand_port_next(void)
{
	return htons(next_port++);
}

/* ---- devices, channels, identifiers ---- */

struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **list = calloc(2, sizeof(*list));

	stand_init();
	ENTER(num_devices, 0, 0, 0);
	list[0] = stand_verbs;
	*num_devices = 1;
	stand_leave(0);
	return list;
}

void rdma_free_devices(struct ibv_context **list)
{
	ENTER(list, 0, 0, 0);
	if (list[0] != stand_verbs || list[1])
		abort();
	free(list);
	stand_leave(0);
}

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = calloc(1, sizeof(*channel));

	stand_init();
	ENTER(0, 0, 0, 0);
	channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	atomic_fetch_add(&standin_cm_state.channels, 1);
	stand_leave(0);
	return channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	ENTER(channel, 0, 0, 0);
	atomic_fetch_sub(&standin_cm_state.channels, 1);
	close(channel->fd);
	free(channel);
	stand_leave(0);
}

struct stand_id *stand_id_add(struct rdma_event_channel *channel, void *context,
			      enum rdma_port_space ps, enum ibv_qp_type type)
{
	struct stand_id *made = calloc(1, sizeof(*made));

	made->id.channel = channel;
	made->id.context = context;
	made->id.ps = ps;
	made->id.qp_type = type;
	made->next = stand_ids;
	stand_ids = made;
	newest = &made->id;
	atomic_fetch_add(&standin_cm_state.identifiers, 1);
	return made;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id,
		   void *context, enum rdma_port_space ps)
{
	enum ibv_qp_type type = ps == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;

	stand_init();
	ENTER(channel, id, context, ps);
	*id = &stand_id_add(channel, context, ps, type)->id;
	return stand_leave(0);
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
	struct stand_id *own = stand(id), **at = &stand_ids;

	ENTER(id, 0, 0, 0);
	events_drop(own);
	while (own->completed < own->reported)
		pthread_cond_wait(&acked, &stand_lock);
	while (*at != own)
		at = &(*at)->next;
	*at = own->next;
	if (own->peer)
		own->peer->peer = NULL;
	free(id->route.path_rec);
	free(own);
	atomic_fetch_sub(&standin_cm_state.identifiers, 1);
	return stand_leave(0);
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
		pthread_cond_wait(&acked, &stand_lock);
	return stand_leave(0);
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
		return stand_leave(EAGAIN); /* dropped between the two */
	*at = ev->next;
	ev->owner->reported++;
	*event = &ev->event;
	return stand_leave(0);
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct stand_event *ev = (struct stand_event *)(void *)event;

	ENTER(event, 0, 0, 0);
	ev->owner->completed++;
	pthread_cond_broadcast(&acked);
	event_free(ev);
	return stand_leave(0);
}

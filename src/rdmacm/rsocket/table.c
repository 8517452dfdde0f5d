/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table from descriptors to sockets. A lookup takes no lock: the structures are
 * never freed, so a thread may count a reference on a pointer that it read, and then
 * check that the table still has the pointer.
 */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rsocket/rs.h"

#define LEAF 1024
#define LEAVES 1024

static _Atomic(struct rs *) *_Atomic leaves[LEAVES];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs *free_list;

/* The parent's queue pairs do not work in a forked child: its table is empty. */
static void table_forked(void)
{
	pthread_mutex_init(&table_lock, NULL);
	free_list = NULL;
	for (size_t i = 0; i < LEAVES; i++)
		atomic_store(&leaves[i], NULL);
}

__attribute__((constructor)) static void table_load(void)
{
	pthread_atfork(NULL, NULL, table_forked);
}

static void options_default(struct rs_options *o)
{
	const struct rs_config *c = rs_config_get();

	*o = (struct rs_options){
		.recv_size = c->recv_size,
		.send_size = c->send_size,
		.sq_size = c->sq_size,
		.rq_size = c->rq_size,
		.inline_size = c->inline_size,
		.map_count = c->map_count,
		.keep_idle = 7200,
		.keep_interval = 75,
		.keep_count = 9,
	};
}

struct rs *rs_new(int domain, int type)
{
	struct rs *rs;

	pthread_mutex_lock(&table_lock);
	rs = free_list;
	if (rs)
		free_list = rs->next_free;
	pthread_mutex_unlock(&table_lock);
	if (!rs) {
		rs = calloc(1, sizeof(*rs));
		if (!rs)
			return NULL;
		pthread_mutex_init(&rs->lock, NULL);
	} else {
	/* Not the lock and the references, which another thread may be using. */
		size_t from = offsetof(struct rs, fd);

		memset((char *)rs + from, 0, sizeof(*rs) - from);
	}
	rs->fd = -1;
	rs->domain = domain;
	rs->type = type;
	list_init(&rs->waiters);
	list_init(&rs->serve_entry);
	options_default(&rs->opt);
	atomic_fetch_add(&rs->refs, 1);
	return rs;
}

int rs_publish(struct rs *rs)
{
	_Atomic(struct rs *) *leaf;
	size_t n = (size_t)rs->fd / LEAF;

	if (n >= LEAVES)
		return -EMFILE;
	pthread_mutex_lock(&table_lock);
	leaf = atomic_load(&leaves[n]);
	if (!leaf) {
		leaf = calloc(LEAF, sizeof(*leaf));
		atomic_store(&leaves[n], leaf);
	}
	pthread_mutex_unlock(&table_lock);
	if (!leaf)
		return -ENOMEM;
	atomic_store(&leaf[rs->fd % LEAF], rs);
	return 0;
}

static _Atomic(struct rs *) *place_of(int fd)
{
	_Atomic(struct rs *) *leaf;

	if (fd < 0 || (size_t)fd / LEAF >= LEAVES)
		return NULL;
	leaf = atomic_load_explicit(&leaves[fd / LEAF], memory_order_acquire);
	return leaf ? &leaf[fd % LEAF] : NULL;
}

void rs_withdraw(struct rs *rs)
{
	_Atomic(struct rs *) *place = place_of(rs->fd);
	struct rs *expected = rs;

	if (place)
		atomic_compare_exchange_strong(place, &expected, NULL);
}

struct rs *rs_get(int fd)
{
	_Atomic(struct rs *) *place = place_of(fd);
	struct rs *rs = place ? atomic_load(place) : NULL;

	if (!rs)
		return NULL;
	atomic_fetch_add(&rs->refs, 1);
	if (likely(atomic_load(place) == rs))
		return rs;
	rs_put(rs);
	return NULL;
}

static void release(struct rs *rs)
{
	rs_maps_free(rs);
	rs_qp_destroy(rs);
	if (rs->pending)
		rdma_destroy_id(rs->pending);
	if (rs->id)
		rdma_destroy_id(rs->id);
	if (rs->channel)
		rdma_destroy_event_channel(rs->channel);
	free(rs->opt.route);
	pthread_mutex_lock(&table_lock);
	rs->next_free = free_list;
	free_list = rs;
	pthread_mutex_unlock(&table_lock);
}

void rs_put(struct rs *rs)
{
	if (atomic_fetch_sub(&rs->refs, 1) == 1 &&
	    atomic_exchange(&rs->dead, false))
		release(rs);
}

struct rs *rs_enter(int fd)
{
	struct rs *rs = rs_get(fd);

	if (!rs) {
		errno = EBADF;
		return NULL;
	}
	pthread_mutex_lock(&rs->lock);
	return rs;
}

ssize_t rs_leave(struct rs *rs, ssize_t ret)
{
	pthread_mutex_unlock(&rs->lock);
	rs_put(rs);
	return rs_result(ret);
}

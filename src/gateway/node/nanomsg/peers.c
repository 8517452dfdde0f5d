/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is connected to a socket. nng calls these functions from its own threads; it may report
 * the end of a connection before it reports that the connection is in use.
 */
#define LOG_ROOM "gateway/nanomsg"
#include "gateway/node/nanomsg/nanomsg.h"

#include <sys/eventfd.h>

/* Returns its place in the list, or the count. */
static unsigned find(const struct nanomsg_peers *p, uint32_t id)
{
	unsigned i = 0;

	while (i < p->count && p->list[i].id != id)
		i++;
	return i;
}

static void tell(struct nanomsg_peers *p)
{
	unsigned ready = 0;

	for (unsigned i = 0; i < p->count; i++)
		ready += p->list[i].ready;
	atomic_store_explicit(&p->ready, ready, memory_order_release);
	node_figure_set(p->node, p->figure, ready);
	eventfd_write(p->event_fd, 1);
}

static void before_use(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct nanomsg_peers *p = arg;
	bool full, refused;

	pthread_mutex_lock(&p->lock);
	full = p->count == NANOMSG_PEERS_MAX;
	refused = full || atomic_load(&p->closing);
	if (!refused) {
		p->list[p->count].id = (uint32_t)nng_pipe_id(pipe);
		p->list[p->count++].ready = false;
	}
	pthread_mutex_unlock(&p->lock);
	if (full)
		node_figure_add(p->node, NANOMSG_REFUSED, 1);
	if (refused)
		nng_pipe_close(pipe);
}

static void in_use(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct nanomsg_peers *p = arg;
	unsigned i;

	pthread_mutex_lock(&p->lock);
	i = find(p, (uint32_t)nng_pipe_id(pipe));
	if (i < p->count)
		p->list[i].ready = true;
	tell(p);
	pthread_mutex_unlock(&p->lock);
}

static void after_use(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	struct nanomsg_peers *p = arg;
	unsigned i;

	pthread_mutex_lock(&p->lock);
	i = find(p, (uint32_t)nng_pipe_id(pipe));
	if (i < p->count)
		p->list[i] = p->list[--p->count];
	tell(p);
	pthread_mutex_unlock(&p->lock);
}

int nanomsg_peers_watch(struct nanomsg_peers *p, nng_socket s)
{
	pthread_mutex_init(&p->lock, NULL);
	atomic_store(&p->closing, false);
	return nng_pipe_notify(s, NNG_PIPE_EV_ADD_PRE, before_use, p) ?:
	       nng_pipe_notify(s, NNG_PIPE_EV_ADD_POST, in_use, p) ?:
	       nng_pipe_notify(s, NNG_PIPE_EV_REM_POST, after_use, p);
}

void nanomsg_peers_clear(struct nanomsg_peers *p)
{
	pthread_mutex_destroy(&p->lock);
	p->count = 0;
	atomic_store(&p->ready, 0);
	node_figure_set(p->node, p->figure, 0);
}

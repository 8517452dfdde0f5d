/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing: the samples of one write in as few messages as they fit in. A thread looks for
 * the service, first and after each loss, so that a path is not held up by one that is
 * not there.
 */
#define LOG_ROOM "gateway/ripc"
#include "gateway/node/ripc/ripc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/thread.h"
#include "gateway/part/message.h"
#include "util/clock.h"
#include "util/log.h"

/* A format asks for the room that a sample may need; what it does need may be less. */
#define ROOM_BYTES (64 << 10)
/* The first samples wait so long for the first attempt. */
#define FIRST_NS NSEC_PER_SEC
/* Between two looks whether the node is running, so that its state can be told. */
#define STATE_NS UINT64_C(20000000)
/* One question for a name, so that the end of the node is not held up. */
#define FIND_MS 200

/* ---- the thread ---- */

static const char *target(const struct ripc_node *r, char text[16])
{
	if (r->out.name)
		return r->out.name;
	snprintf(text, 16, "%#x", (unsigned)r->out.id);
	return text;
}

/* An empty message says whether the service is there. */
static int look(struct ripc_node *r)
{
	struct ripc_tx *tx = &r->tx;
	uint32_t to = (uint32_t)r->out.id;
	int ret = 0;

	if (!to)
		ret = ripc_find(r->instance, r->out.name, FIND_MS, &to);
	if (!ret)
		ret = ripc_send_short(r->service, to, NULL, 0, NULL, 0);
	if (!ret)
		tx->to = to;
	return ret;
}

static void attempt(struct ripc_node *r)
{
	struct ripc_tx *tx = &r->tx;
	const char *name = r->node->name;
	char text[16];

	if (!look(r)) {
		log_info("%s: connected, service %s is %#x", name, target(r, text), tx->to);
		backoff_reset(&tx->backoff);
		tx->said[0] = 0;
		atomic_store_explicit(&tx->found, true, memory_order_release);
	} else {
		/* Once for each reason. */
		if (strcmp(tx->said, ripc_error()))
			log_info("%s: waiting for service %s: %s", name, target(r, text),
				 ripc_error());
		snprintf(tx->said, sizeof(tx->said), "%s", ripc_error());
		backoff_plan(&tx->backoff, (uint64_t)r->reconnect_interval_ms * 1000000,
			     clock_now_ns());
	}
}

static void tell_state(struct ripc_node *r)
{
	enum node_state s = atomic_load(&r->tx.found) ? NODE_CONNECTED : NODE_PENDING_CONNECT;

	/* Before that the state is the super-node's. */
	if (node_is_running(r->node) && node_state(r->node) != s)
		node_set_state(r->node, s);
}

static void *seek(void *arg)
{
	struct ripc_node *r = arg;
	struct ripc_tx *tx = &r->tx;

	pthread_mutex_lock(&tx->lock);
	while (!tx->ending) {
		uint64_t now = clock_now_ns(), until = now + STATE_NS;
		struct timespec t;

		if (!atomic_load(&tx->found) &&
		    (!tx->backoff.at_ns || backoff_is_due(&tx->backoff, now))) {
			pthread_mutex_unlock(&tx->lock);
			attempt(r);
			pthread_mutex_lock(&tx->lock);
			tx->tried = true;
			pthread_cond_broadcast(&tx->changed);
		}
		tell_state(r);
		if (node_is_running(r->node))
			until = atomic_load(&tx->found) ? now + NSEC_PER_SEC : tx->backoff.at_ns;
		t = timespec_from_ns(until);
		if (!tx->ending)
			pthread_cond_clockwait(&tx->changed, &tx->lock, CLOCK_MONOTONIC, &t);
	}
	pthread_mutex_unlock(&tx->lock);
	return NULL;
}

int ripc_tx_start(struct ripc_node *r)
{
	struct ripc_tx *tx = &r->tx;
	int ret;

	tx->size_max = ripc_short_max(r->instance, 1);
	tx->ending = tx->tried = false;
	tx->said[0] = 0;
	atomic_store(&tx->found, false);
	backoff_reset(&tx->backoff);
	tx->room = malloc(ROOM_BYTES);
	if (!tx->room)
		return -ENOMEM;
	ret = thread_start(&tx->thread, "ripc-seek", THREAD_NORMAL, seek, r);
	if (ret)
		log_error("%s: no thread: %s", r->node->name, strerror(-ret));
	tx->has_thread = !ret;
	return ret;
}

void ripc_tx_stop(struct ripc_node *r)
{
	struct ripc_tx *tx = &r->tx;

	if (tx->has_thread) {
		pthread_mutex_lock(&tx->lock);
		tx->ending = true;
		pthread_cond_broadcast(&tx->changed);
		pthread_mutex_unlock(&tx->lock);
		pthread_join(tx->thread, NULL);
	}
	tx->has_thread = false;
	free(tx->room);
	tx->room = NULL;
}

/* ---- writing ---- */

/* The beginning of a path shall not be lost while the service is looked for. */
static bool is_there(struct ripc_node *r)
{
	struct ripc_tx *tx = &r->tx;
	struct timespec until;

	if (likely(atomic_load_explicit(&tx->found, memory_order_acquire)))
		return true;
	until = timespec_from_ns(clock_now_ns() + FIRST_NS);
	pthread_mutex_lock(&tx->lock);
	while (!tx->tried && !tx->ending)
		if (pthread_cond_clockwait(&tx->changed, &tx->lock, CLOCK_MONOTONIC, &until))
			break;
	pthread_mutex_unlock(&tx->lock);
	return atomic_load_explicit(&tx->found, memory_order_acquire);
}

/* 0: they went. */
static int send_samples(struct ripc_node *r, size_t bytes, unsigned samples)
{
	struct ripc_tx *tx = &r->tx;
	const struct ripc_item item = { tx->room, bytes };
	int ret = ripc_send_short(r->service, tx->to, &item, 1, NULL, 0);

	if (likely(!ret))
		return 0;
	node_refuse(r->node, ret == -EAGAIN  ? NODE_LOSS_STUCK :
			     ret == -EMSGSIZE ? NODE_LOSS_TOO_LONG :
			     ret == -ENOBUFS ? NODE_LOSS_REFUSED : NODE_LOSS_ABSENT,
		    samples, "%s", ripc_error());
	if (ret == -EAGAIN || ret == -EMSGSIZE)
		return ret;
	log_info("%s: the service is lost: %s", r->node->name, ripc_error());
	pthread_mutex_lock(&tx->lock);
	atomic_store(&tx->found, false);
	pthread_cond_broadcast(&tx->changed);
	pthread_mutex_unlock(&tx->lock);
	return ret;
}

/* One sample that may need more room than a message has. 1, or 0 after it has told why
 * not. */
static int print_amply(struct ripc_node *r, struct sample *smp, size_t *used)
{
	struct format *f = r->writer;
	int n = f->type->print(f, r->tx.room, ROOM_BYTES, used, &smp, 1);

	if (n == 1 && *used <= r->tx.size_max)
		return 1;
	message_refuse(r->node, f, smp, n, n > 0 ? *used : 0, "a short message has at most",
		       r->tx.size_max);
	return 0;
}

/* What others send to a service that no path reads. */
static void discard(struct ripc_node *r)
{
	struct ripc_message m;

	for (unsigned i = 0; i < 64 && !ripc_receive(r->service, &m, 0); i++)
		ripc_release(&m);
}

int ripc_node_write(struct node *n, struct sample *smps[], unsigned cnt, unsigned *release)
{
	struct ripc_node *r = n->private_data;
	struct format *f = r->writer;
	unsigned done = 0, sent = 0;

	if (unlikely(!f))
		return -EBADF;
	while (done < cnt) {
		size_t used = 0;
		int count;

		if (unlikely(!is_there(r))) {
			char text[16];

			node_refuse(n, NODE_LOSS_ABSENT, cnt - done, "service %s is not there",
				    target(r, text));
			break;
		}
		count = f->type->print(f, r->tx.room, r->tx.size_max, &used, smps + done,
				       cnt - done);
		if (unlikely(count <= 0))
			count = print_amply(r, smps[done], &used);
		if (count > 0 && !send_samples(r, used, (unsigned)count))
			sent += (unsigned)count;
		done += count > 0 ? (unsigned)count : 1;
	}
	if (!n->is_source)
		discard(r);
	return (int)sent;
}

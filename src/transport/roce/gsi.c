/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pair 1 over RoCE v2; see gsi.h. Packets are received by whatever thread polls, and
 * CM messages are handled on the progress thread: a queue in between, and a descriptor
 * that wakes the progress thread.
 */
#define LOG_ROOM "roce"
#include "transport/roce/gsi.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "hca/run/progress.h"
#include "hca/share/peers.h"
#include "transport/roce/dispatch.h"
#include "util/log.h"
#include "util/wakeup.h"

#define WAITING_MAX 1024
/* Messages handled at a time, before other work of the progress thread. */
#define BATCH 64

struct arrival {
	struct hca_gsi_address from;
	uint8_t mad[HCA_GSI_MAD_BYTES];
};

static struct {
	const struct roce_gsi_port *_Atomic port; /* NULL: stopped */
	pthread_mutex_t lock;         /* of the next four */
	struct arrival waiting[WAITING_MAX]; /* a ring */
	unsigned first, count;
	bool dropping;
	int wake_fd;
	struct roce_dispatch dispatch;
} gsi = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake_fd = -1 };

static int emit(const struct hca_gsi_address *to, const uint8_t *mad)
{
	const struct roce_gsi_port *port = atomic_load(&gsi.port);

	return port ? port->emit(to, mad) : -ENOTCONN;
}

static const struct roce_dispatch_ops dispatch_ops = {
	.deliver = hca_gsi_deliver,
	.send = emit,
};

/* ---- arrival ---- */

void roce_gsi_arrived(const struct hca_gsi_address *from, const void *payload, size_t len)
{
	struct arrival *at;
	bool full;

	if (len != HCA_GSI_MAD_BYTES)
		return;
	pthread_mutex_lock(&gsi.lock);
	full = gsi.count == WAITING_MAX;
	if (!full) {
		at = &gsi.waiting[(gsi.first + gsi.count++) % WAITING_MAX];
		at->from = *from;
		memcpy(at->mad, payload, len);
	}
	/* A sender that means harm could make it full again and again. */
	if (full && !gsi.dropping && hca_complaint_due())
		log_warn("%u messages of connection management wait: more are dropped",
			 WAITING_MAX);
	gsi.dropping = full;
	pthread_mutex_unlock(&gsi.lock);
	wakeup_post(gsi.wake_fd);
}

static bool take(struct arrival *out)
{
	bool any;

	pthread_mutex_lock(&gsi.lock);
	any = gsi.count;
	if (any) {
		*out = gsi.waiting[gsi.first];
		gsi.first = (gsi.first + 1) % WAITING_MAX;
		gsi.count--;
	}
	pthread_mutex_unlock(&gsi.lock);
	return any;
}

/* On the progress thread. */
static void awake(void *arg, uint32_t events)
{
	struct arrival a;

	wakeup_drain(gsi.wake_fd);
	for (int i = 0; i < BATCH; i++) {
		if (!take(&a))
			return;
		roce_dispatch_arrived(&gsi.dispatch, &a.from, a.mad, sizeof(a.mad));
	}
	wakeup_post(gsi.wake_fd);
}

/* ---- start and stop ---- */

void roce_gsi_start(const struct roce_gsi_port *port)
{
	atomic_store(&gsi.port, port);
}

/* Begins to take what arrives, if that has not begun. 0 or a negative errno. */
static int begin(void)
{
	int ret;

	if (gsi.wake_fd >= 0)
		return 0;
	gsi.wake_fd = wakeup_open_signal();
	if (gsi.wake_fd < 0)
		return gsi.wake_fd;
	gsi.first = gsi.count = 0;
	roce_dispatch_init(&gsi.dispatch, &dispatch_ops);
	ret = progress_watch(gsi.wake_fd, EPOLLIN, awake, NULL);
	if (ret) {
		close(gsi.wake_fd);
		gsi.wake_fd = -1;
	}
	return ret;
}

void roce_gsi_stop(void)
{
	atomic_store(&gsi.port, NULL);
	if (gsi.wake_fd < 0)
		return;
	progress_unwatch(gsi.wake_fd);
	roce_dispatch_close(&gsi.dispatch);
	close(gsi.wake_fd);
	gsi.wake_fd = -1;
}

void roce_gsi_forked(void)
{
	if (gsi.wake_fd < 0)
		return;
	roce_dispatch_forked(&gsi.dispatch);
	close(gsi.wake_fd);
	gsi.wake_fd = -1;
	pthread_mutex_init(&gsi.lock, NULL);
	gsi.first = gsi.count = 0;
}

/* ---- for hca ---- */

static int gsi_open(void)
{
	const struct roce_gsi_port *port = atomic_load(&gsi.port);
	int ret = port ? begin() : -ENETDOWN;

	if (!ret)
		ret = port->open();
	return ret ? ret : roce_dispatch_open(&gsi.dispatch);
}

static void gsi_close(void)
{
	/* Waits for a message that is being delivered. Others are relayed afterwards, too. */
	progress_unwatch(gsi.wake_fd);
	roce_dispatch_close(&gsi.dispatch);
	if (progress_watch(gsi.wake_fd, EPOLLIN, awake, NULL))
		log_error("messages of connection management are not relayed any more");
}

static int gsi_serve(const struct hca_gsi_service *service)
{
	return roce_dispatch_serve(&gsi.dispatch, service);
}

static void gsi_unserve(const struct hca_gsi_service *service)
{
	roce_dispatch_unserve(&gsi.dispatch, service);
}

const struct hca_gsi_ops roce_gsi_ops = {
	.open = gsi_open,
	.close = gsi_close,
	.send = emit,
	.serve = gsi_serve,
	.unserve = gsi_unserve,
	.forked = roce_gsi_forked,
};

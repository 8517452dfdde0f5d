/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answering side of fail.h.
 *
 * A request arrives on the progress thread, with a lock of a transport held. The work needs
 * process.lock, which comes before that lock in the order, and which a thread that stops the
 * adapter holds while it waits for the progress thread. So a timer does the work, and only
 * tries to take process.lock.
 */
#define LOG_ROOM "hca"
#include "hca/device/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "hca/device/device.h"
#include "hca/event/async.h"
#include "hca/object/context.h"
#include "hca/queue/flush.h"
#include "hca/run/progress.h"
#include "hca/share/inspect_message.h"
#include "hca/share/process.h"
#include "util/list.h"
#include "util/log.h"

#define ASKERS 8
#define RETRY_NS 1000000

struct asker {
	int fd;
	uint32_t device;
};

static void fail_due(struct progress_timer *t);

/* Only the progress thread accesses it, and the thread that stops the adapter. */
static struct {
	struct asker askers[ASKERS];
	unsigned count;
	struct progress_timer timer;
} waiting = {
	.timer = PROGRESS_TIMER(waiting.timer, fail_due),
};

/* process.lock is held. */
static void device_fail(uint32_t device)
{
	struct list *contexts = &hca_process.contexts;
	unsigned failed = 0;

	/* First, so that a queue pair that is created or modified meanwhile is either
	 * refused or found below. */
	list_for_each(ctx, contexts, struct hca_context, entry)
		if (device == HCA_INSPECT_DEVICES ||
		    (uint32_t)ctx->device->index == device)
			failed += !atomic_exchange(&ctx->failed, true);
	hca_qps_fail_of(device);
	list_for_each(ctx, contexts, struct hca_context, entry) {
		if (!atomic_load(&ctx->failed) || ctx->failure_told)
			continue;
		ctx->failure_told = true;
		hca_async_device_event(ctx, IBV_EVENT_DEVICE_FATAL);
	}
	if (failed)
		log_warn("the device failed, as was asked for: %u contexts are told",
			 failed);
}

static void fail_due(struct progress_timer *t)
{
	if (pthread_mutex_trylock(&hca_process.lock)) {
		progress_timer_arm(t, progress_now_ns() + RETRY_NS);
		return;
	}
	/* As in ibv_modify_qp(): requests that are acknowledged by now are not flushed. */
	hca_take_in();
	for (unsigned i = 0; i < waiting.count; i++)
		device_fail(waiting.askers[i].device);
	pthread_mutex_unlock(&hca_process.lock);
	for (unsigned i = 0; i < waiting.count; i++) {
		hca_inspect_reply(waiting.askers[i].fd, 0);
		close(waiting.askers[i].fd);
	}
	waiting.count = 0;
}

int hca_fail_request(int fd, uint32_t device)
{
	int own;

	if (device != HCA_INSPECT_DEVICES && !hca_device_name(device))
		return -ENODEV;
	if (waiting.count == ASKERS)
		return -EBUSY;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	waiting.askers[waiting.count++] = (struct asker){ own, device };
	progress_timer_arm(&waiting.timer, progress_now_ns());
	return 0;
}

void hca_fail_stop(void)
{
	progress_timer_cancel(&waiting.timer);
	for (unsigned i = 0; i < waiting.count; i++) {
		hca_inspect_reply(waiting.askers[i].fd, -ENODEV);
		close(waiting.askers[i].fd);
	}
	waiting.count = 0;
}

void hca_fail_forked(void)
{
	for (unsigned i = 0; i < waiting.count; i++)
		close(waiting.askers[i].fd);
	waiting.count = 0;
	progress_timer_init(&waiting.timer, fail_due);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answering side of fail.h.
 *
 * The work needs process.lock, which comes before locks of transports in the order, and
 * which a thread that stops the adapter holds while it waits for the progress thread. So the
 * timer (asked.h) only tries to take it.
 */
#define LOG_ROOM "hca"
#include "hca/device/fail.h"

#include <errno.h>
#include <unistd.h>

#include "hca/device/asked.h"
#include "hca/device/device.h"
#include "hca/event/async.h"
#include "hca/object/context.h"
#include "hca/queue/flush.h"
#include "hca/run/progress.h"
#include "hca/share/inspect_message.h"
#include "hca/share/process.h"
#include "util/list.h"
#include "util/log.h"

#define RETRY_NS 1000000

static void fail_due(struct progress_timer *t);

static struct hca_asked waiting = HCA_ASKED(waiting, fail_due);

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
	struct hca_asker askers[HCA_ASKED_MAX];
	unsigned count;

	if (pthread_mutex_trylock(&hca_process.lock)) {
		progress_timer_arm(t, progress_now_ns() + RETRY_NS);
		return;
	}
	count = hca_asked_take(&waiting, askers);
	/* As in ibv_modify_qp(): requests that are acknowledged by now are not flushed. */
	hca_take_in();
	for (unsigned i = 0; i < count; i++)
		device_fail(askers[i].device);
	pthread_mutex_unlock(&hca_process.lock);
	for (unsigned i = 0; i < count; i++) {
		hca_inspect_reply(askers[i].fd, 0);
		close(askers[i].fd);
	}
}

int hca_fail_request(int fd, uint32_t device)
{
	if (device != HCA_INSPECT_DEVICES && !hca_device_name(device))
		return -ENODEV;
	return hca_asked_add(&waiting, &(struct hca_asker){ .fd = fd, .device = device });
}

void hca_fail_stop(void)
{
	struct hca_asker askers[HCA_ASKED_MAX];
	unsigned count;

	progress_timer_cancel(&waiting.timer);
	count = hca_asked_take(&waiting, askers);
	for (unsigned i = 0; i < count; i++) {
		hca_inspect_reply(askers[i].fd, -ENODEV);
		close(askers[i].fd);
	}
}

void hca_fail_forked(void)
{
	hca_asked_forked(&waiting, fail_due);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The answering side of faults.h. The transports take their locks to set faults; see asked.h. */
#define LOG_ROOM "hca"
#include "hca/device/faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hca/device/asked.h"
#include "hca/host/settings.h"
#include "hca/path/path.h"
#include "hca/run/progress.h"
#include "util/log.h"

static void set_due(struct progress_timer *t);

static struct hca_asked asked = HCA_ASKED(asked, set_due);

static struct {
	pthread_mutex_t lock;
	/* What was set last, and what came of it. */
	struct hca_inspect_faults now;
	bool changed; /* else it is BUSBAR_FAULTS */
} faults = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static void tell_event(struct hca_asker *a)
{
	struct hca_inspect_faults *msg = &a->faults;
	const unsigned index = msg->head.device;
	int ret;

	memset(msg, 0, sizeof(*msg));
	ret = hca_transports_fault_event(index, msg->set, sizeof(msg->set));
	hca_inspect_reply_faults(a->fd, ret, msg);
	close(a->fd);
}

static void set_one(struct hca_asker *a)
{
	struct hca_inspect_faults *msg = &a->faults;
	int ret = hca_transports_faults(msg->set, msg->notes, sizeof(msg->notes));

	/* Those that cannot do it have none now. */
	if (ret != -EINVAL) {
		pthread_mutex_lock(&faults.lock);
		faults.changed = true;
		faults.now = *msg;
		pthread_mutex_unlock(&faults.lock);
		log_info("faults '%s', as was asked for", msg->set);
	}
	hca_inspect_reply_faults(a->fd, ret, msg);
	close(a->fd);
}

static void set_due(struct progress_timer *t)
{
	struct hca_asker askers[HCA_ASKED_MAX];
	unsigned count = hca_asked_take(&asked, askers);

	(void)t;
	for (unsigned i = 0; i < count; i++)
		if (askers[i].faults.head.kind == HCA_INSPECT_FAULTS_EVENT)
			tell_event(&askers[i]);
		else
			set_one(&askers[i]);
}

int hca_faults_request(int fd, const struct hca_inspect_faults *msg)
{
	struct hca_asker asker = { .fd = fd, .faults = *msg };

	if (!memchr(msg->set, 0, sizeof(msg->set)))
		return -EINVAL;
	memset(asker.faults.notes, 0, sizeof(asker.faults.notes));
	return hca_asked_add(&asked, &asker);
}

void hca_faults_show(int fd)
{
	struct hca_inspect_faults msg;
	bool changed;

	pthread_mutex_lock(&faults.lock);
	msg = faults.now;
	changed = faults.changed;
	pthread_mutex_unlock(&faults.lock);
	if (!changed && *hca_settings.faults) {
		snprintf(msg.set, sizeof(msg.set), "%s", hca_settings.faults);
		snprintf(msg.notes, sizeof(msg.notes),
			 "as BUSBAR_FAULTS says; what of it cannot be used is in its log\n");
	}
	hca_inspect_reply_faults(fd, 0, &msg);
}

void hca_faults_stop(void)
{
	struct hca_asker askers[HCA_ASKED_MAX];
	unsigned count;

	progress_timer_cancel(&asked.timer);
	count = hca_asked_take(&asked, askers);
	for (unsigned i = 0; i < count; i++) {
		hca_inspect_reply_faults(askers[i].fd, -ENODEV, &askers[i].faults);
		close(askers[i].fd);
	}
}

void hca_faults_forked(void)
{
	pthread_mutex_init(&faults.lock, NULL);
	hca_asked_forked(&asked, set_due);
}

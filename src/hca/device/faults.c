/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answering side of faults.h. A request arrives with a lock of a transport held, and the
 * transports take their locks to do it. So a timer does it.
 */
#define LOG_ROOM "hca"
#include "hca/device/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "hca/path/path.h"
#include "hca/run/progress.h"
#include "util/log.h"

#define ASKERS 8

struct asker {
	int fd;
	struct hca_inspect_faults msg;
};

static void set_due(struct progress_timer *t);

static struct {
	/* Requests come on the progress thread, and on one that connects to its own process. */
	pthread_mutex_t lock;
	struct asker askers[ASKERS];
	unsigned count;
	struct progress_timer timer;
	/* What was set last, and what came of it. */
	struct hca_inspect_faults now;
	bool changed; /* else it is BUSBAR_FAULTS */
} faults = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.timer = PROGRESS_TIMER(faults.timer, set_due),
};

static void set_one(struct asker *a)
{
	int ret = hca_transports_faults(a->msg.set, a->msg.notes, sizeof(a->msg.notes));

	/* Those that cannot do it have none now. */
	if (ret != -EINVAL) {
		pthread_mutex_lock(&faults.lock);
		faults.changed = true;
		faults.now = a->msg;
		pthread_mutex_unlock(&faults.lock);
		log_info("faults '%s', as was asked for", a->msg.set);
	}
	hca_inspect_reply_faults(a->fd, ret, &a->msg);
	close(a->fd);
}

static void set_due(struct progress_timer *t)
{
	struct asker due[ASKERS];
	unsigned count;

	(void)t;
	pthread_mutex_lock(&faults.lock);
	count = faults.count;
	memcpy(due, faults.askers, count * sizeof(*due));
	faults.count = 0;
	pthread_mutex_unlock(&faults.lock);
	for (unsigned i = 0; i < count; i++)
		set_one(&due[i]);
}

int hca_faults_request(int fd, const struct hca_inspect_faults *msg)
{
	struct asker *a;
	int own, ret = 0;

	if (!memchr(msg->set, 0, sizeof(msg->set)))
		return -EINVAL;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	pthread_mutex_lock(&faults.lock);
	if (faults.count < ASKERS) {
		a = &faults.askers[faults.count++];
		a->fd = own;
		a->msg = *msg;
		memset(a->msg.notes, 0, sizeof(a->msg.notes));
	} else {
		ret = -EBUSY;
	}
	pthread_mutex_unlock(&faults.lock);
	if (ret)
		close(own);
	else
		progress_timer_arm(&faults.timer, progress_now_ns());
	return ret;
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
	progress_timer_cancel(&faults.timer);
	for (unsigned i = 0; i < faults.count; i++) {
		hca_inspect_reply_faults(faults.askers[i].fd, -ENODEV,
					 &faults.askers[i].msg);
		close(faults.askers[i].fd);
	}
	faults.count = 0;
}

void hca_faults_forked(void)
{
	pthread_mutex_init(&faults.lock, NULL);
	for (unsigned i = 0; i < faults.count; i++)
		close(faults.askers[i].fd);
	faults.count = 0;
	progress_timer_init(&faults.timer, set_due);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests of other processes that wait for the progress thread; see asked.h. */
#include "hca/device/asked.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int hca_asked_add(struct hca_asked *a, const struct hca_asker *asker)
{
	int own = fcntl(asker->fd, F_DUPFD_CLOEXEC, 0), ret = 0;

	if (own < 0)
		return -errno;
	pthread_mutex_lock(&a->lock);
	if (a->count < HCA_ASKED_MAX) {
		a->askers[a->count] = *asker;
		a->askers[a->count++].fd = own;
	} else {
		ret = -EBUSY;
	}
	pthread_mutex_unlock(&a->lock);
	if (ret)
		close(own);
	else
		progress_timer_arm(&a->timer, progress_now_ns());
	return ret;
}

unsigned hca_asked_take(struct hca_asked *a, struct hca_asker out[HCA_ASKED_MAX])
{
	unsigned count;

	pthread_mutex_lock(&a->lock);
	count = a->count;
	memcpy(out, a->askers, count * sizeof(*out));
	a->count = 0;
	pthread_mutex_unlock(&a->lock);
	return count;
}

void hca_asked_forked(struct hca_asked *a, void (*due)(struct progress_timer *t))
{
	/* Another thread of the parent may have held it. */
	pthread_mutex_init(&a->lock, NULL);
	for (unsigned i = 0; i < a->count; i++)
		close(a->askers[i].fd);
	a->count = 0;
	progress_timer_init(&a->timer, due);
}

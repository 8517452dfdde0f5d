/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of transport iwarp; see stream.h. The port opens with the first connection. */
#define LOG_ROOM "iwarp"
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "hca/path/path.h"
#include "hca/run/elide.h"
#include "transport/iwarp/middlebox.h"
#include "transport/iwarp/stream.h"
#include "transport/list.h"

static int iwarp_start(void)
{
	iwarp_port.ops = &iwarp_ops;
	packet_show_start();
	return 0;
}

/* iwarp_port.lock is held. */
static int open_port(void)
{
	int ret = -ENOMEM;

	iwarp_faults_read();
	iwarp_port.bytes = malloc(IWARP_READ_BYTES);
	if (!iwarp_port.bytes)
		return ret;
	iwarp_port.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ret = iwarp_port.epoll_fd < 0 ? -errno : iwarp_polls_start();
	if (!ret) {
		atomic_store(&iwarp_port.open, true);
		return 0;
	}
	if (iwarp_port.epoll_fd >= 0)
		close(iwarp_port.epoll_fd);
	iwarp_port.epoll_fd = -1;
	free(iwarp_port.bytes);
	return ret;
}

static int iwarp_open(struct hca_qp *qp)
{
	int ret;

	(void)qp;
	pthread_mutex_lock(&iwarp_port.lock);
	ret = atomic_load(&iwarp_port.open) ? 0 : open_port();
	pthread_mutex_unlock(&iwarp_port.lock);
	return ret;
}

static void iwarp_stop(void)
{
	bool open;

	pthread_mutex_lock(&iwarp_port.rely_lock);
	open = atomic_exchange(&iwarp_port.open, false);
	pthread_mutex_unlock(&iwarp_port.rely_lock);
	if (open) {
		iwarp_polls_stop();
		iwarp_end_lingering();
		iwarp_middleboxes_stop();
		close(iwarp_port.epoll_fd);
		iwarp_port.epoll_fd = -1;
		free(iwarp_port.bytes);
	}
	packet_show_stop();
}

static void iwarp_forked(void)
{
	pthread_mutex_init(&iwarp_port.lock, NULL);
	iwarp_port.receive_lock = (struct spin){ 0 };
	iwarp_polls_forked();
	iwarp_streams_forked();
	iwarp_middleboxes_forked();
	hca_copies_forked(&iwarp_port.copies);
	if (iwarp_port.epoll_fd >= 0)
		close(iwarp_port.epoll_fd);
	iwarp_port.epoll_fd = -1;
	atomic_store(&iwarp_port.open, false);
	packet_show_forked();
}

/* No address leads here: a connection manager brings the connection. */
static int iwarp_reach(const struct hca_destination *to)
{
	(void)to;
	return -EHOSTUNREACH;
}

static int iwarp_connect(struct hca_qp *qp)
{
	(void)qp;
	return 0;
}

static void iwarp_transmit(struct hca_qp *qp)
{
	struct iwarp_stream *s = iwarp_stream_of(qp);

	if (s)
		iwarp_send(s);
}

static void qp_fence(const struct hca_qp *qp)
{
	(void)qp;
	hca_copies_wait(&iwarp_port.copies);
	if (hca_self.depth)
		return;
	hca_lock(&iwarp_port.receive_lock);
	hca_unlock(&iwarp_port.receive_lock);
}

static void key_fence(uint32_t key)
{
	(void)key;
	hca_copies_wait(&iwarp_port.copies);
}

static bool key_busy(uint32_t key)
{
	(void)key;
	return hca_copies_any(&iwarp_port.copies);
}

static const struct hca_stream_ops stream_ops = {
	.attach = iwarp_attach,
	.begin = iwarp_begin,
	.close = iwarp_close_stream,
	.forget = iwarp_forget,
};

const struct hca_transport_ops iwarp_ops = {
	.name = "iwarp",
	.start = iwarp_start,
	.stop = iwarp_stop,
	.forked = iwarp_forked,
	.reach = iwarp_reach,
	.open = iwarp_open,
	.connect = iwarp_connect,
	.close = iwarp_close_qp,
	.failed = iwarp_failed,
	.transmit = iwarp_transmit,
	.expired = iwarp_expired,
	.poll = iwarp_poll,
	.polled_later = true,
	.announces = iwarp_announces,
	.faults = iwarp_faults_set,
	.stream = &stream_ops,
	.fence = {
		.qp = qp_fence,
		.key = key_fence,
		.key_busy = key_busy,
	},
};

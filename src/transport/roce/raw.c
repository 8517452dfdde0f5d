/* SPDX-License-Identifier: BSD-2-Clause */
/* See raw.h. */
#define LOG_ROOM "roce"
#include "transport/roce/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/run/progress.h"
#include "hca/share/peers.h"
#include "transport/roce/slots.h"
#include "util/abstract.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

#define NAME "busbar.roce.%u.raw.%u"
#define BACKLOG 128
#define KNOWN_FOR_NS 500000000

static struct {
	int listener;  /* -1: not announced */
	int spare;     /* a descriptor, for a connection when there are no others */
	uint16_t port;
	/* When the holder of a slot's name was asked for, times two, plus 1 if there is one;
	 * 0: it was not. */
	_Atomic uint64_t known[ROCE_SLOTS];
} raw = { .listener = -1, .spare = -1 };

static int spare_open(void)
{
	return fcntl(raw.listener, F_DUPFD_CLOEXEC, 0);
}

static void close_both(void)
{
	if (raw.spare >= 0)
		close(raw.spare);
	close(raw.listener);
	raw.listener = raw.spare = -1;
}

/* Who connects wants to know that there is somebody, nothing else. Called for new ones only
 * (EPOLLET), as one that cannot be accepted would be told of for ever. */
static void serve(void *arg, uint32_t events)
{
	bool spent = raw.spare < 0;
	int fd;

	(void)arg;
	(void)events;
	for (unsigned i = 0; i < 2 * BACKLOG; i++) {
		fd = accept4(raw.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			close(fd);
		else if (errno == EMFILE && !spent) {
			/* The backlog is emptied all the same: when it is full, nobody is
			 * told of new ones any more. */
			close(raw.spare);
			raw.spare = -1;
			spent = true;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			break;
		}
	}
	if (raw.spare < 0)
		raw.spare = spare_open();
}

int roce_raw_announce(uint16_t port, unsigned slot)
{
	struct abstract_name name;
	int ret = abstract_name(&name, NAME, port, slot);

	if (!ret)
		ret = abstract_open(&name, SOCK_SEQPACKET, BACKLOG);
	if (ret < 0)
		return ret;
	raw.listener = ret;
	raw.port = port;
	raw.spare = spare_open();
	ret = progress_watch(raw.listener, EPOLLIN | EPOLLET, serve, NULL);
	if (ret)
		close_both();
	return ret;
}

void roce_raw_withdraw(void)
{
	if (raw.listener < 0)
		return;
	progress_unwatch(raw.listener);
	close_both();
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		atomic_store(&raw.known[i], 0);
}

void roce_raw_forked(void)
{
	if (raw.listener >= 0)
		close_both();
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		atomic_store(&raw.known[i], 0);
}

/* ---- asking ---- */

static bool has_holder(unsigned slot)
{
	struct ucred cred;
	char name[64];
	int ret;

	CANCEL_OFF; /* connect() and close() are cancellation points */
	snprintf(name, sizeof(name), NAME, raw.port, slot);
	ret = hca_name_holder(name, &cred);
	return !ret && hca_peer_is_kin(&cred);
}

static bool slot_is_taken(unsigned slot, bool fresh)
{
	uint64_t now = clock_now_ns(), known;

	known = atomic_load_explicit(&raw.known[slot], memory_order_relaxed);
	if (fresh || !known || now - known / 2 > KNOWN_FOR_NS) {
		known = now * 2 + has_holder(slot);
		atomic_store_explicit(&raw.known[slot], known, memory_order_relaxed);
	}
	return known & 1;
}

bool roce_raw_is_taken(uint32_t qpn, bool fresh)
{
	/* Who cannot take them cannot send them either. */
	return raw.listener >= 0 && slot_is_taken(roce_slot_of(qpn), fresh);
}

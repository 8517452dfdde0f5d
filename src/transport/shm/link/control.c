/* SPDX-License-Identifier: BSD-2-Clause */
/* Control messages on a link's socket, with their descriptors. */
#define LOG_ROOM "shm"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "hca/run/aside.h"
#include "hca/share/process.h"
#include "transport/shm/link/control.h"
#include "transport/shm/ring/ring.h"
#include "util/cancel.h"
#include "util/container_of.h"
#include "util/log.h"

#define FDS_MAX 3

union fd_space {
	char buf[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

/* The blocks and the segment's address are sent in the handshake only. */
static void set_identity(struct shm_control *msg)
{
	msg->magic = SHM_CONTROL_MAGIC;
	msg->version = SHM_CONTROL_VERSION;
	msg->area_bytes = sizeof(struct shm_area);
	memcpy(msg->uuid, hca_process.uuid, sizeof(msg->uuid));
	if (msg->kind > SHM_READY)
		return;
	if (msg->lends & HCA_PEER_MEMORY)
		msg->segment_addr = (uintptr_t)hca_process.segment;
	msg->block_count = hca_process.own_block_count;
	memcpy(msg->blocks, hca_process.own_blocks, sizeof(msg->blocks));
}

int shm_control_send(int fd, struct shm_control *msg, const int *fds, int fd_count)
{
	CANCEL_OFF;
	struct iovec iov = { msg, sizeof(*msg) };
	union fd_space space = { 0 };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	set_identity(msg);
	if (fd_count) {
		struct cmsghdr *c = &space.align;

		h.msg_control = space.buf;
		h.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)fd_count * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(*msg) ? 0 : -errno;
}

int shm_control_tell(int fd, enum shm_control_kind kind, const int *fds, int fd_count)
{
	struct shm_control msg = { .kind = (uint16_t)kind };

	return shm_control_send(fd, &msg, fds, fd_count);
}

void shm_control_kick(int fd)
{
	const char byte = 0;

	/* With a full socket the reader is awake already. By syscall(), which is no
	 * cancellation point (util/cancel.h). */
	if (syscall(SYS_sendto, (long)fd, &byte, sizeof(byte),
		    (long)(MSG_NOSIGNAL | MSG_DONTWAIT), NULL, 0L) < 0 &&
	    errno != EAGAIN)
		log_debug("peer not woken: %m");
}

void shm_control_drop(int fds[FDS_MAX])
{
	for (int i = 0; i < FDS_MAX; i++) {
		if (fds[i] >= 0)
			hca_fd_drop(fds[i]);
		fds[i] = -1;
	}
}

static void take_fds(struct msghdr *h, int fds[FDS_MAX])
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(c), MIN(count, (size_t)FDS_MAX) * sizeof(int));
	}
}

int shm_control_peek(int fd, struct shm_control *msg)
{
	ssize_t n = recv(fd, msg, sizeof(*msg), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n == 1)
		msg->kind = SHM_KICK;
	return n == sizeof(*msg) || n == 1 ? 1 : -EPROTO;
}

static bool understood(const struct shm_control *msg, ssize_t n)
{
	return n == sizeof(*msg) && msg->magic == SHM_CONTROL_MAGIC &&
	       msg->version == SHM_CONTROL_VERSION && msg->kind != SHM_KICK &&
	       msg->area_bytes == sizeof(struct shm_area) &&
	       msg->block_count <= HCA_BLOCKS_PER_PROCESS;
}

int shm_control_recv(int fd, struct shm_control *msg, bool take, int fds[FDS_MAX])
{
	struct iovec iov = { msg, sizeof(*msg) };
	union fd_space space;
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	memset(fds, -1, FDS_MAX * sizeof(int));
	if (take) {
		h.msg_control = space.buf;
		/* Not CMSG_SPACE: its padding has room for one more descriptor, which
		 * would never be closed. */
		h.msg_controllen = CMSG_LEN(FDS_MAX * sizeof(int));
	}
	n = recvmsg(fd, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	take_fds(&h, fds);
	if (n == 1) {
		shm_control_drop(fds);
		msg->kind = SHM_KICK;
		return 1;
	}
	/* The end or an empty message; not a control message of this version; too many
	 * descriptors. */
	if (n == 0 || !understood(msg, n) || (h.msg_flags & MSG_TRUNC) ||
	    (take && (h.msg_flags & MSG_CTRUNC))) {
		shm_control_drop(fds);
		return n == 0 ? -ECONNRESET : -EPROTO;
	}
	return 1;
}

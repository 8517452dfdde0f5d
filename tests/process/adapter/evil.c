/* SPDX-License-Identifier: BSD-2-Clause */
/* The hostile peer's means; see evil.h. */
#include "evil.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int evil_memory(const char *name, size_t size, enum evil_file kind)
{
	int fds[2], fd;

	if (kind == EVIL_MISSING)
		return -1;
	if (kind == EVIL_PIPE) {
		if (pipe2(fds, O_CLOEXEC))
			return -1;
		close(fds[0]);
		return fds[1];
	}
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)size - (kind == EVIL_SHORT)))
		return -1;
	if (kind != EVIL_UNSEALED)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

static socklen_t name_of(uint32_t block, struct sockaddr_un *sun)
{
	int n;

	memset(sun, 0, sizeof(*sun));
	sun->sun_family = AF_UNIX;
	n = snprintf(sun->sun_path + 1, sizeof(sun->sun_path) - 1,
		     "busbar.qpn.%u", block);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)n);
}

static int listen_as(uint32_t block)
{
	struct sockaddr_un sun;
	socklen_t len = name_of(block, &sun);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && (bind(fd, (struct sockaddr *)&sun, len) ||
			listen(fd, 16))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

int evil_open(struct evil *e, uint32_t block)
{
	memset(e, 0, sizeof(*e));
	e->fd = e->listen_fd = e->area_fd = e->victim_kick = e->victim_keys = -1;
	e->lends = HCA_PEER_WAKEUP | HCA_PEER_REGIONS | HCA_PEER_PTRACE;
	e->segment_fd = evil_memory("evil-segment", sizeof(*e->segment),
				    EVIL_SEALED);
	e->keys_fd = evil_memory("evil-keys", HCA_KEY_TABLE_BYTES, EVIL_SEALED);
	e->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->keys = mmap(NULL, HCA_KEY_TABLE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_SHARED, e->keys_fd, 0);
	e->segment = mmap(NULL, sizeof(*e->segment), PROT_READ | PROT_WRITE,
			  MAP_SHARED, e->segment_fd, 0);
	if (e->kick_fd < 0 || e->segment == MAP_FAILED || e->keys == MAP_FAILED ||
	    getrandom(e->uuid, sizeof(e->uuid), 0) != sizeof(e->uuid))
		return -1;
	e->segment->magic = HCA_SEGMENT_MAGIC;
	memcpy(e->segment->uuid, e->uuid, sizeof(e->uuid));
	e->segment->membarrier = 1;
	e->segment->key_count = HCA_KEYS;
	for (unsigned i = 0; block && e->listen_fd < 0; i++) {
		if (i == 64)
			return -1;
		e->block = block + i;
		e->listen_fd = listen_as(e->block);
	}
	e->segment->blocks[0] = e->block;
	return 0;
}

int evil_connect(uint32_t block)
{
	struct sockaddr_un sun;
	socklen_t len = name_of(block, &sun);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&sun, len)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

struct shm_control evil_control(const struct evil *e, enum shm_control_kind kind)
{
	struct shm_control msg = {
		.magic = SHM_CONTROL_MAGIC,
		.version = SHM_CONTROL_VERSION,
		.kind = (uint16_t)kind,
		.area_bytes = sizeof(struct shm_area),
		.segment_addr = (uintptr_t)e->segment,
		.block_count = 1,
		.lends = e->lends,
		.blocks = { e->block },
	};

	memcpy(msg.uuid, e->uuid, sizeof(msg.uuid));
	return msg;
}

int evil_send(int fd, const void *msg, size_t size, const int *fds, int count)
{
	union {
		char buf[CMSG_SPACE(16 * sizeof(int))];
		struct cmsghdr align;
	} space = { 0 };
	struct iovec iov = { (void *)(uintptr_t)msg, size };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count) {
		space.align.cmsg_level = SOL_SOCKET;
		space.align.cmsg_type = SCM_RIGHTS;
		space.align.cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
		memcpy(CMSG_DATA(&space.align), fds,
		       (size_t)count * sizeof(int));
		h.msg_control = space.buf;
		h.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int));
	}
	return sendmsg(fd, &h, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -1 : 0;
}

int evil_recv(int fd, struct shm_control *msg, int fds[3], int ms)
{
	union {
		char buf[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} space;
	struct iovec iov = { msg, sizeof(*msg) };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1,
			    .msg_control = space.buf,
			    .msg_controllen = sizeof(space.buf) };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct cmsghdr *c;
	ssize_t n;

	memset(fds, -1, 3 * sizeof(int));
	if (poll(&p, 1, ms) <= 0)
		return -1;
	n = recvmsg(fd, &h, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -1;
	c = CMSG_FIRSTHDR(&h);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(c),
		       MIN(c->cmsg_len - CMSG_LEN(0), 3 * sizeof(int)));
	return (int)n;
}

static int map_area(struct evil *e, int role)
{
	e->area = mmap(NULL, sizeof(*e->area), PROT_READ | PROT_WRITE,
		       MAP_SHARED, e->area_fd, 0);
	if (e->area == MAP_FAILED) {
		e->area = NULL;
		return -1;
	}
	e->tx = &e->area->dir[role];
	e->rx = &e->area->dir[!role];
	/* Where the receiver of a direction says what it can do. */
	atomic_store(&e->rx->ack.pulls, (e->lends & HCA_PEER_PTRACE) != 0);
	e->pos = 0;
	return 0;
}

static void map_victim(struct evil *e, const struct shm_control *msg, int fd)
{
	e->victim = mmap(NULL, sizeof(*e->victim), PROT_READ, MAP_SHARED, fd, 0);
	memcpy(e->victim_uuid, msg->uuid, sizeof(e->victim_uuid));
	close(fd);
}

int evil_hello(struct evil *e, uint32_t block)
{
	struct shm_control msg = evil_control(e, SHM_HELLO);
	int fds[3];

	e->fd = evil_connect(block);
	e->area_fd = evil_memory("evil-area", sizeof(*e->area), EVIL_SEALED);
	if (e->fd < 0 || map_area(e, 0))
		return -1;
	memcpy(fds, (int[]){ e->segment_fd, e->kick_fd, e->area_fd },
	       sizeof(fds));
	if (evil_send(e->fd, &msg, sizeof(msg), fds, 3) ||
	    evil_recv(e->fd, &msg, fds, 5000) != sizeof(msg) ||
	    msg.kind != SHM_WELCOME || fds[1] < 0)
		return -1;
	map_victim(e, &msg, fds[0]);
	e->victim_kick = fds[1];
	e->victim_keys = fds[2];
	return 0;
}

int evil_ready(struct evil *e)
{
	struct shm_control msg = evil_control(e, SHM_READY);

	return evil_send(e->fd, &msg, sizeof(msg), &e->keys_fd, 1);
}

int evil_call(struct evil *e, uint32_t block)
{
	return evil_hello(e, block) ? -1 : evil_ready(e);
}

int evil_hear(struct evil *e, int ms)
{
	struct pollfd p = { .fd = e->listen_fd, .events = POLLIN };
	struct shm_control msg;
	int fds[3];

	/* The first connection may only ask for our credentials, without a HELLO. */
	for (;;) {
		if (poll(&p, 1, ms) <= 0)
			return -1;
		e->fd = accept4(e->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (e->fd < 0)
			return -1;
		if (evil_recv(e->fd, &msg, fds, ms) == sizeof(msg))
			break;
		close(e->fd);
	}
	if (msg.kind != SHM_HELLO || fds[2] < 0)
		return -1;
	map_victim(e, &msg, fds[0]);
	e->victim_kick = fds[1];
	e->area_fd = fds[2];
	return map_area(e, 1);
}

int evil_welcome(struct evil *e, int ms)
{
	struct shm_control msg = evil_control(e, SHM_WELCOME);
	int fds[3];

	if (evil_send(e->fd, &msg, sizeof(msg),
		      (int[]){ e->segment_fd, e->kick_fd, e->keys_fd }, 3) ||
	    evil_recv(e->fd, &msg, fds, ms) != sizeof(msg) ||
	    msg.kind != SHM_READY)
		return -1;
	e->victim_keys = fds[0];
	return 0;
}

int evil_answer(struct evil *e, int ms)
{
	return evil_hear(e, ms) ? -1 : evil_welcome(e, ms);
}

bool evil_closed(int fd, int ms)
{
	struct shm_control msg;
	int fds[3], n;

	do {
		n = evil_recv(fd, &msg, fds, ms);
		for (int i = 0; i < 3; i++)
			if (fds[i] >= 0)
				close(fds[i]);
	} while (n > 0);
	return n == 0;
}

struct shm_slot *evil_slot(struct evil *e)
{
	struct shm_slot *s = &e->tx->slots[e->pos % SHM_SLOTS];

	memset((uint8_t *)s + sizeof(s->tag), 0, sizeof(*s) - sizeof(s->tag));
	return s;
}

void evil_publish(struct evil *e)
{
	struct shm_slot *s = &e->tx->slots[e->pos % SHM_SLOTS];
	const uint64_t one = 1;

	atomic_store(&s->tag, e->pos / SHM_SLOTS + 1);
	e->pos++;
	if (write(e->victim_kick, &one, sizeof(one)) < 0) {
		/* It is awake then. */
	}
}

void evil_hang_up(struct evil *e)
{
	if (e->area)
		munmap(e->area, sizeof(*e->area));
	if (e->victim)
		munmap((void *)(uintptr_t)e->victim, sizeof(*e->victim));
	for (int i = 0; i < 4; i++) {
		int *fd[] = { &e->fd, &e->area_fd, &e->victim_kick,
			      &e->victim_keys };

		if (*fd[i] >= 0)
			close(*fd[i]);
		*fd[i] = -1;
	}
	e->area = NULL;
	e->victim = NULL;
}

void evil_close(struct evil *e)
{
	evil_hang_up(e);
	munmap(e->segment, sizeof(*e->segment));
	munmap(e->keys, HCA_KEY_TABLE_BYTES);
	close(e->segment_fd);
	close(e->keys_fd);
	close(e->kick_fd);
	if (e->listen_fd >= 0)
		close(e->listen_fd);
}

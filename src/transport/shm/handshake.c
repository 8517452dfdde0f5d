/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How two processes get a link.
 *
 * The connector makes the memory file and sends it with HELLO; the acceptor
 * answers WELCOME; each finds out how it reaches the other's memory; the connector
 * sends READY. When both call each other at once, the connection of the
 * process with the smaller identity stays and the other is redirected.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/aside.h"
#include "hca/inspect_message.h"
#include "hca/memory_file.h"
#include "hca/names.h"
#include "hca/process.h"
#include "hca/progress.h"
#include "hca/settings.h"
#include "transport/shm/ack.h"
#include "transport/shm/control.h"
#include "transport/shm/join.h"
#include "transport/shm/link.h"
#include "transport/shm/peer.h"
#include "transport/shm/reach.h"
#include "transport/shm/ring.h"
#include "transport/shm/state.h"
#include "util/clock.h"
#include "util/log.h"

#define CONTROL_BATCH 16
/* Without descriptors for callers. */
#define PAUSE_NS (50 * 1000 * 1000)

static void on_control(void *arg, uint32_t events);

/* ---- who the peer is ---- */

static int link_set_peer(struct shm_link *l, const struct shm_control *msg,
			 int fds[3])
{
	int ret;

	l->borrows = l->kin ? (uint8_t)msg->lends : 0;
	if ((l->borrows & HCA_PEER_WAKEUP) && !shm_wakeup_is_eventfd(fds[1]))
		return -EPROTO;
	/* Ours is for ourselves: it says whose the keys are. */
	if (!memcmp(msg->uuid, hca_process.uuid, sizeof(msg->uuid)) &&
	    l->pid != getpid())
		return -EPROTO;
	ret = shm_peer_map(l, fds[0]);
	if (ret)
		return ret;
	if (l->peer->magic != HCA_SEGMENT_MAGIC)
		return -EPROTO;
	if (l->borrows & HCA_PEER_WAKEUP) {
		l->kick_fd = fds[1];
		fds[1] = -1; /* kept */
	}
	memcpy(l->uuid, msg->uuid, sizeof(l->uuid));
	l->peer_tag = shm_uuid_tag(msg->uuid);
	l->rx_peer = l->pid == getpid() ? (const void *)&shm : l;
	l->fence = !hca_process.membarrier || !l->peer->membarrier;
	l->segment_addr = msg->segment_addr;
	return 0;
}

static void link_up(struct shm_link *l)
{
	atomic_store(&l->state, SHM_LINK_UP);
	hca_link_opened(l->place, (uint32_t)l->pid, shm_access_flags(l));
	if (l->target_block)
		atomic_store(&shm.by_block[l->target_block], l);
	log_debug("link to pid %d up, its memory: by %s", (int)l->pid,
		  shm_path_name((enum shm_path)atomic_load(&l->path)));
	shm_access_improve(l);
	pthread_cond_broadcast(&shm.changed);
	/* Datagrams waited for this. */
	shm_backlog_open(l);
}

static void link_set_cred(struct shm_link *l, const struct ucred *cred)
{
	l->pid = cred->pid;
	l->uid = cred->uid;
	l->kin = hca_peer_is_kin(cred);
	l->lends = (uint8_t)hca_peer_lends(cred);
}

/* With what the other end needs of us, and, unless it is -1, another descriptor. */
static int identity_send(const struct shm_link *l, enum shm_control_kind kind,
			 int other)
{
	struct shm_control msg = { .kind = (uint16_t)kind, .lends = l->lends };
	int fds[3] = { hca_process.segment_fd,
		       l->lends & HCA_PEER_WAKEUP ? hca_process.kick_fd :
						    hca_process.segment_fd,
		       other };

	return shm_control_send(l->fd, &msg, fds, other < 0 ? 2 : 3);
}

/* ---- connecting ---- */

static int area_create(void)
{
	int fd = hca_memory_file("busbar-link", sizeof(struct shm_area),
				 MFD_ALLOW_SEALING);

	if (fd < 0)
		return fd;
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

int shm_link_connect(uint32_t block, struct shm_link **out)
{
	struct shm_link *l;
	struct ucred cred;
	int ret, fd, area;

	fd = hca_block_connect(block);
	if (fd < 0)
		return fd;
	if (!hca_peer_cred(fd, &cred) || !hca_peer_may_talk(&cred)) {
		hca_peer_refused("owner of a QP number,", &cred);
		close(fd);
		return -EPERM;
	}
	if (shm_peer_is_banned(cred.pid)) {
		close(fd);
		return -EPERM;
	}
	l = shm_link_new();
	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	l->fd = fd;
	link_set_cred(l, &cred);
	l->target_block = block;
	ret = area = area_create();
	if (ret < 0)
		goto err_link;
	ret = shm_link_set_area(l, area, 0);
	if (!ret)
		ret = identity_send(l, SHM_HELLO, area);
	close(area);
	if (ret)
		goto err_link;
	atomic_store(&l->state, SHM_LINK_CONNECTING);
	if (!l->kin) {
		l->deadline_ns = progress_now_ns() + SHM_HANDSHAKE_NS;
		shm_sweep_at(l->deadline_ns);
	}
	ret = progress_watch(fd, EPOLLIN, on_control, l);
	if (ret)
		goto err_link;
	*out = l;
	return 0;

err_link:
	if (hca_complaint_due())
		log_error("no link to the owner of QP numbers 0x%x..: %s",
			  block << HCA_QPN_BLOCK_BITS, strerror(-ret));
	shm_link_down(l);
	return ret;
}

/* ---- accepting ---- */

/* Does this connection give way to another one with the same peer? The same is
 * who has the same process number, too: anybody can say a name. */
static bool redirected(const struct shm_link *from,
		       const struct shm_control *msg)
{
	if (!memcmp(msg->uuid, hca_process.uuid, sizeof(msg->uuid)))
		return false; /* a link of the process with itself */
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		const struct shm_link *l = shm.links[i];
		int state = atomic_load(&l->state);

		if (l->pid != from->pid)
			continue;
		if ((state == SHM_LINK_UP || state == SHM_LINK_ACCEPTING) &&
		    shm_uuid_is(l, msg->uuid))
			return true;
		if (state != SHM_LINK_CONNECTING ||
		    memcmp(hca_process.uuid, msg->uuid, sizeof(msg->uuid)) > 0)
			continue;
		for (unsigned b = 0; b < msg->block_count; b++)
			if (l->target_block == msg->blocks[b])
				return true;
	}
	return false;
}

static int on_hello(struct shm_link *l, const struct shm_control *msg,
		    int fds[3])
{
	int ret;

	if (redirected(l, msg)) {
		shm_control_tell(l->fd, SHM_REDIRECT, NULL, 0);
		return -EALREADY;
	}
	if (!shm_memory_stays(fds[2], sizeof(struct shm_area)))
		return -EPROTO;
	ret = link_set_peer(l, msg, fds);
	if (ret)
		return ret;
	ret = shm_link_set_area(l, fds[2], 1);
	if (ret)
		return ret;
	shm_access_choose(l, true);
	atomic_store(&l->greeted, true);
	return identity_send(l, SHM_WELCOME, shm_keys_for_peer(l));
}

static int on_welcome(struct shm_link *l, const struct shm_control *msg,
		      int fds[3])
{
	int keys, ret;

	ret = link_set_peer(l, msg, fds);
	if (!ret)
		ret = shm_peer_map_keys(l, fds[2]);
	if (ret)
		return ret;
	keys = shm_keys_for_peer(l);
	/* Before the peer uses what this says. */
	shm_access_choose(l, false);
	ret = shm_control_tell(l->fd, SHM_READY, &keys, keys < 0 ? 0 : 1);
	if (!ret)
		link_up(l);
	return ret;
}

/* With its keys there may be a better way into its memory. */
static int on_ready(struct shm_link *l, int fds[3])
{
	int ret = shm_peer_map_keys(l, fds[0]);

	if (ret)
		return ret;
	shm_access_choose(l, false);
	link_up(l);
	return 0;
}

static void refuse(const struct shm_link *l)
{
	struct ucred cred;

	if (hca_peer_cred(l->fd, &cred))
		hca_peer_refused("caller", &cred);
	shm_control_tell(l->fd, SHM_REFUSED, NULL, 0);
}

/* It has said why itself; asking again would not help. */
static int on_refused(const struct shm_link *l)
{
	hca_peer_refuses(&(struct ucred){ .pid = l->pid, .uid = l->uid });
	shm_peer_ban(l->pid, SHM_BAN_NS);
	return -EACCES;
}

static int on_message(struct shm_link *l, const struct shm_control *msg,
		      int fds[3])
{
	int state = atomic_load(&l->state);

	if (l->stranger) {
		refuse(l);
		return -EPERM;
	}
	if (state == SHM_LINK_ACCEPTING && msg->kind == SHM_HELLO && !l->area)
		return on_hello(l, msg, fds);
	if (state == SHM_LINK_ACCEPTING && msg->kind == SHM_READY && l->area)
		return on_ready(l, fds);
	if (state == SHM_LINK_CONNECTING && msg->kind == SHM_WELCOME)
		return on_welcome(l, msg, fds);
	if (state == SHM_LINK_CONNECTING && msg->kind == SHM_REDIRECT)
		return -EALREADY;
	if (state == SHM_LINK_CONNECTING && msg->kind == SHM_REFUSED)
		return on_refused(l);
	if (msg->kind == SHM_KICK) {
		hca_attention_kicked();
		return 0;
	}
	if (state == SHM_LINK_UP)
		return shm_access_message(l, msg, fds);
	return -EPROTO;
}

/* Descriptors are taken where they were asked for, or begin a link, and from nobody
 * else: whoever has one must close it, which may take as long as its file wants. */
static bool takes_descriptors(const struct shm_link *l,
			      const struct shm_control *msg)
{
	switch (atomic_load(&l->state)) {
	case SHM_LINK_ACCEPTING:
		return l->area ? msg->kind == SHM_READY :
				 msg->kind == SHM_HELLO && !l->stranger;
	case SHM_LINK_CONNECTING:
		return msg->kind == SHM_WELCOME;
	default:
		return msg->kind == SHM_MEMORY ? l->asked_memory :
						 msg->kind == SHM_REGION &&
							 shm_map_awaits(l, msg->id);
	}
}

/* What waits in the link's socket; shm.lock is held. */
static void control_take(struct shm_link *l)
{
	struct shm_control msg;
	int fds[3];
	int ret = 0;

	if (atomic_load(&l->state) == SHM_LINK_FREE)
		return;
	if (atomic_load(&l->state) == SHM_LINK_ACCEPTING && !l->area &&
	    hca_inspect_answer(l->fd)) {
		shm_link_end(l, "inspected");
		return;
	}
	/* Some of them, so that others get their turn. */
	for (int n = 0; n < CONTROL_BATCH && !ret; n++) {
		int next = shm_control_peek(l->fd, &msg);
		bool take = next > 0 && takes_descriptors(l, &msg);

		/* What comes just now was not looked at. */
		if (!next)
			break;
		ret = shm_control_recv(l->fd, &msg, take, fds);
		if (ret != 1)
			break;
		ret = on_message(l, &msg, fds);
		shm_control_drop(fds);
	}
	if (ret < 0) {
		if (ret == -EPROTO && hca_complaint_due())
			log_warn("a control message of pid %d was not understood: not the same version?",
				 (int)l->pid);
		shm_link_end(l, ret == -ECONNRESET ? "peer is gone" : strerror(-ret));
	}
}

static void on_control(void *arg, uint32_t events)
{
	pthread_mutex_lock(&shm.lock);
	control_take(arg);
	pthread_mutex_unlock(&shm.lock);
}

/* A peer's link is up when it has sent READY, and its messages may be here before
 * the progress thread has seen that. */
void shm_links_settle(void)
{
	pthread_mutex_lock(&shm.lock);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load(&l->state) == SHM_LINK_ACCEPTING && l->area)
			control_take(l);
	}
	pthread_mutex_unlock(&shm.lock);
}

/* Without a descriptor to spare the caller stays where it is, and the listening
 * socket readable: it is left alone for a while. */
static void pause_listening(int listen_fd)
{
	if (hca_complaint_due())
		log_error("a peer waits for its link: %m");
	pthread_mutex_lock(&shm.lock);
	if (shm.paused_count < HCA_BLOCKS_PER_PROCESS) {
		shm.paused[shm.paused_count++] = listen_fd;
		progress_rewatch(listen_fd, 0);
		shm_sweep_at(progress_now_ns() + PAUSE_NS);
	}
	pthread_mutex_unlock(&shm.lock);
}

/* shm.lock is held. */
static void caller_take(int fd)
{
	struct shm_link *l;
	struct ucred cred;
	bool allowed;

	allowed = hca_peer_cred(fd, &cred) && hca_peer_may_talk(&cred);
	if ((hca_aside_is_full() && !hca_peer_is_kin(&cred)) ||
	    (!allowed && !shm_strangers_have_room()) ||
	    shm_peer_is_banned(cred.pid) || !shm_peer_has_room(&cred))
		goto err_fd;
	l = shm_link_new();
	if (!l)
		goto err_fd;
	l->fd = fd;
	link_set_cred(l, &cred);
	l->stranger = !allowed;
	l->target_block = 0;
	l->deadline_ns = progress_now_ns() + SHM_HANDSHAKE_NS;
	atomic_store(&l->state, SHM_LINK_ACCEPTING);
	if (progress_watch(fd, EPOLLIN, on_control, l)) {
		shm_link_down(l);
		return;
	}
	shm_sweep_at(l->deadline_ns);
	/* Its HELLO is mostly here already. */
	control_take(l);
	return;

err_fd:
	close(fd);
}

static int caller_accept(int listen_fd)
{
	return accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

static void on_listen(void *arg, uint32_t events)
{
	int listen_fd = (int)(intptr_t)arg;
	int fd = caller_accept(listen_fd);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_listening(listen_fd);
		return;
	}
	pthread_mutex_lock(&shm.lock);
	caller_take(fd);
	pthread_mutex_unlock(&shm.lock);
}

void shm_link_hear(struct shm_link *l)
{
	if (shm_link_is_made(l))
		control_take(l);
}

void shm_link_to_self(uint32_t block, struct shm_link *l)
{
	int listen_fd = -1, fd;

	for (unsigned i = 0; i < hca_process.own_block_count; i++)
		if (hca_process.own_blocks[i] == block)
			listen_fd = hca_process.block_fds[i];
	/* Others may have called before. Where this finds nobody the progress thread
	 * was quicker, and goes on. */
	for (int i = 0; i < CONTROL_BATCH && listen_fd >= 0 &&
			(fd = caller_accept(listen_fd)) >= 0; i++)
		caller_take(fd);
	shm_link_hear(l); /* WELCOME */
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++)
		if (shm.links[i]->pid == getpid())
			shm_link_hear(shm.links[i]); /* READY */
}

int shm_block_claimed(uint32_t block, int listen_fd)
{
	return progress_watch(listen_fd, EPOLLIN, on_listen,
			      (void *)(intptr_t)listen_fd);
}


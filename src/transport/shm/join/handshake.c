/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake by which two processes make a link.
 *
 * The connector makes the memory file and sends it with HELLO; the acceptor
 * answers WELCOME; each chooses how to access the other's memory; the connector
 * sends READY. When both connect to each other at once, the connection of the
 * process with the smaller uuid is kept and the other is answered with REDIRECT.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/run/aside.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "hca/view/inspect_answer.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/control.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/area.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/faults.h"
#include "util/log.h"

#define CONTROL_BATCH 16

static void on_control(void *arg, uint32_t events);

/* ---- who the peer is ---- */

static int link_set_peer(struct shm_link *l, const struct shm_control *msg, int fds[3])
{
	int ret;

	l->borrows = l->kin ? (uint8_t)msg->lends : 0;
	if ((l->borrows & HCA_PEER_WAKEUP) && !shm_wakeup_is_eventfd(fds[1]))
		return -EPROTO;
	/* The uuid tells whose keys an announced copy uses: another process must not
	 * have ours. */
	if (!memcmp(msg->uuid, hca_process.uuid, sizeof(msg->uuid)) && l->pid != getpid())
		return -EPROTO;
	ret = shm_peer_map(l, fds[0]);
	if (ret)
		return ret;
	if (l->peer->magic != HCA_SEGMENT_MAGIC)
		return -EPROTO;
	if (l->borrows & HCA_PEER_WAKEUP) {
		l->kick_fd = fds[1];
		fds[1] = -1; /* the link owns it now */
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
	/* Senders of datagrams may wait for this link. */
	shm_backlog_open(l);
}

static void link_set_cred(struct shm_link *l, const struct ucred *cred)
{
	l->pid = cred->pid;
	l->uid = cred->uid;
	l->kin = hca_peer_is_kin(cred);
	l->lends = (uint8_t)hca_peer_lends(cred);
}

/* Sends HELLO or WELCOME with the descriptors of our segment and of our wake-up, and
 * `other` unless it is -1. */
static int identity_send(const struct shm_link *l, enum shm_control_kind kind, int other)
{
	struct shm_control msg = { .kind = (uint16_t)kind, .lends = l->lends };
	int fds[3] = { hca_process.segment_fd,
		       l->lends & HCA_PEER_WAKEUP ? hca_process.kick_fd :
						    hca_process.segment_fd,
		       other };

	return shm_control_send(l->fd, &msg, fds, other < 0 ? 2 : 3);
}

/* ---- connecting ---- */

static int set_area(struct shm_link *l, int area_fd, int role)
{
	int ret = shm_link_set_area(l, area_fd, role);

	if (!ret)
		shm_faults_open(l);
	return ret;
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
	ret = area = shm_area_create();
	if (ret < 0)
		goto err_link;
	ret = set_area(l, area, 0);
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

/* True if this connection is to be replaced by another one with the same peer. A peer
 * is the same only with the same pid, as any process can send any uuid. */
static bool redirected(const struct shm_link *from, const struct shm_control *msg)
{
	if (!memcmp(msg->uuid, hca_process.uuid, sizeof(msg->uuid)))
		return false; /* a link of the process with itself */
	shm_each_link(l) {
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

static int on_hello(struct shm_link *l, const struct shm_control *msg, int fds[3])
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
	ret = set_area(l, fds[2], 1);
	if (ret)
		return ret;
	shm_access_choose(l, true);
	atomic_store(&l->greeted, true);
	return identity_send(l, SHM_WELCOME, shm_keys_for_peer(l));
}

static int on_welcome(struct shm_link *l, const struct shm_control *msg, int fds[3])
{
	int keys, ret;

	ret = link_set_peer(l, msg, fds);
	if (!ret)
		ret = shm_peer_map_keys(l, fds[2]);
	if (ret)
		return ret;
	keys = shm_keys_for_peer(l);
	/* Before READY, after which the peer relies on what this sets in the link. */
	shm_access_choose(l, false);
	ret = shm_control_tell(l->fd, SHM_READY, &keys, keys < 0 ? 0 : 1);
	if (!ret)
		link_up(l);
	return ret;
}

/* READY of the connector, with its table of keys or without. With the keys its memory
 * may be accessible. 0 or a negative errno. */
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

/* The peer refused the link. The ban keeps this process from asking again at once. */
static int on_refused(const struct shm_link *l)
{
	hca_peer_refuses(&(struct ucred){ .pid = l->pid, .uid = l->uid });
	shm_peer_ban(l->pid, SHM_BAN_NS);
	return -EACCES;
}

static int on_message(struct shm_link *l, const struct shm_control *msg, int fds[3])
{
	int state = atomic_load(&l->state);

	if (l->may_not_talk) {
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

/* True if the message's descriptors are to be received: in the handshake, or in answer
 * to a request. Others are not received, as they would have to be closed, and close()
 * may block as long as the file's owner likes. */
static bool takes_descriptors(const struct shm_link *l, const struct shm_control *msg)
{
	switch (atomic_load(&l->state)) {
	case SHM_LINK_ACCEPTING:
		return l->area ? msg->kind == SHM_READY :
				 msg->kind == SHM_HELLO && !l->may_not_talk;
	case SHM_LINK_CONNECTING:
		return msg->kind == SHM_WELCOME;
	default:
		return msg->kind == SHM_MEMORY ? l->asked_memory :
						 msg->kind == SHM_REGION &&
							 shm_map_awaits(l, msg->id);
	}
}

/* Processes what waits in the link's socket; may end the link. shm.lock is held. */
static void control_take(struct shm_link *l)
{
	struct shm_control msg;
	int fds[3];
	int ret = 0;

	if (atomic_load(&l->state) == SHM_LINK_FREE)
		return;
	/* A message that comes after this look is left to the next call: the code below would
	 * take it for a message of another kind. */
	if (!shm_control_peek(l->fd, &msg))
		return;
	if (atomic_load(&l->state) == SHM_LINK_ACCEPTING && !l->area &&
	    hca_inspect_answer(l->fd)) {
		shm_link_end(l, "inspected");
		return;
	}
	/* A limited number, so that other descriptors get their turn. */
	for (int n = 0; n < CONTROL_BATCH && !ret; n++) {
		int next = shm_control_peek(l->fd, &msg);
		bool take = next > 0 && takes_descriptors(l, &msg);

		/* A message that comes after the peek has not been checked: later. */
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

/* For the peer the link is up when it has sent READY: its messages may come before the
 * progress thread of this process has processed READY. */
void shm_links_settle(void)
{
	pthread_mutex_lock(&shm.lock);
	shm_each_link(l) {
		if (atomic_load(&l->state) == SHM_LINK_ACCEPTING && l->area)
			control_take(l);
	}
	pthread_mutex_unlock(&shm.lock);
}

/* accept() found no free descriptor. The caller stays in the socket's queue and the socket
 * stays readable, so it is not watched for SHM_LISTEN_PAUSE_NS. */
static void pause_listening(int listen_fd)
{
	if (hca_complaint_due())
		log_error("a peer waits for its link: %m");
	pthread_mutex_lock(&shm.lock);
	if (shm.paused_count < HCA_BLOCKS_PER_PROCESS) {
		shm.paused[shm.paused_count++] = listen_fd;
		progress_rewatch(listen_fd, 0);
		shm_sweep_at(progress_now_ns() + SHM_LISTEN_PAUSE_NS);
	}
	pthread_mutex_unlock(&shm.lock);
}

/* Begins a link for an accepted connection, or closes it. shm.lock is held. */
static void caller_take(int fd)
{
	struct shm_link *l;
	struct ucred cred;
	bool allowed;

	allowed = hca_peer_cred(fd, &cred) && hca_peer_may_talk(&cred);
	if ((hca_aside_is_full() && !hca_peer_is_kin(&cred)) ||
	    (!allowed && !shm_inspectors_have_room()) ||
	    shm_peer_is_banned(cred.pid) || !shm_peer_has_room(&cred))
		goto err_fd;
	l = shm_link_new();
	if (!l)
		goto err_fd;
	l->fd = fd;
	link_set_cred(l, &cred);
	l->may_not_talk = !allowed;
	l->target_block = 0;
	l->deadline_ns = progress_now_ns() + SHM_HANDSHAKE_NS;
	atomic_store(&l->state, SHM_LINK_ACCEPTING);
	if (progress_watch(fd, EPOLLIN, on_control, l)) {
		shm_link_down(l);
		return;
	}
	shm_sweep_at(l->deadline_ns);
	/* The HELLO has usually come already. */
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
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
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
	/* Other processes may wait before our own call. If the progress thread has accepted our
	 * call already, none is found here. */
	for (int i = 0; i < CONTROL_BATCH && listen_fd >= 0 &&
			(fd = caller_accept(listen_fd)) >= 0; i++)
		caller_take(fd);
	shm_link_hear(l); /* WELCOME */
	shm_each_link(own)
		if (own->pid == getpid())
			shm_link_hear(own); /* READY */
}

int shm_block_claimed(uint32_t block, int listen_fd)
{
	return progress_watch(listen_fd, EPOLLIN, on_listen, (void *)(intptr_t)listen_fd);
}


/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: handshake, use by QPs, end.
 *
 * The connector makes the memory file and sends it with HELLO; the acceptor
 * answers WELCOME; each finds out how it reaches the other's memory; the connector
 * sends READY. When both call each other at once, the connection of the
 * process with the smaller identity stays and the other is redirected.
 *
 * Link structures are never freed, only used again, because pollers walk the
 * table without a lock. A link is taken down on the progress thread: first its
 * state, then each QP (under its sq_lock), then the link's own locks, then the
 * memory.
 */
#define LOG_ROOM "shm"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hca/inspect_message.h"
#include "hca/settings.h"
#include "transport/shm/shm.h"
#include "util/clock.h"
#include "util/log.h"

#define RESOLVE_LIMIT_S 1
/* For a peer that called and says nothing. */
#define HANDSHAKE_LIMIT_NS (5 * NSEC_PER_SEC)
#define CONTROL_BATCH 16
/* Without descriptors for callers. */
#define PAUSE_NS (50 * 1000 * 1000)

static void on_control(void *arg, uint32_t events);

bool shm_uuid_is(const struct shm_link *l, const uint8_t uuid[16])
{
	return !memcmp(l->uuid, uuid, sizeof(l->uuid));
}

/* ---- structures; shm.lock is held ---- */

static struct shm_link *link_new(void)
{
	unsigned count = atomic_load(&shm.link_count);
	struct shm_link *l;

	for (unsigned i = 0; i < count; i++)
		if (atomic_load(&shm.links[i]->state) == SHM_LINK_FREE)
			return shm.links[i];
	if (count == SHM_LINKS) {
		log_error("more than %d peer processes", SHM_LINKS);
		return NULL;
	}
	l = aligned_alloc(CACHE_LINE, (sizeof(*l) + CACHE_LINE - 1) &
					      ~(size_t)(CACHE_LINE - 1));
	if (!l)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->fd = l->kick_fd = l->mem_fd = -1;
	list_init(&l->qps);
	list_init(&l->backlog_qps);
	l->place = count;
	shm.links[count] = l;
	atomic_store_explicit(&shm.link_count, count + 1, memory_order_release);
	return l;
}

static struct shm_area *area_map(int fd)
{
	struct shm_area *a = mmap(NULL, sizeof(*a), PROT_READ | PROT_WRITE,
				  MAP_SHARED, fd, 0);

	if (a == MAP_FAILED)
		return NULL;
	madvise(a, sizeof(*a), MADV_DONTFORK);
	return a;
}

/* Prepares both directions; `role` 0 connector, 1 acceptor. */
static int link_set_area(struct shm_link *l, int area_fd, int role)
{
	l->inflight = calloc(SHM_SLOTS, sizeof(*l->inflight));
	l->maps = calloc(HCA_REGIONS, sizeof(*l->maps));
	if (!l->inflight || !l->maps)
		return -ENOMEM;
	l->area = area_map(area_fd);
	if (!l->area)
		return -errno;
	l->tx = &l->area->dir[role];
	l->rx = &l->area->dir[!role];
	atomic_store(&l->tx_pos, 0);
	atomic_store(&l->harvested, 0);
	atomic_store(&l->acked_hint, 0);
	atomic_store(&l->data_tail, 0);
	l->data_head = 0;
	atomic_store(&l->rx_pos, 0);
	atomic_store(&l->rx_ack, 0);
	l->rx_marks = l->marks_seen = l->hint_seen = 0;
	l->carried = false;
	l->idle_polls = 0;
	l->full_ns = 0;
	return 0;
}

static void link_release_parts(struct shm_link *l)
{
	if (l->area)
		munmap(l->area, sizeof(*l->area));
	if (l->peer)
		munmap((void *)(uintptr_t)l->peer, sizeof(*l->peer));
	if (l->fd >= 0)
		close(l->fd);
	if (l->kick_fd >= 0)
		close(l->kick_fd);
	if (l->mem_fd >= 0)
		close(l->mem_fd);
	if (l->maps)
		shm_map_release(l);
	free(l->inflight);
	l->area = NULL;
	l->tx = l->rx = NULL;
	l->peer = NULL;
	l->inflight = NULL;
	l->fd = l->kick_fd = l->mem_fd = -1;
	atomic_store(&l->path, SHM_PATH_TARGET);
	l->pid = 0;
	l->stranger = false;
	memset(l->uuid, 0, sizeof(l->uuid));
	atomic_store(&l->broken, false);
	atomic_store(&l->greeted, false);
}

/* The pollers' locks in their order: afterwards nobody is inside the link. */
static void link_lock_data(struct shm_link *l)
{
	hca_lock(&l->rx_lock);
	hca_lock(&l->ack_lock);
	hca_lock(&l->tx_lock);
}

static void link_unlock_data(struct shm_link *l)
{
	hca_unlock(&l->tx_lock);
	hca_unlock(&l->ack_lock);
	hca_unlock(&l->rx_lock);
}

static void unmap_blocks(struct shm_link *l)
{
	for (unsigned b = 0; b < HCA_QPN_BLOCKS; b++)
		if (atomic_load_explicit(&shm.by_block[b],
					 memory_order_relaxed) == l)
			atomic_store(&shm.by_block[b], NULL);
}

/* The QP's sq_lock is held. */
static void set_link(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_qp_public *remote)
{
	qp->link = l;
	qp->rx_peer = l ? l->rx_peer : NULL;
	qp->remote = remote;
	qp->remote_promise = remote ? &l->peer->promises[remote - l->peer->qps] :
				      NULL;
}

static void drop_qps(struct shm_link *l)
{
	struct list *entry;

	while ((entry = list_pop(&l->qps))) {
		struct hca_qp *qp = list_entry(entry, struct hca_qp, link_entry);

		hca_lock(&qp->sq_lock);
		set_link(qp, NULL, NULL);
		qp->tx_taken = 0;
		if (qp->sq.tail != qp->sq.head &&
		    qp->tx_blocked == HCA_TX_OPEN) {
			if (shm_is_reliable(qp))
				shm_retry_lost(qp);
			else
				hca_sq_run(qp); /* finds no link: lost */
		}
		hca_unlock(&qp->sq_lock);
	}
}

/* Ends a link in whatever state. Its descriptor is not watched any more. */
static void link_down(struct shm_link *l)
{
	struct list waiting;

	list_init(&waiting);
	if (atomic_load(&l->state) == SHM_LINK_UP)
		hca_link_closed(l->place);
	atomic_store(&l->state, SHM_LINK_DEAD);
	unmap_blocks(l);
	drop_qps(l);
	link_lock_data(l);
	link_unlock_data(l);
	/* From here on nothing more is sent through the link. */
	shm_xrc_link_lost(l);
	link_lock_data(l);
	list_splice(&waiting, &l->backlog_qps);
	atomic_store(&l->backlog, 0);
	shm_responders_free(l);
	link_release_parts(l);
	link_unlock_data(l);
	atomic_store(&l->state, SHM_LINK_FREE);
	/* Senders of datagrams are in no list of the link but this one. */
	shm_backlog_run(&waiting);
	pthread_cond_broadcast(&shm.changed);
}

static void link_end(struct shm_link *l, const char *why)
{
	if (atomic_load(&l->state) == SHM_LINK_UP)
		log_debug("link to pid %d ended: %s", (int)l->pid, why);
	if (l->fd >= 0)
		progress_unwatch_async(l->fd);
	/* Of a peer that broke the rules nothing more is believed. */
	if (atomic_load(&l->state) == SHM_LINK_UP && !atomic_load(&l->broken)) {
		shm_receive_rest(l);
		shm_harvest_rest(l);
	}
	link_down(l);
}

void shm_link_violation(struct shm_link *l, const char *what)
{
	if (atomic_exchange(&l->broken, true))
		return;
	HCA_COUNT_PROCESS(LINKS_BROKEN, 1);
	if (shm_complaint_due())
		log_error("peer pid %d broke the rules of the link (%s), link ended",
			  (int)l->pid, what);
	progress_timer_arm(&shm.reap, progress_now_ns());
}

/* Ends links that broke the rules. Progress thread. */
static void reap_expired(struct progress_timer *t)
{
	pthread_mutex_lock(&shm.lock);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load(&l->state) != SHM_LINK_UP ||
		    !atomic_load(&l->broken))
			continue;
		shm_peer_ban(l->pid);
		link_end(l, "violation");
	}
	pthread_mutex_unlock(&shm.lock);
}

/* shm.lock is held. */
static void sweep_at(uint64_t when_ns)
{
	if (shm.sweep_ns && shm.sweep_ns <= when_ns)
		return;
	shm.sweep_ns = when_ns;
	progress_timer_arm(&shm.sweep, when_ns);
}

/* Ends links that do not come up, and accepts again after a time without
 * descriptors. Progress thread. */
static void sweep_expired(struct progress_timer *t)
{
	uint64_t now = progress_now_ns();

	pthread_mutex_lock(&shm.lock);
	shm.sweep_ns = 0;
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load(&l->state) != SHM_LINK_ACCEPTING)
			continue;
		if (now >= l->deadline_ns)
			link_end(l, "it said nothing");
		else
			sweep_at(l->deadline_ns);
	}
	while (shm.paused_count > 0)
		progress_rewatch(shm.paused[--shm.paused_count], EPOLLIN);
	pthread_mutex_unlock(&shm.lock);
}

int shm_links_start(void)
{
	progress_timer_init(&shm.reap, reap_expired);
	progress_timer_init(&shm.sweep, sweep_expired);
	shm.sweep_ns = 0;
	return 0;
}

/* ---- who the peer is ---- */

static int link_set_peer(struct shm_link *l, const struct shm_control *msg,
			 int fds[3])
{
	const struct hca_segment *s;
	struct ucred cred;

	if (!shm_memory_stays(fds[0], sizeof(*s)) ||
	    !shm_wakeup_is_eventfd(fds[1]))
		return -EPROTO;
	/* Ours is for ourselves: it says whose the keys are. */
	if (!memcmp(msg->uuid, hca_process.uuid, sizeof(msg->uuid)) &&
	    l->pid != getpid())
		return -EPROTO;
	s = mmap(NULL, sizeof(*s), PROT_READ, MAP_SHARED, fds[0], 0);
	if (s == MAP_FAILED)
		return -errno;
	madvise((void *)(uintptr_t)s, sizeof(*s), MADV_DONTFORK);
	l->peer = s;
	if (s->magic != HCA_SEGMENT_MAGIC)
		return -EPROTO;
	l->kick_fd = fds[1];
	fds[1] = -1; /* kept */
	memcpy(l->uuid, msg->uuid, sizeof(l->uuid));
	l->peer_tag = shm_uuid_tag(msg->uuid);
	l->rx_peer = l->pid == getpid() ? (const void *)&shm : l;
	l->fence = !hca_process.membarrier || !s->membarrier;
	l->trusted = hca_peer_cred(l->fd, &cred) && hca_peer_is_ours(&cred);
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
}

/* ---- connecting ---- */

static int area_create(void)
{
	int fd = memfd_create("busbar-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, sizeof(struct shm_area))) {
		int ret = -errno;

		close(fd);
		return ret;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

/* Calls the owner of a block. 0, -ECONNREFUSED (nobody), or another error. */
static int link_connect(uint32_t block, struct shm_link **out)
{
	struct shm_link *l;
	int fds[3];
	int ret, fd;
	pid_t pid;

	fd = hca_block_connect(block);
	if (fd < 0)
		return fd;
	if (!shm_peer_allowed(fd, &pid)) {
		shm_peer_refused(fd);
		close(fd);
		return -EPERM;
	}
	if (shm_peer_is_banned(pid)) {
		close(fd);
		return -EPERM;
	}
	l = link_new();
	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	l->fd = fd;
	l->pid = pid;
	l->target_block = block;
	ret = area_create();
	if (ret < 0)
		goto err_link;
	fds[0] = hca_process.segment_fd;
	fds[1] = hca_process.kick_fd;
	fds[2] = ret;
	ret = link_set_area(l, fds[2], 0);
	if (!ret)
		ret = shm_control_tell(fd, SHM_HELLO, fds, 3);
	close(fds[2]);
	if (ret)
		goto err_link;
	atomic_store(&l->state, SHM_LINK_CONNECTING);
	ret = progress_watch(fd, EPOLLIN, on_control, l);
	if (ret)
		goto err_link;
	*out = l;
	return 0;

err_link:
	if (shm_complaint_due())
		log_error("no link to the owner of QP numbers 0x%x..: %s",
			  block << HCA_QPN_BLOCK_BITS, strerror(-ret));
	link_down(l);
	return ret;
}

static bool owns_block(const struct shm_link *l, uint32_t block)
{
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		if (atomic_load_explicit(&l->peer->blocks[i],
					 memory_order_relaxed) == block)
			return true;
	return false;
}

/* The link to the owner of a block, if there is one or will be. */
static struct shm_link *link_known(uint32_t block)
{
	struct shm_link *l = atomic_load(&shm.by_block[block]);

	if (l)
		return l;
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		int state;

		l = shm.links[i];
		state = atomic_load(&l->state);
		if (state == SHM_LINK_UP && owns_block(l, block) &&
		    shm_block_is_of(block, l->pid)) {
			atomic_store(&shm.by_block[block], l);
			return l;
		}
		if (state == SHM_LINK_CONNECTING && l->target_block == block)
			return l;
	}
	return NULL;
}

struct shm_link *shm_link_get(uint32_t block, bool *refused)
{
	struct shm_link *l = link_known(block);
	int ret;

	*refused = false;
	if (l)
		return l;
	ret = block ? link_connect(block, &l) : -ECONNREFUSED;
	if (ret) {
		/* EAGAIN: the owner's backlog is full, it is alive. */
		*refused = ret != -EAGAIN;
		return NULL;
	}
	return l;
}

/* Whether a process would have us; asking with a HELLO would make it warn. */
static bool may_call(uint32_t block)
{
	struct ucred cred;
	int fd = hca_block_connect(block);
	bool may;

	if (fd < 0)
		return false;
	may = hca_peer_cred(fd, &cred) &&
	      (cred.uid == geteuid() || hca_settings.shm_peers == HCA_PEERS_ANY);
	close(fd);
	return may;
}

bool shm_link_reach(uint32_t block)
{
	struct shm_link *l = link_known(block);
	bool refused;

	if (!l && may_call(block))
		l = shm_link_get(block, &refused);
	return l && atomic_load(&l->state) != SHM_LINK_UP;
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
	ret = link_set_area(l, fds[2], 1);
	if (ret)
		return ret;
	shm_access_choose(l);
	atomic_store(&l->greeted, true);
	return shm_control_tell(l->fd, SHM_WELCOME,
				(int[]){ hca_process.segment_fd,
					 hca_process.kick_fd },
				2);
}

static int on_welcome(struct shm_link *l, const struct shm_control *msg,
		      int fds[3])
{
	int ret;

	ret = link_set_peer(l, msg, fds);
	if (ret)
		return ret;
	shm_access_choose(l);
	ret = shm_control_tell(l->fd, SHM_READY, NULL, 0);
	if (!ret)
		link_up(l);
	return ret;
}

static int on_message(struct shm_link *l, const struct shm_control *msg,
		      int fds[3])
{
	int state = atomic_load(&l->state);

	if (l->stranger) {
		shm_peer_refused(l->fd);
		return -EPERM;
	}
	if (state == SHM_LINK_ACCEPTING && msg->kind == SHM_HELLO && !l->area)
		return on_hello(l, msg, fds);
	if (state == SHM_LINK_ACCEPTING && msg->kind == SHM_READY && l->area) {
		link_up(l);
		return 0;
	}
	if (state == SHM_LINK_CONNECTING && msg->kind == SHM_WELCOME)
		return on_welcome(l, msg, fds);
	if (state == SHM_LINK_CONNECTING && msg->kind == SHM_REDIRECT)
		return -EALREADY;
	if (state == SHM_LINK_UP)
		return shm_access_message(l, msg, fds);
	return -EPROTO;
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
		link_end(l, "inspected");
		return;
	}
	/* Some of them, so that others get their turn. */
	for (int n = 0; n < CONTROL_BATCH &&
			(ret = shm_control_recv(l->fd, &msg, fds)) == 1; n++) {
		ret = on_message(l, &msg, fds);
		for (int i = 0; i < 3; i++)
			if (fds[i] >= 0)
				close(fds[i]);
		if (ret)
			break;
	}
	if (ret < 0) {
		if (ret == -EPROTO && shm_complaint_due())
			log_warn("a control message of pid %d was not understood: not the same version?",
				 (int)l->pid);
		link_end(l, ret == -ECONNRESET ? "peer is gone" : strerror(-ret));
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
	if (shm_complaint_due())
		log_error("a peer waits for its link: %m");
	pthread_mutex_lock(&shm.lock);
	if (shm.paused_count < HCA_BLOCKS_PER_PROCESS) {
		shm.paused[shm.paused_count++] = listen_fd;
		progress_rewatch(listen_fd, 0);
		sweep_at(progress_now_ns() + PAUSE_NS);
	}
	pthread_mutex_unlock(&shm.lock);
}

static void on_listen(void *arg, uint32_t events)
{
	int listen_fd = (int)(intptr_t)arg;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct shm_link *l;
	bool allowed;
	pid_t pid;

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_listening(listen_fd);
		return;
	}
	pthread_mutex_lock(&shm.lock);
	allowed = shm_peer_allowed(fd, &pid);
	if ((!allowed && !shm_strangers_have_room()) ||
	    shm_peer_is_banned(pid) || !shm_peer_has_room(pid))
		goto err_fd;
	l = link_new();
	if (!l)
		goto err_fd;
	l->fd = fd;
	l->pid = pid;
	l->stranger = !allowed;
	l->target_block = 0;
	l->deadline_ns = progress_now_ns() + HANDSHAKE_LIMIT_NS;
	atomic_store(&l->state, SHM_LINK_ACCEPTING);
	if (progress_watch(fd, EPOLLIN, on_control, l))
		link_down(l);
	else
		sweep_at(l->deadline_ns);
	pthread_mutex_unlock(&shm.lock);
	return;

err_fd:
	pthread_mutex_unlock(&shm.lock);
	close(fd);
}

int shm_block_claimed(uint32_t block, int listen_fd)
{
	return progress_watch(listen_fd, EPOLLIN, on_listen,
			      (void *)(intptr_t)listen_fd);
}

/* ---- QPs ---- */

const struct hca_qp_public *shm_find_remote(const struct shm_link *l,
					    uint32_t qpn)
{
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		if (atomic_load(&l->peer->blocks[i]) == qpn >> HCA_QPN_BLOCK_BITS)
			return &l->peer->qps[i * HCA_QPN_BLOCK_SIZE +
					     (qpn & (HCA_QPN_BLOCK_SIZE - 1))];
	return NULL;
}

static void qp_attach(struct hca_qp *qp, struct shm_link *l)
{
	list_remove(&qp->link_entry);
	list_push(&l->qps, &qp->link_entry);
	hca_lock(&qp->sq_lock);
	set_link(qp, l, shm_find_remote(l, qp->attr.dest_qp_num));
	hca_unlock(&qp->sq_lock);
}

enum shm_peer_known shm_qp_resolve(struct hca_qp *qp, bool wait)
{
	const struct ibv_ah_attr *ah = &qp->attr.ah_attr;
	struct timespec until;
	bool refused = false, found;

	if (hca_qp_state(qp) < IBV_QPS_RTR)
		return SHM_PEER_ABSENT;
	if (ah->is_global && !hca_gid_is_local(&ah->grh.dgid)) {
		char to[INET6_ADDRSTRLEN];

		if (wait)
			log_warn("qp 0x%x: destination %s is no address of this host, only peers on this host are reached",
				 qp->ibv.qp_num,
				 inet_ntop(AF_INET6, ah->grh.dgid.raw, to,
					   sizeof(to)));
		return SHM_PEER_ABSENT;
	}
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += RESOLVE_LIMIT_S;
	pthread_mutex_lock(&shm.lock);
	while (!qp->link) {
		struct shm_link *l = shm_link_get(
			qp->attr.dest_qp_num >> HCA_QPN_BLOCK_BITS, &refused);

		if (l && atomic_load(&l->state) == SHM_LINK_UP) {
			qp_attach(qp, l);
			break;
		}
		if (refused || !wait || progress_is_self() ||
		    pthread_cond_timedwait(&shm.changed, &shm.lock, &until))
			break;
	}
	found = qp->link != NULL;
	pthread_mutex_unlock(&shm.lock);
	return found ? SHM_PEER_LINKED : refused ? SHM_PEER_ABSENT : SHM_PEER_CALLED;
}

void shm_qp_forget(struct hca_qp *qp)
{
	pthread_mutex_lock(&shm.lock);
	list_remove(&qp->link_entry);
	hca_lock(&qp->sq_lock);
	set_link(qp, NULL, NULL);
	hca_unlock(&qp->sq_lock);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		link_lock_data(l);
		for (unsigned s = 0; l->inflight && s < SHM_SLOTS; s++)
			if (l->inflight[s].qp == qp)
				l->inflight[s].qp = NULL;
		list_for_each_safe(q, &l->backlog_qps, struct hca_qp,
				   backlog_entry) {
			if (q == qp)
				list_remove(&q->backlog_entry);
		}
		link_unlock_data(l);
	}
	hca_lock(&qp->sq_lock);
	qp->backlogged = false;
	hca_unlock(&qp->sq_lock);
	pthread_mutex_unlock(&shm.lock);
}

/* ---- the end ---- */

void shm_links_stop(void)
{
	shm_mcast_stop();
	progress_timer_cancel(&shm.reap);
	progress_timer_cancel(&shm.sweep);
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		/* The callback may be waiting for the lock; it then finds the
		 * link free. */
		pthread_mutex_lock(&shm.lock);
		if (atomic_load(&l->state) != SHM_LINK_FREE) {
			progress_unwatch_async(l->fd);
			link_down(l);
		}
		pthread_mutex_unlock(&shm.lock);
	}
	progress_timer_cancel(&shm.reap); /* armed meanwhile */
	progress_timer_cancel(&shm.sweep);
	shm.paused_count = 0;
}

void shm_links_forked(void)
{
	for (unsigned i = 0; i < atomic_load(&shm.link_count); i++) {
		struct shm_link *l = shm.links[i];

		if (l->fd >= 0)
			close(l->fd);
		if (l->kick_fd >= 0)
			close(l->kick_fd);
		if (l->mem_fd >= 0)
			close(l->mem_fd);
		/* The parent's structures stay as they are, unused. */
	}
	shm_mcast_stop();
	memset(shm.by_block, 0, sizeof(shm.by_block));
	atomic_store(&shm.link_count, 0);
	shm.paused_count = 0;
	pthread_mutex_init(&shm.lock, NULL);
	pthread_cond_init(&shm.changed, NULL);
}

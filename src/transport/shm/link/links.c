/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links: their structures and their memory.
 *
 * Link structures are never freed, only used again, because pollers walk the
 * table without a lock.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/memory/region.h"
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/shown.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/area.h"
#include "transport/shm/ring/ring.h"
#include "util/log.h"

struct shm shm = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

/* A structure that is not in use, or a new one. */
struct shm_link *shm_link_new(void)
{
	unsigned count = atomic_load(&shm.link_count);
	struct shm_link *l;

	shm_each_link(unused)
		if (atomic_load(&unused->state) == SHM_LINK_FREE)
			return unused;
	if (count == SHM_LINKS) {
		log_error("more than %d peer processes", SHM_LINKS);
		return NULL;
	}
	l = aligned_alloc(CACHE_LINE, (sizeof(*l) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
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

/* A link's tables of its slots and of the peer's regions. They are mapped, so that the
 * pages are allocated only when they are used. */
struct link_tables {
	struct shm_inflight inflight[SHM_SLOTS];
	struct shm_part_shown shown[SHM_SLOTS];
	struct shm_faults_of faults;
	struct shm_mapping maps[HCA_REGIONS];
};

int shm_link_map_tables(struct shm_link *l)
{
	struct link_tables *t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return -ENOMEM;
	l->inflight = t->inflight;
	l->shown = t->shown;
	l->faults = &t->faults;
	l->maps = t->maps;
	return 0;
}

static void tables_unmap(struct shm_link *l)
{
	munmap(container_of(l->maps, struct link_tables, maps[0]), sizeof(struct link_tables));
	l->inflight = NULL;
	l->shown = NULL;
	l->faults = NULL;
	l->maps = NULL;
}

int shm_link_set_area(struct shm_link *l, int area_fd, int role)
{
	int ret = shm_link_map_tables(l);

	if (ret)
		return ret;
	l->area = shm_area_map(area_fd);
	if (!l->area)
		return -errno;
	l->tx = &l->area->dir[role];
	l->rx = &l->area->dir[!role];
	atomic_store(&l->tx_pos, 0);
	atomic_store(&l->wanted_pos, 0);
	l->promises_pos = 0;
	atomic_store(&l->harvested, 0);
	atomic_store(&l->acked_hint, 0);
	atomic_store(&l->data_tail, 0);
	l->data_head = 0;
	atomic_store(&l->rx_pos, 0);
	atomic_store(&l->rx_ack, 0);
	l->rx_marks = l->marks_seen = l->hint_seen = 0;
	l->carried = false;
	l->twin = NULL;
	l->idle_polls = 0;
	l->full_ns = 0;
	return 0;
}

static void descriptors_close(struct shm_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	if (l->kick_fd >= 0)
		close(l->kick_fd);
	if (l->mem_fd >= 0)
		close(l->mem_fd);
}

void shm_link_release(struct shm_link *l)
{
	if (l->area)
		munmap(l->area, sizeof(*l->area));
	shm_peer_unmap(l);
	descriptors_close(l);
	if (l->maps)
		tables_unmap(l);
	l->area = NULL;
	l->tx = l->rx = NULL;
	l->fd = l->kick_fd = l->mem_fd = -1;
	atomic_store(&l->path, SHM_PATH_TARGET);
	l->pid = 0;
	l->uid = 0;
	l->kin = l->may_not_talk = l->asked_memory = false;
	l->lends = l->borrows = 0;
	l->deadline_ns = 0;
	memset(l->uuid, 0, sizeof(l->uuid));
	atomic_store(&l->broken, false);
	atomic_store(&l->greeted, false);
}

void shm_link_lock(struct shm_link *l)
{
	hca_lock(&l->rx_lock);
	hca_lock(&l->ack_lock);
	hca_lock(&l->tx_lock);
}

void shm_link_unlock(struct shm_link *l)
{
	hca_unlock(&l->tx_lock);
	hca_unlock(&l->ack_lock);
	hca_unlock(&l->rx_lock);
}

void shm_link_violation(struct shm_link *l, const char *what)
{
	if (atomic_exchange(&l->broken, true))
		return;
	HCA_COUNT_PROCESS(LINKS_BROKEN, 1);
	if (hca_complaint_due())
		log_error("peer pid %d broke the rules of the link (%s), link ended",
			  (int)l->pid, what);
	progress_timer_arm(&shm.reap, progress_now_ns());
}

void shm_links_forked(void)
{
	/* The parent's structures are not used in the child; only their descriptors
	 * are closed. */
	shm_each_link(l)
		descriptors_close(l);
	memset(shm.by_block, 0, sizeof(shm.by_block));
	atomic_store(&shm.link_count, 0);
	shm.paused_count = 0;
	pthread_mutex_init(&shm.lock, NULL);
	pthread_cond_init(&shm.changed, NULL);
}

/* When no slot is in flight the data area starts at the front again, which is likely to be in
 * the cache. */
bool shm_data_room(struct shm_link *l, struct slot_writer *w, uint32_t bytes, uint32_t *offset)
{
	uint32_t head = l->data_head;
	uint32_t tail = atomic_load_explicit(&l->data_tail, memory_order_acquire);

	if (atomic_load_explicit(&l->harvested, memory_order_acquire) == w->pos) {
		head = tail = 0;
		atomic_store_explicit(&l->data_tail, 0, memory_order_relaxed);
	}
	return shm_area_place(head, tail, bytes, offset, &w->data_end);
}

struct shm_link *shm_link_borrow(uint32_t srqn)
{
	struct shm_link *_Atomic *place = &shm.by_block[srqn >> HCA_QPN_BLOCK_BITS];
	struct shm_link *l = atomic_load(place);

	if (!l)
		return NULL;
	/* `borrowed` is counted first, then the state is read; shm_link_down() does the
	 * reverse. */
	atomic_fetch_add(&l->borrowed, 1);
	if (atomic_load(&l->state) == SHM_LINK_UP && atomic_load(place) == l)
		return l;
	atomic_fetch_sub(&l->borrowed, 1);
	return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mappings of peers' regions (hca/memory/region.h) in our address space. A region is
 * requested over the link's socket when a key in it is first used; the owner's
 * progress thread answers, and ours maps it. Until then, and if the owner refuses,
 * operations use the link's ordinary way of access (access.c).
 *
 * A mapping is removed on the progress thread, after every QP has been outside of a
 * copy (its sq_lock; shm_copy_fence() for large copies). A file that a peer passes is
 * checked: if it could become shorter, an access would raise SIGBUS.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hca/memory/key.h"
#include "hca/memory/region.h"
#include "hca/object/public.h"
#include "hca/run/elide.h"
#include "transport/shm/link/control.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/copiers.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/area.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

/* Limit of the address space mapped per link; pages cost memory only when touched. */
#define MAPPED_BYTES_MAX (UINT64_C(64) << 30)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
/* The largest part whose page table entries are made when it is mapped, on the progress
 * thread, so that the data path has no page faults. */
#define TOUCH_BYTES_MAX (UINT64_C(16) << 20)

/* ---- the side that maps ---- */

/* The peer's answer is lost if its socket is full, and a peer need not answer. So the region is
 * requested again after it was wanted 16 times in vain, then after 32 times, 64 and so on. */
#define MISSES_TO_ASK 16u

static bool is_asked_for(struct shm_mapping *m, uint32_t id, bool write)
{
	uint32_t missed;

	if (atomic_load_explicit(&m->asked, memory_order_relaxed) != id ||
	    (write && !atomic_load_explicit(&m->asked_to_write, memory_order_relaxed))) {
		atomic_store_explicit(&m->missed, 0, memory_order_relaxed);
		return false;
	}
	missed = atomic_fetch_add_explicit(&m->missed, 1, memory_order_relaxed) + 1;
	return missed < MISSES_TO_ASK || missed & (missed - 1);
}

static void ask(struct shm_link *l, struct shm_mapping *m, uint32_t rkey,
		uint32_t id, bool write)
{
	struct shm_control msg = { .kind = SHM_ASK_REGION, .id = id,
				   .key = rkey };

	if (!(l->borrows & HCA_PEER_REGIONS) || is_asked_for(m, id, write))
		return;
	/* Stored before the request is sent, as another thread receives the answer. If
	 * several QPs of the link get here at once, the request is sent more than
	 * once. */
	if (write || atomic_load(&m->asked) != id)
		atomic_store_explicit(&m->asked_to_write, write, memory_order_relaxed);
	atomic_store(&m->asked, id);
	if (shm_control_send(l->fd, &msg, NULL, 0))
		atomic_store(&m->asked, 0); /* the socket is full: next time */
}

uint8_t *shm_map_find(struct shm_link *l, uint32_t rkey, uint32_t id,
		      uint64_t offset, uint64_t length, bool write)
{
	struct shm_mapping *m = &l->maps[id % HCA_REGIONS];

	if (unlikely(atomic_load_explicit(&m->id, memory_order_acquire) != id ||
		     (write && !m->writable))) {
		ask(l, m, rkey, id, write);
		return NULL;
	}
	if (unlikely(length > m->length || offset > m->length - length))
		return NULL;
	return m->base + offset;
}

/* Unmaps a region once no thread uses it. shm.lock is held. */
static void mapping_drop(struct shm_link *l, struct shm_mapping *m)
{
	if (!atomic_load(&m->id))
		return;
	atomic_store(&m->id, 0);
	/* The QPs of other links, too: XRC initiators use links of SRQ owners. */
	shm_each_link(other) {
		list_for_each(part, &other->qps, struct shm_qp, link_entry) {
			hca_lock(&shm_qp_whole(part)->sq_lock);
			hca_unlock(&shm_qp_whole(part)->sq_lock);
		}
	}
	shm_copy_fence();
	munmap(m->base, m->length);
	l->mapped_bytes -= m->length;
}

/* Makes the page table entries of the key's part, which will be used next. */
static void touch(uint8_t *base, const struct shm_control *msg)
{
	uint64_t at = msg->touch_at & ~UINT64_C(0xfff);

	if (msg->touch_at > msg->length ||
	    msg->touch_length > msg->length - msg->touch_at ||
	    msg->touch_length > TOUCH_BYTES_MAX)
		return;
	madvise(base + at, msg->touch_at - at + msg->touch_length,
		msg->writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

bool shm_map_awaits(const struct shm_link *l, uint32_t id)
{
	return id && (l->borrows & HCA_PEER_REGIONS) &&
	       atomic_load(&l->maps[id % HCA_REGIONS].asked) == id;
}

static int mapping_set(struct shm_link *l, const struct shm_control *msg, int fd)
{
	struct shm_mapping *m = &l->maps[msg->id % HCA_REGIONS];
	bool write = msg->writable;
	void *base;

	/* Only a region that was requested, as mappings cost address space and pages. */
	if (!shm_map_awaits(l, msg->id))
		return 0;
	if (fd < 0)
		return -EPROTO;
	if (msg->length == 0 || !shm_memory_stays(fd, msg->length)) {
		if (hca_complaint_due())
			log_warn("pid %d offers memory that is not safe to map: not used",
				 (int)l->pid);
		return 0;
	}
	/* The region mapped in this place no longer exists, or was mapped read-only. */
	mapping_drop(l, m);
	if (msg->length > MAPPED_BYTES_MAX - l->mapped_bytes)
		return 0;
	base = mmap(NULL, msg->length, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		log_debug("memory of pid %d not mapped: %m", (int)l->pid);
		return 0;
	}
	madvise(base, msg->length, MADV_DONTFORK);
	madvise(base, msg->length, MADV_DONTDUMP);
	touch(base, msg);
	m->base = base;
	m->length = msg->length;
	m->writable = write;
	l->mapped_bytes += msg->length;
	atomic_store_explicit(&m->id, msg->id, memory_order_release);
	log_debug("memory of pid %d: region of %llu bytes mapped%s", (int)l->pid,
		  (unsigned long long)msg->length, write ? "" : ", read-only");
	return 0;
}

void shm_map_release(struct shm_link *l)
{
	for (uint32_t i = 0; l->mapped_bytes && i < HCA_REGIONS; i++)
		if (atomic_load(&l->maps[i].id))
			munmap(l->maps[i].base, l->maps[i].length);
	atomic_store(&l->lent, false);
	l->mapped_bytes = 0;
}

/* ---- the owner's side ---- */

/* Passes the region to the peer, writable if our key `rkey` allows remote writes or
 * atomics. False: the key or the region does not exist (any more), or the key is not
 * in the region. */
static bool lend(struct shm_link *l, uint32_t rkey, uint32_t id)
{
	struct shm_control msg = { .kind = SHM_REGION, .id = id };
	struct hca_key k;
	int fd;

	if (!hca_key_look_own(rkey, &k) || k.region_id != id)
		return false;
	msg.touch_at = k.region_offset;
	msg.touch_length = k.length;
	msg.writable = (k.access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0;
	fd = hca_region_lend(id, msg.writable, &msg.length);
	if (fd < 0)
		return fd != -ENOENT;
	atomic_store(&l->lent, true);
	if (shm_control_send(l->fd, &msg, &fd, 1))
		log_debug("region not lent to pid %d", (int)l->pid);
	close(fd);
	return true;
}

static int region_gone(struct shm_link *l, uint32_t id)
{
	struct shm_mapping *m = &l->maps[id % HCA_REGIONS];

	if (atomic_load(&m->asked) == id)
		atomic_store(&m->asked, 0);
	if (atomic_load(&m->id) == id)
		mapping_drop(l, m);
	return 0;
}

int shm_map_message(struct shm_link *l, const struct shm_control *msg, int fds[3])
{
	switch (msg->kind) {
	case SHM_ASK_REGION:
		/* No answer to a peer that is not allowed to map regions. */
		if ((l->lends & HCA_PEER_REGIONS) && !lend(l, msg->key, msg->id))
			shm_control_send(l->fd, &(struct shm_control){
				.kind = SHM_REGION_GONE, .id = msg->id }, NULL, 0);
		return 0;
	case SHM_REGION:
		return mapping_set(l, msg, fds[0]);
	case SHM_REGION_GONE:
		return region_gone(l, msg->id);
	default:
		return -EPROTO;
	}
}

void shm_region_gone(uint32_t id)
{
	pthread_mutex_lock(&shm.lock);
	shm_each_link(l) {
		struct shm_control msg = { .kind = SHM_REGION_GONE, .id = id };

		/* If sending fails, the peer keeps the mapping until the link ends or
		 * another region takes its place. */
		if (atomic_load(&l->state) == SHM_LINK_UP)
			shm_control_send(l->fd, &msg, NULL, 0);
	}
	pthread_mutex_unlock(&shm.lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The peer's shared memory: its segment, and its table of keys if the peer allows
 * access to its memory. Of both only the parts needed so far are made readable
 * (hca/share/segment.c); further parts are made readable when they are first used, on the
 * data path, by a few system calls in the life of a link.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sys/mman.h>

#include "hca/object/public.h"
#include "hca/share/process.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/area.h"
#include "util/container_of.h"
#include "util/log.h"

int shm_peer_map(struct shm_link *l, int fd)
{
	if (!shm_memory_stays(fd, sizeof(*l->peer)))
		return -EPROTO;
	l->peer = hca_segment_map(fd);
	return l->peer ? 0 : -ENOMEM;
}

int shm_peer_map_keys(struct shm_link *l, int fd)
{
	if (fd < 0)
		return 0;
	if (!shm_memory_stays(fd, HCA_KEY_TABLE_BYTES))
		return -EPROTO;
	l->keys = hca_keys_map(fd);
	return l->keys ? 0 : -ENOMEM;
}

void shm_peer_unmap(struct shm_link *l)
{
	if (l->peer)
		munmap((void *)(uintptr_t)l->peer, sizeof(*l->peer));
	if (l->keys)
		munmap((void *)(uintptr_t)l->keys, HCA_KEY_TABLE_BYTES);
	l->peer = NULL;
	l->keys = NULL;
	atomic_store(&l->peer_blocks, 0);
	atomic_store(&l->key_count, 0);
}

int shm_keys_for_peer(const struct shm_link *l)
{
	return shm_keys_given(l) ? hca_process.keys_fd : -1;
}

/* Threads with different QPs may run this at once; each makes the same part of the
 * table readable. */
uint32_t shm_keys_open(struct shm_link *l, uint32_t index)
{
	uint32_t had = atomic_load(&l->key_count);
	uint32_t count = atomic_load_explicit(&l->peer->key_count, memory_order_acquire);

	count = MIN(count, HCA_KEYS);
	if (!l->keys || index >= count)
		return had;
	if (hca_keys_open(l->keys, count)) {
		log_debug("no memory for the keys of pid %d", (int)l->pid);
		return had;
	}
	while (had < count && !atomic_compare_exchange_weak(&l->key_count, &had, count))
		;
	return count;
}

static const struct hca_qp_public *in_block(struct shm_link *l, unsigned place, uint32_t number)
{
	uint64_t bit = UINT64_C(1) << place;

	_Static_assert(HCA_BLOCKS_PER_PROCESS <= 64, "a bit for each");
	if (unlikely(!(atomic_load_explicit(&l->peer_blocks, memory_order_acquire) & bit))) {
		if (hca_segment_open_block(l->peer, place)) {
			log_debug("no memory for the queue pairs of pid %d",
				  (int)l->pid);
			return NULL;
		}
		atomic_fetch_or(&l->peer_blocks, bit);
	}
	return &l->peer->qps[place * HCA_QPN_BLOCK_SIZE + (number & (HCA_QPN_BLOCK_SIZE - 1))];
}

const struct hca_qp_public *shm_find_remote(struct shm_link *l, uint32_t number)
{
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		if (atomic_load(&l->peer->blocks[i]) == number >> HCA_QPN_BLOCK_BITS)
			return in_block(l, i, number);
	return NULL;
}

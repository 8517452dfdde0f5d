/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of the adapter in a process; see process.h. A block of QP numbers is claimed by
 * binding a socket name (names.c), which the kernel removes when the process ends.
 */
#define LOG_ROOM "hca"
#include "hca/share/process.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/limits.h"
#include "hca/object/qp.h"
#include "hca/object/srq.h"
#include "hca/path/path.h"
#include "hca/share/counters.h"
#include "hca/share/peers.h"
#include "util/list.h"
#include "util/log.h"
#include "util/probe.h"

#define BLOCKS_TO_NAME 64

struct hca_process hca_process = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.tick_lock = PTHREAD_MUTEX_INITIALIZER,
	.contexts = { &hca_process.contexts, &hca_process.contexts },
	.segment_fd = -1,
	.keys_fd = -1,
	.kick_fd = -1,
};

/* The entry of the tables of QPs at the numbers of SRQs; always in RESET. */
static struct hca_qp no_qp;

void hca_attention_kicked(void)
{
	HCA_COUNT_PROCESS(KICKS_RECEIVED, 1);
	atomic_store(&hca_process.kicked, true);
}

_Static_assert(HCA_DIED == FUTEX_OWNER_DIED, "mark of the kernel");

/*
 * A peer that stores into this process's memory would not notice that the process has
 * ended. So the progress thread registers `alive` as a robust futex that it holds: the
 * kernel sets FUTEX_OWNER_DIED in it when the thread ends, before the process can be waited
 * for. The list replaces the one of libc; the thread holds no robust mutex.
 */
static struct robust_list_head death_mark;
static struct robust_list death_mark_entry;

void hca_death_mark_make(struct hca_segment *s)
{
	death_mark_entry.next = &death_mark.list;
	death_mark.futex_offset = (char *)&s->alive - (char *)&death_mark_entry;
	death_mark.list.next = &death_mark_entry;
	if (syscall(SYS_set_robust_list, &death_mark, sizeof(death_mark)))
		log_debug("peers will not notice a sudden end at once: %m");
	atomic_store(&s->alive, (uint32_t)syscall(SYS_gettid));
}

void hca_death_mark_remove(void)
{
	death_mark.list.next = &death_mark.list;
}

/* All blocks are taken: logs holders of blocks that this process must not talk to. */
static void holders_name(void)
{
	for (uint32_t block = 1; block <= BLOCKS_TO_NAME; block++) {
		int fd = hca_block_connect(block);
		pid_t pid;

		if (fd < 0)
			continue;
		hca_peer_check(fd, "holder of QP numbers,", &pid);
		close(fd);
	}
}

/* Claims one more block of QP numbers. process.lock is held. */
static int block_claim(void)
{
	unsigned slot = hca_process.own_block_count;
	struct hca_qp **table;
	int ret = -ENOMEM;

	if (slot == HCA_BLOCKS_PER_PROCESS || hca_segment_add_block(slot))
		return -ENOMEM;
	/* The QPs of the block, followed by its SRQs. */
	table = calloc(2 * HCA_QPN_BLOCK_SIZE, sizeof(*table));
	if (!table)
		return -ENOMEM;
	/* A second time round those that a transport would rather not have, too. */
	for (unsigned i = 0; i < 2 * (HCA_QPN_BLOCKS - 1); i++) {
		/* Block 0 holds the QPNs 0 and 1 of the management QPs. */
		uint32_t block = 1 + (hca_process.qpn_hint + i) %
					     (HCA_QPN_BLOCKS - 1);
		int fd;

		if (i < HCA_QPN_BLOCKS - 1 && !hca_transports_offer_block(block))
			continue;
		fd = hca_block_bind(block);
		if (fd == -EADDRINUSE)
			continue;
		if (fd < 0) {
			ret = fd;
			break;
		}
		hca_process.own_blocks[slot] = block;
		hca_process.block_fds[slot] = fd;
		hca_process.own_block_count++;
		atomic_store(&hca_process.segment->blocks[slot], block);
		atomic_store(&hca_process.blocks[block], table);
		hca_process.qpn_hint += i + 1;
		ret = hca_local_block_claimed(block, fd);
		if (ret)
			log_error("QP numbers of block %u not served: %s",
				  block, strerror(-ret));
		return ret;
	}
	log_error("no QP numbers: %s", strerror(-ret));
	holders_name();
	free(table);
	return ret;
}

void hca_blocks_release(void)
{
	for (unsigned i = 0; i < hca_process.own_block_count; i++) {
		uint32_t block = hca_process.own_blocks[i];

		close(hca_process.block_fds[i]);
		free(atomic_exchange(&hca_process.blocks[block], NULL));
		atomic_store(&hca_process.segment->blocks[i], 0);
	}
	hca_process.own_block_count = 0;
}

void hca_blocks_forked(void)
{
	if (hca_process.users > 0)
		for (unsigned i = 0; i < hca_process.own_block_count; i++)
			close(hca_process.block_fds[i]);
	for (unsigned i = 0; i < hca_process.own_block_count; i++)
		atomic_store(&hca_process.blocks[hca_process.own_blocks[i]],
			     NULL);
	hca_process.own_block_count = 0;
}

/* The place of SRQ number `at` of the block in its table. */
static struct hca_srq **srq_place(struct hca_qp **table, unsigned at)
{
	return (struct hca_srq **)(void *)(table + HCA_QPN_BLOCK_SIZE) + at;
}

/* False: all numbers of the claimed blocks are taken. process.lock is held. */
static bool number_take(struct hca_qp *qp, struct hca_srq *srq,
			uint32_t *number, struct hca_qp_public **pub,
			struct hca_qp_counters **counters)
{
	static unsigned cursor; /* a freed number is used again as late as possible */

	for (unsigned b = 0; b < hca_process.own_block_count; b++) {
		uint32_t block = hca_process.own_blocks[b];
		struct hca_qp **table = hca_process.blocks[block];

		for (unsigned i = 0; i < HCA_QPN_BLOCK_SIZE; i++) {
			unsigned at = (cursor + i) % HCA_QPN_BLOCK_SIZE;
			uint32_t n = block << HCA_QPN_BLOCK_BITS | at;

			if (__atomic_load_n(&table[at], __ATOMIC_RELAXED) ||
			    n == HCA_QPN_MULTICAST)
				continue;
			cursor = at + 1;
			*number = n;
			*pub = &hca_process.segment
					->qps[b * HCA_QPN_BLOCK_SIZE + at];
			*counters = &hca_process.segment->qp_counters
					     [b * HCA_QPN_BLOCK_SIZE + at];
			__atomic_store_n(srq_place(table, at), srq,
					 __ATOMIC_RELEASE);
			__atomic_store_n(&table[at], qp, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}

static int number_alloc(struct hca_qp *qp, struct hca_srq *srq,
			uint32_t *number, struct hca_qp_public **pub,
			struct hca_qp_counters **counters)
{
	int ret = 0;

	pthread_mutex_lock(&hca_process.lock);
	if (!number_take(qp, srq, number, pub, counters)) {
		ret = block_claim();
		if (!ret && !number_take(qp, srq, number, pub, counters))
			ret = -ENOMEM;
	}
	pthread_mutex_unlock(&hca_process.lock);
	return ret;
}

void hca_qps_each(void (*fn)(struct hca_qp *qp, void *arg), void *arg)
{
	for (unsigned b = 0; b < hca_process.own_block_count; b++) {
		struct hca_qp **table = atomic_load(
			&hca_process.blocks[hca_process.own_blocks[b]]);

		/* no_qp, the entry for an SRQ, has no public part. */
		for (unsigned i = 0; i < HCA_QPN_BLOCK_SIZE; i++)
			if (table[i] && table[i]->pub)
				fn(table[i], arg);
	}
}

int hca_qpn_alloc(struct hca_qp *qp, uint32_t *qpn)
{
	return number_alloc(qp, NULL, qpn, &qp->pub, &qp->counters);
}

int hca_srqn_alloc(struct hca_srq *srq)
{
	return number_alloc(&no_qp, srq, &srq->number, &srq->pub,
			    &srq->counters);
}

void hca_srqn_hide(uint32_t number)
{
	struct hca_qp **table =
		atomic_load(&hca_process.blocks[number >> HCA_QPN_BLOCK_BITS]);

	__atomic_store_n(srq_place(table, number & (HCA_QPN_BLOCK_SIZE - 1)),
			 NULL, __ATOMIC_RELEASE);
}

void hca_number_free(uint32_t number)
{
	struct hca_qp **table =
		atomic_load(&hca_process.blocks[number >> HCA_QPN_BLOCK_BITS]);
	unsigned at = number & (HCA_QPN_BLOCK_SIZE - 1);

	pthread_mutex_lock(&hca_process.lock);
	__atomic_store_n(&table[at], NULL, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&hca_process.lock);
}

struct hca_srq *hca_srq_find(uint32_t number)
{
	struct hca_qp **table;

	if (number >= 1u << 24)
		return NULL;
	table = atomic_load_explicit(
		&hca_process.blocks[number >> HCA_QPN_BLOCK_BITS],
		memory_order_acquire);
	if (!table)
		return NULL;
	return __atomic_load_n(
		srq_place(table, number & (HCA_QPN_BLOCK_SIZE - 1)),
		__ATOMIC_ACQUIRE);
}

void hca_link_opened(unsigned place, uint32_t pid, uint32_t flags)
{
	struct hca_link_public *l = &hca_process.segment->links[place];

	atomic_store_explicit(&l->flags, flags, memory_order_relaxed);
	atomic_store_explicit(&l->pid, pid, memory_order_release);
	HCA_COUNT_PROCESS(LINKS_UP, 1);
	PROBE(link_up, pid, flags);
}

void hca_link_changed(unsigned place, uint32_t flags)
{
	atomic_store_explicit(&hca_process.segment->links[place].flags, flags,
			      memory_order_relaxed);
}

void hca_link_closed(unsigned place)
{
	struct hca_link_public *l = &hca_process.segment->links[place];

	PROBE(link_down, atomic_load_explicit(&l->pid, memory_order_relaxed));
	atomic_store_explicit(&l->pid, 0, memory_order_relaxed);
	HCA_COUNT_PROCESS(LINKS_DOWN, 1);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes that are in send queues; see probe.h. */
#include "shield/probe.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "preload/data.h"

#define NUMBERS (UINT64_C(1) << 20)
#define LEFT 64u

static uint64_t first_id;
static _Atomic uint64_t next_number;
/* The latest ones whose queue pairs are gone. */
static struct {
	atomic_flag lock;
	unsigned next;
	struct probe of[LEFT];
} left = { .lock = ATOMIC_FLAG_INIT };

__attribute__((constructor)) static void at_load(void)
{
	if (getrandom(&first_id, sizeof(first_id), GRND_NONBLOCK) != sizeof(first_id))
		first_id = shield_now_ns() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)getpid() << 40;
}

static void lock(atomic_flag *flag)
{
	while (atomic_flag_test_and_set_explicit(flag, memory_order_acquire))
		;
}

static void unlock(atomic_flag *flag)
{
	atomic_flag_clear_explicit(flag, memory_order_release);
}

/* Of a place that is free: the lock is held. */
static void remove_at(struct probes *p, uint32_t i)
{
	preload_give_cqe(p->of[i].cq);
	p->count--;
	memmove(&p->of[i], &p->of[i + 1], (p->count - i) * sizeof(p->of[0]));
}

static bool remove_id(struct probes *p, uint64_t id)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->of[i].id == id) {
			remove_at(p, i);
			return true;
		}
	return false;
}

bool probe_begin(struct probes *p, const struct ibv_cq *cq, uint64_t completed, uint64_t *id)
{
	bool good;

	lock(&p->lock);
	while (p->count && p->of[0].free_at <= completed)
		remove_at(p, 0);
	good = p->count < SHIELD_PROBES && preload_take_cqe(cq);
	if (good) {
		*id = first_id + atomic_fetch_add(&next_number, 1) % NUMBERS;
		p->of[p->count++] = (struct probe){ *id, PROBE_LATER, cq };
	}
	unlock(&p->lock);
	return good;
}

void probe_posted(struct probes *p, uint64_t id, uint64_t free_at)
{
	lock(&p->lock);
	for (uint32_t i = 0; i < p->count; i++)
		if (p->of[i].id == id)
			p->of[i].free_at = free_at;
	unlock(&p->lock);
}

void probe_refused(struct probes *p, uint64_t id)
{
	lock(&p->lock);
	remove_id(p, id);
	unlock(&p->lock);
}

static bool was_left(const struct ibv_cq *cq, uint64_t id)
{
	bool found = false;

	lock(&left.lock);
	for (unsigned i = 0; i < LEFT && !found; i++)
		if (left.of[i].cq == cq && left.of[i].id == id) {
			left.of[i].cq = NULL;
			found = true;
		}
	unlock(&left.lock);
	return found;
}

bool probe_completes(struct probes *p, const struct ibv_cq *cq, uint64_t wr_id)
{
	bool found = false;

	if (wr_id - first_id >= NUMBERS)
		return false;
	if (p) {
		lock(&p->lock);
		found = remove_id(p, wr_id);
		unlock(&p->lock);
	}
	/* Of a queue pair that is gone there may be more than were kept. */
	return found || was_left(cq, wr_id) || !p;
}

void probe_forget(struct probes *p)
{
	lock(&p->lock);
	lock(&left.lock);
	while (p->count) {
		left.of[left.next++ % LEFT] = p->of[p->count - 1];
		remove_at(p, p->count - 1);
	}
	unlock(&left.lock);
	unlock(&p->lock);
}

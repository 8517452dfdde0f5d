/* SPDX-License-Identifier: BSD-2-Clause */
/* BUSBAR_FAULTS on shared memory; see faults.h. */
#define LOG_ROOM "shm"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "hca/host/settings.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/shown.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/faults.h"
#include "util/log.h"

#define OFFERED "in shared memory only loss, partition, in.delay and in.jitter are possible; no faults there"

static struct {
	struct impair_settings set; /* after the start under shm.lock */
	bool read, wanted;
} faults;

/* ---- settings ---- */

static bool is_offered(const struct impair_settings *s)
{
	const struct impair_params *both[] = { &s->out, &s->in };
	bool more = s->out.delay_ns || s->out.jitter_ns || s->events[0];

	for (unsigned i = 0; i < 2; i++)
		more |= both[i]->duplicate > 0 || both[i]->reorder > 0 ||
			both[i]->corrupt > 0 || both[i]->rate_bps ||
			impair_has_stream_faults(both[i]);
	return !more;
}

/* Transport loop, if it is in use, also logs settings that cannot be parsed; without it this is
 * the only message. */
static void read_settings(void)
{
	const char *text = hca_settings.faults;
	char error[256];

	faults.read = true;
	if (!*text)
		return;
	if (impair_parse(text, &faults.set, error, sizeof(error))) {
		log_warn("BUSBAR_FAULTS='%.80s' not usable: %s; no faults", text, error);
		return;
	}
	faults.wanted = is_offered(&faults.set);
	if (!faults.wanted)
		log_warn("BUSBAR_FAULTS='%.80s': " OFFERED, text);
}

bool shm_faults_wanted(void)
{
	if (!faults.read)
		read_settings();
	return faults.wanted;
}

/* The fate of messages that wait is decided and stays. */
static void set_lanes(struct shm_faults_of *f)
{
	impair_lane_seed(&f->out, 2 * faults.set.seed);
	impair_lane_seed(&f->in, 2 * faults.set.seed + 1);
	impair_lane_set(&f->out, IMPAIR_ALL_CLASSES, &faults.set.out);
	impair_lane_set(&f->in, IMPAIR_ALL_CLASSES, &faults.set.in);
}

void shm_faults_open(struct shm_link *l)
{
	struct shm_faults_of *f = l->faults;

	if (!faults.wanted)
		return;
	memset(f, 0, sizeof(*f));
	set_lanes(f);
	f->open = true;
}

int shm_faults_set(const char *text, char *note, size_t note_bytes)
{
	struct impair_settings wanted;
	int ret = impair_parse(text, &wanted, note, note_bytes);

	if (ret)
		return ret;
	if (!faults.wanted) {
		if (impair_is_none(&wanted.out) && impair_is_none(&wanted.in) && !wanted.events[0])
			return 0;
		snprintf(note, note_bytes,
			 "no faults in shared memory, whose way is chosen at the start: only with BUSBAR_FAULTS (loss=0 is enough)");
		return -EOPNOTSUPP;
	}
	if (!is_offered(&wanted)) {
		snprintf(note, note_bytes, OFFERED);
		wanted = (struct impair_settings){ .seed = wanted.seed };
		ret = -EOPNOTSUPP;
	}
	pthread_mutex_lock(&shm.lock);
	faults.set = wanted;
	shm_each_link(l) {
		shm_link_lock(l);
		if (l->faults)
			set_lanes(l->faults);
		shm_link_unlock(l);
	}
	pthread_mutex_unlock(&shm.lock);
	return ret;
}

/* ---- messages ---- */

static bool is_first_part(const struct shm_slot *slot, const struct shm_header *h)
{
	struct shm_extent x = { .at = 0 };

	if (h->flags & SHM_IN_DATA) /* a request begins with it, too */
		memcpy(&x, slot->payload, sizeof(x));
	return !x.at;
}

void shm_faults_send(struct shm_link *l, const struct shm_slot *slot, struct shm_header *h)
{
	struct impair_fate fate;

	/* The parts that follow a lost one are out of sequence and are dropped. */
	if (!l->faults->open || !is_first_part(slot, h))
		return;
	impair_decide(&l->faults->out, 0, h->length, 0, &fate);
	if (fate.copies)
		return;
	h->dst_qpn = UINT32_MAX; /* no number of a queue pair */
	h->flags &= (uint8_t)~SHM_XRC;
}

/* Decides about the slots that have come since the last call. The delay of a slot begins when
 * it is found; the time is read after that, because this thread may have lost its processor
 * before. */
static void look(struct shm_link *l)
{
	struct shm_faults_of *f = l->faults;
	const struct shm_slot *s;

	while ((s = shm_slot_ready(l, f->seen))) {
		struct impair_fate fate = { .copies = 1, .copy[0].due_ns = f->in.last_ns };
		uint32_t place = f->seen % SHM_SLOTS, ack;
		struct shm_header h;

		shm_slot_read(s, &h, &ack);
		/* A report of an access fault is not repeated by its sender. */
		if (h.op != SHM_ACCESS_FAULT && is_first_part(s, &h))
			impair_decide(&f->in, 0, h.length, progress_now_ns(), &fate);
		f->slots[place].lost = !fate.copies;
		f->slots[place].due_ns = fate.copies ? fate.copy[0].due_ns : 0;
		f->seen++;
	}
}

enum shm_fate shm_faults_receive(struct shm_link *l, uint32_t pos)
{
	struct shm_faults_of *f = l->faults;
	uint64_t now_ns;

	if (!f->open)
		return SHM_TAKE;
	look(l);
	if (pos == f->seen)
		return SHM_TAKE; /* it came after the slots were looked at */
	now_ns = progress_now_ns();
	if (f->slots[pos % SHM_SLOTS].lost)
		return SHM_LOSE;
	return f->slots[pos % SHM_SLOTS].due_ns <= now_ns ? SHM_TAKE : SHM_WAIT;
}

bool shm_faults_hold(struct shm_link *l)
{
	bool hold;

	if (!faults.wanted)
		return false;
	hca_lock(&l->rx_lock);
	hold = atomic_load(&l->state) == SHM_LINK_UP && l->faults->open &&
	       l->faults->seen != atomic_load(&l->rx_pos);
	hca_unlock(&l->rx_lock);
	return hold;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to samples in a path: register, path hooks, destinations. */
#define LOG_ROOM "gateway/path"
#include <string.h>

#include "gateway/path.h"
#include "util/clock.h"
#include "util/log.h"

/* One writer: no locked addition. */
static inline void count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
			      atomic_load_explicit(counter,
						   memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline void record_latency(struct path *p, const struct sample *s)
{
	const unsigned both = SAMPLE_HAS_ORIGIN | SAMPLE_HAS_RECEIVED;
	int64_t ns;

	if ((s->flags & both) != both)
		return;
	ns = (int64_t)(s->received.tv_sec - s->origin.tv_sec) *
		     (int64_t)NSEC_PER_SEC +
	     (s->received.tv_nsec - s->origin.tv_nsec);
	if (unlikely(ns < 0)) {
		count(&p->negative, 1);
		ns = 0;
	}
	hist_record(&p->latency, (uint64_t)ns);
}

/* Writes to one destination; the references in smps[] are used up. */
static void write_to(struct path_destination *d, struct sample *smps[],
		     unsigned cnt)
{
	if (unlikely(!gate_pass(&d->node->out.gate))) {
		atomic_fetch_add_explicit(&d->node->counters.not_sent, cnt,
					  memory_order_relaxed);
		sample_put_many(smps, cnt);
		return;
	}
	cnt = hook_list_process(d->node->out.hooks, smps, cnt);
	for (unsigned done = 0; done < cnt;) {
		unsigned n = MIN(cnt - done, d->vectorize), release = n;

		node_write(d->node, smps + done, n, &release);
		assert(release <= n);
		/* What is not released the node holds on to, with the
		 * reference that was taken for it. */
		sample_put_many(smps + done, release);
		done += n;
	}
	gate_leave(&d->node->out.gate);
}

static void deliver(struct path *p, struct sample *smps[], unsigned cnt)
{
	if (!p->destination_count) {
		sample_put_many(smps, cnt);
		return;
	}
	for (unsigned d = 0; d + 1 < p->destination_count; d++) {
		struct path_destination *to = &p->destinations[d];

		/* A node may reorder what it is given: it gets its own array. */
		for (unsigned i = 0; i < cnt; i++)
			to->batch[i] = sample_get(smps[i]);
		write_to(to, to->batch, cnt);
	}
	/* The last one gets the path's own references. */
	write_to(&p->destinations[p->destination_count - 1], smps, cnt);
}

/* Own sequence numbers; others may hold the sample and must not see them. */
static unsigned renumber(struct path *p, struct sample *smps[], unsigned cnt)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < cnt; i++) {
		struct sample *s = smps[i], *copy;

		if (atomic_load_explicit(&s->refcnt, memory_order_acquire) != 1) {
			copy = sample_alloc(s->pool);
			if (copy)
				sample_copy(copy, s);
			sample_put(s);
			if (!copy)
				continue;
			s = copy;
		}
		s->sequence = p->sequence++;
		s->flags |= SAMPLE_HAS_SEQUENCE;
		smps[kept++] = s;
	}
	return kept;
}

void path_emit(struct path *p, struct sample *smps[], unsigned cnt)
{
	if (unlikely(!gate_pass(&p->gate))) {
		count(&p->discarded, cnt);
		sample_put_many(smps, cnt);
		return;
	}
	if (unlikely(!p->original_sequence))
		cnt = renumber(p, smps, cnt);
	for (unsigned i = 0; i < cnt; i++)
		record_latency(p, smps[i]);
	if (p->hooks->count)
		cnt = hook_list_process(p->hooks, smps, cnt);
	count(&p->forwarded, cnt);
	deliver(p, smps, cnt);
	gate_leave(&p->gate);
}

/* Sends the state of the register. */
static void emit_last(struct path *p)
{
	struct sample *s = sample_alloc(&p->pool);

	if (!s) {
		log_debug("path %s: no free sample for the register", p->name);
		return;
	}
	sample_copy(s, p->last);
	path_emit(p, &s, 1);
}

/* True when the register is to send after `s` has come. */
static bool triggered(struct path *p, struct path_source *s)
{
	if (!s->triggers)
		return false;
	if (p->mode == PATH_ANY)
		return true;
	s->fresh = true;
	for (unsigned i = 0; i < p->source_count; i++)
		if (p->sources[i].triggers && !p->sources[i].fresh)
			return false;
	for (unsigned i = 0; i < p->source_count; i++)
		p->sources[i].fresh = false;
	return true;
}

static void remember(struct path *p, struct path_source *s,
		     const struct sample *smp)
{
	const struct path_source *end = &p->sources[p->source_count - 1];
	bool alone = p->source_count == 1;
	unsigned n = MIN(smp->length, alone ? p->last->capacity : s->count);

	memcpy(p->last->data + s->offset, smp->data,
	       n * sizeof(smp->data[0]));
	/* With one source the length is its own, else that of all together. */
	p->last->length = alone ? n : end->offset + end->count;
	if (alone && p->last->signals != smp->signals) {
		/* The register may outlive the node that the list is of. */
		signal_list_put(p->last->signals);
		p->last->signals =
			smp->signals ? signal_list_get(smp->signals) : NULL;
	} else if (!alone) {
		p->last->signals = p->signals;
	}
	p->last->sequence = smp->sequence;
	p->last->origin = smp->origin;
	p->last->received = smp->received;
	p->last->flags = smp->flags;
	p->last_valid = true;
}

void path_register_put(struct path *p, struct path_source *s,
		       struct sample *smp)
{
	bool pass = p->source_count == 1;

	if (p->last)
		remember(p, s, smp);
	if (!triggered(p, s)) {
		sample_put(smp);
	} else if (pass) {
		path_emit(p, &smp, 1);
	} else {
		sample_put(smp);
		emit_last(p);
	}
}

void path_resend(struct path *p)
{
	if (p->last_valid)
		emit_last(p);
}

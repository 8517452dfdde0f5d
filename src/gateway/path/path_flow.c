/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens to samples in a path: register, path hooks, destinations. */
#define LOG_ROOM "gateway/path"
#include <string.h>

#include "gateway/path/path.h"
#include "gateway/sample/time.h"
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
	ns = sample_time_since_ns(s->received, s->origin);
	if (unlikely(ns < 0)) {
		count(&p->negative, 1);
		ns = 0;
	}
	hist_record(&p->latency, (uint64_t)ns);
}

/* Past the hooks of one destination; the references in smps[] are used up. */
static void write_hooked(struct path_destination *d, struct sample *smps[],
			 unsigned cnt)
{
	for (unsigned done = 0; done < cnt;) {
		unsigned n = MIN(cnt - done, d->vectorize), release = n;

		node_write(d->node, smps + done, n, &release);
		assert(release <= n);
		/* What is not released the node holds on to, with the
		 * reference that was taken for it. */
		sample_put_many(smps + done, release);
		done += n;
	}
}

/* Writes to one destination; the references in smps[] are used up. */
static void write_to(struct path_destination *d, struct sample *smps[],
		     unsigned cnt, bool inside)
{
	if (unlikely(!inside && !gate_pass(&d->node->out.gate))) {
		node_skip_write(d->node, cnt);
		sample_put_many(smps, cnt);
		return;
	}
	write_hooked(d, smps, hook_list_process(d->node->out.hooks, smps, cnt));
	if (!inside)
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
		write_to(to, to->batch, cnt, p->inside);
	}
	/* The last one gets the path's own references. */
	write_to(&p->destinations[p->destination_count - 1], smps, cnt,
		 p->inside);
}

/* An output that there was no free sample for. */
static void lose_output(struct path *p)
{
	if (!p->unmade)
		log_warn("path %s: no free sample for its output, which is lost; a longer queuelen may help; further ones are counted",
			 p->name);
	count(&p->unmade, 1);
}

/*
 * An own sequence number; others may hold the sample and must not see it. False
 * without a free sample, and the reference is used up.
 */
static bool renumber(struct path *p, struct sample **smp, uint64_t number)
{
	struct sample *s = *smp, *copy;

	if (atomic_load_explicit(&s->refcnt, memory_order_acquire) != 1) {
		copy = sample_alloc(s->pool);
		if (copy)
			sample_copy(copy, s);
		sample_put(s);
		if (!copy) {
			lose_output(p);
			return false;
		}
		*smp = s = copy;
	}
	s->sequence = number;
	s->flags |= SAMPLE_HAS_SEQUENCE;
	return true;
}

/* From reception until now, for the metrics of the node that it came from. */
static void record_age(struct node_stats *st, struct sample *smps[],
		       unsigned cnt)
{
	struct timespec now = clock_realtime();

	for (unsigned i = 0; i < cnt; i++)
		if (smps[i]->flags & SAMPLE_HAS_RECEIVED)
			node_stats_update_ns(
				st, STATS_AGE,
				sample_time_since_ns(now, smps[i]->received));
}

/* May the path's thread wait for the end of a pause, as nobody else waits for it? As hold_back() of
 * sources. */
static bool may_wait(struct path *p)
{
	if (p->polled || path_stopping(p))
		return false;
	for (unsigned i = 0; i < p->source_count; i++)
		if (p->sources[i].primary || path_source_feeds_others(&p->sources[i]))
			return false;
	return true;
}

/*
 * Passes the gate of the output. What was read just before a pause goes out behind it, as what
 * is read meanwhile does. False: it is shut, and what was to go out is discarded.
 */
static __attribute__((noinline)) bool pass_late(struct path *p)
{
	while (may_wait(p)) {
		unsigned why = gate_reasons(&p->gate);

		if (why & GATE_PAUSED) {
			if (p->direct)
				p->sources[0].rested = true;
			turn_spinner_ends();
			gate_wait(&p->gate, 50000000);
		} else if (why & GATE_STOPPED) {
			return false;
		} else if (gate_pass(&p->gate)) {
			/* Also when the pause has ended since the gate was found shut. */
			return true;
		}
	}
	return false;
}

/* `fresh`: it has come, and was not sent before. */
static void emit(struct path *p, struct sample *smps[], unsigned cnt,
		 struct node_stats *age, bool fresh)
{
	if (unlikely(!p->inside && !gate_pass(&p->gate) && !(fresh && pass_late(p)))) {
		count(&p->discarded, cnt);
		sample_put_many(smps, cnt);
		return;
	}
	for (unsigned i = 0; i < cnt; i++)
		record_latency(p, smps[i]);
	if (p->hooks->count)
		cnt = hook_list_process(p->hooks, smps, cnt);
	if (unlikely(age))
		record_age(age, smps, cnt);
	count(&p->forwarded, cnt);
	deliver(p, smps, cnt);
	if (!p->inside)
		gate_leave(&p->gate);
}

void path_emit(struct path *p, struct sample *smps[], unsigned cnt)
{
	unsigned kept = 0;

	if (unlikely(!p->original_sequence)) {
		for (unsigned i = 0; i < cnt; i++) {
			smps[kept] = smps[i];
			kept += renumber(p, &smps[kept], p->sequence++);
		}
		cnt = kept;
	}
	emit(p, smps, cnt, p->sources[0].age, true);
}

void path_flush(struct path *p)
{
	unsigned n;

	/* A path that is stopped has hooks that are. */
	if (gate_pass(&p->gate)) {
		while ((n = hook_list_flush(p->hooks, p->batch,
					    p->batch_max))) {
			count(&p->forwarded, n);
			deliver(p, p->batch, n);
		}
		gate_leave(&p->gate);
	}
	for (unsigned d = 0; d < p->destination_count; d++) {
		struct path_destination *to = &p->destinations[d];

		if (!gate_pass(&to->node->out.gate))
			continue;
		while ((n = hook_list_flush(to->node->out.hooks, to->batch,
					    p->batch_max)))
			write_hooked(to, to->batch, n);
		gate_leave(&to->node->out.gate);
	}
}

/* The register as a sample of its own; NULL without a free one. */
static struct sample *make_output(struct path *p)
{
	struct sample *s = sample_alloc(&p->pool);

	if (s) {
		sample_copy(s, p->last);
		return s;
	}
	lose_output(p);
	return NULL;
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

/* `number`: its place among all samples that came. */
static void remember(struct path *p, struct path_source *s,
		     const struct sample *smp, uint64_t number)
{
	if (p->mapped) {
		path_map_copy(p, s, smp);
		p->last->length = p->delivered_length;
		p->last->signals = p->signals;
	} else {
		/* As it is; its length too. */
		p->last->length = MIN(smp->length, p->last->capacity);
		sample_set_signals(p->last, smp->signals);
		memcpy(p->last->data, smp->data,
		       p->last->length * sizeof(smp->data[0]));
	}
	p->last->sequence = p->original_sequence ? smp->sequence : number;
	p->last->origin = smp->origin;
	p->last->received = smp->received;
	p->last->flags = smp->flags | (p->mapped ? SAMPLE_HAS_DATA : 0) |
			 (p->original_sequence ? 0 : SAMPLE_HAS_SEQUENCE);
	p->last_valid = true;
}

/* What goes out for `in`, whose reference it takes over; NULL: nothing. */
static struct sample *trigger(struct path *p, struct path_source *s,
			      struct sample *in)
{
	/* Every sample that comes counts, not only those that send. */
	uint64_t number = p->original_sequence ? 0 : p->sequence++;
	struct sample *out = NULL;
	bool sends;

	if (p->last)
		remember(p, s, in, number);
	sends = triggered(p, s);
	if (sends && p->mapped)
		out = make_output(p);
	else if (sends && (p->original_sequence || renumber(p, &in, number)))
		return in;
	else if (sends)
		return NULL;
	else
		count(&p->merged, 1);
	sample_put(in);
	return out;
}

void path_register_put(struct path *p, struct path_source *s,
		       struct sample *smps[], unsigned cnt)
{
	unsigned made = 0;

	for (unsigned i = 0; i < cnt; i++) {
		struct sample *out = trigger(p, s, smps[i]);

		if (out)
			smps[made++] = out;
	}
	if (made)
		emit(p, smps, made, s->age, true);
}

void path_resend(struct path *p)
{
	struct sample *s;

	if (!p->last_valid)
		return;
	count(&p->repeated, 1);
	s = make_output(p);
	if (s && !p->original_sequence) {
		s->sequence = p->sequence++;
		s->flags |= SAMPLE_HAS_SEQUENCE;
	}
	if (s)
		emit(p, &s, 1, NULL, false);
}

void path_discard(struct path *p, struct sample *smps[], unsigned cnt)
{
	count(&p->discarded, cnt);
	sample_put_many(smps, cnt);
}

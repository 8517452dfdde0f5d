/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built-in hook `drop`: takes out samples whose sequence number does not grow
 * (doubles and such that were overtaken on their way), unless the hook `restart`
 * has found that their source began anew. It says so when the number stands still,
 * because then the source does not count, and nearly all of its samples are taken out.
 */
#define LOG_ROOM "gateway/hook"
#include "gateway/plugin/hook.h"
#include "gateway/sample/sequence.h"
#include "gateway/sample/time.h"
#include "util/log.h"

/* So many with one number in a row, with other times, are no doubles of a network. */
#define STILL_RUN 4

struct drop {
	bool seen;
	uint64_t sequence;      /* of the last sample that went through */
	struct timespec origin; /* likewise; 0: none */
	bool began_anew;        /* it was the first one after a restart; */
	uint64_t before;        /* the number before that */
	uint64_t passed, late;
	uint64_t still;       /* samples with the number of the one before */
	unsigned still_run;   /* in a row, with a later time or none */
	bool said;
};

extern const struct hook_type hook_drop;

static void say_still(struct hook *h)
{
	struct drop *d = h->private_data;

	if (d->said)
		return;
	d->said = true;
	log_warn("%s: sample after sample has the sequence number %llu: the built-in hook drop leaves them out as doubles; if the source does not count its samples, set `builtin = false` on the node",
		 h->owner, (unsigned long long)d->sequence);
}

static void count_out(struct hook *h, const struct sample *s)
{
	struct drop *d = h->private_data;
	bool still = s->sequence == d->sequence;
	bool other_time = !(s->flags & SAMPLE_HAS_ORIGIN) ||
			  sample_time_is_later(s->origin, d->origin);

	if (!still) {
		d->late++;
		return;
	}
	d->still++;
	d->still_run = other_time ? d->still_run + 1 : d->still_run;
	if (d->still_run == STILL_RUN)
		say_still(h);
}

/* A wrong number was taken for a restart: this one goes on behind the one before it. */
static bool goes_on(const struct drop *d, uint64_t number)
{
	return d->began_anew && number > d->before &&
	       number - d->before <= SEQUENCE_REORDER;
}

static enum hook_verdict drop_process(struct hook *h, struct sample **smp)
{
	const struct sample *s = *smp;
	struct drop *d = h->private_data;
	bool began_anew = s->flags & SAMPLE_NEW_SIMULATION;

	if (unlikely(!(s->flags & SAMPLE_HAS_SEQUENCE)))
		return HOOK_OK;
	if (unlikely(d->seen && s->sequence <= d->sequence && !began_anew &&
		     !sequence_wrapped(d->sequence, s->sequence) &&
		     !goes_on(d, s->sequence))) {
		count_out(h, s);
		return HOOK_SKIP;
	}
	d->before = d->sequence;
	d->began_anew = began_anew && d->seen;
	d->seen = true;
	d->sequence = s->sequence;
	d->origin = s->flags & SAMPLE_HAS_ORIGIN ? s->origin : (struct timespec){ 0, 0 };
	d->passed++;
	d->still_run = 0;
	return HOOK_OK;
}

/* Behind a restart of its node numbers begin anew. */
static int drop_start(struct hook *h)
{
	*(struct drop *)h->private_data = (struct drop){ 0 };
	return 0;
}

static int drop_stop(struct hook *h)
{
	struct drop *d = h->private_data;

	if (d->still && d->passed <= 1)
		say_still(h);
	if (d->still || d->late)
		log_info("%s: hook drop left out %llu samples with the number of the one before and %llu with a smaller one; %llu went on",
			 h->owner, (unsigned long long)d->still,
			 (unsigned long long)d->late, (unsigned long long)d->passed);
	return 0;
}

const struct hook_type hook_drop = {
	.name = "drop",
	.description = "drops samples whose sequence number does not grow",
	.places = HOOK_NODE_READ,
	.priority = 3,
	.builtin = true,
	.read_only = true,
	.size = sizeof(struct drop),
	.start = drop_start,
	.stop = drop_stop,
	.process = drop_process,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* See counting.h. */
#include "gateway/node/iec61850-9-2/counting.h"

#include "util/container_of.h"

#define SECOND_NS INT64_C(1000000000)
/* How far a sample may have been overtaken; bits of `seen`. */
#define LATE_MAX 63u
/* So many steps without a gap before a count is believed that contradicts what was known. */
#define RUN_MIN 2
#define ELAPSED_MAX (UINT64_C(1) << 40)

static bool is_stated(const struct counting *c)
{
	return c->stated && !c->stated_wrong;
}

uint32_t counting_wrap(const struct counting *c)
{
	return c->configured ? c->configured : is_stated(c) ? c->stated : c->learned;
}

/* For how many samples that time is enough; 0: that is not known. */
static uint64_t steps_of(const struct counting *c, uint32_t wrap, uint64_t elapsed_ns)
{
	uint64_t wrap_ns = c->configured || is_stated(c) ? SECOND_NS : c->wrap_ns_max;
	unsigned __int128 steps;

	if (!wrap_ns)
		return 0;
	steps = ((unsigned __int128)elapsed_ns * wrap + wrap_ns / 2) / wrap_ns;
	return steps > ELAPSED_MAX ? ELAPSED_MAX : (uint64_t)steps;
}

/* Measures how long the count takes from 0 to 0. */
static void note_wrap(struct counting *c, uint16_t count, uint64_t steps, uint64_t now_ns)
{
	if (steps > 1)
		c->zero_ns = 0;
	if (count)
		return;
	if (c->zero_ns && now_ns > c->zero_ns) {
		c->wrap_ns = now_ns - c->zero_ns;
		c->wrap_ns_max = MAX(c->wrap_ns_max, c->wrap_ns);
	}
	c->zero_ns = now_ns;
}

/* Goes `steps` on; the last of them is this sample. */
static struct counting_step advance(struct counting *c, uint16_t count, uint64_t steps,
				    uint64_t now_ns)
{
	note_wrap(c, count, steps, now_ns);
	c->run = steps == 1 ? c->run + (c->run < RUN_MIN) : 0;
	c->seen = steps > LATE_MAX ? 1 : c->seen << steps | 1;
	c->sequence += steps;
	c->last = count;
	c->last_ns = now_ns;
	return (struct counting_step){ steps > 1 ? COUNTING_LOST : COUNTING_NEXT, c->sequence,
				       steps - 1 };
}

static struct counting_step restart(struct counting *c, uint16_t count, uint64_t now_ns)
{
	c->zero_ns = 0;
	advance(c, count, 1, now_ns);
	c->run = 0;
	c->seen = 1;
	return (struct counting_step){ COUNTING_RESTARTED, c->sequence, 0 };
}

/* `wrap` 0: what was learned is not true. */
static void learn(struct counting *c, uint32_t wrap)
{
	if (wrap != c->learned)
		c->wrap_ns = c->wrap_ns_max = 0;
	c->learned = wrap;
}

static struct counting_step go_back(struct counting *c, uint64_t by)
{
	uint64_t bit = by <= LATE_MAX ? UINT64_C(1) << by : 0;

	if (!bit || c->seen & bit || by > c->sequence)
		return (struct counting_step){ COUNTING_REPEATED, 0, 0 };
	c->seen |= bit;
	return (struct counting_step){ COUNTING_LATE, c->sequence - by, 0 };
}

/* The count went back, and it is not known where it wraps: there, or because samples were
 * overtaken. */
static struct counting_step take_wrap(struct counting *c, uint16_t count, uint64_t now_ns)
{
	if (count && c->last - count <= (int)LATE_MAX)
		return go_back(c, (uint64_t)(c->last - count));
	if (!count && c->run >= RUN_MIN)
		learn(c, c->last + 1u);
	return advance(c, count, count + 1u, now_ns);
}

/*
 * The count is 0 before it has reached the rate that the publisher states, and there was no time for
 * so many lost samples (`sudden`). If that happens twice at the same place, the rate is wrong.
 */
static bool wraps_early(struct counting *c, uint32_t wrap, bool sudden)
{
	uint32_t place = c->last + 1u;

	if (c->configured || wrap != c->stated || c->run < RUN_MIN || !sudden)
		return false;
	c->stated_wrong = c->doubt == place;
	c->doubt = place;
	if (c->stated_wrong)
		learn(c, place);
	return c->stated_wrong;
}

/* Where the count wraps is known: behind `wrap`. */
static struct counting_step take_known(struct counting *c, uint16_t count, uint32_t wrap,
				       uint64_t now_ns, uint64_t elapsed_ns)
{
	uint32_t ahead = (count + wrap - c->last) % wrap, behind = wrap - ahead;
	uint64_t elapsed = steps_of(c, wrap, elapsed_ns), steps = ahead;

	if (c->last >= wrap)
		return restart(c, count, now_ns);
	if (elapsed > ahead)
		steps += (elapsed - ahead + wrap / 2) / wrap * wrap;
	if (!steps)
		return go_back(c, 0);
	if (ahead == 1 && steps == 1)
		return advance(c, count, 1, now_ns);
	if (ahead && behind <= MIN(LATE_MAX, wrap / 4) && elapsed < wrap / 2)
		return go_back(c, behind);
	if (!count && wraps_early(c, wrap, elapsed < ahead / 4))
		return advance(c, count, 1, now_ns);
	if (ahead <= wrap / 2 || elapsed >= ahead / 2)
		return advance(c, count, steps, now_ns);
	return restart(c, count, now_ns);
}

struct counting_step counting_take(struct counting *c, uint16_t count, uint32_t stated,
				   uint64_t now_ns, uint64_t elapsed_ns)
{
	uint32_t wrap;

	c->stated_wrong = c->stated_wrong && c->stated == stated;
	c->stated = stated;
	if (c->configured && count >= c->configured)
		return (struct counting_step){ COUNTING_IMPOSSIBLE, 0, 0 };
	if (c->stated && count >= c->stated)
		c->stated_wrong = true;
	if (count >= c->learned)
		learn(c, 0);
	if (!c->began) {
		c->began = true;
		c->sequence = (uint64_t)count - 1;
		return advance(c, count, 1, now_ns);
	}
	wrap = counting_wrap(c);
	if (wrap)
		return take_known(c, count, wrap, now_ns, elapsed_ns);
	if (count < c->last)
		return take_wrap(c, count, now_ns);
	if (count == c->last)
		return go_back(c, 0);
	return advance(c, count, (uint64_t)(count - c->last), now_ns);
}

/* Does a second have as many samples as the count has numbers? Where that was learned, to a
 * tenth. */
static bool counts_a_second(const struct counting *c)
{
	return c->configured || is_stated(c) ||
	       (c->wrap_ns > 9 * SECOND_NS / 10 && c->wrap_ns < 11 * SECOND_NS / 10);
}

bool counting_time(const struct counting *c, uint16_t count, int64_t received_ns,
		   int64_t *time_ns)
{
	uint32_t wrap = counting_wrap(c);
	int64_t second, time;

	if (!wrap || count >= wrap || received_ns < SECOND_NS || !counts_a_second(c))
		return false;
	second = received_ns / SECOND_NS * SECOND_NS;
	time = second + (count * SECOND_NS + wrap / 2) / wrap;
	if (time - received_ns > SECOND_NS / 2)
		time -= SECOND_NS;
	else if (received_ns - time > SECOND_NS / 2)
		time += SECOND_NS;
	*time_ns = time;
	return true;
}

/* Sixteenths of a sample: a time may be off by three quarters before the number is another one,
 * so that times between two numbers are not given one and the other in turns. */
#define PART 16
#define OFF_MAX 12
/* Samples among which one is in time. */
#define WINDOW 64

/* How much later the time is than that of `number`, at most half a second in both directions. */
static int64_t lateness(const struct numbering *n, int64_t time, uint32_t number)
{
	int64_t second = (int64_t)n->wrap * PART;
	int64_t late = (time - (int64_t)number * PART) % second;

	late += late < 0 ? second : 0;
	return late >= (second + 1) / 2 ? late - second : late;
}

/* May the sample have this number? A time that was taken late, up to 20 ms, says less than a
 * sequence number. */
static bool is_allowed(const struct numbering *n, int64_t late, bool sequenced)
{
	int64_t max = sequenced ? MAX((int64_t)n->wrap * PART / 50, OFF_MAX) : OFF_MAX;

	return late >= -OFF_MAX && late <= max;
}

/* The number behind samples of which none was in time is too small. */
static uint32_t catch_up(struct numbering *n, uint32_t number, int64_t late, bool *astray)
{
	n->late_min = n->window ? MIN(n->late_min, late) : late;
	if (++n->window < WINDOW)
		return number;
	n->window = 0;
	if (n->late_min <= OFF_MAX)
		return number;
	*astray = true;
	return (number + (uint32_t)((n->late_min + PART / 2) / PART)) % n->wrap;
}

static uint32_t number_by_time(struct numbering *n, int64_t nanoseconds, uint64_t step,
			       bool *astray)
{
	int64_t time = (nanoseconds * n->wrap * PART + SECOND_NS / 2) / SECOND_NS;
	uint32_t numbers[] = {
		(uint32_t)((n->next + (step ? step - 1 : 0) % n->wrap) % n->wrap), n->next,
	};

	for (unsigned i = 0; n->began && i < ARRAY_SIZE(numbers); i++) {
		int64_t late = lateness(n, time, numbers[i]);

		if (is_allowed(n, late, step))
			return catch_up(n, numbers[i], late, astray);
	}
	*astray = n->began;
	n->window = 0;
	return (uint32_t)((time + PART / 2) / PART % n->wrap);
}

uint16_t numbering_take(struct numbering *n, int64_t nanoseconds, uint64_t step, bool *astray)
{
	uint32_t number = n->next;

	*astray = false;
	if (n->by_time && nanoseconds >= 0 && nanoseconds < SECOND_NS)
		number = number_by_time(n, nanoseconds, step, astray);
	n->began = true;
	n->next = (uint16_t)((number + 1) % n->wrap);
	return (uint16_t)number;
}

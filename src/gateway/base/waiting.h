/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a thread waits for the next sample or step: when it spins, when it sleeps
 * until shortly before it, and when it sleeps until it is woken. One policy for
 * generators, for nodes that are read, and for paths.
 *
 * A processor that sleeps deeply takes 15 to 50 us to wake, so a reader that is
 * woken for each sample is late by that. A reader whose samples come regularly
 * knows when the next one is due: it sleeps until a little before, and spins over
 * the rest. Where the samples are closer together than a sleep is worth it spins all
 * the time. It sleeps until it is woken when
 *
 * - the samples come too irregularly to foretell the next one, or it is overdue;
 * - as many threads of this process spin as the machine has processors to spare;
 * - others need the processor: a spinning thread finds that it was not running for
 *   a while. Then no thread of the process spins for a time, which grows as long as
 *   that is found again.
 *
 * The time goes in everywhere, so that tests make it up. The number of
 * spinning threads and the ban are the process's.
 */
#ifndef GATEWAY_BASE_WAITING_H
#define GATEWAY_BASE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

/* Intervals up to this are spun over without a sleep. */
#define WAITING_NEAR_NS UINT64_C(500000)
/* A sleep that ends so long before the next sample is due is in time for it, also
 * when the processor has to be woken. */
#define WAITING_MARGIN_NS UINT64_C(80000)
/* Who waits by the clock alone sleeps where the steps are this far apart or more. */
#define WAITING_SLEEP_PERIOD_NS UINT64_C(50000)

#define WAITING_FOREVER UINT64_MAX

/* Of one reader; zeroed at its start. Used by one thread at a time. */
struct waiting {
	uint64_t last_ns;       /* the last arrival; 0: none */
	uint64_t interval_ns;   /* mean of the last ones; 0: unknown */
	uint64_t deviation_ns;  /* mean distance of an interval from that */
	unsigned trust;         /* how often in a row the next was foretold */
	uint64_t looked_ns;     /* the last look of a spin; 0: it does not spin */
	uint64_t away_ns;       /* of the spin, that others had lately */
	bool counted;           /* among the spinning threads of the process */
	bool generator;         /* has a processor's work of its own; set by the user */
};

/* Samples have come. */
void waiting_arrived(struct waiting *w, uint64_t now_ns);

/* What makes sense now: 0: spin; WAITING_FOREVER: sleep until woken; else sleep
 * until then at most. */
uint64_t waiting_plan(const struct waiting *w, uint64_t now_ns);

/*
 * Among those that spin. A reader is refused where all processors but one are spun
 * on already; a generator, which has a processor's work to do, never. True also when
 * it was before.
 */
bool waiting_begin_spin(struct waiting *w);
/* Before a sleep, and at the end of the thread. */
void waiting_end_spin(struct waiting *w);

/*
 * One look of a spin at the clock; false: others need the processor, the ban has
 * begun and the thread is to sleep.
 */
bool waiting_look(struct waiting *w, uint64_t now_ns);
/* Something was done since the last look: that time was not somebody else's. */
static inline void waiting_worked(struct waiting *w)
{
	w->looked_ns = 0;
}

/* Nobody is to spin at this time. */
bool waiting_is_banned(uint64_t now_ns);

/* Processors that this process may use: by affinity and by the quota of its control
 * group. Looked up once. */
unsigned waiting_processors(void);

/* For tests: forgets the ban, and sets the number of processors (0: as it is). */
void waiting_reset(unsigned processors);

/* Sleeps of the calling thread end in time and not up to 50 us later. */
void waiting_sharpen_sleep(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a thread waits for the next sample or step: when it spins, when it sleeps
 * until shortly before it, and when it sleeps until it is woken. One policy for
 * generators, for nodes that are read, and for paths.
 *
 * A processor that sleeps deeply takes 15 to 50 us to wake up, and a reader that is
 * woken for each sample is late by that. A reader whose samples come regularly
 * knows when the next one is due: it sleeps until a little before, and then spins.
 * Where the samples are close together, it measures how late its sleeps end here, by a
 * short one now and then. If half of the interval is time enough to wake up, it sleeps in the
 * other half; otherwise it spins all the time. A reader sleeps until it is woken when
 *
 * - its samples come too irregularly to predict the next one, or the next one is
 *   overdue;
 * - other readers of this process spin on all processors but one;
 * - it would take the last processor, and a thread that spins can do its work (turn.h);
 * - other threads need the processors: a spinning thread notices that it did not run
 *   for a while and that the kernel had put another thread in its place. Then no thread
 *   of the process spins for some time (the ban), which doubles when the same is noticed
 *   again soon after its end. Time that the host of a virtual machine or an interrupt
 *   took does not count: a sleep would not give it to anybody. A generator bears more
 *   of it than a reader; threads with real-time priority give way to nobody.
 *
 * Each function takes the present time as an argument, so that tests can choose it.
 * The number of spinning threads and the ban belong to the process.
 */
#ifndef GATEWAY_BASE_WAITING_H
#define GATEWAY_BASE_WAITING_H

#include <stdbool.h>
#include <stdint.h>

/* A reader whose mean interval is at most this sleeps between samples only for times that it has
 * found to be safe. */
#define WAITING_NEAR_NS UINT64_C(500000)
/* A sleep ends so long before the next sample is due, so that there is time for the
 * processor to wake up. */
#define WAITING_MARGIN_NS UINT64_C(80000)
/* A timer sleeps between steps that are at least this far apart. */
#define WAITING_SLEEP_PERIOD_NS UINT64_C(50000)

#define WAITING_FOREVER UINT64_MAX

/* The state of one reader or timer; zeroed at its start. Used by one thread at a time. */
struct waiting {
	uint64_t last_ns;       /* the last arrival; 0: none */
	uint64_t interval_ns;   /* mean of the last ones; 0: unknown */
	uint64_t deviation_ns;  /* mean distance of an interval from that */
	unsigned trust;         /* arrivals that came as predicted, net; at most 16 */
	/* Of sleeps that were to end at a time. */
	uint64_t late_ns;       /* how late they ended: mean */
	uint64_t late_deviation_ns; /* mean distance from that */
	unsigned sleeps;        /* how many; at most 8 */
	unsigned tries;         /* with those that samples ended; at most 16 */
	unsigned arrivals;      /* since the last one */
	uint64_t looked_ns;     /* the last look of a spin; 0: it does not spin */
	uint64_t away_ns;       /* time of the spin that other threads had lately */
	bool counted;           /* among the spinning threads of the process */
	bool generator;         /* a timer, not a reader; set by the owner */
};

/* Records that samples have come at `now_ns`. */
void waiting_arrived(struct waiting *w, uint64_t now_ns);

/* Records the end of a sleep that waiting_plan() had planned until `until_ns`; earlier, if samples
 * came. */
void waiting_woke(struct waiting *w, uint64_t until_ns, uint64_t now_ns);

/* Returns 0: spin; WAITING_FOREVER: sleep until woken; any other time: sleep until
 * then at most. */
uint64_t waiting_plan(const struct waiting *w, uint64_t now_ns);

/*
 * Counts the thread among those that spin. False for a reader when the spinning
 * threads already occupy all processors but one; a generator is always counted. True
 * when the thread is counted already.
 */
bool waiting_begin_spin(struct waiting *w);
/* Whether the process would have no processor left that no thread of it spins on, if the
 * caller spun. */
bool waiting_is_crowded(const struct waiting *w);
/* To be called before a sleep and at the end of the thread. */
void waiting_end_spin(struct waiting *w);

/*
 * To be called once per turn of a spin. False: other threads need the processor, the
 * ban has begun, and the thread has to sleep.
 */
bool waiting_look(struct waiting *w, uint64_t now_ns);
/* The thread worked since the last look: that time does not count as lost. */
static inline void waiting_worked(struct waiting *w)
{
	w->looked_ns = 0;
}

/* Whether the ban lasts at `now_ns`. */
bool waiting_is_banned(uint64_t now_ns);

/* Processors that this process may use, by its affinity mask and by the quota of its
 * control group, at the first call; at least 1. */
unsigned waiting_processors(void);

/* How often the kernel replaced the calling thread although it could have run on
 * (ru_nivcsw of getrusage(2)). For tests, which count themselves. */
extern uint64_t (*waiting_switches)(void);

/* For tests: ends the ban and sets the number of processors (0: look it up again). */
void waiting_reset(unsigned processors);

/* Lets the kernel end sleeps of the calling thread on time, not up to 50 us later. */
void waiting_sharpen_sleep(void);

#endif

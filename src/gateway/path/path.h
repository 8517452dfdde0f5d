/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths: from source nodes through hooks and the register to destination
 * nodes. For the super-node and tests; node-types never see a path.
 *
 * Two ways to run:
 *
 * - direct: exactly one source, read by this path. Its thread reads, processes
 *   and writes; there is no queue in between, and the source may busy-poll.
 *   A whole node passes through as it is, parts of it go through the register.
 * - queued: several sources, a source that another path reads too, or a rate.
 *   Sources fill queues (each from a thread of its own, unless all offer poll
 *   descriptors), the path's thread empties them through the register.
 *
 * Files: path_parse.c (configuration), find.c (its nodes), path_map.c (what it takes from its
 * sources), path.c (pools), path_thread.c (threads), path_source.c (reading),
 * path_queue.h (full queues), path_share.c (one reader for several paths),
 * path_flow.c (register, hooks, writing).
 */
#ifndef GATEWAY_PATH_PATH_H
#define GATEWAY_PATH_PATH_H

#include <pthread.h>

#include "gateway/plugin/hook.h"
#include "gateway/plugin/mapping.h"
#include "gateway/base/turn.h"
#include "gateway/base/waiting.h"
#include "gateway/plugin/node.h"
#include "gateway/sample/sample.h"
#include "gateway/base/waker.h"
#include "gateway/sample/sequence.h"
#include "util/hist.h"
#include "util/ring.h"

/* Samples taken from queues before sources and timers are looked at again. */
#define PATH_QUEUE_BURST 64

struct path;
struct path_source;

/* What happens to a sample that finds its queue full. */
enum path_full {
	PATH_FULL_AUTO,    /* block the own reader, drop_newest of another's */
	PATH_BLOCK,
	PATH_DROP_NEWEST,
	PATH_DROP_OLDEST,
};

/* The sources of other paths that one reader feeds too. Never changed: another
 * table takes its place. */
struct path_share {
	unsigned count;
	struct path_source *sources[];
};

/* One entry of `in`: what is taken from a source, and where it goes. */
struct path_map {
	struct mapping mapping;
	struct node *node;
	struct path_source *source;
	struct path_map *next;            /* of the same source */
	unsigned first, count;            /* values of the source's samples */
	unsigned offset;                  /* place in the register */
	struct node_stats *stats;         /* reference, for figures of it */
	const json_t *at;                 /* where it stands, for messages */
	const char *key;
};

struct path_source {
	struct path *path;
	struct node *node;
	unsigned vectorize;

	/* The source of another path that reads the node for this one too. */
	struct path_source *_Atomic primary;
	struct path_share *_Atomic share; /* those that this one feeds; NULL: none */
	struct gate feeding;              /* its reader is using `share` */
	uint64_t round;                   /* reads that were handed on; one that
					   * is fed: the last that it has */
	/* Joined a reader that was running, whose pool has no room for it: it
	 * gets copies, from a pool of its own. */
	bool late;
	struct pool copies;
	/* Another reader takes over: its last one leaves the ends of the others
	 * and what the read hooks hold alone. */
	atomic_bool handed_over;

	/* A path writes the node, and what is written comes back here: once
	 * that one has ended and nothing is left, this source has too. */
	bool fed;
	atomic_bool ended_by_feed;        /* of its reader, at this node->feed */
	unsigned feed_seen;

	struct pool pool;                 /* only of a primary */
	unsigned capacity;                /* values that read and its hooks need */
	struct sample **batch;            /* given to read */
	unsigned spare_count;             /* unused ones at its start */
	unsigned empties;                 /* reads without data in a row */
	bool rested;                      /* since its last read it was paused */
	struct waiting waiting;           /* of who reads it */
	bool spins;                       /* for turn_run_offered() */
	unsigned held;                    /* samples in smps[] of its reader that
					   * wait until the path goes on */
	struct sequence sequence;         /* of what was read */

	struct ring queue;                /* of a queued path */
	_Atomic int full;                 /* enum path_full, but AUTO */
	struct sample **received;         /* scratch of the reader thread */
	pthread_t thread;
	bool has_thread;
	atomic_bool ended;                /* no more samples come, until the node
					   * is started anew */
	_Atomic uint64_t overruns;        /* samples the queue had no room for */
	_Atomic uint64_t starved;         /* reads without a free sample */

	bool over;                        /* `ended`, as the path's thread saw it */
	struct path_map *maps;            /* what the register takes of it */
	bool delivered;                   /* the register has values of it */
	unsigned count;                   /* values of its samples */
	struct node_stats *_Atomic age;   /* where their age is recorded */
	bool triggers;                    /* in the mask */
	bool fresh;                       /* has come since the last output */
};

struct path_destination {
	struct node *node;
	unsigned vectorize;
	struct sample **batch;
};

enum path_mode { PATH_ANY, PATH_ALL };
/* Which of several sources ends the path by its end. */
enum path_end { PATH_END_FIRST, PATH_END_ALL };
enum path_poll { PATH_POLL_AUTO, PATH_POLL_NO, PATH_POLL_YES };

struct path {
	char *name;                       /* "a -> b", for messages */
	char uuid[37];
	struct config *config;
	json_t *cfg;
	bool enabled, reverse, reversed;
	int mode;                         /* enum path_mode */
	int end;                          /* enum path_end */
	int poll;                         /* enum path_poll */
	int full;                         /* enum path_full */
	bool original_sequence;
	double rate_hz;
	int64_t queuelen, affinity, priority;
	bool own_priority;                /* not that of the gateway */
	struct hook_list *hooks;
	struct memory_type *memory;       /* bottom of the chains of its pools */
	struct signal_list *signals;      /* of the register; may be NULL */
	struct signal_list *out_signals;  /* behind its hooks; may be NULL */
	unsigned capacity;                /* values that its output and the hooks
					   * from there on need */

	struct path_map *maps;            /* in the order of `in` */
	unsigned map_count;
	bool mapped;                      /* samples do not pass through, the
					   * register makes new ones */
	unsigned register_length;         /* values in it */
	struct path_source *sources;
	unsigned source_count;
	struct path_destination *destinations;
	unsigned destination_count;

	/* Run time */
	bool resolved;                    /* signals are known */
	bool direct, polled;
	struct gate gate;                 /* paused or stopped: no output */
	unsigned batch_max;
	struct sample **batch;
	struct pool pool;                 /* multiplexed and resent samples */
	bool has_pool;
	struct sample *last;              /* state of the register */
	bool last_valid;
	unsigned delivered_length;        /* of it, up to what sources gave */
	uint64_t sequence;
	struct waker waker;
	/* Others may do what its thread does, while that one sleeps. */
	struct turn turn;
	bool may_be_carried;              /* nothing of it waits for anybody */
	bool inside;                      /* who has taken the turn is behind
					   * its gates */
	unsigned long_turns;              /* of late, weighted */
	uint64_t carried_from_ns;         /* not before: it took too long */
	int event_fd;                     /* ends a poll */
	int ended_fd;                     /* super-node's, written at the end */
	pthread_t thread;
	bool has_thread;
	atomic_bool stop_reading;         /* sources are not read any more */
	atomic_bool stop;                 /* end once the queues are empty */
	atomic_bool ended;

	struct hist latency;              /* ns, received - origin */
	_Atomic uint64_t forwarded;       /* samples given to destinations */
	_Atomic uint64_t negative;        /* latencies below zero */
	/*
	 * What its sources read, behind their hooks, + repeated = merged +
	 * overruns of its queues + unmade + discarded + what its hooks dropped,
	 * hold, failed to process or had no sample for + forwarded.
	 */
	_Atomic uint64_t unmade;          /* outputs without a free sample */
	_Atomic uint64_t discarded;       /* samples that came while it rested, or
					   * behind its end, or were in a
					   * queue at its end */
	_Atomic uint64_t merged;          /* into the register, no output yet */
	_Atomic uint64_t repeated;        /* outputs for no new sample, of `rate` */
	uint64_t unmade_told;             /* of path_take_losses() */
	/* Of who controls it; not beside what its threads read. */
	struct path *twin;                /* of a reload: the same in the other */
	bool prepared;                    /* pools are there */
	bool started;                     /* hooks are */
	bool stuck;                       /* a thread of it did not come out before
					   * the end of the process */
	struct list entry;
};

/* What the gateway hands to its paths; borrowed, `services` for as long as they live. */
struct path_host {
	struct services *services;
	struct list *paths;          /* struct path, entry: those before it */
	struct memory_type *memory;  /* of their pools */
	int64_t priority;            /* of their threads, where they say none */
};

/*
 * One path from its configuration; everything wrong is reported. NULL in *out
 * with 0 when errors were reported. `reversed` swaps source and destination.
 */
int path_new(struct path **out, const struct path_host *host, struct config *c,
	     json_t *cfg, bool reversed);
void path_destroy(struct path *p); /* NULL allowed */

/*
 * The signals of its output: those of its one source, or of all of them in
 * order. Destinations that have none of their own take them. For all paths,
 * once all are parsed, what feeds others first.
 */
int path_set_signals(struct path *p);

/*
 * Makes `s` read through `primary`, which reads the same node; while neither path
 * is running. 0 or -ENOMEM.
 */
int path_source_share(struct path_source *s, struct path_source *primary);
/*
 * The same where the path of `primary` is running: before path_prepare() of the
 * path of `s`, whose path_start() then joins it. The running path notices nothing
 * of it but one read that waits for some microseconds.
 */
void path_source_share_late(struct path_source *s, struct path_source *primary);
/*
 * Takes `s`, whose path has been told to stop reading, away from the reader that
 * feeds it, which goes on. 0, -ENOMEM, or -EBUSY when the reader does not come out.
 */
int path_source_unshare(struct path_source *s);
/*
 * `next`, which `s` has fed, reads the node from now on, for all others that `s` has
 * fed too. The gate of the node is shut and the path of `s` reads no more; both
 * paths were started. 0 or a negative errno, logged, and `next` has ended then.
 */
int path_source_hand_over(struct path_source *s, struct path_source *next);

/* The node called `name`; NULL after reporting. `at` and `key` say where the
 * name stands. */
struct node *path_find_node(const struct services *services,
			    struct config *c, const json_t *at, const char *key,
			    const char *name);
/* The whole nodes under `key`, one name or a list; owned array in *out. Their
 * number, or a negative errno after reporting. */
int path_find_nodes(const struct services *services, struct config *c,
		    json_t *cfg, const char *key, struct node ***out);

/* path_map.c */
/* The entries of `in` (under `key`), with their nodes; 0 or -EINVAL after
 * reporting. */
int path_map_parse(struct path *p, const struct services *services,
		   struct config *c, const char *key);
/*
 * Looks up signals and figures, places all in the register and makes its list
 * of signals. Once those of the sources are known.
 */
int path_map_resolve(struct path *p);
/* Copies what is mapped of a sample into the register, which then reaches to the
 * last value of those sources that have given samples. */
void path_map_copy(struct path *p, struct path_source *s,
		   const struct sample *smp);
/* For a reload: names what stays instead of its double, with its figures. */
void path_map_rewire(struct path *p);
void path_map_destroy(struct path *p);

/* Decides how it runs and makes pools and queues; nodes are prepared by then. */
int path_prepare(struct path *p);
int path_start(struct path *p, int ended_fd);
/* First no more reading, then, once all paths are there, the end. Both join. */
void path_stop_reading(struct path *p);
void path_stop(struct path *p);
/* After the nodes have stopped: samples they held are back. */
void path_release(struct path *p);

/* Samples that came and went no further: for want of a free one; and with those
 * that found a queue full. */
uint64_t path_unmade(const struct path *p);
uint64_t path_dropped(const struct path *p);
/* Samples that were lost in it or its own hooks, though nothing allows that, since
 * the last call. One caller at a time. */
uint64_t path_take_losses(struct path *p);
/* Counters begin at zero; its output is closed, losses were taken. */
void path_reset_counters(struct path *p);

/* path_share.c: what path_start() does for a source that shares late. */
int path_source_join(struct path_source *s);
/* path.c and path_thread.c: what one that is read by its own path needs, and its
 * thread. 0 or a negative errno. */
int path_source_prepare_reading(struct path_source *s);
int path_source_start_reader(struct path_source *s);

/* path_source.c */
/*
 * Reads once and runs the read hooks. Returns how many samples stand in
 * smps[] (owned by the caller, at most vectorize), -ENODATA at the end, or
 * another negative errno.
 */
int path_source_read(struct path_source *s, struct sample *smps[]);
/* It is not read this time because it or its path may be paused. -EHOSTDOWN. */
int path_source_rest(struct path_source *s);
/* What the read hooks still hold when nothing more is read, as from a read;
 * until it returns 0. */
unsigned path_source_flush(struct path_source *s, struct sample *smps[]);
/* Waits as long as makes sense after path_source_read() gave `ret` <= 0. */
void path_source_wait(struct path_source *s, int ret);
/*
 * Behind -ENODATA: sleeps until the node may have samples again, because it was
 * started anew. False when the path is to end.
 */
bool path_source_await(struct path_source *s);
/* True when its node's end is over; marks it. By the reading thread. */
bool path_source_revived(struct path_source *s);
/* Its reader goes away: it has ended for all who read through it. */
void path_source_leave(struct path_source *s);
/* Thread: reads into the queue until the end. */
void *path_source_run(void *source);

/* path_carry.c */
/* Once its sources and destinations are known and before its thread runs: others
 * may take its turns from here on. */
void path_carry_offer(struct path *p);
/* Its thread has ended: nobody finds it any more. */
void path_carry_withdraw(struct path *p);
/* The reader of `s` spins from here on, and runs the turns that others offer. */
void path_spin_begin(struct path_source *s);
/* It does not: it goes to sleep or ends. */
void path_spin_end(struct path_source *s);
/* Its thread, which is inside its source: sleeps while a thread that spins runs its
 * turns, at most so long. False: there is none, or it may not. */
bool path_carry_wait(struct path *p, uint64_t timeout_ns);

/* path_flow.c */
/* Output of the path's one source: numbers, hooks, destinations. Takes over the
 * references. */
void path_emit(struct path *p, struct sample *smps[], unsigned cnt);
/* At the end: what hooks still hold goes to the destinations. */
void path_flush(struct path *p);
/* Register: takes over the references, and uses smps[] for what goes out. */
void path_register_put(struct path *p, struct path_source *s,
		       struct sample *smps[], unsigned cnt);
/* Behind the end of the path: releases the references and counts them. */
void path_discard(struct path *p, struct sample *smps[], unsigned cnt);
/* Sends the register's last state again. */
void path_resend(struct path *p);

/* Its reader reads for other paths too. */
static inline bool path_source_feeds_others(struct path_source *s)
{
	return unlikely(atomic_load_explicit(&s->share, memory_order_relaxed) !=
			NULL);
}

static inline bool path_stopping(struct path *p)
{
	return atomic_load_explicit(&p->stop_reading, memory_order_relaxed);
}

/* It neither reads nor forwards. */
static inline bool path_rests(struct path *p)
{
	return gate_reasons(&p->gate) & (GATE_PAUSED | GATE_STOPPED);
}

#endif

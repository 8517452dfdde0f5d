/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Paths: from source nodes through hooks and the register to destination
 * nodes. For the super-node and tests; node-types never see a path.
 *
 * Two ways to run:
 *
 * - direct: exactly one source, which no other path reads for this one. The path's thread
 *   reads, processes and writes; there is no queue, and the source may busy-poll.
 *   Samples of a whole node pass through unchanged; parts of a node are copied into
 *   the register, which yields new samples.
 * - queued: several sources, a source that another path reads too, or a rate. Each
 *   source fills a queue (from a thread of its own, unless all sources offer poll
 *   descriptors), and the path's thread copies from the queues into the register.
 *
 * Files: path_parse.c (configuration), find.c (nodes by name), path_map.c (mapping of
 * sources to the register), path.c (pools), path_thread.c (threads), path_source.c
 * (reading), path_queue.h (full queues), path_share.c (one reader for several paths),
 * path_carry.c (other threads run a path), path_flow.c (register, hooks, writing).
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

/* The path takes up to so many samples from queues before it checks sources and timers
 * again. */
#define PATH_QUEUE_BURST 64

struct path;
struct path_source;

/* What happens to a sample that finds its queue full. */
enum path_full {
	PATH_FULL_AUTO,    /* block a reader of its own, drop_newest for a shared one */
	PATH_BLOCK,
	PATH_DROP_NEWEST,
	PATH_DROP_OLDEST,
};

/* A table of sources of other paths that one reader feeds too. It never changes: a new
 * table replaces it (path_share.c). */
struct path_share {
	unsigned count;
	struct path_source *sources[];
};

/* One entry of `in`: which values of a source the path takes, and their place in the
 * register. */
struct path_map {
	struct mapping mapping;
	struct node *node;
	struct path_source *source;
	struct path_map *next;            /* of the same source */
	unsigned first, count;            /* values of the source's samples */
	unsigned offset;                  /* place in the register */
	struct node_stats *stats;         /* reference, for figures of the node */
	const json_t *at;                 /* its configuration, for messages */
	const char *key;
};

struct path_source {
	struct path *path;
	struct node *node;
	unsigned vectorize;

	/* The source of another path whose reader reads the node for this one
	 * too; NULL: this path reads the node. */
	struct path_source *_Atomic primary;
	struct path_share *_Atomic share; /* sources that this one feeds; NULL: none */
	struct gate feeding;              /* the reader is inside while it uses `share` */
	uint64_t round;                   /* of a reader: reads that it handed on; of
					   * a fed source: the last one that it got */
	/* It joined a running reader, whose pool was made without room for it: it
	 * gets copies from a pool of its own. */
	bool late;
	struct pool copies;
	/* Another reader takes over: the old one does not mark the other sources as
	 * ended and does not flush the read hooks. */
	atomic_bool handed_over;

	/* A path writes the node and this source reads what comes of it
	 * (node_follows_writer()): it ends when that path has ended and no sample is left. */
	bool fed;
	atomic_bool ended_by_feed;        /* it ended so, at node->feed == feed_seen */
	unsigned feed_seen;

	struct pool pool;                 /* only of a primary */
	unsigned capacity;                /* values that read and its hooks need */
	struct sample **batch;            /* passed to read */
	unsigned spare_count;             /* unused samples at the start of batch */
	unsigned empties;                 /* reads without data in a row */
	bool may_run_turns;               /* path_carry_may_run_turns() */
	bool rested;                      /* it was paused since the last read */
	struct waiting waiting;           /* of the thread that reads it */
	unsigned held;                    /* samples in smps[] of its reader that
					   * wait until the path goes on */
	struct sequence sequence;         /* of the samples that were read */

	struct ring queue;                /* of a queued path */
	_Atomic int full;                 /* enum path_full, but AUTO */
	struct sample **received;         /* scratch of the reader thread */
	pthread_t thread;
	bool has_thread;
	atomic_bool ended;                /* no more samples come until the node is
					   * started again */
	_Atomic uint64_t overruns;        /* samples the queue had no room for */
	_Atomic uint64_t starved;         /* reads without a free sample */

	bool over;                        /* `ended`, as the path's thread saw it */
	struct path_map *maps;            /* values that the register takes of it */
	bool delivered;                   /* the register has values of it */
	unsigned count;                   /* values per sample of it */
	struct node_stats *_Atomic age;   /* where their age is recorded */
	bool triggers;                    /* it is in the mask */
	bool fresh;                       /* a sample came since the last output */
};

struct path_destination {
	struct node *node;
	unsigned vectorize;
	struct sample **batch;
};

enum path_mode { PATH_ANY, PATH_ALL };
/* Whether the path ends with the first source that ends or with the last one. */
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
	struct memory_type *memory;       /* that the memory types of nodes wrap */
	struct signal_list *signals;      /* of the register; may be NULL */
	struct signal_list *out_signals;  /* after its hooks; may be NULL */
	unsigned capacity;                /* values per sample that its output and
					   * all later hooks need */

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
	struct sample *last;              /* contents of the register */
	bool last_valid;
	unsigned delivered_length;        /* values up to the last one of a source
					   * that has delivered */
	uint64_t sequence;
	struct waker waker;
	/* Other threads may run the path while its own thread sleeps. */
	struct turn turn;
	bool plain;                       /* one source; no part may have to wait; its
					   * thread has no settings of its own */
	bool may_be_carried;              /* plain, and its node does not wait in read() */
	unsigned turns;                   /* that other threads ran */
	bool inside;                      /* the thread that took the turn is inside
					   * of its gates */
	unsigned long_turns;              /* recent long turns, weighted */
	uint64_t carried_from_ns;         /* other threads do not run it before */
	int event_fd;                     /* wakes its poll() */
	int ended_fd;                     /* of the super-node; written at the end */
	pthread_t thread;
	bool has_thread;
	atomic_bool stop_reading;         /* the path stops to read sources */
	atomic_bool stop;                 /* end once the queues are empty */
	atomic_bool ended;

	struct hist latency;              /* ns, received - origin */
	_Atomic uint64_t forwarded;       /* samples given to destinations */
	_Atomic uint64_t negative;        /* latencies below zero */
	/*
	 * The number of samples that leave the read hooks of its sources, plus
	 * repeated, is the sum of merged, overruns of its queues, unmade,
	 * discarded, forwarded, and the samples that its own hooks dropped, hold,
	 * failed to process or had no free sample for.
	 */
	_Atomic uint64_t unmade;          /* outputs without a free sample */
	_Atomic uint64_t discarded;       /* samples that came while it was paused or
					   * stopped, or after its end, or were in
					   * a queue at its end */
	_Atomic uint64_t merged;          /* into the register, without an output */
	_Atomic uint64_t repeated;        /* outputs of `rate` without a new sample */
	uint64_t unmade_told;             /* at the last path_take_losses() */
	/* Used by the controlling thread only, and so not in a cache line that the
	 * path's threads read. */
	struct path *twin;                /* during a reload: the same path in the
					   * other super-node */
	bool prepared;                    /* its pools are made */
	bool started;                     /* its hooks are started */
	bool stuck;                       /* one of its threads did not end before
					   * the end of the process */
	struct list entry;
};

/* What the gateway gives to path_new(); borrowed. `services` must outlive the path. */
struct path_host {
	struct services *services;
	struct list *paths;          /* struct path, entry: those before it */
	struct memory_type *memory;  /* of their pools */
	int64_t priority;            /* of their threads, where they say none */
};

/*
 * Makes a path from its configuration and reports all errors. Returns 0 with *out set, 0
 * with NULL in *out after reporting errors, or a negative errno. `reversed` swaps
 * source and destination. The caller frees *out by path_destroy().
 */
int path_new(struct path **out, const struct path_host *host, struct config *c,
	     json_t *cfg, bool reversed);
void path_destroy(struct path *p); /* NULL allowed */

/*
 * Sets the signals of the path's output: those of its one source, or of all sources in
 * order. Destinations without signals of their own take them. Called once for every
 * path after all are parsed, first for paths that feed others.
 */
int path_set_signals(struct path *p);

/*
 * Makes `s` read through `primary`, which reads the same node. Neither path may be
 * running. 0 or -ENOMEM.
 */
int path_source_share(struct path_source *s, struct path_source *primary);
/*
 * The same where the path of `primary` is running. Called before path_prepare() of the
 * path of `s`; its path_start() then joins the reader. One read of the running path
 * waits for some microseconds.
 */
void path_source_share_late(struct path_source *s, struct path_source *primary);
/*
 * Removes `s`, whose path has been told to stop reading, from the table of the reader that
 * feeds it; the reader goes on. 0, -ENOMEM, or -EBUSY when the reader does not leave
 * its table within ten seconds.
 */
int path_source_unshare(struct path_source *s);
/*
 * Makes `next`, which `s` has fed, the reader of the node for all other sources that `s`
 * has fed. The caller has shut the gate of the node and ended the reader of `s`; both
 * paths were started. 0 or a negative errno, logged; `next` has ended then.
 */
int path_source_hand_over(struct path_source *s, struct path_source *next);

/* The node called `name`; NULL after reporting an error at `key` of `at`. */
struct node *path_find_node(const struct services *services,
			    struct config *c, const json_t *at, const char *key,
			    const char *name);
/* The nodes that `key` names, one name or a list, without mappings. Returns their number
 * and an array in *out, which the caller frees; or a negative errno after reporting. */
int path_find_nodes(const struct services *services, struct config *c,
		    json_t *cfg, const char *key, struct node ***out);

/* path_map.c */
/* Parses the entries of `in` (under `key`) and finds their nodes; 0 or -EINVAL after
 * reporting. */
int path_map_parse(struct path *p, const struct services *services,
		   struct config *c, const char *key);
/*
 * Looks up signals and figures, gives each a place in the register and makes its list of
 * signals. Called once, when the signals of the sources are known.
 */
int path_map_resolve(struct path *p);
/* Copies the mapped values of a sample into the register. Its length then includes the
 * last value of all sources that have delivered samples. */
void path_map_copy(struct path *p, struct path_source *s,
		   const struct sample *smp);
/* For a reload: replaces pointers to nodes, and their figures, of one super-node by those
 * of the same nodes in the other one. */
void path_map_rewire(struct path *p);
void path_map_destroy(struct path *p);

/* Decides how the path runs and makes pools and queues; its nodes are prepared. 0 or a
 * negative errno. */
int path_prepare(struct path *p);
int path_start(struct path *p, int ended_fd);
/* path_stop_reading() ends the reading of sources. path_stop() ends the path, after all
 * paths have stopped reading. Both join threads. */
void path_stop_reading(struct path *p);
void path_stop(struct path *p);
/* Frees pools, after the nodes have stopped and returned their samples. */
void path_release(struct path *p);

/* Samples that were not forwarded because there was no free sample; path_dropped() adds
 * those that found a queue full. */
uint64_t path_unmade(const struct path *p);
uint64_t path_dropped(const struct path *p);
/* The number of samples that the path or its own hooks lost since the last call though
 * nothing allows it. One caller at a time. */
uint64_t path_take_losses(struct path *p);
/* Sets counters to zero. The gate of its output is shut, and path_take_losses() was
 * called. */
void path_reset_counters(struct path *p);

/* path_share.c: path_start() calls this for a source that joins a running reader. */
int path_source_join(struct path_source *s);
/* path.c and path_thread.c: make pool and buffers of a source that its own path reads, and
 * start its thread. 0 or a negative errno. */
int path_source_prepare_reading(struct path_source *s);
int path_source_start_reader(struct path_source *s);

/* path_source.c */
/*
 * Reads once and runs the read hooks. Returns the number of samples in smps[] (owned by
 * the caller, at most vectorize), -ENODATA at the end, or another negative errno.
 */
int path_source_read(struct path_source *s, struct sample *smps[]);
/* Called instead of a read while the node or the path may be paused. -EHOSTDOWN. */
int path_source_rest(struct path_source *s);
/* After the last read: returns samples that the read hooks still hold, like a read;
 * repeated until it returns 0. */
unsigned path_source_flush(struct path_source *s, struct sample *smps[]);
/* Waits before the next read, after path_source_read() returned `ret` <= 0. */
void path_source_wait(struct path_source *s, int ret);
/*
 * After -ENODATA: sleeps until the node was started again and may have samples. False
 * when the path is to end.
 */
bool path_source_await(struct path_source *s);
/* Whether the node goes on after its end; then marks the source as not ended. Called by
 * the reading thread. */
bool path_source_revived(struct path_source *s);
/* The reader ends: marks the source and all sources that it feeds as ended. */
void path_source_leave(struct path_source *s);
/* The function of a reader thread: reads into the queue until the end. */
void *path_source_run(void *source);

/* path_carry.c */
/* Lets other threads take the path's turns from now on. Called when its sources and
 * destinations are known, before its thread runs. */
void path_carry_offer(struct path *p);
/* Undoes path_carry_offer(), after the path's thread has ended. */
void path_carry_withdraw(struct path *p);
/* Whether the read of `s` may run turns of others while it waits (in.carries): then the
 * path has no settings of its own for its thread, and nothing in it waits for anything
 * else. */
bool path_carry_may_run_turns(const struct path *p, const struct path_source *s);
/* The reader of `s` does not spin any more: it goes to sleep or ends. */
void path_spin_end(struct path_source *s);
/* Called by the path's thread: whether it should not spin, because a thread that spins runs
 * its turns and the spinning threads leave no processor otherwise. */
bool path_carry_is_better(const struct path *p, const struct waiting *w);
/* Called by the path's thread inside of its source: sleeps, at most `timeout_ns`, while a
 * spinning thread runs its turns. False: no thread spins, or the path must run in its
 * own thread. If none of them ran a turn in all the time, it does so for a while. */
bool path_carry_wait(struct path *p, uint64_t timeout_ns);

/* path_flow.c */
/* Passes samples of the path's one source on: sequence numbers, hooks, destinations. Takes
 * over the references. */
void path_emit(struct path *p, struct sample *smps[], unsigned cnt);
/* At the end: writes samples that hooks still hold to the destinations. */
void path_flush(struct path *p);
/* Copies samples of `s` into the register and sends the outputs. Takes over the
 * references, and uses smps[] for the outputs. */
void path_register_put(struct path *p, struct path_source *s,
		       struct sample *smps[], unsigned cnt);
/* After the end of the path: releases the references and counts the samples. */
void path_discard(struct path *p, struct sample *smps[], unsigned cnt);
/* Sends the present contents of the register again. */
void path_resend(struct path *p);

/* Whether the reader of `s` reads for other paths too. */
static inline bool path_source_feeds_others(struct path_source *s)
{
	return unlikely(atomic_load_explicit(&s->share, memory_order_relaxed) !=
			NULL);
}

static inline bool path_stopping(struct path *p)
{
	return atomic_load_explicit(&p->stop_reading, memory_order_relaxed);
}

/* Whether the path is paused or stopped: it neither reads nor forwards. */
static inline bool path_rests(struct path *p)
{
	return gate_reasons(&p->gate) & (GATE_PAUSED | GATE_STOPPED);
}

#endif

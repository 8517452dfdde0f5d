/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes and node-types: the plug-in interface of the gateway.
 *
 * A node-type is one folder gateway/node/<name>/ with its meson.build, a name in
 * gateway/node/meson.build, one manual page, one example and one test. Every callback
 * is optional unless its comment says otherwise.
 *
 * Life cycle of a node: init - parse - check - prepare - start - (read/write,
 * from the threads of its paths) - stop - destroy. Stop and start may alternate
 * any number of times between prepare and destroy; no thread is in read or write while
 * they run. Callbacks return 0 or a negative errno and log the cause themselves.
 */
#ifndef GATEWAY_PLUGIN_NODE_H
#define GATEWAY_PLUGIN_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/config/config.h"
#include "gateway/base/gate.h"
#include "gateway/base/memory.h"
#include "gateway/base/turn.h"
#include "gateway/plugin/plugin.h"
#include "gateway/plugin/tap_place.h"
#include "gateway/sample/sample.h"
#include "gateway/base/waker.h"
#include "util/hist.h"
#include "util/list.h"

struct hook_list;
struct node;
struct node_stats;
struct services;

/*
 * PENDING_CONNECT and CONNECTED are set by the node itself, only after the
 * super-node has put it into STARTED, and are treated like STARTED by the
 * super-node: STOPPED is reachable from all three.
 */
enum node_state {
	NODE_DESTROYED,
	NODE_INITIALIZED,
	NODE_PARSED,
	NODE_CHECKED,
	NODE_PREPARED,
	NODE_STARTED,
	NODE_PENDING_CONNECT,
	NODE_CONNECTED,
	NODE_STOPPED,
};

const char *node_state_name(enum node_state s);

enum node_flags {
	NODE_CAN_READ = 1 << 0,
	NODE_CAN_WRITE = 1 << 1,
	NODE_READ_BLOCKS = 1 << 2,  /* read waits for data by itself */
	NODE_LOOPS = 1 << 3,        /* read returns the samples that were written,
				     * so signals of `out` hold for `in` too */
	NODE_GENERATES = 1 << 4,    /* gaps in its sequence numbers are steps that
				     * it missed, and counts itself */
	NODE_NEEDS_GROUP = 1 << 5,  /* node_side_is_open() depends on the groups */
	NODE_STOP_WAITS = 1 << 6,   /* stop() may wait for a peer; it is called while
				     * stop() of other nodes runs in other threads */
};

enum node_figure_kind {
	NODE_COUNTER,              /* never goes down, but by a reset */
	NODE_GAUGE,                /* what is now */
};

/*
 * A figure that a node-type has of its own, beside the counters of every node. The
 * node-type keeps its value up to date by node_figure_add() and node_figure_set(); the
 * control requests and /metrics show it by its name.
 */
struct node_figure {
	const char *name;          /* "clients": small letters and '_' */
	const char *help;          /* one line, for /metrics */
	enum node_figure_kind kind;
};

struct node_type {
	const char *name;
	const char *description;   /* one line */
	unsigned vectorize_max;    /* samples per call, 0: any */
	unsigned flags;            /* enum node_flags */
	size_t size;               /* bytes of private data, zeroed before init */

	/* Keys on the node, in its `in` group and in its `out` group; all are
	 * unpacked into the private data before parse is called. */
	const struct config_key *keys, *in_keys, *out_keys;
	size_t key_count, in_key_count, out_key_count;
	/* Keys in each entry of `signals`, in addition to those of every signal;
	 * parse() reads them itself. Other keys are refused. */
	const struct config_key *signal_keys;
	size_t signal_key_count;
	/* By the number that the node-type has for each; entries without a name are
	 * not shown. */
	const struct node_figure *figures;
	size_t figure_count;

	/* Called once, before the first node of the type is prepared, and once
	 * after the last one has stopped; not at all without a node. */
	int (*type_start)(struct services *services);
	int (*type_stop)(void);

	int (*init)(struct node *n);
	void (*destroy)(struct node *n);
	/* Interprets settings that the key tables cannot express; reports errors
	 * by config_fail(). */
	int (*parse)(struct node *n, struct config *c, json_t *cfg);
	/* Checks that the settings fit together; reports errors by config_fail(). */
	int (*check)(struct node *n, struct config *c, json_t *cfg);
	/* The signals that paths will write are known now (n->out.hooked).
	 * Refuses those that cannot be written (format_check_signals()); reports
	 * errors by config_fail(). */
	int (*check_signals)(struct node *n, struct config *c, json_t *cfg);
	/* Acquires what memory_type() needs (devices, protection domains). */
	int (*prepare)(struct node *n);
	int (*start)(struct node *n);
	int (*stop)(struct node *n);

	/*
	 * `*release` is `cnt` on entry; on return the super-node releases
	 * exactly the first `*release` entries of smps[], which the node may
	 * have reordered and replaced.
	 *
	 * read: smps[] holds `cnt` empty samples. Returns the number of
	 * received samples, which stand at the start of smps[]; 0 when there
	 * is nothing (yet); -EAGAIN likewise; -ENODATA when there will never
	 * be more (end of file, limit reached); any other negative errno is
	 * an error, after which the path waits a little and reads again.
	 * The path processes received samples before it releases them.
	 *
	 * write: smps[] holds `cnt` filled samples, which must not be
	 * modified. Returns the number of samples that it accepted, from the
	 * start of smps[]; the others are counted as lost.
	 */
	int (*read)(struct node *n, struct sample *smps[], unsigned cnt,
		    unsigned *release);
	int (*write)(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release);

	/*
	 * Where a node-type has this callback, its path decides how to wait
	 * (waiting.h), unless settings of the node do (in.waits_itself): while
	 * in.awaited is set, read() returns 0 at once when there is nothing.
	 * A read() that spins instead may run turns of other paths while
	 * in.carries is set (turn_run_offered()).
	 * sleep() returns when read() may find something, at `until_ns` of
	 * clock_now_ns() or after an interrupt; it may also return without
	 * reason. Called between two reads, by the thread that reads.
	 */
	void (*sleep)(struct node *n, uint64_t until_ns);
	/* Whether a write might wait now, for a disk, a peer or a reader; then
	 * only the path's own thread writes. Without this callback a write never
	 * waits. */
	bool (*may_wait)(struct node *n);

	/* Makes a blocked read or write return soon (-EINTR or 0). Called from
	 * another thread, before stop(), possibly several times. */
	void (*interrupt)(struct node *n);
	/* Undoes interrupt(): reads and writes wait again. No thread is in
	 * either; a thread may be in read only of a node that follows its
	 * writer (node_follows_writer()). A node without this callback is stopped
	 * and started instead. */
	void (*rearm)(struct node *n); /* or node_rearm_nothing */
	/* The node was not read for a while because it or its path was paused:
	 * steps that were due meanwhile must not be made up. Called before the
	 * next read, by the thread that reads. */
	void (*resume)(struct node *n);
	/* Begins to read from the start again (of a file); likewise. */
	int (*rewind)(struct node *n);

	/* A reload may have replaced nodes to which this one holds pointers:
	 * looks them up again by name. No thread is in read or write. */
	void (*relink)(struct node *n);

	/* Swaps source and target addresses; called between parse and check. */
	int (*reverse)(struct node *n);
	/* Writes up to `max` descriptors that are readable when read() has data
	 * to fds[] and returns their number. For paths with several sources,
	 * which call it before every wait. After the first call read() must not
	 * block. `max` 0: no path waits for the descriptors any more. */
	int (*poll_fds)(struct node *n, int fds[], int max);
	/* Memory for samples that this node reads into or writes from. The
	 * returned type lives until destroy. */
	struct memory_type *(*memory_type)(struct node *n,
					   struct memory_type *parent);
	/* The largest number of samples that the node keeps after read() or
	 * write() has returned (posted to an adapter); the pools of its paths
	 * get that many more. */
	unsigned (*hold_max)(struct node *n);
	/* Writes one line about the settings to buf, for the log. */
	void (*print)(struct node *n, char *buf, size_t size);
};

/* Settings and parts of one direction of a node. */
struct node_direction {
	bool present;               /* the configuration has the group */
	bool enabled;
	unsigned vectorize;         /* samples per call, at least 1 */
	/* The signals of samples that read() returns or write() gets; owned
	 * reference, NULL when they are not known. */
	struct signal_list *signals;
	/* The signals after the hooks; owned reference, may be NULL. For `out`,
	 * the signals that the path writes, which may have other names in
	 * `signals`. */
	struct signal_list *hooked;
	unsigned capacity;          /* values per sample that the hooks need */
	bool resolved;              /* hooks have been told their signals */
	bool unknown;               /* an error, already reported, hides the signals */
	struct hook_list *hooks;
	json_t *cfg;                /* borrowed; may be NULL */
	struct gate gate;           /* the path enters it for every call */
	bool waits_itself;          /* `in`, set by parse(): settings say how it waits */
	atomic_bool awaited;        /* `in`, set by the path: read() does not wait */
	bool carries;               /* `in`, set by the path: read() may run turns */
	/* `in`, set by parse(): read() returns what comes of samples that were written, so
	 * that it ends when the path that writes the node has ended. */
	bool follows_writer;
	/* `in`: the turn of the reading path, which the thread that writes the
	 * node may run (loopback). */
	struct turn_slot reader;
	struct tap_place tap;       /* for those who look (tap.h) */
};

/*
 * Why a node lost a sample that a path wrote. The configuration or a command allows the
 * first causes, up to NODE_LOSS_ALLOWED; any other makes `busbar run` end with
 * status 3.
 */
enum node_loss {
	NODE_LOSS_FULL,     /* no room, and a key of the node says to drop then */
	NODE_LOSS_ABSENT,   /* no peer is connected, or the network has none */
	NODE_LOSS_CLOSED,   /* a command pauses or stops the node */
	NODE_LOSS_ALLOWED,  /* the number of causes above */
	NODE_LOSS_STUCK = NODE_LOSS_ALLOWED, /* waited for room in vain */
	NODE_LOSS_TOO_LONG, /* larger than a message or buffer may be */
	NODE_LOSS_FORMAT,   /* the format cannot hold it */
	NODE_LOSS_REFUSED,  /* the system or the peer refused it */
	NODE_LOSS_UNKNOWN,  /* the node-type did not say */
	NODE_LOSSES,
};

struct node_counters {
	_Atomic uint64_t received;    /* samples read */
	_Atomic uint64_t sent;        /* samples accepted by write */
	_Atomic uint64_t not_sent;    /* given to the node, not accepted by write */
	_Atomic uint64_t not_stored;  /* accepted by write, lost by the node later */
	_Atomic uint64_t losses[NODE_LOSSES]; /* not_sent + not_stored, by cause */
	_Atomic uint64_t missed;      /* steps that a generator left out */
	_Atomic uint64_t left_out;    /* missing in what was received, because a generator
				       * of this gateway left them out */
	_Atomic uint64_t made_up;     /* steps taken though late by a period or more */
	_Atomic uint64_t lost;        /* gaps in received sequence numbers */
	_Atomic uint64_t reordered;   /* received sequence went backwards */
};

struct node {
	char *name;
	const struct node_type *type;
	void *private_data;           /* type->size bytes */
	struct services *services;    /* of the gateway (services.h); NULL in tests */
	_Atomic int state;            /* enum node_state */
	bool enabled;
	bool is_source, is_destination; /* of an enabled path; before prepare */
	int64_t affinity;             /* CPU mask, 0: none */
	int64_t priority;             /* SCHED_FIFO of its reader, 0: none */
	char uuid[37];
	uint64_t sequence;            /* next own sequence number */
	cache_aligned struct node_direction in;
	cache_aligned struct node_direction out;
	cache_aligned struct node_counters counters;
	/* Of type->figures, from the making of the node to its end, so that a counter
	 * goes on behind a stop. NULL: there are none. */
	_Atomic uint64_t *figures;
	/* How much later than planned each step was taken, ns; owned by the
	 * node-type. NULL: it has no steps. */
	struct hist *step_late_ns;
	atomic_bool step_late_reset;  /* requests a reset by the recording thread */
	bool origin_planned;          /* origins are planned times, so that the
				       * lateness is part of what is measured */
	struct node_stats *stats;     /* of the hook `stats`, which owns them;
				       * NULL without it */
	/* Lost samples of the present write() for which node_refuse() was called.
	 * Used by the thread that writes the node only. */
	uint64_t told;
	struct gate *path_gate;       /* of the path that writes it; NULL: no path */
	atomic_uint said_losses;      /* causes that were logged, one bit each */
	uint64_t summed_losses[NODE_LOSSES]; /* at the last node_log_losses() */
	/* Of a node that follows its writer: odd while its writer has ended. It counts up,
	 * so that the reader notices a writer that went on in between. */
	atomic_uint feed;
	/* Wakes the reading thread after it found the end of the node. */
	struct waker revival;
	struct config *config;        /* that holds cfg */
	struct node *twin;            /* during a reload: the same node in the other
				       * super-node */
	json_t *cfg;                  /* borrowed */
	struct list entry;            /* in the super-node */
	struct list tap_entry;        /* in tap.c; with its lock: */
	bool tapped;                  /* taps may be put into it */
};

/* NULL when there is none, or its module cannot be loaded (which is logged). */
static inline const struct node_type *node_type_find(const char *name)
{
	return plugin_find(node_plugins, name);
}

static inline enum node_state node_state(struct node *n)
{
	return (enum node_state)atomic_load_explicit(&n->state,
						     memory_order_acquire);
}

/* Does the group `in` or `out` (NULL: none) say that the direction is used? Not if it holds
 * nothing but hooks. */
bool node_group_opens(const json_t *group);

/* Do the paths that read `n` end with the path that writes it? */
static inline bool node_follows_writer(const struct node *n)
{
	return n->type->flags & NODE_LOOPS || n->in.follows_writer;
}

/*
 * May the direction `group` ("in" or "out") of a node be used? With NODE_NEEDS_GROUP it is
 * closed if the configuration has only the group of the other one. Says nothing about
 * `enabled` and about what the type can do.
 */
bool node_side_is_open(const struct node_type *t, const json_t *cfg, const char *group);

/* Logs the change at debug level. */
void node_set_state(struct node *n, enum node_state s);

/* STARTED, PENDING_CONNECT or CONNECTED. */
bool node_is_running(struct node *n);

/* Sets the state CONNECTED or PENDING_CONNECT of a node that is running, when that has changed:
 * *told is the state that was set last, 0 before the first call that had an effect. */
void node_tell_connected(struct node *n, enum node_state *told, bool connected);

/* rearm() for a node-type whose interrupt() ends the present call only. */
void node_rearm_nothing(struct node *n);

/* Records that a step was taken `late_ns` later than planned; called by the thread that
 * reads `n`. */
static inline void node_record_step(struct node *n, uint64_t late_ns)
{
	if (unlikely(atomic_load_explicit(&n->step_late_reset,
					  memory_order_relaxed))) {
		atomic_store_explicit(&n->step_late_reset, false,
				      memory_order_relaxed);
		hist_reset(n->step_late_ns);
	}
	hist_record(n->step_late_ns, late_ns);
}

/* Changes a figure of the node-type; nothing where the type has no such figure. Any thread. */
static inline void node_figure_add(struct node *n, unsigned figure, uint64_t by)
{
	if (n->figures && figure < n->type->figure_count)
		atomic_fetch_add_explicit(&n->figures[figure], by, memory_order_relaxed);
}

static inline void node_figure_set(struct node *n, unsigned figure, uint64_t value)
{
	if (n->figures && figure < n->type->figure_count)
		atomic_store_explicit(&n->figures[figure], value, memory_order_relaxed);
}

/*
 * Count samples that a node could not send or store, log the first one of each cause
 * with the text `fmt`, which gives the details, and report losses that nothing allows
 * to the gateway.
 *
 * node_refuse(): only inside write(), for samples that it does not accept (it returns a
 * smaller number). Turns NODE_LOSS_STUCK into NODE_LOSS_CLOSED when a command
 * pauses or stops the node or its path.
 * node_lose(): from any thread, for samples that write() accepted earlier.
 */
void node_refuse(struct node *n, enum node_loss cause, uint64_t count,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void node_lose(struct node *n, enum node_loss cause, uint64_t count,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Counts samples for which write() was not called, because the node is paused or
 * stopped. */
void node_skip_write(struct node *n, uint64_t count);
/* Logs the number of samples lost since the last call, by cause. No thread may be in
 * write(). */
void node_log_losses(struct node *n);
/* The name of a cause in figures: "full", "too_long". */
const char *node_loss_name(enum node_loss cause);
/* The cause as words that follow a number of samples. */
const char *node_loss_text(enum node_loss cause);
/* The number of samples that were lost though nothing allowed it. */
uint64_t node_losses_not_allowed(const struct node *n);
/* Sets all counters, those of the node-type and of the node's hooks to zero. Any thread. */
void node_reset_counters(struct node *n);

/* Steps that were left out: by the node itself, or by another generator of this gateway
 * whose samples the node receives. */
static inline uint64_t node_missed_steps(const struct node *n)
{
	return atomic_load_explicit(&n->counters.missed, memory_order_relaxed) +
	       atomic_load_explicit(&n->counters.left_out, memory_order_relaxed);
}

/* Call read() and write() of the node-type and keep the counters; same contract. From the
 * thread of the path, inside the gate of the direction. */
int node_read(struct node *n, struct sample *smps[], unsigned cnt,
	      unsigned *release);
int node_write(struct node *n, struct sample *smps[], unsigned cnt,
	       unsigned *release);

#endif

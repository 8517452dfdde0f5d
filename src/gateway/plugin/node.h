/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes and node-types: the plug-in interface of the gateway.
 *
 * A node-type is one folder gateway/node/<name>/ with its meson.build, one manual
 * page, one example and one test. Every callback is optional unless said
 * otherwise.
 *
 * Life cycle of a node: init - parse - check - prepare - start - (read/write,
 * from the threads of its paths) - stop - destroy. Stop and start may alternate
 * any number of times between prepare and destroy; nobody is in read or write
 * meanwhile. Callbacks return 0 or a negative errno and log the cause themselves.
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
	NODE_LOOPS = 1 << 3,        /* what is written comes back from read, so
				     * signals of `out` hold for `in` too */
	NODE_GENERATES = 1 << 4,    /* gaps are steps it missed, counted there */
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
	/* Keys in each entry of `signals`, beside those that every signal has;
	 * parse reads them itself. Others are refused. */
	const struct config_key *signal_keys;
	size_t signal_key_count;

	/* Once, if at least one instance exists; and its counterpart. */
	int (*type_start)(struct services *services);
	int (*type_stop)(void);

	int (*init)(struct node *n);
	void (*destroy)(struct node *n);
	/* Interpret what the key tables cannot; report by config_fail(). */
	int (*parse)(struct node *n, struct config *c, json_t *cfg);
	/* Validate settings against each other; report by config_fail(). */
	int (*check)(struct node *n, struct config *c, json_t *cfg);
	/* What the paths bring is known now: refuse n->out.hooked that cannot
	 * be written (format_check_signals()); reports by config_fail(). */
	int (*check_signals)(struct node *n, struct config *c, json_t *cfg);
	/* Acquire what memory_type() needs (devices, protection domains). */
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
	 * an error, after which the path waits a little and goes on.
	 * Received samples are processed by the path first and released after.
	 *
	 * write: smps[] holds `cnt` filled samples, which must not be
	 * modified. Returns the number accepted; fewer than `cnt` is counted
	 * as lost by the path.
	 */
	int (*read)(struct node *n, struct sample *smps[], unsigned cnt,
		    unsigned *release);
	int (*write)(struct node *n, struct sample *smps[], unsigned cnt,
		     unsigned *release);

	/*
	 * A node that has this is waited for by its path as waiting.h says,
	 * unless its settings say how it waits (in.waits_itself): while
	 * in.awaited is set, read() returns 0 at once when there is nothing.
	 * Sleeps until read() may find something, `until_ns` of clock_now_ns()
	 * or an interrupt, and may come back for nothing; between two reads, by
	 * the thread that reads.
	 */
	void (*sleep)(struct node *n, uint64_t until_ns);
	/* Whether a write would perhaps wait now, for a disk, a peer or a
	 * reader: then no other thread writes in the place of the path's own.
	 * Missing: it never does. */
	bool (*may_wait)(struct node *n);

	/* Ask a blocked read or write to return soon (-EINTR or 0). Called
	 * from another thread before stop; must be async-safe to repeat. */
	void (*interrupt)(struct node *n);
	/* Takes interrupt back: reads and writes wait again. Nobody is in
	 * either; only of a node-type that loops somebody may be in read. A
	 * node without it is stopped and started instead. */
	void (*rearm)(struct node *n); /* or node_rearm_nothing */
	/* It was not read for a while because it or its path was paused: what
	 * fell due meanwhile is not owed. Before the next read, in its thread. */
	void (*resume)(struct node *n);
	/* Begin reading from the start of what is read; likewise. */
	int (*rewind)(struct node *n);

	/* A reload may have put others in the place of nodes that this one
	 * knows: look them up again, by name. Nobody is in read or write. */
	void (*relink)(struct node *n);

	/* Swap source and target addresses; between parse and check. */
	int (*reverse)(struct node *n);
	/* Descriptors that are readable when read has data; returns how many
	 * (at most `max`). For paths with several sources; asked for again
	 * before every wait. Once asked, read must not block. `max` 0: nobody
	 * waits for them any more. */
	int (*poll_fds)(struct node *n, int fds[], int max);
	/* Memory for samples that this node reads into or writes from. The
	 * returned type lives until destroy. */
	struct memory_type *(*memory_type)(struct node *n,
					   struct memory_type *parent);
	/* Samples that the node may hold at a time beyond the call (posted to
	 * an adapter); pools of its paths are made that much larger. */
	unsigned (*hold_max)(struct node *n);
	/* One line of settings for the log; into buf. */
	void (*print)(struct node *n, char *buf, size_t size);
};

/* Settings and parts of one direction of a node. */
struct node_direction {
	bool present;               /* the group stands in the configuration */
	bool enabled;
	unsigned vectorize;         /* samples per call, at least 1 */
	/* What read() delivers or write() gets; owned reference, NULL when
	 * nothing is known. */
	struct signal_list *signals;
	/* Behind the hooks; owned reference, may be NULL. Of `out`, what the path
	 * brings, which `signals` may call otherwise. */
	struct signal_list *hooked;
	unsigned capacity;          /* values that the hooks need room for */
	bool resolved;              /* hooks have been told their signals */
	bool unknown;               /* signals, because of an error that was told */
	struct hook_list *hooks;
	json_t *cfg;                /* borrowed; may be NULL */
	struct gate gate;           /* its path passes it for every call */
	bool waits_itself;          /* `in`, by parse: its settings say how */
	atomic_bool awaited;        /* `in`, by its path: read() does not wait */
	/* `in`: who writes what is read here runs the reader's turn. */
	struct turn_slot reader;
};

/*
 * Why a sample that was to be written is lost. The first ones are losses that the
 * configuration or a command allows; all others make `busbar run` end with a
 * status of its own.
 */
enum node_loss {
	NODE_LOSS_FULL,     /* no room, and a policy key says to drop then */
	NODE_LOSS_ABSENT,   /* no peer is connected, or the network has none */
	NODE_LOSS_CLOSED,   /* the node was paused or stopped, or is just being */
	NODE_LOSS_ALLOWED,  /* the number of those above */
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
	_Atomic uint64_t made_up;     /* taken, though late by a period or more */
	_Atomic uint64_t lost;        /* gaps in received sequence numbers */
	_Atomic uint64_t reordered;   /* received sequence went backwards */
};

struct node {
	char *name;
	const struct node_type *type;
	void *private_data;           /* type->size bytes */
	struct services *services;    /* of its gateway (services.h); NULL in tests */
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
	/* Of a node-type that keeps steps, which owns it: how much later than
	 * planned each was taken, ns. NULL: it keeps none. */
	struct hist *step_late_ns;
	atomic_bool step_late_reset;  /* asked for; who records does it */
	bool origin_planned;          /* origins are planned times, so that the
				       * lateness is part of what is measured */
	struct node_stats *stats;     /* of the hook `stats`, which owns them;
				       * NULL without it */
	/* Of the losses of the present write, those whose cause was told. Of the
	 * thread that writes it. */
	uint64_t told;
	struct gate *path_gate;       /* of the path that writes it; NULL: none does */
	atomic_uint said_losses;      /* causes that were logged, one bit each */
	uint64_t summed_losses[NODE_LOSSES]; /* what the log knows of; at stop */
	/* What is written comes back: odd while its writer has ended; counts,
	 * so that nobody misses that it went on in between. */
	atomic_uint feed;
	/* Of the thread that reads it and found its end. */
	struct waker revival;
	struct config *config;        /* that cfg is of */
	struct node *twin;            /* of a reload: the same in the other */
	json_t *cfg;                  /* borrowed */
	struct list entry;            /* in the super-node */
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

/* Logs the change at debug level. */
void node_set_state(struct node *n, enum node_state s);

/* STARTED, PENDING_CONNECT or CONNECTED. */
bool node_is_running(struct node *n);

/* rearm of a node-type whose interrupt() ends one call and leaves nothing behind. */
void node_rearm_nothing(struct node *n);

/* A step was taken so much later than planned; from the thread that reads `n`. */
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

/*
 * Samples that a node could not send or store. The one place that counts them, logs
 * the first of each cause with the text, and tells the gateway of those that nothing
 * allows. Inside write(): node_refuse(), for samples that it does not accept (fewer
 * are returned); who waited for room in vain because a command pauses or stops the
 * node or its path is counted under that. Anywhere else, any thread: node_lose(), for samples that write()
 * accepted earlier. The text says what is special about this one.
 */
void node_refuse(struct node *n, enum node_loss cause, uint64_t count,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void node_lose(struct node *n, enum node_loss cause, uint64_t count,
	       const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Samples that never came as far as write(). */
void node_skip_write(struct node *n, uint64_t count);
/* Logs how many were lost since the last call, by cause. Nobody is in write(). */
void node_log_losses(struct node *n);
/* "full", "too_long": as users see it in figures. */
const char *node_loss_name(enum node_loss cause);
/* The same as words behind a number of samples. */
const char *node_loss_text(enum node_loss cause);
/* Lost though nothing allowed it. */
uint64_t node_losses_not_allowed(const struct node *n);
/* All of them to zero, and those of the hook `stats`. Any thread. */
void node_reset_counters(struct node *n);

int node_read(struct node *n, struct sample *smps[], unsigned cnt,
	      unsigned *release);
int node_write(struct node *n, struct sample *smps[], unsigned cnt,
	       unsigned *release);

#endif

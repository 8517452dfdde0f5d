/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks: filters and transformations of samples, in three places: behind a
 * node's read, on a path, before a node's write. A hook is one file
 * gateway/hook/<name>.c, its name in gateway/hook/meson.build, one manual page, one
 * example and one test.
 */
#ifndef GATEWAY_PLUGIN_HOOK_H
#define GATEWAY_PLUGIN_HOOK_H

#include "gateway/config/config.h"
#include "gateway/plugin/plugin.h"
#include "gateway/sample/sample.h"
#include "util/list.h"

struct hook;
struct node;

enum hook_place {
	HOOK_NODE_READ = 1 << 0,
	HOOK_NODE_WRITE = 1 << 1,
	HOOK_PATH = 1 << 2,
};

enum hook_verdict {
	HOOK_OK,         /* go on with the next hook */
	HOOK_SKIP,       /* drop this sample */
	HOOK_HOLD,       /* nothing goes on; the hook keeps the reference */
	HOOK_STOP,       /* pass this sample on, skip the remaining hooks */
	HOOK_ERROR,      /* drop this sample, count an error */
};

struct hook_type {
	const char *name;
	const char *description;
	unsigned places;              /* enum hook_place */
	int priority;                 /* default; lower runs first */
	bool builtin;                 /* on every node's read unless switched off;
				       * before others of the same priority */
	bool read_only;               /* process() never changes the sample, so
				       * that shared ones need no private copy,
				       * or asks for one by hook_own_sample() */
	size_t size;                  /* bytes of private data, zeroed */
	const struct config_key *keys;
	size_t key_count;
	bool open_keys;               /* others are parse()'s to accept or refuse */
	int (*parse)(struct hook *h, struct config *c, json_t *cfg);
	int (*start)(struct hook *h);
	int (*stop)(struct hook *h);
	void (*destroy)(struct hook *h);
	/*
	 * The signals that come out, where they are not those that go in: sets
	 * *out to a list of its own (a reference) and returns 0, or a negative
	 * errno after reporting it. Called once before start; `in` is NULL
	 * where nothing is known about the values. Samples have room for the
	 * longest list between two hooks, and those that leave a hook that is
	 * not read_only get this list.
	 */
	int (*signals)(struct hook *h, struct signal_list *in,
		       struct signal_list **out);
	/*
	 * *s may be modified: the framework hands a private copy when others
	 * hold a reference. A hook that puts another sample into *s gives its
	 * own reference to that one away and owns the reference to the old one
	 * from then on. One that keeps *s without replacing it returns
	 * HOOK_HOLD.
	 */
	enum hook_verdict (*process)(struct hook *h, struct sample **s);
	/* The source began anew: before process() gets the first sample of it,
	 * or would have, had a hook before this one not dropped it. */
	void (*restart)(struct hook *h);
	/* For hooks that hold samples: how many at most (the pools get that
	 * much larger), and at the end one after the other, NULL when there is
	 * none left. What is left at stop() the hook releases there. */
	unsigned (*hold_max)(const struct hook *h);
	struct sample *(*flush)(struct hook *h);
	/* For hooks that may wait for others: process() and stop() are to come
	 * out soon. From any thread, while process() may be running; repeated
	 * until it has come out. Once started, as long as not stopped. */
	void (*interrupt)(struct hook *h);
	/* From the statistics thread, at the configured rate, while process()
	 * may be running. */
	void (*periodic)(struct hook *h);
	/* Figures that it keeps begin at zero again; from any thread, while
	 * process() may be running. */
	void (*reset)(struct hook *h);
};

struct hook {
	const struct hook_type *type;
	enum hook_place place;
	int64_t priority;
	bool enabled;
	struct node *node;            /* NULL on a path */
	const char *owner;            /* name of node or path, for messages */
	struct config *config;        /* for config_fail() in signals() */
	json_t *cfg;                  /* its object or name; NULL: a built-in one */
	void *private_data;
	_Atomic uint64_t errors;      /* samples that were dropped by HOOK_ERROR */
	_Atomic uint64_t dropped;     /* by HOOK_SKIP: what it is there for */
	_Atomic uint64_t held;        /* that it keeps at the moment */
	_Atomic uint64_t unwritten;   /* went on, but are not in its file */
	struct signal_list *in_signals;  /* owned references, from hook_list_signals(); */
	struct signal_list *out_signals; /* NULL where nothing is known */
	struct list entry;
};

/* Ordered by priority. */
struct hook_list {
	struct list hooks;
	unsigned count;
	_Atomic uint64_t starved;     /* dropped for want of a free sample */
	uint64_t losses_told;         /* of hook_list_take_losses() */
	bool began_anew;              /* the first sample of a restart was dropped:
				       * the next one that stays is marked */
};

/* NULL when there is none, or its module cannot be loaded (which is logged). */
static inline const struct hook_type *hook_type_find(const char *name)
{
	return plugin_find(hook_plugins, name);
}

/* `cfg` is the list under key "hooks" (strings or objects); NULL: empty. */
int hook_list_parse(struct hook_list **out, struct config *c, json_t *cfg,
		    enum hook_place place, struct node *node, const char *owner);
/* The same into an existing list. A hook that does not fit `place` but some
 * other of `allowed` is left out silently: lists that stand on a node hold for
 * both of its directions. */
int hook_list_append(struct hook_list *l, struct config *c, json_t *cfg,
		     enum hook_place place, unsigned allowed,
		     struct node *node, const char *owner);
/* Adds the built-in hooks of `place` that the list does not hold yet. */
int hook_list_add_builtin(struct hook_list *l, struct config *c,
			  enum hook_place place, struct node *node,
			  const char *owner);
/*
 * What the hooks make of the signals `in` (NULL: unknown): sets *out to a new
 * reference, NULL where `in` is and no hook knows better, and raises *capacity
 * to the longest list on the way. Once, after parsing. 0 or a negative errno.
 */
int hook_list_signals(struct hook_list *l, struct signal_list *in,
		      struct signal_list **out, unsigned *capacity);
int hook_list_start(struct hook_list *l);
void hook_list_stop(struct hook_list *l);
void hook_list_destroy(struct hook_list *l);
void hook_list_periodic(struct hook_list *l);
void hook_list_interrupt(struct hook_list *l);
/* What became of the samples that did not come out of a list. */
struct hook_figures {
	uint64_t dropped;   /* because that is what a hook is there for, and held
			     * when it was stopped */
	uint64_t failed;    /* a hook could not process them */
	uint64_t starved;   /* there was no free sample for a copy */
	uint64_t held;      /* are still in hooks */
	uint64_t unwritten; /* came out, but are not in the file of a hook */
};

/* Of all hooks; `l` may be NULL. Any thread. */
struct hook_figures hook_list_figures(const struct hook_list *l);

/*
 * Samples that were lost in hooks though nothing allows it (that they could not
 * process, copy or write to their file) since the last call. `l` may be NULL. From
 * any thread, one caller at a time, as for the next one.
 */
uint64_t hook_list_take_losses(struct hook_list *l);
/* Counters and figures of all begin at zero; losses were taken. */
void hook_list_reset(struct hook_list *l);

/*
 * Runs all hooks over smps[0..cnt). Samples that are dropped are released and
 * taken out; returns how many remain. A sample that others hold too is replaced
 * by a private copy (from the same pool) before a hook that modifies it.
 */
unsigned hook_list_process(struct hook_list *l, struct sample *smps[],
			   unsigned cnt);

/*
 * The end of the samples: up to `cnt` of those that hooks still hold, processed
 * by the hooks behind. Returns how many stand in smps[], which the caller owns;
 * to be called until it returns 0.
 */
unsigned hook_list_flush(struct hook_list *l, struct sample *smps[],
			 unsigned cnt);
/* Samples that the hooks hold at most; `l` may be NULL. */
unsigned hook_list_hold_max(const struct hook_list *l);

/*
 * For a read_only hook that changes a sample now and then: a sample that others
 * hold too is replaced by a private copy from the same pool. False when the pool
 * is empty; the hook then returns HOOK_SKIP.
 */
bool hook_own_sample(struct sample **s);

/* Returns HOOK_ERROR; the first one of a hook is logged with its reason. */
enum hook_verdict hook_fail(struct hook *h, const char *why);

#endif

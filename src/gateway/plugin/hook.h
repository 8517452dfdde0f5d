/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks filter and transform samples in three places: after a node's read, on a path,
 * and before a node's write. A hook is one file gateway/hook/<name>.c, its name in
 * gateway/hook/meson.build, one manual page, one example and one test.
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
	HOOK_HOLD,       /* no sample goes on; the hook keeps the reference */
	HOOK_STOP,       /* pass this sample on, skip the remaining hooks */
	HOOK_ERROR,      /* drop this sample, count an error */
};

struct hook_type {
	const char *name;
	const char *description;
	unsigned places;              /* enum hook_place */
	int priority;                 /* default; lower runs first */
	bool builtin;                 /* runs on every node's read unless disabled,
				       * before others of the same priority */
	bool read_only;               /* process() never changes the sample, so
				       * that shared ones need no private copy,
				       * or asks for one by hook_own_sample() */
	size_t size;                  /* bytes of private data, zeroed */
	const struct config_key *keys;
	size_t key_count;
	bool open_keys;               /* parse() accepts or refuses other keys */
	int (*parse)(struct hook *h, struct config *c, json_t *cfg);
	int (*start)(struct hook *h);
	int (*stop)(struct hook *h);
	void (*destroy)(struct hook *h);
	/*
	 * For hooks that change the list of signals: sets *out to the signals
	 * after the hook (a new reference) and returns 0, or a negative errno
	 * after reporting the error. Called once before start; `in` is NULL
	 * when the signals are not known. Samples have room for the longest
	 * list between two hooks, and samples that leave a hook that is not
	 * read_only get this list.
	 */
	int (*signals)(struct hook *h, struct signal_list *in,
		       struct signal_list **out);
	/*
	 * The hook may modify **s: the framework passes a private copy when
	 * there are other references. A hook that replaces *s by another sample
	 * gives away its reference to the new one and owns the reference to the
	 * old one from then on. A hook that keeps *s without replacing it
	 * returns HOOK_HOLD.
	 */
	enum hook_verdict (*process)(struct hook *h, struct sample **s);
	/* The source was restarted. Called before process() gets its first sample,
	 * also when an earlier hook dropped that sample. */
	void (*restart)(struct hook *h);
	/* For hooks that hold samples. hold_max(): how many at most; the pools get
	 * that many more. flush(): at the end, returns the samples that it holds
	 * one after the other, with their references, then NULL. stop() releases
	 * samples that are left. */
	unsigned (*hold_max)(const struct hook *h);
	struct sample *(*flush)(struct hook *h);
	/* For hooks that may wait: makes process() and stop() return soon. Called
	 * from any thread, between start() and the end of stop(), while process()
	 * may be running, and repeatedly until it has returned. */
	void (*interrupt)(struct hook *h);
	/* From the statistics thread, at the configured rate, while process()
	 * may be running. */
	void (*periodic)(struct hook *h);
	/* Sets the figures of the hook to zero; from any thread, while process()
	 * may be running. */
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
	_Atomic uint64_t dropped;     /* samples dropped on purpose (HOOK_SKIP) */
	_Atomic uint64_t held;        /* samples that it keeps at the moment */
	_Atomic uint64_t unwritten;   /* samples that went on but are not in its file */
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
	bool began_anew;              /* the first sample after a restart was dropped:
				       * the next one that stays gets its mark */
};

/* NULL when there is none, or its module cannot be loaded (which is logged). */
static inline const struct hook_type *hook_type_find(const char *name)
{
	return plugin_find(hook_plugins, name);
}

/* `cfg` is the list under key "hooks" (strings or objects); NULL: empty. */
int hook_list_parse(struct hook_list **out, struct config *c, json_t *cfg,
		    enum hook_place place, struct node *node, const char *owner);
/* The same into an existing list. Silently omits a hook that does not fit `place` but
 * another place of `allowed`, because hooks of a node hold for both directions. */
int hook_list_append(struct hook_list *l, struct config *c, json_t *cfg,
		     enum hook_place place, unsigned allowed,
		     struct node *node, const char *owner);
/* Adds the built-in hooks of `place` that the list does not hold yet. */
int hook_list_add_builtin(struct hook_list *l, struct config *c,
			  enum hook_place place, struct node *node,
			  const char *owner);
/*
 * Finds the signals after the hooks for the signals `in` (NULL: unknown). Sets *out to a
 * new reference, or to NULL when they are unknown, and raises *capacity to the
 * length of the longest list between two hooks. Call it once, after parsing. 0 or a
 * negative errno.
 */
int hook_list_signals(struct hook_list *l, struct signal_list *in,
		      struct signal_list **out, unsigned *capacity);
int hook_list_start(struct hook_list *l);
void hook_list_stop(struct hook_list *l);
void hook_list_destroy(struct hook_list *l);
void hook_list_periodic(struct hook_list *l);
void hook_list_interrupt(struct hook_list *l);
/* Numbers of samples that entered a list of hooks and did not leave it. */
struct hook_figures {
	uint64_t dropped;   /* dropped on purpose, or held when a hook was stopped */
	uint64_t failed;    /* a hook could not process them */
	uint64_t starved;   /* there was no free sample for a copy */
	uint64_t held;      /* hooks still hold them */
	uint64_t unwritten; /* left the list, but are not in the file of a hook */
};

/* Of all hooks; `l` may be NULL. Any thread. */
struct hook_figures hook_list_figures(const struct hook_list *l);

/*
 * The number of samples that hooks lost since the last call though nothing allows it
 * (they could not process, copy or write them to a file). `l` may be NULL. This
 * function and the next one: any thread, one at a time.
 */
uint64_t hook_list_take_losses(struct hook_list *l);
/* Sets counters and figures of all hooks to zero, after hook_list_take_losses(). */
void hook_list_reset(struct hook_list *l);

/*
 * Runs all hooks over smps[0..cnt). Releases dropped samples and removes them from
 * smps[]; returns how many remain. Before a hook that modifies samples, replaces a
 * sample with further references by a private copy from the same pool.
 */
unsigned hook_list_process(struct hook_list *l, struct sample *smps[],
			   unsigned cnt);

/*
 * At the end of the samples: takes up to `cnt` samples that hooks still hold and runs the
 * following hooks over them. Returns their number in smps[]; the caller owns them, and
 * repeats the call until it returns 0.
 */
unsigned hook_list_flush(struct hook_list *l, struct sample *smps[],
			 unsigned cnt);
/* The largest number of samples that the hooks hold; `l` may be NULL. */
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

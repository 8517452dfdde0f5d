/* SPDX-License-Identifier: BSD-2-Clause */
/* The structure of the super-node; for its own files and tests. */
#ifndef GATEWAY_SUPER_NODE_SUPER_NODE_PRIVATE_H
#define GATEWAY_SUPER_NODE_SUPER_NODE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/plugin/services.h"
#include "gateway/super_node/http_settings.h"
#include "gateway/super_node/super_node.h"
#include "util/log.h"
#include "util/spin.h"

enum super_node_state {
	SUPER_NODE_PARSED,
	SUPER_NODE_STARTED,
	SUPER_NODE_STOPPED,
};

struct path;

/* Top-level keys; texts and JSON live as long as the configuration. */
struct super_node_settings {
	json_t *nodes, *paths, *http_cfg, *logging, *ethercat, *fpgas;
	const char *control, *name, *uuid;
	int64_t hugepages, affinity, priority, nice, seed;
	double stats_hz;
	int clock;                 /* enum clock_wall */
	bool idle_stop, idle_stop_given;

	char uuid_text[37];
	int log_level;             /* -1: as it is */
	struct log_settings log;
	struct log_rule *log_rules; /* owned */
	struct http_settings http;
};

struct super_node {
	struct services services;   /* functions that nodes may call */
	struct config *config;
	char *file;                 /* from which it was loaded last */
	bool text_given;            /* but the text came from somebody else */
	uint64_t loads;             /* reloads so far */
	/* Configurations of reloads: owned, and kept as long as a node or path
	 * comes from them. */
	struct config **configs;
	unsigned config_count;
	/* Paths and nodes that a reload removed; other nodes may still hold
	 * samples of them. */
	struct list retired_paths, retired_nodes;
	/* A thread holds it while it changes or inspects nodes and paths. */
	pthread_mutex_t control;
	/* A thread holds it while it reads a new configuration, which may take
	 * long (names of hosts, files on a network). Locked before `control`. */
	pthread_mutex_t loading;
	_Atomic enum super_node_state state;
	struct super_node_settings settings;
	bool keep_log_level;
	struct list nodes;       /* struct node, in order of the file */
	struct list paths;       /* struct path */
	json_t *nodes_cfg;

	struct memory_type *memory;  /* of all pools, before nodes wrap it */
	const struct node_type **types; /* for which type_start() was called */
	unsigned type_count;

	int event_fd;            /* stop requests and ended paths */
	atomic_bool stop_requested;
	atomic_bool failed;      /* super_node_note_failure() */
	atomic_bool shutdown;    /* super_node_request_shutdown() */
	bool stuck;              /* a thread or node did not end in time */
	struct spin doing_lock;
	char doing[160];         /* the command that runs, or "" */
	_Atomic uint64_t losses; /* samples lost though nothing allows it */
	pthread_t stats_thread;
	bool has_stats_thread;
	atomic_bool stats_end;
	int stats_fd;            /* a write ends the statistics thread */

	bool may_restart, restart_wanted;
	unsigned restarts;
	json_t *restart_config;     /* owned; NULL: the same again */
	struct timespec started_at;

	/* The clock that it keeps: steps and jumps that were logged. */
	bool keeps_clock;
	uint64_t clock_steps, clock_jumps;

	uint64_t started_ns, stopped_ns;
	uint64_t progress_ns, progress_received; /* at the last live line */
};

/* Parses the top-level keys of `c` and reports errors; applies nothing. */
void super_node_settings_parse(struct super_node_settings *s, struct config *c);
/* Applies the settings that differ from `was` (NULL: all, at the start) to the process,
 * except affinity, priority and nice of a running one. */
void super_node_settings_apply(const struct super_node_settings *s,
			       const struct super_node_settings *was,
			       bool keep_level);
/*
 * super_node_threads.c: sets affinity and priority of all threads except the calling one
 * and those with settings of their own (base/own_thread.h), and nice of all threads,
 * where they differ from `was`. Adds the changes to the object `report`, under "applied"
 * and "refused".
 */
void super_node_settings_spread(const struct super_node_settings *s,
				const struct super_node_settings *was,
				json_t *report);
void super_node_note_first_mask(void);
/* `nice` 0 leaves the value with which the process was started, until another value was
 * set. Returns 0 or -errno, logged. */
int super_node_apply_nice(int64_t nice, int64_t was);
void super_node_settings_clear(struct super_node_settings *s);

/* Notes the present command ("stop of node") and the name of its object, for
 * super_node_tell_unfinished(); `what` NULL: no command runs. Not for the data path. */
void super_node_doing(struct super_node *sn, const char *what, const char *name);
/* super_node_stop.c: stops the node, unless a thread is in its read or write and the end of the
 * process does not wait for it, which is logged. */
int super_node_stop_left_node(struct node *n);
void super_node_stop_hooks(struct node *n);
/* Stops the nodes with NODE_STOP_WAITS for which `goes` holds, all at the
 * same time, if there are several. */
void super_node_stop_waiting(struct super_node *sn, bool (*goes)(struct node *n));

/* Find a node or path by name, UUID or index; the caller holds `control`. */
struct node *super_node_node_by_id(struct super_node *sn, const char *id);
struct path *super_node_path_by_id(struct super_node *sn, const char *id);

/* super_node.c: steps of the start, which a reload repeats. */
void super_node_mark_roles(struct super_node *sn);
bool super_node_is_fed(struct super_node *sn, const struct path *p);
int super_node_start_types(struct super_node *sn);
/* Starts, changes or ends the statistics thread as the settings say. 0 or -errno. */
int super_node_update_stats(struct super_node *sn);

/* super_node_clock.c: keep the clock while the gateway runs, from the thread that waits for
 * its end. super_node_clock_tick() returns the ms until its next call is due. */
void super_node_clock_start(struct super_node *sn);
void super_node_clock_stop(struct super_node *sn);
int super_node_clock_tick(struct super_node *sn);
/* The distance of the clock from the system's, for the status; a new reference. */
json_t *super_node_clock_json(void);

/* super_node_summary.c: the lateness of a node's steps, us; NULL when the node has no steps
 * or has taken none. */
json_t *super_node_steps_json(const struct node *n);

/* super_node_compare.c: whether the settings of both mean the same. */
bool super_node_same_node(const struct node *a, const struct node *b);
bool super_node_same_path(const struct path *a, const struct path *b);

/* super_node_retire.c: takes over removed paths and nodes; super_node_sweep() frees those
 * that are not used any more. */
void super_node_retire(struct super_node *sn, struct list *paths,
		       struct list *nodes);
void super_node_sweep(struct super_node *sn);
/* Free all removed paths after everything has stopped; then, after all paths are gone, the
 * nodes whose memory they used. */
void super_node_sweep_all(struct super_node *sn);
void super_node_sweep_nodes(struct super_node *sn);

/* Lost samples of a node by cause; super_node_snapshot.c. */
json_t *super_node_losses_json(const struct node *n);
/* What hooks left out, could not process, and the like; NULL list allowed. */
json_t *super_node_hooks_json(const struct hook_list *l);
/* Figures of the node-type by their names. */
json_t *super_node_figures_json(const struct node *n);

/* Adds the losses of paths and hooks to `losses`, before their counters are reset or they
 * are freed. The caller holds `control`, or all threads have ended. */
void super_node_take_losses(struct super_node *sn);

/* Start and stop a node with its hooks; no thread is in its read or write. */
int super_node_start_node(struct node *n);
int super_node_stop_node(struct node *n);
/*
 * Shuts the gates of a node and waits until no read, write or hook of it runs any more.
 * Sets *interrupted if it called interrupt(), whose effect lasts until rearm() or
 * start(). 0, or -EBUSY, logged, and then nothing has changed.
 */
int super_node_close_node(struct node *n, unsigned reasons, bool *interrupted);
void super_node_open_node(struct node *n, unsigned reasons);
/* Called after rearm() or start(): if the path that writes the node has ended, interrupts
 * its reads again, because no more samples will come. */
void super_node_repeat_end(struct node *n);

#endif

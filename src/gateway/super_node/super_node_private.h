/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the super-node, for its own files, paths and tests. */
#ifndef GATEWAY_SUPER_NODE_SUPER_NODE_PRIVATE_H
#define GATEWAY_SUPER_NODE_SUPER_NODE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "gateway/plugin/services.h"
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
	json_t *nodes, *paths, *http, *logging;
	const char *control, *name, *uuid;
	int64_t hugepages, affinity, priority, nice, seed;
	double stats_hz;
	int clock;                 /* enum clock_wall */
	bool idle_stop, idle_stop_given;

	char uuid_text[37];
	int log_level;             /* -1: as it is */
	struct log_settings log;
	struct log_rule *log_rules; /* owned */
};

struct super_node {
	struct services services;   /* what nodes may ask of it */
	struct config *config;
	char *file;                 /* that it was loaded from last */
	/* Configurations that reloads brought: owned, as long as a node or path
	 * is of them. */
	struct config **configs;
	unsigned config_count;
	/* What a reload took out; others may still hold its samples. */
	struct list retired_paths, retired_nodes;
	/* Held by whoever changes or looks at nodes and paths while they run. */
	pthread_mutex_t control;
	/* Held by whoever reads a new configuration, which may take long (names of
	 * hosts, files of a network); before `control`. */
	pthread_mutex_t loading;
	_Atomic enum super_node_state state;
	struct super_node_settings settings;
	bool keep_log_level;
	struct list nodes;       /* struct node, in order of the file */
	struct list paths;       /* struct path */
	json_t *nodes_cfg;

	struct memory_type *memory;  /* of all pools, before nodes wrap it */
	const struct node_type **types; /* those that are started */
	unsigned type_count;

	int event_fd;            /* stop requests and ended paths */
	atomic_bool stop_requested;
	atomic_bool failed;      /* super_node_note_failure() */
	atomic_bool shutdown;    /* super_node_request_shutdown() */
	bool stuck;              /* something did not end in time */
	struct spin doing_lock;
	char doing[160];         /* what its control is busy with, or nothing */
	_Atomic uint64_t losses; /* samples that nothing allowed to be lost */
	pthread_t stats_thread;
	bool has_stats_thread;
	atomic_bool stats_end;
	int stats_fd;            /* ends the statistics thread */

	bool may_restart, restart_wanted;
	unsigned restarts;
	json_t *restart_config;     /* owned; NULL: the same again */
	struct timespec started_at;

	/* Of the clock that it looks after: what the log has told. */
	bool keeps_clock;
	uint64_t clock_steps, clock_jumps;

	uint64_t started_ns, stopped_ns;
	uint64_t progress_ns, progress_received; /* at the last live line */
};

/* Reports what is wrong and changes nothing. */
void super_node_settings_parse(struct super_node_settings *s, struct config *c);
/* What differs from `was` (NULL: all, at the start) becomes true of the process; not
 * affinity, priority and nice of a process that runs. */
void super_node_settings_apply(const struct super_node_settings *s,
			       const struct super_node_settings *was,
			       bool keep_level);
/*
 * super_node_threads.c: gives affinity and priority to all threads but the calling one
 * and those that have their own, and nice to all where it differs from `was`. Notes in
 * the object `report` under "applied" and "refused" what has changed.
 */
void super_node_settings_spread(const struct super_node_settings *s,
				const struct super_node_settings *was,
				json_t *report);
void super_node_note_first_mask(void);
/* 0 is what it was started with, until it has had another. 0 or -errno, logged. */
int super_node_apply_nice(int64_t nice, int64_t was);
void super_node_settings_clear(struct super_node_settings *s);

/* For super_node_tell_unfinished(): what is being done now ("stop of node"), to what.
 * NULL: nothing any more. Not on the way of samples. */
void super_node_doing(struct super_node *sn, const char *what, const char *name);
/* Stops a node that nobody is in any more; the others are left alone. */
int super_node_stop_left_node(struct node *n);

/* By what users may say; the caller holds `control`. */
struct node *super_node_node_by_id(struct super_node *sn, const char *id);
struct path *super_node_path_by_id(struct super_node *sn, const char *id);

/* super_node.c, each for a part of the life of a super-node */
void super_node_mark_roles(struct super_node *sn);
bool super_node_is_fed(struct super_node *sn, const struct path *p);
int super_node_start_types(struct super_node *sn);
/* Begins, changes or leaves alone the statistics thread as settings say. */
int super_node_update_stats(struct super_node *sn);

/* super_node_clock.c: while the gateway runs, from the thread that waits for its end.
 * How many ms until the clock wants to be looked at again. */
void super_node_clock_start(struct super_node *sn);
void super_node_clock_stop(struct super_node *sn);
int super_node_clock_tick(struct super_node *sn);
/* How near it is to the system's, for the status. */
json_t *super_node_clock_json(void);

/* super_node_summary.c: how late the steps of a node were, us; NULL where it keeps no
 * steps or has taken none. */
json_t *super_node_steps_json(const struct node *n);

/* super_node_compare.c: do the settings of both mean the same? */
bool super_node_same_node(const struct node *a, const struct node *b);
bool super_node_same_path(const struct path *a, const struct path *b);

/* super_node_retire.c: gets rid of what was taken out once nobody needs it. */
void super_node_retire(struct super_node *sn, struct list *paths,
		       struct list *nodes);
void super_node_sweep(struct super_node *sn);
/* After the stop of everything; and then, when there are no paths any more, the
 * nodes whose memory they have used. */
void super_node_sweep_all(struct super_node *sn);
void super_node_sweep_nodes(struct super_node *sn);

/* Lost samples of a node by cause; super_node_snapshot.c. */
json_t *super_node_losses_json(const struct node *n);

/* Takes over what paths and hooks have lost until now, before their counters are
 * set to zero or they go. The caller holds `control`, or all has ended. */
void super_node_take_losses(struct super_node *sn);

/* A node with its hooks; nobody is in read or write. */
int super_node_start_node(struct node *n);
int super_node_stop_node(struct node *n);
/*
 * Keeps the paths of a node out of it: no read, write or hook of it runs any
 * more. *interrupted: reads and writes were asked to return, which lasts until
 * rearm() or start(). 0 or -EBUSY (logged, and all is as it was).
 */
int super_node_close_node(struct node *n, unsigned reasons, bool *interrupted);
void super_node_open_node(struct node *n, unsigned reasons);
/* Behind rearm() or start(): who writes it may have ended, and has interrupted it
 * for that. Reads are not to wait for more. */
void super_node_repeat_end(struct node *n);

#endif

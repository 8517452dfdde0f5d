/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reload; see super_node_reload.h. The new configuration becomes a super-node of
 * its own that is never started: what is new in it moves over, what is the same
 * is thrown away.
 */
#define LOG_ROOM "gateway/reload"
#include "gateway/super_node/super_node_reload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/base/ending.h"
#include "gateway/config/secret.h"
#include "gateway/plugin/node_life.h"
#include "gateway/path/path.h"
#include "gateway/super_node/super_node_private.h"
#include "util/clock.h"
#include "util/log.h"

struct reload {
	struct super_node *sn, *next;
	struct list nodes, paths;           /* the new lists, in order */
	struct list old_nodes, old_paths;   /* those that go */
	json_t *kept, *stopped, *started, *failed;
	json_t *settings;                   /* "applied", "refused" */
	struct super_node_settings was;     /* before */
};

/* An earlier reload could not prepare it; then it gets another chance. */
static bool never_prepared(struct node *n)
{
	return (n->is_source || n->is_destination) &&
	       node_state(n) < NODE_PREPARED;
}

/* The node or path of the same settings; marked through `twin`. */
static void pair_nodes(struct reload *r)
{
	list_for_each(n, &r->next->nodes, struct node, entry) {
		struct node *old = super_node_find(r->sn, n->name);

		if (!old || never_prepared(old) ||
		    !super_node_same_node(old, n))
			continue;
		old->twin = n;
		n->twin = old;
	}
}

static bool nodes_stay(const struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (!p->sources[i].node->twin)
			return false;
	for (unsigned d = 0; d < p->destination_count; d++)
		if (!p->destinations[d].node->twin)
			return false;
	return true;
}

static void pair_paths(struct reload *r)
{
	list_for_each(p, &r->next->paths, struct path, entry) {
		if (!nodes_stay(p))
			continue;
		list_for_each(old, &r->sn->paths, struct path, entry) {
			/* One that could not be started is no loss. */
			if (old->twin || (old->enabled && !old->has_thread) ||
			    !super_node_same_path(old, p))
				continue;
			old->twin = p;
			p->twin = old;
			break;
		}
	}
}

static void pair(struct reload *r)
{
	super_node_mark_roles(r->next);
	pair_nodes(r);
	pair_paths(r);
}

static void note(json_t *list, const char *kind, const char *name)
{
	json_array_append_new(list, json_sprintf("%s %s", kind, name));
}

/*
 * A node that stays while a path of it goes: its reads and writes were asked to
 * return, and its pools are others.
 */
static void refresh(struct reload *r, struct node *n)
{
	bool interrupted;

	if (!node_is_running(n) ||
	    super_node_close_node(n, GATE_HOLD, &interrupted))
		return;
	if (n->type->rearm) {
		n->type->rearm(n);
	} else if (n->type->interrupt) {
		log_debug("node %s: is started anew for its new path", n->name);
		super_node_stop_node(n);
		if (super_node_start_node(n)) {
			note(r->failed, "node", n->name);
			gate_shut(&n->in.gate, GATE_STOPPED);
			gate_shut(&n->out.gate, GATE_STOPPED);
		}
	}
	super_node_repeat_end(n);
	super_node_open_node(n, GATE_HOLD);
}

/* The source of a path that stays which reads `n`; NULL when there is none. */
static struct path_source *reader_of(struct super_node *sn, const struct node *n)
{
	list_for_each(p, &sn->paths, struct path, entry)
		for (unsigned i = 0; p->twin && p->enabled &&
				     i < p->source_count; i++)
			if (p->sources[i].node == n && !p->sources[i].primary)
				return &p->sources[i];
	return NULL;
}

/* One of a path that stays, which `s` reads for too; NULL when there is none. */
static struct path_source *heir(struct path_source *s)
{
	const struct path_share *share = s->share;

	for (unsigned k = 0; share && k < share->count; k++)
		if (share->sources[k]->path->twin)
			return share->sources[k];
	return NULL;
}

/*
 * A path that goes and reads nodes for paths that stay: one of those reads them from
 * now on. The nodes keep what comes meanwhile.
 */
static void stop_reader(struct reload *r, struct path *p)
{
	bool interrupted;

	super_node_doing(r->sn, "stop of path", p->name);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i];

		if (!heir(s))
			continue;
		if (super_node_close_node(s->node, GATE_HOLD, &interrupted))
			note(r->failed, "node", s->node->name);
		atomic_store(&s->handed_over, true);
	}
	path_stop_reading(p);
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i], *next = heir(s);

		if (!atomic_load(&s->handed_over))
			continue;
		if (path_source_hand_over(s, next))
			note(r->failed, "path", next->path->name);
		refresh(r, s->node);
		super_node_open_node(s->node, GATE_HOLD);
	}
}

/* The reader of a path that stays goes on without the paths that go. */
static void leave_readers(struct reload *r, struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++) {
		struct path_source *s = &p->sources[i], *reader = s->primary;

		if (reader && reader->path->twin && path_source_unshare(s))
			log_error("path %s: stays in the memory of node %s", p->name,
				  s->node->name);
	}
}

/* Paths that go: what feeds others first, so that those see its end. */
static void stop_old_paths(struct reload *r)
{
	for (int fed = 0; fed < 2; fed++)
		list_for_each(p, &r->sn->paths, struct path, entry)
			if (!p->twin && p->enabled &&
			    super_node_is_fed(r->sn, p) == fed)
				stop_reader(r, p);
	list_for_each_safe(p, &r->sn->paths, struct path, entry) {
		if (p->twin)
			continue;
		if (p->enabled) {
			super_node_doing(r->sn, "stop of path", p->name);
			leave_readers(r, p);
			path_stop(p);
		}
		note(r->stopped, "path", p->name);
		list_remove(&p->entry);
		list_push(&r->old_paths, &p->entry);
	}
}

/* By a path that stays, whose reader goes on: nothing of it has to be fresh. */
static bool is_read(struct super_node *sn, const struct node *n)
{
	return reader_of(sn, n) != NULL;
}

static bool has_gone(struct node *n)
{
	return !n->twin;
}

static void stop_old_nodes(struct reload *r)
{
	super_node_doing(r->sn, "stop of nodes", "that wait for their peers");
	super_node_stop_waiting(r->sn, has_gone);
	list_for_each_safe(n, &r->sn->nodes, struct node, entry) {
		if (n->twin)
			continue;
		super_node_doing(r->sn, "stop of node", n->name);
		super_node_stop_left_node(n);
		note(r->stopped, "node", n->name);
		list_remove(&n->entry);
		list_push(&r->old_nodes, &n->entry);
	}
	list_for_each(p, &r->old_paths, struct path, entry)
		path_release(p);
	list_for_each(p, &r->old_paths, struct path, entry) {
		for (unsigned i = 0; i < p->source_count; i++)
			if (p->sources[i].node->twin &&
			    !is_read(r->sn, p->sources[i].node))
				refresh(r, p->sources[i].node);
		for (unsigned d = 0; d < p->destination_count; d++)
			if (p->destinations[d].node->twin)
				refresh(r, p->destinations[d].node);
	}
}

/* The new lists: what stays from the one side, what is new from the other. */
static void merge_nodes(struct reload *r)
{
	list_for_each_safe(n, &r->next->nodes, struct node, entry) {
		struct node *take = n->twin ? n->twin : n;

		list_remove(&take->entry);
		list_push(&r->nodes, &take->entry);
		if (n->twin) {
			note(r->kept, "node", n->name);
			/* Out of the way until its paths are rewired. */
			list_remove(&n->entry);
			list_push(&r->old_nodes, &n->entry);
			continue;
		}
		n->services = &r->sn->services;
	}
}

static void rewire(struct path *p)
{
	path_map_rewire(p);
	for (unsigned i = 0; i < p->source_count; i++)
		if (p->sources[i].node->twin)
			p->sources[i].node = p->sources[i].node->twin;
	for (unsigned d = 0; d < p->destination_count; d++)
		if (p->destinations[d].node->twin)
			p->destinations[d].node = p->destinations[d].node->twin;
}

/* New paths of a node that is read already join its reader, wherever they stand in
 * the list. The doubles of paths that stay have readers too, which are not used. */
static void join_readers(struct reload *r)
{
	list_for_each(p, &r->next->paths, struct path, entry) {
		for (unsigned i = 0; p->enabled && i < p->source_count; i++) {
			struct path_source *s = &p->sources[i], *reader;
			const struct node *n = s->node->twin;

			reader = n ? reader_of(r->sn, n) : NULL;
			if (!reader)
				continue;
			free(s->share);
			s->share = NULL;
			s->primary = NULL;
			if (!p->twin)
				path_source_share_late(s, reader);
		}
	}
}

static void merge_paths(struct reload *r)
{
	list_for_each_safe(p, &r->next->paths, struct path, entry) {
		struct path *old = p->twin;

		list_remove(&p->entry);
		if (old) {
			note(r->kept, "path", p->name);
			list_remove(&old->entry);
			list_push(&r->paths, &old->entry);
			/* For threads that it may start later. */
			old->priority = p->priority;
			old->twin = NULL;
			path_destroy(p);
			continue;
		}
		rewire(p);
		list_push(&r->paths, &p->entry);
	}
}

/* The doubles of nodes that stay are no longer pointed at. */
static void drop_doubles(struct reload *r)
{
	list_for_each_safe(n, &r->old_nodes, struct node, entry) {
		if (!n->twin)
			continue;
		n->twin->twin = NULL;
		node_destroy(n);
	}
}

/* Nodes that know others learn who these are now. */
static void relink_nodes(struct reload *r)
{
	list_for_each(n, &r->sn->nodes, struct node, entry) {
		bool interrupted;

		if (!n->type->relink ||
		    super_node_close_node(n, GATE_HOLD, &interrupted))
			continue;
		n->type->relink(n);
		if (interrupted && n->type->rearm)
			n->type->rearm(n);
		super_node_open_node(n, GATE_HOLD);
	}
}

static void prepare_nodes(struct reload *r)
{
	list_for_each(n, &r->sn->nodes, struct node, entry) {
		if (node_state(n) != NODE_CHECKED ||
		    (!n->is_source && !n->is_destination))
			continue;
		/* Shut until it is started. */
		gate_shut(&n->in.gate, GATE_STOPPED);
		gate_shut(&n->out.gate, GATE_STOPPED);
		super_node_doing(r->sn, "preparation of node", n->name);
		if (ending_has_begun() || node_prepare(n))
			note(r->failed, "node", n->name);
	}
}

static void start_nodes(struct reload *r)
{
	for (int destination = 1; destination >= 0; destination--) {
		list_for_each(n, &r->sn->nodes, struct node, entry) {
			if (n->config != r->next->config ||
			    node_state(n) != NODE_PREPARED ||
			    n->is_destination != destination)
				continue;
			super_node_doing(r->sn, "start of node", n->name);
			if (ending_has_begun() || super_node_start_node(n)) {
				note(r->failed, "node", n->name);
				continue;
			}
			note(r->started, "node", n->name);
			super_node_open_node(n, GATE_STOPPED);
		}
	}
}

static bool is_new(struct reload *r, const struct path *p)
{
	return p->config == r->next->config;
}

static void start_paths(struct reload *r)
{
	for (int fed = 1; fed >= 0; fed--) {
		list_for_each(p, &r->sn->paths, struct path, entry) {
			if (!is_new(r, p) || !p->enabled || !p->prepared ||
			    super_node_is_fed(r->sn, p) != fed)
				continue;
			super_node_doing(r->sn, "start of path", p->name);
			if (ending_has_begun() || path_start(p, r->sn->event_fd))
				note(r->failed, "path", p->name);
			else
				note(r->started, "path", p->name);
		}
	}
}

/* Else there is no memory that they could use; it is told of the node. */
static bool nodes_are_prepared(struct path *p)
{
	for (unsigned i = 0; i < p->source_count; i++)
		if (node_state(p->sources[i].node) < NODE_PREPARED)
			return false;
	for (unsigned d = 0; d < p->destination_count; d++)
		if (node_state(p->destinations[d].node) < NODE_PREPARED)
			return false;
	return true;
}

static void prepare_paths(struct reload *r)
{
	for (int fed = 1; fed >= 0; fed--) {
		list_for_each(p, &r->sn->paths, struct path, entry) {
			if (!is_new(r, p) || !p->enabled ||
			    super_node_is_fed(r->sn, p) != fed)
				continue;
			p->prepared = nodes_are_prepared(p) && !path_prepare(p);
			if (!p->prepared)
				note(r->failed, "path", p->name);
		}
	}
}

static void take_settings(struct reload *r)
{
	struct super_node *sn = r->sn, *next = r->next;
	struct super_node_settings was = sn->settings;

	if ((was.control && !next->settings.control) ||
	    (next->settings.control &&
	     (!was.control || strcmp(was.control, next->settings.control))))
		log_info("the control socket stays as it is until the next start");
	sn->settings = next->settings;
	next->settings = (struct super_node_settings){ .log_rules = NULL };
	super_node_settings_apply(&sn->settings, &was, sn->keep_log_level);
	r->was = was;
	super_node_settings_clear(&r->was);
	sn->config = next->config;
	sn->nodes_cfg = next->nodes_cfg;
	sn->memory = next->memory;
	if (super_node_update_stats(sn))
		log_error("cannot start the statistics thread");
}

static void apply(struct reload *r)
{
	struct super_node *sn = r->sn;

	stop_old_paths(r);
	stop_old_nodes(r);
	super_node_retire(sn, &r->old_paths, &r->old_nodes);
	join_readers(r);
	merge_nodes(r);
	merge_paths(r);
	drop_doubles(r);
	list_splice(&sn->nodes, &r->nodes);
	list_splice(&sn->paths, &r->paths);
	take_settings(r);
	super_node_mark_roles(sn);
	relink_nodes(r);
	if (super_node_start_types(sn))
		log_error("a node-type cannot be started");
	prepare_nodes(r);
	prepare_paths(r);
	start_nodes(r);
	start_paths(r);
	/* Behind the start of threads, which inherit from the caller. */
	super_node_settings_spread(&sn->settings, &r->was, r->settings);
}

/* Reads and checks; errors go into `errors`. */
static int load(struct super_node *sn, const json_t *config, const char *text,
		json_t *errors, struct config **c, struct super_node **next)
{
	char *printed;
	int ret;

	config_collect_errors(errors);
	if (text) {
		ret = config_load_text(sn->file, text, strlen(text), c);
	} else if (json_is_object(config)) {
		printed = json_dumps(config, JSON_INDENT(1));
		ret = printed ? config_load_text("request", printed, strlen(printed), c) :
				-ENOMEM;
		free(printed);
	} else {
		const char *file = json_is_string(config) ? json_string_value(config) :
							    sn->file;

		/* A FIFO would hold up all other requests. */
		ret = config_load_regular(file, c);
		if (ret && ret != -EINVAL)
			json_array_append_new(errors,
					      json_sprintf("cannot read %s: %s", file,
							   ret == -ESPIPE ?
								   "not a regular file" :
								   strerror(-ret)));
	}
	if (!ret) {
		ret = super_node_new(next, *c);
		if (ret) {
			config_destroy(*c);
			*c = NULL;
		}
	}
	config_collect_errors(NULL);
	return ret;
}

/* Reads and checks `text` or, without it, the file or object `config` (NULL: the present
 * file), or fills *report with what is wrong. The lock `loading` is held. */
static int load_checked(struct super_node *sn, const json_t *config,
			const char *text, struct config **c, struct super_node **next,
			json_t **report)
{
	json_t *errors;
	int ret;

	if (!config && !text && (!strcmp(sn->file, "stdin") ||
			!strcmp(sn->file, "request") ||
			!strcmp(sn->file, SUPER_NODE_NO_FILE))) {
		log_error("the configuration did not come from a file, name one");
		*report = json_pack("{ss}", "error",
				    "the configuration did not come from a file, name one");
		return -EINVAL;
	}
	super_node_doing(sn, "check of a new configuration,",
			 json_is_string(config) ? json_string_value(config) : sn->file);
	errors = json_array();
	ret = sn->state == SUPER_NODE_STARTED ? 0 : -ESHUTDOWN;
	if (!ret)
		ret = load(sn, config, text, errors, c, next);
	if (ret && json_array_size(errors)) {
		log_error("the new configuration has errors, nothing has changed");
		*report = json_pack("{ss so}", "error",
				    "the configuration has errors, nothing has changed",
				    "errors", errors);
	} else {
		json_decref(errors);
	}
	return ret;
}

static int own_config(struct super_node *sn, struct config *c)
{
	struct config **more = reallocarray(sn->configs, sn->config_count + 1,
					    sizeof(*more));

	if (!more)
		return -ENOMEM;
	sn->configs = more;
	more[sn->config_count++] = c;
	return 0;
}

static json_t *report_of(struct reload *r)
{
	json_t *report = json_pack("{so so so so}", "kept", r->kept, "stopped",
				   r->stopped, "started", r->started, "failed",
				   r->failed);

	json_object_update(report, r->settings);
	json_decref(r->settings);
	return report;
}

static void carry_out(struct super_node *sn, struct super_node *next,
		      json_t **report)
{
	struct reload r = {
		.sn = sn, .next = next,
		.kept = json_array(), .stopped = json_array(),
		.started = json_array(), .failed = json_array(),
		.settings = json_object(),
	};

	list_init(&r.nodes);
	list_init(&r.paths);
	list_init(&r.old_nodes);
	list_init(&r.old_paths);
	pair(&r);
	apply(&r);
	super_node_sweep(sn);
	log_info("reloaded: %zu kept, %zu stopped, %zu started, %zu failed",
		 json_array_size(r.kept), json_array_size(r.stopped),
		 json_array_size(r.started), json_array_size(r.failed));
	*report = report_of(&r);
}

enum { REVISION_BYTES = 40 };

static void revision_of(const struct super_node *sn, char out[REVISION_BYTES])
{
	snprintf(out, REVISION_BYTES, "%" PRIx64 "-%" PRIu64, timespec_to_ns(sn->started_at),
		 sn->loads);
}

/* The lock `loading` is held, so that it stays true. */
static bool is_present(const struct super_node *sn, const char *revision)
{
	char now[REVISION_BYTES];

	revision_of(sn, now);
	return !revision || !strcmp(revision, now);
}

int super_node_change(struct super_node *sn, const struct super_node_change *change,
		      json_t **report)
{
	const json_t *config = json_is_null(change->config) ? NULL : change->config;
	const char *text = change->text;
	struct super_node *next = NULL;
	struct config *c = NULL;
	int ret;

	*report = NULL;
	pthread_mutex_lock(&sn->loading);
	ret = is_present(sn, change->revision) ?
		      load_checked(sn, config, text, &c, &next, report) : -ESTALE;
	pthread_mutex_lock(&sn->control);
	/* It may have ended meanwhile. */
	if (!ret && sn->state != SUPER_NODE_STARTED)
		ret = -ESHUTDOWN;
	else if (!ret)
		ret = own_config(sn, c);
	if (ret && next) {
		super_node_destroy(next);
		config_destroy(c);
		next = NULL;
	}
	if (!ret)
		carry_out(sn, next, report);
	if (!ret && sn->text_given && !text && !json_is_object(config))
		log_warn("the configuration that a request had given is replaced by the file %s",
			 json_is_string(config) ? json_string_value(config) : sn->file);
	if (!ret)
		sn->text_given = text || json_is_object(config);
	if (!ret)
		sn->loads++;
	if (!ret && json_is_string(config)) {
		free(sn->file);
		sn->file = strdup(json_string_value(config));
	}
	super_node_doing(sn, NULL, NULL);
	pthread_mutex_unlock(&sn->control);
	pthread_mutex_unlock(&sn->loading);
	super_node_destroy(next);
	return ret;
}

int super_node_reload(struct super_node *sn, const json_t *config, json_t **report)
{
	return super_node_change(sn, &(struct super_node_change){ .config = config }, report);
}

const char *super_node_file(struct super_node *sn)
{
	return sn->file;
}

const char *super_node_control_path(struct super_node *sn)
{
	return sn->settings.control;
}

json_t *super_node_config_json(struct super_node *sn)
{
	json_t *root;

	pthread_mutex_lock(&sn->control);
	root = secret_copy(config_root(sn->config));
	pthread_mutex_unlock(&sn->control);
	return root;
}

json_t *super_node_config_source(struct super_node *sn)
{
	char revision[REVISION_BYTES], *text;
	json_t *o;

	pthread_mutex_lock(&sn->control);
	revision_of(sn, revision);
	text = secret_hide_text(config_source(sn->config));
	o = json_pack("{ss ss* sb ss}", "file", sn->file, "text", text, "given", sn->text_given,
		      "revision", revision);
	pthread_mutex_unlock(&sn->control);
	free(text);
	return o;
}

int super_node_check_text(struct super_node *sn, const char *text, json_t **problems)
{
	struct super_node *next = NULL;
	struct config *c = NULL;
	int ret;

	*problems = json_array();
	if (!*problems)
		return -ENOMEM;
	pthread_mutex_lock(&sn->loading);
	super_node_doing(sn, "check of a text for", sn->file);
	config_collect_problems(*problems);
	ret = config_load_text(sn->file, text, strlen(text), &c) ?: super_node_new(&next, c);
	config_collect_problems(NULL);
	super_node_destroy(next);
	config_destroy(c);
	pthread_mutex_lock(&sn->control);
	super_node_doing(sn, NULL, NULL);
	pthread_mutex_unlock(&sn->control);
	pthread_mutex_unlock(&sn->loading);
	return ret;
}

void super_node_allow_restart(struct super_node *sn, unsigned restarts)
{
	sn->may_restart = true;
	sn->restarts = restarts;
}

int super_node_request_restart(struct super_node *sn, const json_t *config,
			       json_t **report)
{
	struct super_node *next = NULL;
	struct config *c = NULL;
	int ret;

	*report = NULL;
	if (!sn->may_restart)
		return -ENOTSUP;
	if (json_is_null(config))
		config = NULL;
	pthread_mutex_lock(&sn->loading);
	/* One that cannot start must not end the one that runs. */
	ret = load_checked(sn, config, NULL, &c, &next, report);
	pthread_mutex_lock(&sn->control);
	if (!ret) {
		super_node_destroy(next);
		config_destroy(c);
		json_decref(sn->restart_config);
		sn->restart_config = config ? json_deep_copy(config) :
					      json_string(sn->file);
		sn->restart_wanted = true;
	}
	super_node_doing(sn, NULL, NULL);
	pthread_mutex_unlock(&sn->control);
	pthread_mutex_unlock(&sn->loading);
	if (!ret)
		super_node_request_stop(sn);
	return ret;
}

bool super_node_restart_wanted(struct super_node *sn, json_t **config)
{
	if (!sn->restart_wanted)
		return false;
	*config = sn->restart_config;
	sn->restart_config = NULL;
	return true;
}

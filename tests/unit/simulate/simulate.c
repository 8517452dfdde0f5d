/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control plane under random commands, deterministically. Each run is a gateway. Its
 * nodes and paths are started, stopped, paused, resumed, restarted, replaced and reloaded;
 * peers die and come back; configurations with and without errors are loaded; the gateway
 * ends at a random moment. Meanwhile samples go through real formats and two operators
 * give commands at the same time. Every sample is accounted for (ledger.h). All of it,
 * the order of threads included, follows from one number (world.h).
 *
 * usage: simulate [--runs N] [--seed N] [--seconds S] [--allocations]
 *                 [--constructions N] [--verbose]
 *
 * `--allocations` lets allocations fail during commands; `--constructions` makes gateways of
 * N configurations and lets each allocation fail in turn.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "alloc.h"
#include "carrier.h"
#include "gateway/path/path.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "gateway/super_node/super_node.h"
#include "gateway/super_node/super_node_control.h"
#include "gateway/super_node/super_node_private.h"
#include "gateway/super_node/super_node_reload.h"
#include "ledger.h"
#include "parts.h"
#include "plan.h"
#include "util/log.h"
#include "world.h"

static struct {
	uint64_t seed;
	unsigned long runs, constructions;
	double seconds;
	bool allocations, verbose;
} options = { .runs = 250 };

static unsigned long commands, done, refused, unlucky, allocations;

struct run {
	struct super_node *sn;
	struct plan plan;
	pthread_mutex_t planning;
	unsigned commands;          /* number for each operator */
};

static bool keep_line(enum log_level level, const char *line)
{
	if (options.verbose)
		printf("  %10.6f %s\n", (double)world_now_ns() / 1e9, line);
	return true;
}

static void __attribute__((format(printf, 1, 2))) tell(const char *fmt, ...)
{
	va_list ap;

	if (!options.verbose)
		return;
	printf("  %10.6f > ", (double)world_now_ns() / 1e9);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void describe_signals(FILE *f, const char *what,
			     const struct signal_list *l)
{
	fprintf(f, " %s", what);
	for (unsigned i = 0; l && i < l->count; i++)
		fprintf(f, " %s:%u", l->signals[i].name,
			(unsigned)l->signals[i].type);
}

static void describe_hooks(FILE *f, const struct hook_list *l)
{
	fprintf(f, l ? " hooks" : " no hooks");
	if (!l)
		return;
	list_for_each(h, &l->hooks, struct hook, entry)
		fprintf(f, " %s", h->type->name);
}

/* Describes a super-node, without what depends on the order of threads. */
static char *describe(struct super_node *sn)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	list_for_each(n, &sn->nodes, struct node, entry) {
		fprintf(f, "node %s %s vectorize %u %u uuid %s", n->name,
			n->type->name, n->in.vectorize, n->out.vectorize,
			n->uuid);
		describe_signals(f, "in", n->in.signals);
		describe_signals(f, "hooked", n->in.hooked);
		describe_signals(f, "out", n->out.signals);
		describe_hooks(f, n->in.hooks);
		describe_hooks(f, n->out.hooks);
		fputc('\n', f);
	}
	list_for_each(p, &sn->paths, struct path, entry) {
		fprintf(f, "path %s uuid %s queuelen %d mode %d full %d length %u maps %u sources %u",
			p->name, p->uuid, (int)p->queuelen, p->mode, p->full,
			p->register_length, p->map_count, p->source_count);
		for (unsigned i = 0; i < p->source_count; i++)
			fprintf(f, " %s %d", p->sources[i].node->name,
				p->sources[i].triggers);
		for (unsigned d = 0; d < p->destination_count; d++)
			fprintf(f, " > %s", p->destinations[d].node->name);
		describe_signals(f, "signals", p->signals);
		describe_signals(f, "out", p->out_signals);
		describe_hooks(f, p->hooks);
		fputc('\n', f);
	}
	fclose(f);
	return text;
}

/*
 * The command reported success although allocations failed: the result must be the same
 * as with enough memory.
 */
static void check_complete(struct super_node *sn, const char *text)
{
	struct super_node *other = NULL;
	struct config *c = NULL;
	char *is, *must;

	if (config_load_text("plan", text, strlen(text), &c) ||
	    super_node_new(&other, c))
		world_fail("a configuration with errors was taken for want of memory at %p",
			   alloc_failed_at());
	is = describe(sn);
	must = describe(other);
	if (strcmp(is, must))
		world_fail("no memory at %p, and not a word of it: it is\n%swhere it must be\n%s",
			   alloc_failed_at(), is, must);
	free(is);
	free(must);
	super_node_destroy(other);
	config_destroy(c);
}

/* From here on allocations of the command may fail, once in so many times. */
static void tempt(unsigned times)
{
	alloc_fail(0, 0);
	if (options.allocations && world_draw(times) == 0)
		alloc_fail(world_draw(2) ? world_draw(40) : world_draw(1500),
			   1 + (world_draw(4) == 0) * world_draw(20));
}

static void note_result(const char *what, const char *of, int ret)
{
	bool failed = alloc_succeed();

	tell("%s %s: %s%s", what, of, ret ? strerror(-ret) : "done",
	     failed ? " (an allocation failed)" : "");
	world_note((uint64_t)(unsigned)ret);
	commands++;
	if (failed)
		tell("no memory at %p", alloc_failed_at());
	unlucky += failed;
	if (ret)
		refused++;
	else
		done++;
}

static json_t *as_json(const char *text)
{
	struct config *c;
	json_t *o;

	if (config_load_text("plan", text, strlen(text), &c))
		world_fail("a configuration cannot be read:\n%s", text);
	o = json_deep_copy(config_root(c));
	config_destroy(c);
	return o;
}

/* Loads a configuration from memory, as if it were a file. */
static int load(struct super_node *sn, const char *text, json_t **report)
{
	int fd = memfd_create("plan", MFD_CLOEXEC), ret;
	json_t *name = json_sprintf("/proc/self/fd/%d", fd);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		world_fail("cannot make a file");
	tempt(2);
	ret = super_node_reload(sn, name, report);
	close(fd);
	json_decref(name);
	return ret;
}

static unsigned count(struct list *l)
{
	unsigned n = 0;

	for (struct list *e = l->next; e != l; e = e->next)
		n++;
	return n;
}

/* After a refused reload nothing may have changed. */
static void check_unchanged(struct super_node *sn, const struct config *was,
			    unsigned nodes)
{
	if (sn->config != was || count(&sn->nodes) != nodes)
		world_fail("a refused reload has changed the gateway");
}

static void reload(struct run *r)
{
	char *text = malloc(PLAN_TEXT + 64);
	json_t *report = NULL, *o = NULL;
	const struct config *was;
	struct plan next = r->plan;
	unsigned nodes;
	bool wrong = world_draw(8) == 0, failed;
	int ret;

	for (unsigned i = world_draw(3); i < 3; i++)
		plan_change(&next);
	plan_print(&next, text);
	if (wrong)
		strcat(text, world_draw(2) ? "surprise = 1;\n" : "paths2 = (\n");
	tell("reload%s:\n%s", wrong ? " with an error" : "", text);
	/* One reload at a time, so that the comparison is with this operator's own. */
	pthread_mutex_lock(&r->planning);
	was = r->sn->config;
	nodes = count(&r->sn->nodes);
	if (wrong || world_draw(2)) {
		ret = load(r->sn, text, &report);
	} else {
		o = as_json(text);
		tempt(2);
		ret = super_node_reload(r->sn, o, &report);
	}
	failed = alloc_succeed();
	note_result("reload", "", ret);
	if (wrong && !ret)
		world_fail("a configuration with an error was taken");
	if (ret)
		check_unchanged(r->sn, was, nodes);
	else
		r->plan = next;
	if (!ret && failed)
		check_complete(r->sn, text);
	if (options.verbose && report) {
		text[0] = '\0';
		json_dumpf(report, stdout, 0);
		putchar('\n');
	}
	pthread_mutex_unlock(&r->planning);
	json_decref(o);
	json_decref(report);
	free(text);
}

static void look(struct super_node *sn)
{
	tempt(2);
	json_decref(super_node_snapshot(sn));
	json_decref(super_node_nodes_json(sn));
	json_decref(super_node_paths_json(sn));
	json_decref(super_node_config_json(sn));
	note_result("look", "", 0);
}

static const char *const verbs[] = { "start", "stop", "pause", "resume",
				     "restart" };

/* Under the control lock, which guards the list of nodes. */
static void kill_peer(struct run *r, const char *name, bool dead)
{
	struct node *n;

	pthread_mutex_lock(&r->sn->control);
	n = super_node_find(r->sn, name);
	if (n && n->state >= NODE_PREPARED)
		parts_kill(n, dead);
	pthread_mutex_unlock(&r->sn->control);
	note_result(dead ? "kill" : "revive", name, 0);
}

static void burst(struct run *r, const char *name)
{
	struct node *n;

	pthread_mutex_lock(&r->sn->control);
	n = super_node_find(r->sn, name);
	if (n)
		parts_burst(n, 1 + world_draw(100));
	pthread_mutex_unlock(&r->sn->control);
	note_result("burst", name, 0);
}

static void command(struct run *r)
{
	const char *node = r->plan.nodes[world_draw(PLAN_NODES)].name;
	const char *source = r->plan.nodes[world_draw(6)].name;
	enum control_verb verb = (enum control_verb)world_draw(5);
	char path[4];
	int ret;

	alloc_fail(0, 0);
	switch (world_draw(20)) {
	case 0:
	case 1:
	case 2:
		reload(r);
		break;
	case 3:
		look(r->sn);
		break;
	case 4:
		kill_peer(r, source, true);
		break;
	case 5:
	case 6:
		kill_peer(r, source, false);
		break;
	case 7:
	case 8:
		burst(r, source);
		break;
	case 9:
	case 10:
	case 11:
	case 12:
		snprintf(path, sizeof(path), "%u", world_draw(PLAN_PATHS));
		tempt(2);
		ret = super_node_path_control(r->sn, path, verb);
		note_result(verbs[verb], path, ret);
		break;
	default:
		tempt(2);
		ret = super_node_node_control(r->sn, node, verb);
		note_result(verbs[verb], node, ret);
	}
}

static void *operate(void *arg)
{
	struct run *r = arg;

	for (unsigned i = 0; i < r->commands; i++) {
		world_sleep_ns(world_draw(4) ? world_draw(300000) :
					       world_draw(8000000));
		command(r);
	}
	return NULL;
}

/* Makes plans until one has no error that only the gateway finds. */
static bool make_gateway(struct run *r, struct config **c)
{
	char *text = malloc(PLAN_TEXT);
	bool failed;
	int ret;

	plan_make(&r->plan);
	plan_print(&r->plan, text);
	tell("\n%s", text);
	if (config_load_text("plan", text, strlen(text), c))
		world_fail("a configuration cannot be read:\n%s", text);
	tempt(8);
	ret = super_node_new(&r->sn, *c);
	failed = alloc_succeed();
	note_result("new", "", ret);
	if (ret)
		config_destroy(*c);
	else if (failed)
		check_complete(r->sn, text);
	free(text);
	return !ret;
}

/* What an earlier run has left in the process must not change this one. */
static void begin(uint64_t seed)
{
	log_set_level(LOG_INFO);
	world_begin(seed);
	parts_begin();
}

static void simulate(uint64_t seed)
{
	struct run r = { .planning = PTHREAD_MUTEX_INITIALIZER };
	struct config *c;
	pthread_t other;
	int ret;

	begin(seed);
	if (options.verbose)
		printf("seed %" PRIu64 "\n", seed);
	if (!make_gateway(&r, &c)) {
		ledger_end();
		world_end();
		return;
	}
	tempt(8);
	ret = super_node_start(r.sn);
	note_result("start", "", ret);
	if (!ret) {
		r.commands = 3 + world_draw(10);
		if (pthread_create(&other, NULL, operate, &r))
			world_fail("no thread");
		operate(&r);
		if (world_draw(2)) {
			super_node_request_stop(r.sn);
			super_node_wait(r.sn, -1);
			super_node_stop(r.sn);
			pthread_join(other, NULL);
		} else {
			pthread_join(other, NULL);
			world_sleep_ns(world_draw(20000000));
			super_node_stop(r.sn);
		}
	}
	super_node_destroy(r.sn);
	config_destroy(c);
	ledger_end();
	world_end();
}

/* Lets each allocation fail in turn while a gateway is made of a configuration: there must
 * be an error, or no difference. */
static void construct(uint64_t seed)
{
	char *text = malloc(PLAN_TEXT);
	struct super_node *sn;
	struct config *c;
	struct plan plan;
	bool failed = true;
	int ret;

	begin(seed);
	plan_make(&plan);
	plan_print(&plan, text);
	for (unsigned k = 0; failed; k++) {
		if (config_load_text("plan", text, strlen(text), &c))
			world_fail("a configuration cannot be read");
		alloc_fail(k, 1);
		ret = super_node_new(&sn, c);
		failed = alloc_succeed();
		if (!ret && failed)
			check_complete(sn, text);
		if (!ret)
			super_node_destroy(sn);
		config_destroy(c);
		allocations++;
	}
	free(text);
	ledger_end();
	world_end();
}

/* What a process does once (warnings, measurements, caches of libc) it does here, so that it
 * belongs to none of the runs. */
static void warm_up(void)
{
	bool allocations_fail = options.allocations, verbose = options.verbose;

	options.allocations = options.verbose = false;
	for (uint64_t i = 1; i <= 3; i++)
		simulate(i);
	options.allocations = allocations_fail;
	options.verbose = verbose;
	commands = done = refused = 0;
	parts_offers = 0;
	ledger = (struct ledger){ 0 };
}

/* A run that fails is repeated alone: it must then be the same. So the first one, which had
 * nothing before it, is the same after all others. */
static void check_repeatable(uint64_t first)
{
	struct ledger was = ledger;

	options.verbose = false;
	simulate(options.seed);
	if (world_fingerprint() != first)
		world_fail("the run depends on those before it");
	ledger = was;
}

static bool parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "runs", required_argument, NULL, 'r' },
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "allocations", no_argument, NULL, 'a' },
		{ "constructions", required_argument, NULL, 'c' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 }
	};
	int o;

	options.seed = (uint64_t)time(NULL) * 100000;
	while ((o = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (o) {
		case 'r': options.runs = strtoul(optarg, NULL, 10); break;
		case 's': options.seed = strtoull(optarg, NULL, 10); break;
		case 't': options.seconds = strtod(optarg, NULL); break;
		case 'c': options.constructions = strtoul(optarg, NULL, 10); break;
		case 'a': options.allocations = true; break;
		case 'v': options.verbose = true; break;
		default: return false;
		}
	}
	return optind == argc;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Stays on one processor: with one running thread this halves the time. */
static void stay_here(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

int main(int argc, char **argv)
{
	uint64_t turns = 0, first = 0, last;
	double start, seconds;
	unsigned long n = 0;

	if (!parse_options(argc, argv)) {
		fprintf(stderr, "usage: %s [--runs N] [--seed N] [--seconds S] [--allocations] [--constructions N] [--verbose]\n",
			argv[0]);
		return 1;
	}
	stay_here();
	/* The clock must be the world's. */
	setenv("BUSBAR_TSC", "0", 1);
	alloc_init();
	json_object_seed(1);
	log_set_sink(keep_line);
	parts_register();
	carrier_find_formats();
	printf("seed %" PRIu64 ", formats:", options.seed);
	for (unsigned i = 0; i < carrier_format_count; i++)
		printf(" %s", carrier_formats[i]);
	putchar('\n');
	fflush(stdout);
	warm_up();
	start = now();
	for (; n < options.constructions; n++)
		construct(options.seed + n);
	if (n)
		printf("%lu configurations, %lu times without memory, %.1f s\n",
		       n, allocations, now() - start);
	n = 0;
	do {
		simulate(options.seed + n);
		turns += world_turns();
		last = world_fingerprint();
		first = n ? first : last;
		n++;
		seconds = now() - start;
	} while (n < options.runs &&
		 (options.seconds == 0 || seconds < options.seconds));
	printf("%lu runs in %.1f s, %" PRIu64 " turns, fingerprint of the last %016" PRIx64 "; %lu commands, %lu done, %lu refused, %lu with allocations that failed; spinning sources found %" PRIu64 " offers of turns\n",
	       n, seconds, turns, last, commands, done, refused, unlucky, parts_offers);
	ledger_print();
	check_repeatable(first);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* See plan.h. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/floor/floor.h"
#include "util/beside.h"
#include "util/container_of.h"
#include "util/log.h"

#define MESSAGES_MIN 50LL
/* Headers are enough. A process whose file is full captures no more. */
#define CAPTURE_LIMITS "snap=128,size=256m"
/* Before what is measured: so many, but not more than are measured. */
#define WARMUP_MAX 200LL
/* Collective operations of many processes on few processors take long. */
#define WARMUP_COLLECTIVE 20LL

/* From the folder of the executable: that of a build, then the installed one. */
static const char *const places[] = { "examples/mpi", BENCH_MPI_FROM_BINDIR };

/*
 * What makes an MPI take a way. Over the adapter it is nothing, as `busbar exec` sets all that
 * is needed. `limit` says from which size on a message goes by rendezvous: a variable, or an
 * option of mpirun, which has the largest eager size.
 */
struct way {
	const char *library, *transport, *options;
	const char *alone; /* more options, of one host */
	struct spawn_variable variables[2];
	const char *limit_variable, *limit_option;
};

static const struct way ways[] = {
	{ "openmpi", "adapter", "", "", .limit_variable = "UCX_RNDV_THRESH" },
	{ "openmpi", "shared", "--mca pml ob1 --mca btl self,vader", "",
	  .limit_option = "btl_vader_eager_limit" },
	/* On one host an address other than loopback's need not be there. */
	{ "openmpi", "tcp", "--mca pml ob1 --mca btl self,tcp", "--mca btl_tcp_if_include lo",
	  .limit_option = "btl_tcp_eager_limit" },
	{ "mpich", "adapter", "", "", .limit_variable = "UCX_RNDV_THRESH" },
	{ "mpich", "shared", "", "", { { "UCX_TLS", "sm,self", false } },
	  .limit_variable = "UCX_RNDV_THRESH" },
	{ "mpich", "tcp", "", "", { { "UCX_TLS", "tcp,self", false } },
	  .limit_variable = "UCX_RNDV_THRESH" },
};

/* ---- two hosts ---- */

_Static_assert(sizeof((struct mpi_hosts){ 0 }.addresses[0]) == INET_ADDRSTRLEN, "any IPv4 address");

/* It stands in a shell's script. */
static bool is_plain(const char *name)
{
	return *name != '-' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_.")];
}

int mpi_hosts_read(const json_t *parameters, struct mpi_hosts *h)
{
	const char *text = bench_text(parameters, "between");
	struct floor_host hosts[2];

	*h = (struct mpi_hosts){ .between = text && *text };
	if (!h->between)
		return 0;
	if (!floor_hosts_parse(text, hosts) || !is_plain(hosts[0].netns) ||
	    !is_plain(hosts[1].netns))
		return log_fail(-EINVAL, "between '%s' is not usable, " FLOOR_HOSTS_EXPECTED, text);
	for (int i = 0; i < 2; i++) {
		strcpy(h->names[i], hosts[i].netns);
		inet_ntop(AF_INET, &hosts[i].address, h->addresses[i],
			  sizeof(h->addresses[i]));
	}
	return 0;
}

/* Absolute, as mpirun may start the program elsewhere. */
static char *file_of(const char *dir, const char *name)
{
	char *path, *absolute = realpath(dir, NULL);

	if (!absolute || asprintf(&path, "%s/%s", absolute, name) < 0)
		path = NULL;
	free(absolute);
	return path;
}

/* Both MPIs call it as `agent [OPTIONS] HOST COMMAND...`, and a shell of the host reads the
 * command. */
static void print_agent(const struct mpi_hosts *h, FILE *f)
{
	fputs("#!/bin/sh\n"
	      "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
	      "host=$1\n"
	      "shift\n"
	      "case $host in\n", f);
	for (int i = 0; i < 2; i++)
		fprintf(f, "%s) name=%s ;;\n", h->addresses[i], h->names[i]);
	fputs("*) echo \"unknown host $host\" >&2; exit 1 ;;\n"
	      "esac\n"
	      "exec ip netns exec \"$name\" sh -c \"$*\"\n", f);
}

/* Writes the script into `dir`. 0 or a negative errno, logged. */
static int write_agent(struct mpi_hosts *h, const char *dir)
{
	FILE *f;
	int ret = 0;

	h->agent = file_of(dir, "agent.sh");
	f = h->agent ? fopen(h->agent, "we") : NULL;
	if (!f)
		ret = h->agent ? -errno : -ENOMEM;
	if (f) {
		print_agent(h, f);
		if (fchmod(fileno(f), 0700))
			ret = -errno;
		if (fclose(f) && !ret)
			ret = -errno;
	}
	if (ret)
		log_error("%s cannot be written: %s", h->agent ? h->agent : dir, strerror(-ret));
	return ret;
}

/* What stands behind mpirun. */
static void add_hosts(const struct mpi_hosts *h, const char *library, unsigned processes,
		      struct process_words *w)
{
	unsigned first = (processes + 1) / 2;
	char text[80];

	snprintf(text, sizeof(text), "%s:%u,%s:%u", h->addresses[0], first, h->addresses[1],
		 processes - first);
	/* Both hosts have the same processors here, and each would begin with the first. */
	if (!strcmp(library, "openmpi"))
		process_words_list(w, "--host", text, "--bind-to", "none", "--mca", "plm_rsh_agent",
				   h->agent, NULL);
	else
		process_words_list(w, "-hosts", text, "-launcher", "ssh", "-launcher-exec", h->agent,
				   NULL);
}

/* ---- the plan ---- */

long long mpi_messages(const json_t *p, double scale)
{
	long long all = bench_number(p, "messages");

	return MAX((long long)((double)all * scale), MIN(all, MESSAGES_MIN));
}

/* busbar's own, which `busbar exec` gives programs. */
static bool own_adapter(const json_t *p)
{
	return bench_is(p, "transport", "adapter") &&
	       !strncmp(bench_text(p, "device"), "soft", 4);
}

static const struct way *way_of(const json_t *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (bench_is(p, "library", ways[i].library) &&
		    bench_is(p, "transport", ways[i].transport))
			return &ways[i];
	return NULL;
}

static void set(struct mpi_plan *plan, const char *name, const char *value, bool gives_way)
{
	size_t n = 0;

	while (n < MPI_VARIABLES_MAX && plan->variables[n].name)
		n++;
	if (n == MPI_VARIABLES_MAX)
		plan->words.failed = true;
	else
		plan->variables[n] = (struct spawn_variable){ name, value, gives_way };
}

/* "NAME=VALUE NAME=VALUE"; that each has a '=' was checked. */
static void set_assignments(struct mpi_plan *plan, const char *text)
{
	char *save = NULL;

	plan->assignments = strdup(text);
	if (!plan->assignments) {
		plan->words.failed = true;
		return;
	}
	for (char *word = strtok_r(plan->assignments, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *equals = strchr(word, '=');

		*equals = '\0';
		set(plan, word, equals + 1, false);
	}
}

static void set_environment(struct mpi_plan *plan, const json_t *p, const struct way *way)
{
	/* Containers have no other user, and mpirun refuses root without both. */
	if (!strcmp(way->library, "openmpi")) {
		set(plan, "OMPI_ALLOW_RUN_AS_ROOT", "1", true);
		set(plan, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", true);
	}
	for (size_t i = 0; i < ARRAY_SIZE(way->variables) && way->variables[i].name; i++)
		set(plan, way->variables[i].name, way->variables[i].value, false);
	/* Of hardware UCX takes the one that is meant, and what else there is for one host. */
	if (!strcmp(way->transport, "adapter") && !own_adapter(p)) {
		const char *device = bench_text(p, "device");

		snprintf(plan->devices, sizeof(plan->devices), "%s%s", device,
			 strchr(device, ':') ? "" : ":1");
		set(plan, "UCX_NET_DEVICES", plan->devices, false);
	} else if (!strcmp(way->library, "mpich") && !strcmp(way->transport, "tcp") &&
		   !plan->hosts.between) {
		set(plan, "UCX_NET_DEVICES", "lo", false);
	}
	if (bench_number(p, "rendezvous_from") && way->limit_variable)
		set(plan, way->limit_variable, plan->limit, false);
	set_assignments(plan, bench_text(p, "environment"));
}

static void add_launcher(struct mpi_plan *plan, const json_t *p, const struct way *way)
{
	struct process_words *w = &plan->words;
	char mpirun[40];

	snprintf(mpirun, sizeof(mpirun), "mpirun.%s", way->library);
	if (plan->hosts.between)
		process_words_list(w, "ip", "netns", "exec", plan->hosts.names[0], NULL);
	if (own_adapter(p))
		process_words_exec(w, plan->capture);
	process_words_add(w, mpirun);
	if (plan->hosts.between)
		add_hosts(&plan->hosts, way->library, plan->processes, w);
	process_words_number(w, "-n", plan->processes);
	/* A machine may have fewer cores than processes; who has enough is not slowed down. */
	if (!strcmp(way->library, "openmpi"))
		process_words_add(w, "--oversubscribe");
	process_words_split(w, way->options);
	process_words_split(w, plan->hosts.between ? "" : way->alone);
	if (bench_number(p, "rendezvous_from") && way->limit_option)
		process_words_list(w, "--mca", way->limit_option, plan->limit, NULL);
}

static void add_program(struct mpi_plan *plan, const json_t *p, double scale,
			const char *path)
{
	long long messages = mpi_messages(p, scale);
	struct process_words *w = &plan->words;
	bool collective = bench_is(p, "program", "collective");

	process_words_add(w, path);
	process_words_number(w, "--size", bench_number(p, "size"));
	process_words_number(w, "--messages", messages);
	process_words_number(w, "--warmup",
			     MIN(messages, collective ? WARMUP_COLLECTIVE : WARMUP_MAX));
	if (bench_is(p, "program", "rate")) {
		process_words_number(w, "--window", bench_number(p, "window"));
	} else {
		const char *option = collective ? "operation" :
				     bench_is(p, "program", "overlap") ? "progress" : "call";
		char text[20];

		snprintf(text, sizeof(text), "--%s", option);
		process_words_list(w, text, bench_text(p, option), NULL);
	}
	process_words_list(w, "--times", plan->times, NULL);
	if (plan->marks)
		process_words_list(w, "--marks", plan->marks, NULL);
}

static bool is_there(const json_t *p, char mpirun[60], char program[60], char path[PATH_MAX])
{
	const char *library = bench_text(p, "library");

	snprintf(mpirun, 60, "mpirun.%s", library);
	snprintf(program, 60, "%s-%s", bench_text(p, "program"), library);
	return !beside_executable(places, ARRAY_SIZE(places), program, path, PATH_MAX);
}

const char *mpi_lacks(const json_t *p)
{
	bool openmpi = bench_is(p, "library", "openmpi");
	char mpirun[60], program[60], path[PATH_MAX];

	if (!is_there(p, mpirun, program, path))
		return openmpi ? "openmpi-bin libopenmpi-dev" : "mpich libmpich-dev";
	if (!spawn_is_installed(mpirun))
		return openmpi ? "openmpi-bin" : "mpich";
	return NULL;
}

/* The program's path; or why it cannot run. */
static int find_program(const json_t *p, char path[PATH_MAX])
{
	char mpirun[60], program[60];
	bool there = is_there(p, mpirun, program, path);

	if (!spawn_is_installed(mpirun))
		log_warn("%s is not installed (package %s)", mpirun, mpi_lacks(p));
	else if (!there)
		log_warn("%s is not in this build, which had no mpicc.%s (package lib%s-dev)",
			 program, bench_text(p, "library"), bench_text(p, "library"));
	else
		return 0;
	return -EOPNOTSUPP;
}

/* A file for each process. In its name '%' has a meaning, so one of the folder is doubled. */
static char *capture_option(const char *dir)
{
	char *path = file_of(dir, "packets-"), *text = NULL;
	size_t size;
	FILE *f = path ? open_memstream(&text, &size) : NULL;

	if (f) {
		fputs("--capture=", f);
		for (const char *c = path; *c; c++)
			fprintf(f, *c == '%' ? "%%%%" : "%c", *c);
		fputs("%p.pcapng," CAPTURE_LIMITS, f);
		if (fclose(f)) {
			free(text);
			text = NULL;
		}
	}
	free(path);
	return text;
}

static bool name_files(struct mpi_plan *plan, const char *dir, bool marks, bool capture)
{
	plan->output = file_of(dir, "output.txt");
	plan->errors = file_of(dir, "errors.txt");
	plan->times = file_of(dir, "times.txt");
	plan->counters = file_of(dir, "counters.json");
	plan->marks = marks ? file_of(dir, "marks") : NULL;
	plan->capture = capture ? capture_option(dir) : NULL;
	return plan->output && plan->errors && plan->times && plan->counters &&
	       !marks == !plan->marks && !capture == !plan->capture;
}

int mpi_plan_make(struct mpi_plan *plan, const json_t *p, double scale, const char *dir)
{
	const struct way *way = way_of(p);
	bool marked = own_adapter(p) && !bench_is(p, "program", "overlap");
	bool capture = marked && bench_flag(p, "capture");
	bool counters = marked && bench_flag(p, "counters");
	char path[PATH_MAX];
	int ret;

	*plan = (struct mpi_plan){ .processes = (unsigned)bench_number(p, "processes") };
	ret = (way ? find_program(p, path) : -EINVAL) ?: mpi_hosts_read(p, &plan->hosts) ?:
	      (plan->hosts.between ? write_agent(&plan->hosts, dir) : 0);
	if (ret)
		return ret;
	/* Processes of other namespaces do not answer what their counters are. */
	counters &= !plan->hosts.between;
	if (!name_files(plan, dir, counters || capture, capture))
		return -ENOMEM;
	/* An option of mpirun says what is still eager, a variable what is not any more. */
	snprintf(plan->limit, sizeof(plan->limit), "%lld",
		 bench_number(p, "rendezvous_from") - (way->limit_option ? 1 : 0));
	set_environment(plan, p, way);
	add_launcher(plan, p, way);
	add_program(plan, p, scale, path);
	return plan->words.failed ? -ENOMEM : 0;
}

void mpi_plan_free(struct mpi_plan *plan)
{
	free(plan->hosts.agent);
	process_words_free(&plan->words);
	free(plan->assignments);
	free(plan->output);
	free(plan->errors);
	free(plan->times);
	free(plan->counters);
	free(plan->marks);
	free(plan->capture);
}

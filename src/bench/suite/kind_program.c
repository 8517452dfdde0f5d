/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kind "program": a stock program of perftest between two processes of this host, unmodified;
 * over busbar's adapter by `busbar exec`, over a real one directly. Its own figures and, of
 * the latency programs, each measured round trip halved become those of the case. What the programs
 * print is read in program_output.c.
 */
#define LOG_ROOM "bench/program"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bench/floor/floor.h"
#include "bench/kind/kind.h"
#include "bench/kind/process.h"
#include "bench/result/files.h"
#include "bench/suite/program_output.h"
#include "bench/tune/tree.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#define ITERATIONS_MIN 100LL
#define ITERATIONS_MAX 100000000 /* of perftest */
/* A guess for the time left: start, connection, and microseconds a message. */
#define START_SECONDS 0.6
#define MESSAGE_SECONDS 5e-6
#define SECONDS_FACTOR 4
#define LISTEN_SECONDS 20
#define TCP_LISTEN_STATE 0x0a

static const struct bench_parameter parameters[] = {
	{ "program", 's', NULL, "ib_send_lat",
	  "of perftest: ib_send_lat, ib_write_bw ...; ibv_rc_pingpong; or ucx_perftest" },
	{ "test", 's', NULL, "ucp_am_lat",
	  "of ucx_perftest: ucp_am_lat, ucp_am_bw, tag_lat, tag_bw ..." },
	{ "type", 's', "RC|UC|UD", "RC", "service type" },
	{ "size", 'i', "1..8388608", "32", "bytes of a message" },
	{ "iterations", 'i', "5..100000000", "10000", "messages" },
	{ "connect", 's', "cm|plain", "plain",
	  "queue pairs made by the connection manager, or by the program" },
	{ "inline_size", 'i', "-1..1024", "-1", "bytes that are sent inline; -1: the program's" },
	{ "cycles", 'b', NULL, "false",
	  "latencies from the processor's clock, finer than the program's 10 ns" },
	{ "events", 'b', NULL, "false", "sleep until a completion comes" },
	{ "mtu", 'i', "0|256|512|1024|2048|4096", "0", "path MTU in bytes; 0: the port's" },
	{ "device", 's', NULL, "soft0", "adapter; soft0 is busbar's own" },
	{ "cpus", 's', NULL, "", "CPUs of server and client: A,B; else the first two" },
	{ "between", 's', NULL, "",
	  "network namespaces of server and client with an address of each: A=10.0.0.1,B=10.0.0.2; UCX goes over TCP then" },
	{ "arguments", 's', NULL, "", "further arguments of both" },
	{ .name = NULL },
};

static bool is_latency(const json_t *p)
{
	const char *program = bench_text(p, "program");
	size_t n = strlen(program);

	return n > 4 && !strcmp(program + n - 4, "_lat");
}

static bool is_ucx(const json_t *p)
{
	return !strcmp(bench_text(p, "program"), "ucx_perftest");
}

static bool is_ucx_rate(const json_t *p)
{
	return strstr(bench_text(p, "test"), "_bw") != NULL;
}

static bool is_pingpong(const json_t *p)
{
	return !strcmp(bench_text(p, "program"), "ibv_rc_pingpong");
}

static bool is_between(const json_t *p)
{
	return *bench_text(p, "between") != '\0';
}

static long long iterations(const json_t *p, double scale)
{
	long long all = bench_number(p, "iterations");
	double n = (double)all * scale;

	if (n > ITERATIONS_MAX)
		return ITERATIONS_MAX;
	/* A short run has not so few that they say nothing; who asks for fewer gets them. */
	return MAX((long long)n, MIN(all, ITERATIONS_MIN));
}

static bool parse_cpus(const json_t *p, struct floor_cpus *cpus)
{
	const char *text = bench_text(p, "cpus");

	return *text ? floor_cpus_parse(text, cpus) : !floor_default_cpus(cpus);
}

static int check(const json_t *p)
{
	const char *program = bench_text(p, "program"), *type = bench_text(p, "type");
	struct floor_host hosts[2];
	struct floor_cpus cpus;

	if (!is_ucx(p) && !is_pingpong(p) &&
	    (strncmp(program, "ib_", 3) || strchr(program, '/') ||
	     (!is_latency(p) && strcmp(program + strlen(program) - 3, "_bw"))))
		return log_fail(-EINVAL, "program '%s' is not usable, expected one of perftest's ib_..._lat or "
				"ib_..._bw, ibv_rc_pingpong or ucx_perftest",
				program);
	if (json_is_true(json_object_get(p, "cycles")) && !is_latency(p))
		return log_fail(-EINVAL,
				"program %s counts in no cycles, only programs ib_..._lat do",
				program);
	if (!strcmp(type, "UD") && strncmp(program, "ib_send", 7))
		return log_fail(-EINVAL, "program %s cannot use type UD, which has SEND only",
				program);
	if (!strcmp(type, "UC") && !strncmp(program, "ib_read", 7))
		return log_fail(-EINVAL, "program %s cannot use type UC, which has no READ",
				program);
	if (is_pingpong(p) && (strcmp(type, "RC") || strcmp(bench_text(p, "connect"), "plain")))
		return log_fail(-EINVAL, "program %s has type RC and makes its queue pair itself",
				program);
	if (is_between(p) && !floor_hosts_parse(bench_text(p, "between"), hosts))
		return log_fail(-EINVAL, "between '%s' is not usable, " FLOOR_HOSTS_EXPECTED,
				bench_text(p, "between"));
	if (!parse_cpus(p, &cpus))
		return log_fail(-EINVAL,
				"cpus '%s' is not usable, expected two numbers such as 0,1",
				bench_text(p, "cpus"));
	return 0;
}

static const char *lacks(const json_t *p)
{
	if (spawn_is_installed(bench_text(p, "program")))
		return NULL;
	return is_ucx(p) ? "ucx-utils" : is_pingpong(p) ? "ibverbs-utils" : "perftest";
}

static double seconds(const json_t *p, double scale)
{
	return START_SECONDS + MESSAGE_SECONDS * (double)iterations(p, scale);
}

static bool own_adapter(const json_t *p)
{
	return !is_ucx(p) && !strncmp(bench_text(p, "device"), "soft", 4);
}

/* What all programs have, but for their names and the address. */
static void add_common(struct process_words *l, const json_t *p, double scale, int port)
{
	process_words_number(l, "-s", bench_number(p, "size"));
	process_words_number(l, "-n", iterations(p, scale));
	process_words_number(l, "-p", port);
}

/* What those of verbs have. */
static void add_verbs(struct process_words *l, const json_t *p)
{
	if (bench_number(p, "mtu"))
		process_words_number(l, "-m", bench_number(p, "mtu"));
	if (json_is_true(json_object_get(p, "events")))
		process_words_add(l, "-e");
}

static void add_perftest(struct process_words *l, const json_t *p)
{
	process_words_list(l, "-F", "-c", bench_text(p, "type"), NULL);
	if (bench_number(p, "inline_size") >= 0)
		process_words_number(l, "-I", bench_number(p, "inline_size"));
	if (!strcmp(bench_text(p, "connect"), "cm"))
		process_words_add(l, "-R");
	if (is_latency(p))
		process_words_add(l, "-U"); /* every round trip, in their order */
	if (json_is_true(json_object_get(p, "cycles")))
		process_words_add(l, "-C");
}

/* The command line of one side. */
static void make_line(struct process_words *l, const json_t *p, double scale, int port, bool client)
{
	char server[INET_ADDRSTRLEN] = "127.0.0.1";
	struct floor_host hosts[2];

	if (is_between(p) && floor_hosts_parse(bench_text(p, "between"), hosts)) {
		inet_ntop(AF_INET, &hosts[0].address, server, sizeof(server));
		process_words_list(l, "ip", "netns", "exec", hosts[client].netns, NULL);
	}
	if (own_adapter(p))
		process_words_exec(l, NULL);
	if (is_ucx(p))
		process_words_list(l, "ucx_perftest", "-t", bench_text(p, "test"), NULL);
	else
		process_words_list(l, bench_text(p, "program"), "-d", bench_text(p, "device"), NULL);
	add_common(l, p, scale, port);
	if (!is_ucx(p))
		add_verbs(l, p);
	if (!is_ucx(p) && !is_pingpong(p))
		add_perftest(l, p);
	process_words_split(l, bench_text(p, "arguments"));
	if (client)
		process_words_add(l, server);
}

/* What the programs find set; each ends with a name NULL. */
static const struct spawn_variable large_mtu[] = { { "BUSBAR_MTU", "4096", .gives_way = true },
						    { .name = NULL } };
/* The way that there is between processes without an adapter. */
static const struct spawn_variable shared_memory[] = { { "UCX_TLS", "posix,self", .gives_way = true },
							{ .name = NULL } };
static const struct spawn_variable tcp[] = { { "UCX_TLS", "tcp,self", .gives_way = true },
					      { .name = NULL } };

/* Inside of a host the adapter has no link whose MTU it has to keep. */
static const struct spawn_variable *variables(const json_t *p)
{
	if (is_ucx(p))
		return is_between(p) ? tcp : shared_memory;
	return own_adapter(p) && !is_between(p) ? large_mtu : NULL;
}

/* ---- two processes: a server, which listens on a TCP port, and its client ---- */

/* Is this the line of a TCP socket that listens there? */
static bool is_tcp(const char *line, int port)
{
	unsigned p, state;

	return sscanf(line, " %*[0-9]: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &p, &state) == 2 &&
	       p == (unsigned)port && state == TCP_LISTEN_STATE;
}

/* The same of busbar's own connection manager, whose ports are names of sockets: one for this
 * host, and one for others, which has the service ID of port space TCP. */
static bool is_cm(const char *line, int port)
{
	const char *name = strstr(line, "@busbar.cm.");
	char part[20], service[50];

	snprintf(part, sizeof(part), ".%d.", port);
	snprintf(service, sizeof(service), "@busbar.roce.service.106%04x.", (unsigned)port);
	return (name && strstr(name, part)) || strstr(line, service);
}

/* Has a table of the process' network namespace such a line? It is gone when it has ended. */
static bool has_line(pid_t pid, const char *table, int port,
		     bool (*fits)(const char *line, int port))
{
	char path[64], line[300];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = fits(line, port);
	if (f)
		fclose(f);
	return found;
}

static bool listens(pid_t pid, int port)
{
	return has_line(pid, "tcp", port, is_tcp) || has_line(pid, "tcp6", port, is_tcp) ||
	       has_line(pid, "unix", port, is_cm);
}

static int await_listener(struct process *server, int port, const atomic_bool *stop)
{
	uint64_t until = clock_monotonic_ns_slow() + LISTEN_SECONDS * NSEC_PER_SEC;

	while (!listens(server->pid, port)) {
		if (atomic_load(stop))
			return -EINTR;
		if (process_has_ended(server))
			return process_failed(server, "server");
		if (clock_monotonic_ns_slow() > until)
			return log_fail(-ETIMEDOUT, "the server %s does not listen on port %d",
					server->argv[0], port);
		process_pause();
	}
	return 0;
}

static int await_end(struct process *p, const char *who, uint64_t until,
		     const atomic_bool *stop)
{
	int ret = process_await(p, until, stop);

	if (ret == -ETIMEDOUT)
		log_error("the %s %s does not end", who, p->argv[0]);
	return ret ? ret : p->status ? process_failed(p, who) : 0;
}

/*
 * Starts the server, waits until it listens on `port`, starts the client, waits for the end of
 * both. 0; -EINTR: `stop`; -ETIMEDOUT; -EIO: one of them failed; or another negative errno.
 * Logged but for -EINTR. No process is left.
 */
static int run_both(struct process *server, struct process *client, int port,
	     double seconds_max, const atomic_bool *stop)
{
	uint64_t until;
	int ret;

	server->pid = client->pid = 0;
	ret = process_start(server) ?: await_listener(server, port, stop) ?: process_start(client);
	until = clock_monotonic_ns_slow() + (uint64_t)(seconds_max * 1e9);
	ret = ret ?: await_end(client, "client", until, stop) ?:
	      await_end(server, "server", until, stop);
	process_kill(client);
	process_kill(server);
	return ret;
}

/* ---- a case ---- */

static int run_pair(const json_t *p, const struct bench_context *context,
		    const char *server_out, const char *client_out)
{
	struct process_words lines[2] = { { .count = 0 }, { .count = 0 } };
	struct process server = { .argv = lines[0].argv, .output = server_out };
	struct process client = { .argv = lines[1].argv, .output = client_out };
	struct floor_cpus cpus;
	unsigned free_port;
	int port, ret = process_free_ports(&free_port, 1);

	if (ret)
		return ret;
	ret = -ENOMEM;
	port = (int)free_port;
	server.set = client.set = variables(p);
	parse_cpus(p, &cpus);
	server.cpu = cpus.first;
	client.cpu = cpus.second;
	make_line(&lines[0], p, context->scale, port, false);
	make_line(&lines[1], p, context->scale, port, true);
	if (!lines[0].failed && !lines[1].failed)
		ret = run_both(&server, &client, port,
			       process_patience(seconds(p, context->scale), SECONDS_FACTOR,
						context->scale), context->stop);
	process_words_free(&lines[0]);
	process_words_free(&lines[1]);
	return ret;
}

/* What the program says when the port does not do what is asked for: it ends, or goes on
 * with something else, which would be another case. */
static bool is_refused(const char *path)
{
	char *text = NULL;
	bool found = !tune_tree_read(&tune_here, path, &text) &&
		     (strstr(text, "Changing to active mtu") ||
		      strstr(text, "cannot be greater than MTU"));

	free(text);
	if (found)
		log_warn("the MTU of the port is too small");
	return found;
}

static int run(const json_t *p, const struct bench_context *context)
{
	const char *dir = result_case_dir(context->result), *program = bench_text(p, "program");
	char *server, *client;
	int ret = -ENOMEM;

	if (lacks(p)) {
		log_warn("%s is not installed (package %s)", program, lacks(p));
		return -EOPNOTSUPP;
	}
	server = files_path(dir, "server.txt");
	client = files_path(dir, "client.txt");
	if (server && client)
		ret = run_pair(p, context, server, client);
	if ((!ret || ret == -EIO) && (is_refused(client) || is_refused(server)))
		ret = -EOPNOTSUPP;
	else if (!ret)
		ret = is_ucx(p) ? program_read_ucx(client, is_ucx_rate(p), context->result) :
		      is_pingpong(p) ? program_read_pingpong(client, context->result) :
		      is_latency(p) ? program_read_latency(client, context->result) :
				      program_read_bandwidth(client, context->result);
	else if (ret != -EINTR && server && client) {
		process_show_end("server", server);
		process_show_end("client", client);
	}
	free(server);
	free(client);
	return ret;
}

const struct bench_kind bench_kind_program = {
	.name = "program",
	.summary = "a program of perftest or UCX, between two processes",
	.parameters = parameters,
	.check = check,
	.lacks = lacks,
	.seconds = seconds,
	.run = run,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* Child processes that run gateways; see gateway.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/gateway.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench/kind/kind.h"
#include "bench/node/namespaces.h"
#include "bench/tune/tree.h"
#include "gateway/control/socket_client.h"
#include "util/beside.h"
#include "util/clock.h"
#include "util/log.h"

#define READY_S 20.0
#define END_S 3
#define LOOK_S 0.001
#define LOG_SHOWN 4096
#define SLICE_S 1.0

static void file_name(const struct bench_node_gateway *g, const char *suffix,
		      char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s.%s", g->dir, g->name, suffix);
}

bool bench_node_pause(double seconds, const atomic_bool *stop)
{
	while (seconds > 0 && !(stop && atomic_load(stop))) {
		double now = fmin(seconds, SLICE_S);
		struct timespec t = { (time_t)now, (long)((now - floor(now)) * 1e9) };

		/* A signal may be the one that sets `stop`. */
		nanosleep(&t, NULL);
		seconds -= now;
	}
	return stop && atomic_load(stop);
}

static int enter_namespaces(void *holder)
{
	return bench_node_namespaces_enter(*(const pid_t *)holder);
}

int bench_node_gateway_start(struct bench_node_gateway *g, json_t *configuration)
{
	char path[PATH_MAX], summary[PATH_MAX], log[PATH_MAX], program[PATH_MAX];
	char conf[64], control[80];
	char *argv[] = { program, (char *)"run", (char *)"-q", (char *)"-d", (char *)"info",
			 (char *)"--summary=json", control, conf, NULL };
	/* A Ctrl-C is for the benchmark, which then ends the gateways. */
	struct process p = { .argv = argv, .output = summary, .errors = log, .folder = g->dir,
			     .cpu = g->cpu, .session = g->session, .death_signal = SIGTERM,
			     .prepare = g->namespaces ? enter_namespaces : NULL,
			     .arg = &g->namespaces };
	int ret = beside_self(program);

	file_name(g, "conf", path);
	file_name(g, "json", summary);
	file_name(g, "log", log);
	snprintf(conf, sizeof(conf), "%s.conf", g->name);
	snprintf(control, sizeof(control), "--control=%s.sock", g->name);
	if (ret || access(program, X_OK))
		ret = log_fail(ret ?: -errno, "cannot find this executable: %s",
			       strerror(ret ? -ret : errno));
	else if (!configuration)
		ret = log_fail(-ENOMEM, "no memory for a configuration");
	else if (json_dump_file(configuration, path, JSON_INDENT(2)))
		ret = log_fail(-EIO, "cannot write '%s'", path);
	json_decref(configuration);
	ret = ret ?: process_start(&p);
	g->process = (struct process){ .pid = p.pid };
	return ret;
}

char *bench_node_gateway_log(const struct bench_node_gateway *g)
{
	char path[PATH_MAX], *text;

	file_name(g, "log", path);
	return tune_tree_read(&tune_here, path, &text) ? NULL : text;
}

static void show_log(const struct bench_node_gateway *g)
{
	char *text = bench_node_gateway_log(g);
	size_t len = text ? strlen(text) : 0;
	const char *from = text;

	if (len > LOG_SHOWN) {
		from = strchr(text + len - LOG_SHOWN, '\n');
		from = from ? from + 1 : text;
	}
	if (len)
		fprintf(stderr, "--- log of the %s\n%s---\n", g->name, from);
	free(text);
}

int bench_node_gateway_await(struct bench_node_gateway *g, const char *text,
			     const atomic_bool *stop)
{
	double left_s = READY_S;

	for (;;) {
		bool ended = process_has_ended(&g->process);
		char *log = bench_node_gateway_log(g);
		bool found = log && strstr(log, text);

		free(log);
		if (found)
			return 0;
		if (ended) {
			log_error("the gateway of the %s ended with status %d before it was ready",
				  g->name, spawn_exit_status(g->process.status));
			show_log(g);
			return -EIO;
		}
		if (left_s <= 0)
			break;
		if (bench_node_pause(LOOK_S, stop))
			return -EINTR;
		left_s -= LOOK_S;
	}
	log_error("the gateway of the %s did not say '%s' within %.0f s", g->name,
		  text, READY_S);
	show_log(g);
	return -ETIMEDOUT;
}

int bench_node_gateway_await_end(struct bench_node_gateway *g, double seconds,
				 const atomic_bool *stop)
{
	int ret = process_await(&g->process, clock_monotonic_ns_slow() +
					     (uint64_t)(seconds * 1e9), stop);

	if (ret == -ETIMEDOUT) {
		log_error("the gateway of the %s did not end within %.0f s", g->name, seconds);
		show_log(g);
	}
	return ret;
}

void bench_node_gateway_stop(struct bench_node_gateway *g)
{
	/* A paused one, too. */
	if (g->process.pid)
		kill(g->process.pid, SIGCONT);
	if (!process_end(&g->process, END_S))
		log_warn("the gateway of the %s does not end, and is killed", g->name);
}

int bench_node_gateway_judge(const struct bench_node_gateway *g)
{
	int status = spawn_exit_status(g->process.status);

	/* 3: samples were lost that the configuration does not allow to be lost. */
	if (status == 0 || status == 3)
		return 0;
	log_error("the gateway of the %s ended with status %d", g->name, status);
	show_log(g);
	return -EIO;
}

uint64_t bench_node_gateway_cpu_ns(const struct bench_node_gateway *g)
{
	struct timespec t;
	clockid_t clock;

	if (!g->process.pid || clock_getcpuclockid(g->process.pid, &clock) ||
	    clock_gettime(clock, &t))
		return 0;
	return timespec_to_ns(t);
}

json_t *bench_node_gateway_summary(const struct bench_node_gateway *g)
{
	char path[PATH_MAX];
	json_t *o;

	file_name(g, "json", path);
	o = json_load_file(path, 0, NULL);
	if (!o)
		log_error("the gateway of the %s has left no summary", g->name);
	return o;
}

/* ---- requests to its control socket: busbar-ctl(1) ---- */

json_t *bench_node_gateway_ask(const struct bench_node_gateway *g, const char *method,
			       const char *path, double seconds)
{
	char place[PATH_MAX], why[300] = "";
	json_t *answer, *body;

	file_name(g, "sock", place);
	if (strlen(place) >= sizeof(((struct sockaddr_un *)NULL)->sun_path)) {
		log_error("'%s' is too long for a socket; choose another TMPDIR", g->dir);
		return NULL;
	}
	answer = control_client_ask(place, method, path, NULL, seconds, why, sizeof(why));
	body = json_incref(json_object_get(answer, "body"));
	if (!body || bench_number(answer, "status") != 200) {
		log_error("the gateway of the %s %s %s%s%s", g->name,
			  answer ? "refuses" : "does not answer", path, body || *why ? ": " : "",
			  body ? bench_text(body, "error") : why);
		json_decref(body);
		body = NULL;
	}
	json_decref(answer);
	return body;
}

int64_t bench_node_gateway_counter(const struct bench_node_gateway *g, const char *node,
				   const char *counter)
{
	char path[128];
	json_t *body, *value;
	int64_t number = -1;

	snprintf(path, sizeof(path), "/node/%s", node);
	body = bench_node_gateway_ask(g, "GET", path, 5);
	value = json_object_get(json_object_get(body, "stats"), counter);
	if (value)
		number = json_integer_value(value);
	else if (body)
		log_error("the gateway of the %s does not tell '%s' of node %s", g->name,
			  counter, node);
	json_decref(body);
	return number;
}

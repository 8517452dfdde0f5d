/* SPDX-License-Identifier: BSD-2-Clause */
/* The parameters of the benchmark of node-types; see settings.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/settings.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/floor/floor.h"
#include "bench/kind/parameters.h"
#include "bench/node/medium.h"
#include "gateway/config/config.h"
#include "util/log.h"

#define SAMPLES_MIN 1000
#define SAMPLES_MAX 1000000000
/* The largest sample of UD in a packet of 4096 bytes, the path's largest MTU. */
#define UD_VALUES_MAX 509

const struct bench_parameter bench_node_parameters[] = {
	{ "node", 's', NULL, NULL,
	  "infiniband, shmem, simulator, loopback, file, udp, tcp, unix, exec, or any node-type" },
	{ "service", 's', "RC|UC|UD", "RC", "service type (infiniband)" },
	{ "values", 'i', "1..512", "8", "values in a sample" },
	{ "rate", 'f', "0.1..10000000", "10000", "samples a second" },
	{ "samples", 'i', "1..1000000000", "250000",
	  "steps of the generator; scaled, but not to less than 1000" },
	{ "seconds", 'f', "0..86400", "0",
	  "fewer samples where they would take longer; scaled, but not to less than 1; 0: no limit" },
	{ "processes", 'i', "0..2", "0",
	  "1: both ends in one gateway; 0: two where the node can" },
	{ "namespaces", 'b', NULL, "false",
	  "each end in a network namespace of its own, joined by a cable (udp, tcp, infiniband)" },
	{ "timer", 's', "default|tsc|timerfd", "default", "of the generator" },
	{ "catch_up", 's', NULL, "default",
	  "the generator makes up steps that are late by up to that, such as 5ms" },
	{ "polling", 's', "busy|event|auto", "busy", "how the target waits" },
	{ "recording", 's', "memory|stream", "memory",
	  "files are written after the run, or all the time" },
	{ "cpus", 's', NULL, "auto",
	  "of source and target, \"2,3\"; auto: the first two; none" },
	{ "priority", 'i', "0..99", "0", "SCHED_FIFO of all threads; 0: none" },
	{ "nice", 'i', "-20..19", "0", "of the source, in a session of its own" },
	{ "address", 's', NULL, "127.0.0.1",
	  "host of the target, or \"SOURCE,TARGET\"; infiniband: chooses the adapters" },
	{ "hold", 'd', NULL, "0",
	  "the source is stopped for so long in the middle (SIGSTOP), to see what that does" },
	{ "budget", 'b', NULL, "false",
	  "where the time of the node's reads and writes goes (infiniband; polling busy or auto)" },
	{ "simulator", 's', NULL, "villas-shmem",
	  "program that sends back what comes through shared memory (--node simulator)" },
	{ "beside", 'i', "0..64", "0", "busy loops beside it, which want the processors as well" },
	{ "node_keys", 's', NULL, "", "further keys of both nodes: \"queuelen = 64;\"" },
	{ "node_in", 's', NULL, "", "further keys of the group in of the target" },
	{ "node_out", 's', NULL, "", "further keys of the group out of the source" },
	{ .name = NULL },
};

/* Further keys in either syntax of configurations. */
static int read_keys(const json_t *parameters, const char *name, json_t **out)
{
	const char *keys = bench_text(parameters, name);
	struct config *c;
	char where[80];
	int ret;

	if (!keys[0])
		return 0;
	snprintf(where, sizeof(where), "parameter %s", name);
	ret = config_load_text(where, keys, strlen(keys), &c);
	if (ret)
		return -EINVAL;
	*out = json_deep_copy(config_root(c));
	config_destroy(c);
	return *out ? 0 : -ENOMEM;
}

static int read_cpus(const json_t *parameters, struct bench_node_settings *s)
{
	const char *cpus = bench_text(parameters, "cpus");
	bool by_default = !strcmp(cpus, "auto");
	struct floor_cpus two = { -1, -1 };

	/* With one for both the kernel's own order is no worse. */
	if (by_default && (floor_default_cpus(&two) || two.second < 0))
		two.first = -1;
	else if (!by_default && strcmp(cpus, "none") && !floor_cpus_parse(cpus, &two))
		return log_fail(-EINVAL, "parameter cpus: '%s' is not two processors such as 2,3, and not auto or none",
				cpus);
	s->cpus[0] = two.first;
	s->cpus[1] = two.second;
	return 0;
}

static int read_catch_up(const json_t *parameters, struct bench_node_settings *s)
{
	const char *text = bench_text(parameters, "catch_up");

	s->catch_up_ns = -1;
	if (!strcmp(text, "default"))
		return 0;
	if (duration_parse(text, &s->catch_up_ns) && s->catch_up_ns <= 3600 * INT64_C(1000000000))
		return 0;
	return log_fail(-EINVAL, "parameter catch_up: '%s' is no time from 0 to 3600s, such as 5ms, and not default",
			text);
}

static int read_address(const json_t *parameters, struct bench_node_settings *s)
{
	const char *a = bench_text(parameters, "address"), *comma = strchr(a, ',');
	size_t first = comma ? (size_t)(comma - a) : strlen(a);
	const char *second = comma ? comma + 1 : a;

	if (!first || !*second || first >= sizeof(s->host[0]) ||
	    strlen(second) >= sizeof(s->host[1]))
		return log_fail(-EINVAL, "parameter address: '%s' is not HOST or SOURCE,TARGET", a);
	memcpy(s->host[BENCH_NODE_SOURCE], a, first);
	strcpy(s->host[BENCH_NODE_TARGET], second);
	return 0;
}

/* As many as the scale says, but enough for a percentile, and not for longer than wanted. */
static uint64_t steps(const json_t *parameters, double rate_hz, double scale)
{
	double all = (double)bench_number(parameters, "samples");
	double seconds = bench_real(parameters, "seconds");
	double n = scale > 1 ? all * scale : fmin(all, fmax(SAMPLES_MIN, all * scale));

	if (seconds > 0)
		n = fmin(n, rate_hz * fmax(fmin(seconds, 1), seconds * scale));
	return (uint64_t)fmin(fmax(n, 10), 2.0 * SAMPLES_MAX);
}

static int check_medium(const json_t *parameters, struct bench_node_settings *s)
{
	const struct bench_node_medium *m = bench_node_medium_find(s->node);
	char list[400];

	s->medium = m;
	if (!m) {
		bench_node_medium_list(list, sizeof(list));
		return log_fail(-EINVAL,
				"parameter node: the gateway has no node-type '%s'; there are %s",
				s->node, list);
	}
	s->processes = (unsigned)bench_number(parameters, "processes");
	if (s->processes == 2 && m->both_ends)
		return log_fail(-EINVAL, "parameter processes: %s is both ends in one gateway, so there can be 1 only",
				s->node);
	if (!s->processes)
		s->processes = m->both_ends ? 1 : 2;
	if (s->namespaces && (!m->addressed || s->processes == 1))
		return log_fail(-EINVAL, "parameter namespaces: %s",
				m->addressed ? "one process has one network; processes has to be 2"
					     : "the ends of this node do not meet in a network");
	if (s->budget && (!m->services || !strcmp(s->polling, "event")))
		return log_fail(-EINVAL, "parameter budget: %s",
				m->services
				    ? "a reader that sleeps has no time stamps; polling has to be busy or auto"
				    : "only the node infiniband has time stamps in its calls");
	if (m->services && !strcmp(s->service, "UD") && s->values > UD_VALUES_MAX)
		return log_fail(-EINVAL, "parameter values: UD takes %d at most, one packet",
				UD_VALUES_MAX);
	return 0;
}

int bench_node_settings_read(const json_t *parameters, double scale,
			     struct bench_node_settings *s)
{
	*s = (struct bench_node_settings){
		.node = bench_text(parameters, "node"),
		.service = bench_text(parameters, "service"),
		.timer = bench_text(parameters, "timer"),
		.polling = bench_text(parameters, "polling"),
		.recording = bench_text(parameters, "recording"),
		.simulator = bench_text(parameters, "simulator"),
		.values = (unsigned)bench_number(parameters, "values"),
		.rate_hz = bench_real(parameters, "rate"),
		.namespaces = bench_flag(parameters, "namespaces"),
		.budget = bench_flag(parameters, "budget"),
		.hold_ns = bench_number(parameters, "hold"),
		.priority = (int)bench_number(parameters, "priority"),
		.nice = (int)bench_number(parameters, "nice"),
		.beside = (unsigned)bench_number(parameters, "beside"),
	};
	s->steps = steps(parameters, s->rate_hz, scale);
	if (s->steps > SAMPLES_MAX)
		return log_fail(-EINVAL, "parameter samples: times the scale they are more than %d",
				SAMPLES_MAX);
	if (s->hold_ns < 0 || (double)s->hold_ns > 1e9 * bench_node_seconds(s) / 4)
		return log_fail(-EINVAL, "parameter hold: from 0 to a quarter of the run, which takes %.3f s",
				bench_node_seconds(s));
	if (check_medium(parameters, s) || read_cpus(parameters, s) ||
	    read_catch_up(parameters, s) || read_address(parameters, s) ||
	    read_keys(parameters, "node_keys", &s->keys) ||
	    read_keys(parameters, "node_in", &s->in) ||
	    read_keys(parameters, "node_out", &s->out))
		return -EINVAL;
	if (s->medium->logs && (json_object_get(s->keys, "uri") || json_object_get(s->out, "uri")))
		return log_fail(-EINVAL, "parameter node_keys: uri is the benchmark's own; TMPDIR says where its file is");
	return 0;
}

void bench_node_settings_free(struct bench_node_settings *s)
{
	json_decref(s->keys);
	json_decref(s->in);
	json_decref(s->out);
}

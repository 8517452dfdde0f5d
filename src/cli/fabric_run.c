/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar fabric run`: its options and the description of the subnet; fabric/serve/ runs it. */
#include <getopt.h>
#include <math.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/fabric.h"
#include "fabric/serve/serve.h"
#include "fabric/topology/generate.h"
#include "fabric/topology/topology.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/options.h"

#define USERS_MAX 1024
#define LATENCY_NS_MAX 1000000000u
#define BUFFER_KIB_MAX 65536u

struct run_options {
	struct serve_settings set;
	struct serve_user users[USERS_MAX];
	unsigned buffer_kib;
};

/* USER or USER@HOST. */
static int take_user(const struct option_given *g)
{
	const char *at = strrchr(g->value, '@');
	size_t length = at ? (size_t)(at - g->value) : strlen(g->value);
	struct run_options *o = g->to;
	const struct passwd *pw;
	char name[64], *end;
	uint64_t number;

	if (o->set.user_count == USERS_MAX)
		return options_refuse(g, "up to %d can be named", USERS_MAX);
	if (length >= sizeof(name) || (at && !at[1]))
		return options_refuse(g, "expected USER or USER@HOST");
	memcpy(name, g->value, length);
	name[length] = 0;
	pw = getpwnam(name);
	number = pw ? pw->pw_uid : strtoull(name, &end, 10);
	if (!pw && (*name < '0' || *name > '9' || *end || number >= UINT32_MAX))
		return options_refuse(g, "expected the name or the number of a user");
	o->users[o->set.user_count++] = (struct serve_user){ (uid_t)number, at ? at + 1 : NULL };
	return OPTIONS_GO_ON;
}

static int take_lanes(const struct option_given *g)
{
	static const char *const counts[] = { "1", "2", "4", "8", "15" };

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		if (!strcmp(g->value, counts[i])) {
			*(uint8_t *)option_member(g) = (uint8_t)atoi(g->value);
			return OPTIONS_GO_ON;
		}
	return options_refuse(g, "a port has 1, 2, 4, 8 or 15 data lanes");
}

static const struct option_entry table[] = {
	{ "-n, --name NAME: by which programs find it (" FABRIC_NAME_DEFAULT ")",
	  OPTION_TEXT(struct run_options, set.name) },
	{ "--sm none|auto: auto: LIDs and tables are set at once and after changes; none: a program that is "
			    "plugged in does that (auto)", OPTION_CHOICE(struct run_options, set.manager) },
	{ "--seed N: of random numbers, for bit errors (1)",
	  OPTION_WHOLE(struct run_options, set.seed, 0, INFINITY) },
	{ "--allow-user USER[@HOST]...: may plug in, at HOST or at all, besides root and our own",
	  OPTION_CALL(take_user, NULL) },
	{ "--latency NS: of a switch (200)",
	  OPTION_WHOLE(struct run_options, set.switch_latency_ns, 0, LATENCY_NS_MAX) },
	{ "--lanes N: data lanes of each port: 1, 2, 4, 8 or 15 (8)",
	  OPTION_TAKE(struct run_options, set.lanes, take_lanes) },
	{ "--buffer KIB: of each lane at each receiver (32)",
	  OPTION_WHOLE(struct run_options, buffer_kib, 8, BUFFER_KIB_MAX) },
	{ "--store-and-forward: switches take a whole packet before they pass it on",
	  OPTION_FLAG(struct run_options, set.store_and_forward) },
	{ "--output-queues: in switches a packet that waits holds up only those for the same port",
	  OPTION_FLAG(struct run_options, set.virtual_output_queues) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar fabric run",
	.synopsis = "[OPTIONS] TOPOLOGY",
	.about = "Runs an InfiniBand subnet until Ctrl-C. TOPOLOGY is a file in the format of\n"
		 "ibnetdiscover, or a family: single:4, ring:8, ring:8,hosts=2, mesh:4x4, torus:4x4x2,\n"
		 "fat-tree:36x18, dragonfly:4x2x2. Programs plug in by busbar exec --fabric.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
	.end = "One line on standard output says that it is ready.\n",
};

static struct topology *read_topology(const char *text)
{
	struct topology *t;
	char why[512] = "";
	struct stat st;
	int ret;

	/* A file of that name counts more than a family. */
	if (strchr(text, ':') && stat(text, &st))
		ret = topology_generate(text, &t, why, sizeof(why));
	else
		ret = topology_read_file(text, &t, why, sizeof(why));
	if (!ret)
		return t;
	log_error("%s", *why ? why : strerror(-ret));
	return NULL;
}

static void say_ready(const struct serve_settings *set)
{
	const struct topology *t = set->topology;
	unsigned hosts = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		hosts += t->nodes[i].kind == TOPOLOGY_HCA;
	printf("fabric %s: %u hosts, %u switches, %u links\n", set->name, hosts, t->node_count - hosts,
	       t->link_count);
	fflush(stdout);
}

static int run(struct serve_settings *set)
{
	struct serve *s;
	char why[512];
	int ret;

	if (topology_check_connected(set->topology, why, sizeof(why)))
		log_warn("%s", why);
	if (serve_open(set, &s))
		return CLI_FAILED;
	ret = serve_run(s);
	serve_close(s);
	return ret ? CLI_FAILED : CLI_OK;
}

int cli_fabric_run(int argc, char **argv)
{
	struct run_options o = {
		.set = { .name = FABRIC_NAME_DEFAULT, .seed = 1, .switch_latency_ns = 200, .lanes = 8,
			 .manager = true, .ready = say_ready },
		.buffer_kib = 32,
	};
	int status = options_parse(&options, argc, argv, &o, NULL);
	struct topology *t;

	if (status >= 0)
		return status;
	t = read_topology(argv[optind]);
	if (!t)
		return CLI_FAILED;
	o.set.users = o.users;
	o.set.buffer_bytes = o.buffer_kib * 1024;
	o.set.topology = t;
	status = run(&o.set);
	topology_free(t);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar fabric run`: its options and the description of the subnet; fabric/serve/ runs it. */
#include <errno.h>
#include <getopt.h>
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
#include "util/log.h"

#define USERS_MAX 32
#define LATENCY_NS_MAX 1000000000u
#define BUFFER_KIB_MAX 65536u

static const char help[] =
	"usage: busbar fabric run [OPTIONS] TOPOLOGY\n\n"
	"Runs an InfiniBand subnet until Ctrl-C. TOPOLOGY is a file in the format of\n"
	"ibnetdiscover, or a family: single:4, ring:8, ring:8,hosts=2, mesh:4x4, torus:4x4x2,\n"
	"fat-tree:36x18, dragonfly:4x2x2. Programs plug in by busbar exec --fabric.\n\n"
	"  -n, --name NAME         by which programs find it (" FABRIC_NAME_DEFAULT ")\n"
	"      --sm auto|none      auto: LIDs and tables are set at once and after changes;\n"
	"                          none: a program that is plugged in does that (auto)\n"
	"      --seed N            of random numbers, for bit errors (1)\n"
	"      --allow-user USER   may plug in, besides root and our own; more than once\n"
	"      --latency NS        of a switch (200)\n"
	"      --lanes N           data lanes of each port: 1, 2, 4, 8 or 15 (8)\n"
	"      --buffer KIB        of each lane at each receiver (32)\n"
	"      --store-and-forward switches take a whole packet before they pass it on\n"
	"      --output-queues     in switches a packet that waits holds up only those for\n"
	"                          the same port\n"
	"  -h, --help              this text\n\n"
	"One line on standard output says that it is ready.\n";

enum { OPT_SM = 256, OPT_SEED, OPT_USER, OPT_LATENCY, OPT_LANES, OPT_BUFFER, OPT_STORE, OPT_QUEUES };

static const struct option longs[] = {
	{ "name", required_argument, NULL, 'n' },
	{ "sm", required_argument, NULL, OPT_SM },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "allow-user", required_argument, NULL, OPT_USER },
	{ "latency", required_argument, NULL, OPT_LATENCY },
	{ "lanes", required_argument, NULL, OPT_LANES },
	{ "buffer", required_argument, NULL, OPT_BUFFER },
	{ "store-and-forward", no_argument, NULL, OPT_STORE },
	{ "output-queues", no_argument, NULL, OPT_QUEUES },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static int take_number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *to)
{
	char *end;

	errno = 0;
	*to = strtoull(text, &end, 0);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && *to >= min && *to <= max)
		return 0;
	log_error("--%s %s: expected a whole number from %llu to %llu", option, text,
		  (unsigned long long)min, (unsigned long long)max);
	return -EINVAL;
}

static int take_user(const char *text, uid_t *users, unsigned *count)
{
	const struct passwd *pw = getpwnam(text);
	uint64_t number;

	if (*count == USERS_MAX) {
		log_error("--allow-user: up to %d users can be named", USERS_MAX);
		return -EINVAL;
	}
	if (!pw && take_number("allow-user", text, 0, UINT32_MAX - 1, &number))
		return -EINVAL;
	users[(*count)++] = pw ? pw->pw_uid : (uid_t)number;
	return 0;
}

static int take_lanes(const char *text, uint8_t *lanes)
{
	uint64_t number;

	if (take_number("lanes", text, 1, 15, &number))
		return -EINVAL;
	if (number == 15 || !(number & (number - 1))) {
		*lanes = (uint8_t)number;
		return 0;
	}
	log_error("--lanes %s: a port has 1, 2, 4, 8 or 15 data lanes", text);
	return -EINVAL;
}

static int take(int opt, struct serve_settings *set, uid_t *users)
{
	uint64_t number = 0;
	int ret = 0;

	switch (opt) {
	case 'n':
		set->name = optarg;
		return 0;
	case OPT_SM:
		set->manager = !strcmp(optarg, "auto");
		if (set->manager || !strcmp(optarg, "none"))
			return 0;
		log_error("--sm %s: expected auto or none", optarg);
		return -EINVAL;
	case OPT_SEED:
		return take_number("seed", optarg, 0, UINT64_MAX, &set->seed);
	case OPT_USER:
		return take_user(optarg, users, &set->user_count);
	case OPT_LATENCY:
		return take_number("latency", optarg, 0, LATENCY_NS_MAX, &set->switch_latency_ns);
	case OPT_LANES:
		return take_lanes(optarg, &set->lanes);
	case OPT_BUFFER:
		ret = take_number("buffer", optarg, 8, BUFFER_KIB_MAX, &number);
		set->buffer_bytes = (uint32_t)number * 1024;
		return ret;
	case OPT_STORE:
		set->store_and_forward = true;
		return 0;
	case OPT_QUEUES:
		set->virtual_output_queues = true;
		return 0;
	default:
		return -EINVAL;
	}
}

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
	uid_t users[USERS_MAX];
	struct serve_settings set = {
		.name = FABRIC_NAME_DEFAULT, .seed = 1, .switch_latency_ns = 200, .lanes = 8,
		.buffer_bytes = 32 * 1024, .users = users, .manager = true, .ready = say_ready,
	};
	struct topology *t;
	int opt, status;

	while ((opt = getopt_long(argc, argv, "n:h", longs, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return CLI_OK;
		}
		if (take(opt, &set, users))
			return CLI_USAGE;
	}
	if (optind != argc - 1) {
		log_error("expected one TOPOLOGY, see busbar fabric run --help");
		return CLI_USAGE;
	}
	t = read_topology(argv[optind]);
	if (!t)
		return CLI_FAILED;
	set.topology = t;
	status = run(&set);
	topology_free(t);
	return status;
}

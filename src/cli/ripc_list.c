/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar ripc list NAME...`: which of these names are services, and their numbers. Nobody
 * knows all services: an instance answers who asks for one of its own, and so does a
 * rendezvous; so names are to be given.
 */
#include <errno.h>
#include <inttypes.h>

#include "cli/ripc_common.h"
#include "util/log.h"

static void print_help(FILE *out)
{
	fputs("usage: busbar ripc list [OPTIONS] NAME...\n\n"
	      "Asks the network for services of these names and prints name and number of those\n"
	      "that answer. Services cannot be listed without their names: an instance answers\n"
	      "only to who asks for one of its own.\n\n"
	      "  -W, --timeout SECONDS    for each name (2)\n"
	      "  -j, --json               one JSON object: names and numbers, 0: nobody answers\n"
	      RIPC_COMMON_HELP
	      "\nThe status is 0 when all answer, else 1.\n", out);
}

static int list(struct ripc *r, char **names, int count, int timeout_ms, bool json)
{
	struct json_out j = { .out = stdout };
	int status = CLI_OK;

	if (json)
		json_out_open(&j, NULL, '{');
	for (int i = 0; i < count && !atomic_load(&ripc_interrupted); i++) {
		uint32_t id = 0;
		int ret = ripc_find(r, names[i], timeout_ms, &id);

		if (ret && ret != -EHOSTUNREACH)
			status = ripc_failed(names[i], ret);
		else if (ret)
			status = CLI_FAILED;
		if (json)
			json_out_uint(&j, names[i], ret ? 0 : id);
		else if (ret)
			printf("%s: nobody answers\n", names[i]);
		else
			printf("%s 0x%" PRIx32 "\n", names[i], id);
	}
	if (json) {
		json_out_close(&j, '}');
		putchar('\n');
	}
	return atomic_load(&ripc_interrupted) ? CLI_FAILED : status;
}

int cli_ripc_list(int argc, char **argv);

int cli_ripc_list(int argc, char **argv)
{
	static const struct option options[] = {
		{ "timeout", required_argument, NULL, 'W' }, { "json", no_argument, NULL, 'j' },
		RIPC_COMMON_LONG, { NULL, 0, NULL, 0 },
	};
	struct ripc_config config = { 0 };
	uint64_t timeout_ns = 2000000000;
	bool good = true, json = false;
	struct ripc *r;
	int opt, ret;

	while (good && (opt = getopt_long(argc, argv, "W:j" RIPC_COMMON_SHORT, options, NULL)) != -1) {
		switch (opt) {
		case 'W': good = ripc_seconds("timeout", optarg, 3600, &timeout_ns); break;
		case 'j': json = true; break;
		case 'h':
			print_help(stdout);
			return CLI_OK;
		default: good = ripc_common_option(&config, opt, optarg);
		}
	}
	if (!good)
		return CLI_USAGE;
	if (optind == argc) {
		log_error("names are to be given: services are found by name, nobody has a list "
			  "of all");
		return CLI_USAGE;
	}
	ripc_common_catch();
	if (ripc_common_open(&config, &r))
		return CLI_FAILED;
	ret = list(r, argv + optind, argc - optind, (int)(timeout_ns / 1000000), json);
	ripc_close(r);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar ripc list [NAME...]`: services of this host and user, as their instances show
 * them; or which of these names are services anywhere, their numbers and addresses. Nobody
 * knows all services of a network: an instance answers who asks for one of its own, and so
 * does a rendezvous; so names are to be given.
 */
#include <errno.h>
#include <inttypes.h>

#include "cli/ripc_common.h"
#include "cli/ripc_shown.h"

struct settings {
	struct ripc_config config;
	uint64_t timeout_ns;
	bool json;
};

static const struct option_entry table[] = {
	{ "-W, --timeout SECONDS: for each name (2)", RIPC_SECONDS(struct settings, timeout_ns) },
	{ "-j, --json: one JSON object", OPTION_FLAG(struct settings, json) },
	RIPC_OPTIONS(struct settings),
};

static const struct options options = {
	.program = "busbar ripc list",
	.synopsis = "[OPTIONS] [NAME...]",
	.about = "Without names: the services of this user on this host, with their process, address,\n"
		 "messages that wait, return buffers that peers have, and peers that are held up. The\n"
		 "superuser sees those of all.\n\n"
		 "With names: asks the network for services of these names and prints name, number and\n"
		 "address of those that answer. Services elsewhere cannot be listed without their names:\n"
		 "an instance answers only to who asks for one of its own.\n",
	.table = table,
	.any_operands = true,
	.end = "The status is 0 when all answer, else 1.\n",
};

/* ---- of this host ---- */

static void print_json(struct cli_json *j, const struct shown *s)
{
	for (unsigned i = 0; i < s->head.services; i++) {
		cli_json_open(j, NULL, '{');
		ripc_shown_service_json(&s->services[i], j);
		cli_json_put(j, j_uint("pid", s->head.pid), j_text("command", s->head.command),
				j_text("address", s->head.address));
		cli_json_close(j, '}');
	}
}

static void print_one(const struct shown *s, void *arg)
{
	if (arg) {
		print_json(arg, s);
		return;
	}
	for (unsigned i = 0; i < s->head.services; i++) {
		const struct ripc_show_service *v = &s->services[i];

		printf("0x%-10" PRIx32 " %-20s %7" PRIu32 " %-15s %-24s %7" PRIu32 " %7" PRIu32
		       " %5" PRIu32 "\n", v->id, *v->name ? v->name : "-", s->head.pid,
		       s->head.command, s->head.address, v->queued, v->offers, v->held);
	}
	if (s->head.services_left_out)
		printf("and %" PRIu32 " more of process %" PRIu32 "\n",
		       s->head.services_left_out, s->head.pid);
}

static int list_host(bool json)
{
	struct cli_json j = { .out = stdout };
	int ret;

	if (json) {
		cli_json_open_list(&j, "services");
	} else {
		printf("%-12s %-20s %7s %-15s %-24s %7s %7s %5s\n", "SERVICE", "NAME", "PID",
		       "COMMAND", "ADDRESS", "WAITING", "OFFERED", "HELD");
	}
	ret = ripc_shown_each(print_one, json ? &j : NULL);
	if (json)
		cli_json_close_list(&j);
	return ret ? CLI_FAILED : CLI_OK;
}

/* ---- by name ---- */

static void print_found(struct cli_json *j, const char *name, uint32_t id,
			const struct ripc_where *where)
{
	if (j) {
		cli_json_object(j, name, j_uint("id", id), j_text("address", where->address),
					 j_bool("datagrams", where->datagrams));
	} else if (!id) {
		printf("%s: nobody answers\n", name);
	} else {
		printf("%s 0x%" PRIx32 " %s\n", name, id, where->address);
	}
}

static int list_names(struct ripc *r, char **names, int count, int timeout_ms, bool json)
{
	struct cli_json j = { .out = stdout };
	int status = CLI_OK;

	if (json)
		cli_json_open(&j, NULL, '{');
	for (int i = 0; i < count && !atomic_load(&ripc_interrupted); i++) {
		struct ripc_where where = { 0 };
		uint32_t id = 0;
		int ret = ripc_find(r, names[i], timeout_ms, &id);

		if (!ret)
			ret = ripc_where(r, id, timeout_ms, &where);
		if (ret && ret != -EHOSTUNREACH)
			status = ripc_failed(names[i], ret);
		else if (ret)
			status = CLI_FAILED;
		print_found(json ? &j : NULL, names[i], ret ? 0 : id, &where);
	}
	if (json)
		cli_json_close(&j, '}');
	return atomic_load(&ripc_interrupted) ? CLI_FAILED : status;
}

int cli_ripc_list(int argc, char **argv)
{
	struct settings s = { .timeout_ns = 2000000000 };
	int status = options_parse(&options, argc, argv, &s, NULL);
	struct ripc *r;

	if (status >= 0)
		return status;
	if (optind == argc)
		return list_host(s.json);
	ripc_common_catch();
	if (ripc_common_open(&s.config, &r))
		return CLI_FAILED;
	status = list_names(r, argv + optind, argc - optind, (int)(s.timeout_ns / 1000000), s.json);
	ripc_close(r);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor`: why two hosts do not reach each other by transport roce or iwarp. */
#define LOG_ROOM "doctor"
#include "cli/doctor.h"

#include <getopt.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "util/log.h"
#include "util/options.h"
#include "util/settings.h"

struct settings {
	bool serve;
	uint32_t seconds;
	uint16_t port, stream;
};

enum { PORT }; /* index in the table */

static const struct option_entry table[] = {
	[PORT] = { "-p, --port PORT: UDP port (BUSBAR_ROCE_PORT, or 4791); one that is free where busbar "
				      "programs run, which says less of a firewall",
		   OPTION_WHOLE(struct settings, port, 1, UINT16_MAX) },
	{ "-s, --serve: answer the probes of other hosts, until interrupted", OPTION_FLAG(struct settings, serve) },
	{ "-t, --time SECONDS: end --serve after that time", OPTION_WHOLE(struct settings, seconds, 1, 86400) },
	{ "-i, --iwarp PORT: looks at iWARP instead: PORT is the TCP port of a program that listens there, or of "
			      "--serve", OPTION_WHOLE(struct settings, stream, 1, UINT16_MAX) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar doctor",
	.synopsis = "[-p PORT | --iwarp PORT] [HOST]\n--serve [-p PORT | --iwarp PORT] [-t SECONDS]",
	.about = "Says why two hosts do not reach each other by RDMA over UDP (RoCE v2), or over\n"
		 "TCP (iWARP). Without HOST it looks at this host only. With HOST it also sends\n"
		 "probes to it, where 'busbar doctor --serve' has to run: do this in both\n"
		 "directions.\n",
	.table = table,
	.operands_max = 1,
	.end = "Status: 0 nothing is wrong, 1 something is, 2 the command line is.\n",
};

static int look(const char *host, uint16_t port)
{
	struct doctor_route route;
	bool port_is_free = doctor_local(port, false);

	if (host && !doctor_route(host, port, &route)) {
		doctor_path(&route);
		doctor_remote(&route, port, port_is_free);
	}
	if (!host)
		doctor_note("start 'busbar doctor --serve' on the other host, and 'busbar doctor HOST' here",
			    "no other host was asked");
	return doctor_found() ? CLI_FAILED : CLI_OK;
}

static int look_at_stream(const char *host, uint16_t port)
{
	struct doctor_route route;

	doctor_local_stream(port);
	if (host && !doctor_route(host, port, &route))
		doctor_stream(&route, port);
	if (!host)
		doctor_note("'busbar doctor --iwarp PORT HOST'", "no other host was asked");
	return doctor_found() ? CLI_FAILED : CLI_OK;
}

static int serve(uint16_t port, unsigned seconds)
{
	return doctor_local(port, true) ? doctor_serve(port, seconds) : CLI_FAILED;
}

int cli_doctor(int argc, char **argv)
{
	const struct setting port = { .type = SETTING_UINT, .min = 1, .max = UINT16_MAX };
	const char *setting = getenv("BUSBAR_ROCE_PORT");
	struct settings s = { 0 };
	uint64_t number = 4791, given;
	int status;

	log_init(LOG_WARN);
	if (setting && setting_parse(&port, setting, &number))
		doctor_bad("give a number from 1 to 65535, or take it out of the environment",
			   "BUSBAR_ROCE_PORT=%.40s is no port: programs use 4791", setting);
	s.port = (uint16_t)number;
	status = options_parse(&options, argc, argv, &s, &given);
	if (status >= 0)
		return status;
	if ((s.serve && optind < argc) || (s.seconds && !s.serve) || (s.stream && given >> PORT & 1))
		return options_usage(&options, argv);
	if (s.stream)
		return s.serve ? doctor_stream_serve(s.stream, s.seconds) : look_at_stream(argv[optind], s.stream);
	return s.serve ? serve(s.port, s.seconds) : look(argv[optind], s.port);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar doctor`: why two hosts do not reach each other by transport roce or iwarp. */
#define LOG_ROOM "doctor"
#include "cli/doctor.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "util/log.h"
#include "util/settings.h"

static const char usage[] =
	"usage: busbar doctor [-p PORT | --iwarp PORT] [HOST]\n"
	"       busbar doctor --serve [-p PORT | --iwarp PORT] [-t SECONDS]\n"
	"\n"
	"Says why two hosts do not reach each other by RDMA over UDP (RoCE v2), or over\n"
	"TCP (iWARP). Without HOST it looks at this host only. With HOST it also sends\n"
	"probes to it, where 'busbar doctor --serve' has to run: do this in both\n"
	"directions.\n"
	"\n"
	"  -s, --serve           answer the probes of other hosts, until interrupted\n"
	"  -t, --time SECONDS    end --serve after that time\n"
	"  -p, --port PORT       UDP port (BUSBAR_ROCE_PORT, or 4791); one that is free\n"
	"                        where busbar programs run, which says less of a firewall\n"
	"  -i, --iwarp PORT      looks at iWARP instead: PORT is the TCP port of a program\n"
	"                        that listens there, or of --serve\n"
	"  -h, --help            this text\n"
	"\n"
	"Status: 0 nothing is wrong, 1 something is, 2 the command line is.\n";

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *to)
{
	const struct setting number = { .type = SETTING_UINT, .min = min, .max = max };

	return !setting_parse(&number, text, to);
}

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
	static const struct option longs[] = {
		{ "serve", no_argument, NULL, 's' },
		{ "time", required_argument, NULL, 't' },
		{ "port", required_argument, NULL, 'p' },
		{ "iwarp", required_argument, NULL, 'i' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	const char *setting = getenv("BUSBAR_ROCE_PORT");
	uint64_t port = 4791, stream = 0, seconds = 0;
	bool serving = false, has_port = false;
	int opt;

	log_init(LOG_WARN);
	if (setting && !parse_number(setting, 1, 65535, &port))
		doctor_bad("give a number from 1 to 65535, or take it out of the environment",
			   "BUSBAR_ROCE_PORT=%.40s is no port: programs use 4791", setting);
	while ((opt = getopt_long(argc, argv, "st:p:i:h", longs, NULL)) != -1) {
		switch (opt) {
		case 's':
			serving = true;
			break;
		case 't':
			if (parse_number(optarg, 1, 86400, &seconds))
				break;
			fprintf(stderr, "busbar doctor: '%s' is no time of 1 to 86400 seconds\n",
				optarg);
			return CLI_USAGE;
		case 'p':
		case 'i':
			has_port |= opt == 'p';
			if (parse_number(optarg, 1, 65535, opt == 'p' ? &port : &stream))
				break;
			fprintf(stderr, "busbar doctor: '%s' is no port of 1 to 65535\n",
				optarg);
			return CLI_USAGE;
		case 'h':
			fputs(usage, stdout);
			return CLI_OK;
		default:
			fputs(usage, stderr);
			return CLI_USAGE;
		}
	}
	if (argc - optind > (serving ? 0 : 1) || (seconds && !serving) ||
	    (stream && has_port)) {
		fputs(usage, stderr);
		return CLI_USAGE;
	}
	if (stream)
		return serving ? doctor_stream_serve((uint16_t)stream, (unsigned)seconds) :
				 look_at_stream(argv[optind], (uint16_t)stream);
	if (serving)
		return serve((uint16_t)port, (unsigned)seconds);
	return look(argv[optind], (uint16_t)port);
}

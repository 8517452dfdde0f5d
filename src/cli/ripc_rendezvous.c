/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc rendezvous`: knows where services are, for networks without multicast. */
#include <string.h>

#include "cli/ripc_common.h"
#include "ripc/find/resolver.h"
#include "util/log.h"

struct settings {
	const char *address, *secret;
	uint16_t port;
	unsigned services;
};

static const struct option_entry table[] = {
	{ "-a, --address ADDRESS: to listen on (all)", OPTION_TEXT(struct settings, address) },
	{ "-p, --port N: UDP; 0: any, which is printed (15511)",
	  OPTION_WHOLE(struct settings, port, 0, UINT16_MAX) },
	{ "--secret-file FILE: only instances with the same one are answered",
	  OPTION_TEXT(struct settings, secret) },
	{ "--services N: that are remembered, at most (65536)",
	  OPTION_WHOLE(struct settings, services, 1, 1 << 24) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar ripc rendezvous",
	.synopsis = "[OPTIONS]",
	.about = "Tells instances with '--resolver rendezvous:HOST:PORT' where services are. Services\n"
		 "enter themselves. Ends with Ctrl-C.\n",
	.table = table,
};

static void ready(void *arg, uint16_t port)
{
	(void)arg;
	printf("rendezvous on UDP port %u\n", port);
	fflush(stdout);
}

int cli_ripc_rendezvous(int argc, char **argv)
{
	struct settings s = { .port = 15511, .services = 65536 };
	struct packet_key key = { .set = false };
	const char *why = NULL;
	char text[100];
	int ret = options_parse(&options, argc, argv, &s, NULL);

	if (ret >= 0)
		return ret;
	if (s.secret && resolver_key_read(&key, s.secret, text, sizeof(text))) {
		log_error("--secret-file %s: %s", s.secret, text);
		return CLI_FAILED;
	}
	ripc_common_catch();
	ret = rendezvous_serve(s.address, s.port, &key, s.services, &ripc_interrupted, ready, NULL, &why);
	if (ret)
		log_error("no rendezvous: %s", why ? why : strerror(-ret));
	return ret ? CLI_FAILED : CLI_OK;
}

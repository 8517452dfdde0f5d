/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which programs use rsockets: /etc/rdma/rsocket/preload_config, lines of
 *
 *   PROGRAM  DOMAIN  TYPE  PROTOCOL
 *
 * with the program's name, inet or inet6, stream, tcp, and * for any; # begins a
 * comment. Without that file every program uses rsockets.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/preload/preload.h"

static bool wanted_v4 = true, wanted_v6 = true;

static bool is(const char *word, const char *name)
{
	return !strcmp(word, "*") || !strcasecmp(word, name);
}

static void line_read(char *line)
{
	char program[256], domain[16], type[16], protocol[16];

	line[strcspn(line, "#\n")] = '\0';
	if (sscanf(line, "%255s %15s %15s %15s", program, domain, type, protocol) != 4)
		return;
	if (!is(program, program_invocation_short_name) || !is(type, "stream") ||
	    !is(protocol, "tcp"))
		return;
	wanted_v4 |= is(domain, "inet");
	wanted_v6 |= is(domain, "inet6");
}

static void config_read(void)
{
	const char *folder = secure_getenv("BUSBAR_RSOCKET_CONFIG");
	char path[4096], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/preload_config",
		 folder && *folder ? folder : "/etc/rdma/rsocket");
	f = fopen(path, "re");
	if (!f)
		return;
	wanted_v4 = wanted_v6 = false;
	while (fgets(line, sizeof(line), f))
		line_read(line);
	fclose(f);
}

bool preload_wanted(int domain, int type, int protocol)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if ((domain != AF_INET && domain != AF_INET6) ||
	    (type & ~(SOCK_NONBLOCK | SOCK_CLOEXEC)) != SOCK_STREAM ||
	    (protocol && protocol != IPPROTO_TCP))
		return false;
	pthread_once(&once, config_read);
	return domain == AF_INET ? wanted_v4 : wanted_v6;
}

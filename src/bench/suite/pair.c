/* SPDX-License-Identifier: BSD-2-Clause */
/* See pair.h. */
#define LOG_ROOM "bench/program"
#include "bench/suite/pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"

#define LISTEN_SECONDS 20
#define TCP_LISTEN_STATE 0x0a

int pair_free_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = bind(fd, (struct sockaddr *)&a, size) ||
	      getsockname(fd, (struct sockaddr *)&a, &size) ? -errno : ntohs(a.sin_port);
	close(fd);
	return ret;
}

/* A table of the network namespace of a process, "tcp"; NULL: it has ended. */
static FILE *open_table(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, name);
	return fopen(path, "re");
}

/* Does a TCP socket of the namespace listen there? */
static bool listens_in(pid_t pid, const char *table, int port)
{
	FILE *f = open_table(pid, table);
	char line[300];
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		unsigned p, state;

		found = sscanf(line, " %*[0-9]: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &p, &state) == 2 &&
			p == (unsigned)port && state == TCP_LISTEN_STATE;
	}
	if (f)
		fclose(f);
	return found;
}

/* The same of busbar's own connection manager, whose ports are names of sockets: one for this
 * host, and one for others, which has the service ID of port space TCP. */
static bool cm_listens(pid_t pid, int port)
{
	FILE *f = open_table(pid, "unix");
	char line[300], part[20], service[50];
	bool found = false;

	snprintf(part, sizeof(part), ".%d.", port);
	snprintf(service, sizeof(service), "@busbar.roce.service.106%04x.", (unsigned)port);
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *name = strstr(line, "@busbar.cm.");

		found = (name && strstr(name, part)) || strstr(line, service);
	}
	if (f)
		fclose(f);
	return found;
}

static bool listens(pid_t pid, int port)
{
	return listens_in(pid, "tcp", port) || listens_in(pid, "tcp6", port) ||
	       cm_listens(pid, port);
}

static int await_listener(struct process *server, int port, const atomic_bool *stop)
{
	uint64_t until = clock_monotonic_ns_slow() + LISTEN_SECONDS * NSEC_PER_SEC;

	while (!listens(server->pid, port)) {
		if (atomic_load(stop))
			return -EINTR;
		if (process_has_ended(server))
			return process_failed(server, "server");
		if (clock_monotonic_ns_slow() > until)
			return log_fail(-ETIMEDOUT, "the server %s does not listen on port %d",
					server->argv[0], port);
		process_pause();
	}
	return 0;
}

static int await_end(struct process *p, const char *who, uint64_t until,
		     const atomic_bool *stop)
{
	int ret = process_await(p, until, stop);

	if (ret == -ETIMEDOUT)
		log_error("the %s %s does not end", who, p->argv[0]);
	return ret ? ret : p->status ? process_failed(p, who) : 0;
}

int pair_run(struct process *server, struct process *client, int port,
	     double seconds_max, const atomic_bool *stop)
{
	uint64_t until;
	int ret;

	server->pid = client->pid = 0;
	ret = process_start(server);
	if (!ret)
		ret = await_listener(server, port, stop);
	if (!ret)
		ret = process_start(client);
	until = clock_monotonic_ns_slow() + (uint64_t)(seconds_max * 1e9);
	if (!ret)
		ret = await_end(client, "client", until, stop);
	if (!ret)
		ret = await_end(server, "server", until, stop);
	process_kill(client);
	process_kill(server);
	return ret;
}

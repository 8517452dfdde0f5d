/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs between two hosts; see plan.h. */
#define LOG_ROOM "bench/mpi"
#include "bench/mpi/plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/floor/floor.h"
#include "util/log.h"

_Static_assert(sizeof((struct mpi_hosts){ 0 }.addresses[0]) == INET_ADDRSTRLEN, "any IPv4 address");

/* It stands in a shell's script. */
static bool is_plain(const char *name)
{
	return *name != '-' &&
	       !name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_.")];
}

int mpi_hosts_read(const json_t *parameters, struct mpi_hosts *h)
{
	const char *text = json_string_value(json_object_get(parameters, "between"));
	struct floor_host hosts[2];

	*h = (struct mpi_hosts){ .between = text && *text };
	if (!h->between)
		return 0;
	if (!floor_hosts_parse(text, hosts) || !is_plain(hosts[0].netns) ||
	    !is_plain(hosts[1].netns))
		return log_fail(-EINVAL, "between '%s' is not usable, expected two network namespaces with an "
				"IPv4 address of each, such as A=10.77.0.1,B=10.77.0.2",
				text);
	for (int i = 0; i < 2; i++) {
		strcpy(h->names[i], hosts[i].netns);
		inet_ntop(AF_INET, &hosts[i].address, h->addresses[i],
			  sizeof(h->addresses[i]));
	}
	return 0;
}

/* Both MPIs call it as `agent [OPTIONS] HOST COMMAND...`, and a shell of the host reads the
 * command. */
static void write_agent(const struct mpi_hosts *h, FILE *f)
{
	fputs("#!/bin/sh\n"
	      "while [ \"${1#-}\" != \"$1\" ]; do shift; done\n"
	      "host=$1\n"
	      "shift\n"
	      "case $host in\n", f);
	for (int i = 0; i < 2; i++)
		fprintf(f, "%s) name=%s ;;\n", h->addresses[i], h->names[i]);
	fputs("*) echo \"unknown host $host\" >&2; exit 1 ;;\n"
	      "esac\n"
	      "exec ip netns exec \"$name\" sh -c \"$*\"\n", f);
}

int mpi_hosts_write_agent(struct mpi_hosts *h, const char *dir)
{
	char *folder = realpath(dir, NULL);
	int ret = 0;
	FILE *f;

	if (!folder || asprintf(&h->agent, "%s/agent.sh", folder) < 0)
		h->agent = NULL;
	free(folder);
	f = h->agent ? fopen(h->agent, "we") : NULL;
	if (!f)
		ret = h->agent ? -errno : -ENOMEM;
	if (f) {
		write_agent(h, f);
		if (fchmod(fileno(f), 0700))
			ret = -errno;
		if (fclose(f) && !ret)
			ret = -errno;
	}
	if (ret)
		log_error("%s cannot be written: %s", h->agent ? h->agent : dir,
			  strerror(-ret));
	return ret;
}

void mpi_hosts_free(struct mpi_hosts *h)
{
	free(h->agent);
	h->agent = NULL;
}

void mpi_hosts_enter(const struct mpi_hosts *h, struct process_words *w)
{
	if (!h->between)
		return;
	process_words_list(w, "ip", "netns", "exec", h->names[0], NULL);
}

void mpi_hosts_options(const struct mpi_hosts *h, const char *library, unsigned processes,
		       struct process_words *w)
{
	unsigned first = (processes + 1) / 2;
	char text[80];

	if (!h->between)
		return;
	snprintf(text, sizeof(text), "%s:%u,%s:%u", h->addresses[0], first, h->addresses[1],
		 processes - first);
	/* Both hosts have the same processors here, and each would begin with the first. */
	if (!strcmp(library, "openmpi"))
		process_words_list(w, "--host", text, "--bind-to", "none", "--mca", "plm_rsh_agent",
				   h->agent, NULL);
	else
		process_words_list(w, "-hosts", text, "-launcher", "ssh", "-launcher-exec", h->agent,
				   NULL);
}

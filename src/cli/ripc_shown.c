/* SPDX-License-Identifier: BSD-2-Clause */
/* See ripc_shown.h. The kernel lists the sockets; each tells about itself. */
#include "cli/ripc_shown.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "util/log.h"
#include "util/plain_text.h"
#include "util/user.h"

#define LIST "/proc/net/unix"
#define INSTANCES_MAX 4096
#define ANSWER_MS 300

struct name {
	unsigned user, pid;
	uint64_t instance;
};

static int compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->instance < y->instance ? -1 : x->instance > y->instance;
}

/* A line of the list, which shows the first NUL as @. */
static bool name_of(const char *line, struct name *out)
{
	const char *at = strstr(line, " @" RIPC_SHOW_NAME);

	return at && sscanf(at + sizeof(" @" RIPC_SHOW_NAME) - 1, "%x/%x/%" SCNx64, &out->user,
			    &out->pid, &out->instance) == 3;
}

/* Those that are there, each once: connections to one have lines, too. */
static int names(struct name *out, unsigned *count)
{
	FILE *f = fopen(LIST, "re");
	char line[512];
	unsigned n = 0;

	if (!f) {
		log_error("%s cannot be read: %s", LIST, strerror(errno));
		return -errno;
	}
	while (n < INSTANCES_MAX && fgets(line, sizeof(line), f))
		n += name_of(line, &out[n]);
	fclose(f);
	qsort(out, n, sizeof(*out), compare);
	*count = 0;
	for (unsigned i = 0; i < n; i++)
		if (!*count || compare(&out[*count - 1], &out[i]))
			out[(*count)++] = out[i];
	return 0;
}

/* Who has the socket is the user it says, or the superuser. */
static bool is_theirs(int fd, unsigned user)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) &&
	       (who.uid == 0 || (who.uid == user && user_is_known(user)));
}

/* The superuser looks at others, whose text may command the terminal. */
static void clean(char *text, size_t bytes)
{
	text[bytes - 1] = '\0';
	plain_text(text);
}

bool ripc_shown_check(struct shown *s, size_t bytes)
{
	if (bytes < sizeof(s->head) || s->head.magic != RIPC_SHOW_MAGIC ||
	    s->head.services > RIPC_SHOW_SERVICES_MAX ||
	    bytes != sizeof(s->head) + s->head.services * sizeof(s->services[0]))
		return false;
	clean(s->head.command, sizeof(s->head.command));
	clean(s->head.address, sizeof(s->head.address));
	for (unsigned i = 0; i < s->head.services; i++)
		clean(s->services[i].name, sizeof(s->services[i].name));
	return true;
}

/* False: it has gone, or is another user's. */
static bool ask(const struct name *name, struct shown *out)
{
	const struct timeval limit = { .tv_usec = ANSWER_MS * 1000 };
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
			 RIPC_SHOW_NAME "%x/%x/%016" PRIx64, name->user, name->pid, name->instance);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ssize_t bytes;
	bool good;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	good = !connect(fd, (const struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) &&
	       is_theirs(fd, name->user);
	bytes = good ? recv(fd, out, sizeof(*out), 0) : -1;
	close(fd);
	return bytes >= 0 && ripc_shown_check(out, (size_t)bytes);
}

int ripc_shown_each(void (*each)(const struct shown *s, void *arg), void *arg)
{
	struct name *all = malloc(INSTANCES_MAX * sizeof(*all));
	struct shown *s = malloc(sizeof(*s));
	unsigned count = 0;
	int ret = all && s ? names(all, &count) : -ENOMEM;

	for (unsigned i = 0; i < count; i++)
		if (ask(&all[i], s))
			each(s, arg);
	free(all);
	free(s);
	return ret;
}

void ripc_shown_service_json(const struct ripc_show_service *v, struct cli_json *j)
{
	cli_json_put(j, j_uint("id", v->id), j_text("name", v->name), j_uint("waiting", v->queued),
			j_uint("waiting_bytes", v->queued_bytes), j_uint("return_buffers", v->offers),
			j_uint("senders_held", v->held));
}

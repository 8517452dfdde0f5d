/* SPDX-License-Identifier: BSD-2-Clause */
/* The socket that shows an instance to programs of the same user; see busbar/ripc_show.h. */
#include <arpa/inet.h>
#include <busbar/ripc_show.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ripc/instance/instance.h"
#include "util/user.h"

#define ANSWERS_MAX 16 /* at a time; others wait */

void address_text(const union sockaddr_any *a, char *out, size_t bytes)
{
	char host[INET6_ADDRSTRLEN] = "";
	const bool v4 = a->any.sa_family == AF_INET;

	inet_ntop(a->any.sa_family, v4 ? (const void *)&a->v4.sin_addr : &a->v6.sin6_addr, host,
		  sizeof(host));
	snprintf(out, bytes, v4 ? "%s:%u" : "[%s]:%u", host,
		 ntohs(v4 ? a->v4.sin_port : a->v6.sin6_port));
}

static void command_of(char out[16])
{
	FILE *f = fopen("/proc/self/comm", "re");

	if (f && fgets(out, 16, f))
		out[strcspn(out, "\n")] = '\0';
	if (f)
		fclose(f);
}

void show_open(struct ripc *r)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
			 RIPC_SHOW_NAME "%x/%x/%016" PRIx64, (unsigned)geteuid(),
			 (unsigned)r->pid, r->number);

	r->show_fd = fd;
	if (fd < 0)
		return; /* it is not shown */
	if (bind(fd, (const struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, ANSWERS_MAX)) {
		close(fd);
		r->show_fd = -1;
	}
}

static unsigned length_of(const struct list *l)
{
	unsigned n = 0;

	for (const struct list *e = l->next; e != l; e = e->next)
		n++;
	return n;
}

static void service_show(struct ripc_service *s, struct ripc_show_service *out)
{
	out->id = s->id;
	strcpy(out->name, s->name);
	spin_lock(&s->lock);
	out->queued = s->queued;
	out->queued_bytes = s->queued_bytes;
	out->offers = length_of(&s->offers);
	out->held = length_of(&s->holds);
	spin_unlock(&s->lock);
}

static size_t describe(struct ripc *r, struct ripc_show_head *head)
{
	struct ripc_show_service *all = (struct ripc_show_service *)(head + 1);
	const union sockaddr_any *at = (const void *)rdma_get_local_addr(r->listener);

	*head = (struct ripc_show_head){ .magic = RIPC_SHOW_MAGIC, .pid = (uint32_t)r->pid,
				    .instance = r->number };
	command_of(head->command);
	address_text(at, head->address, sizeof(head->address));
	ripc_counters(r, &head->counters);
	for (unsigned i = 0; i < TABLE_SIZE; i++) {
		struct ripc_service *s;
		uint32_t after = 0;

		while ((s = service_next(r, i, after))) {
			after = s->id;
			if (head->services == RIPC_SHOW_SERVICES_MAX)
				head->services_left_out++;
			else
				service_show(s, &all[head->services++]);
			service_put(s);
		}
	}
	return sizeof(*head) + head->services * sizeof(*all);
}

/* The same user, or the superuser. */
static bool is_ours(int fd)
{
	struct ucred who;
	socklen_t bytes = sizeof(who);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes) &&
	       user_is_ours_or_root(who.uid);
}

void show_answer(struct ripc *r)
{
	struct ripc_show_head *head = NULL;
	size_t bytes = 0;
	int fd;

	for (unsigned i = 0; i < ANSWERS_MAX; i++) {
		fd = accept4(r->show_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			break;
		if (!head && is_ours(fd) && (head = calloc(1, RIPC_SHOW_BYTES_MAX)))
			bytes = describe(r, head);
		/* It fits into an empty socket; who gets nothing asks again. */
		if (head && is_ours(fd))
			send(fd, head, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		close(fd);
	}
	free(head);
}

void show_close(struct ripc *r)
{
	if (r->show_fd >= 0)
		close(r->show_fd);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See peer.h. A connection within this host has two sockets, and the kernel tells the user
 * of the other one: sock_diag(7) by its addresses, or the table in /proc/net where
 * sock_diag is not there.
 */
#include "gateway/http/peer.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* An end as the kernel compares it; IPv4 as such. */
struct end {
	int family;
	unsigned char address[16];
	uint16_t port; /* network byte order */
};

/* What is in front of an IPv4 address that is mapped to IPv6. */
static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

bool http_peer_is_ipv4(const struct http_peer *p)
{
	return !memcmp(p->address, mapped, sizeof(mapped));
}

static bool read_end(const struct sockaddr_storage *s, struct end *e)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)s;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)s;

	memset(e, 0, sizeof(*e));
	if (s->ss_family == AF_INET) {
		e->family = AF_INET;
		e->port = in->sin_port;
		memcpy(e->address, &in->sin_addr, 4);
		return true;
	}
	if (s->ss_family != AF_INET6)
		return false;
	e->port = in6->sin6_port;
	if (!memcmp(&in6->sin6_addr, mapped, sizeof(mapped))) {
		e->family = AF_INET;
		memcpy(e->address, (const char *)&in6->sin6_addr + 12, 4);
	} else {
		e->family = AF_INET6;
		memcpy(e->address, &in6->sin6_addr, 16);
	}
	return true;
}

static bool is_loopback(const struct end *e)
{
	static const unsigned char one[16] = { [15] = 1 };

	return e->family == AF_INET ? e->address[0] == 127 :
				      !memcmp(e->address, one, sizeof(one));
}

static bool receive_uid(int fd, uid_t *uid)
{
	union {
		struct nlmsghdr head;
		char room[1024];
	} answer;
	struct timeval limit = { .tv_usec = 200000 };
	const struct inet_diag_msg *m = NLMSG_DATA(&answer.head);
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*m)) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return false;
	*uid = m->idiag_uid;
	return true;
}

static bool ask_diag(const struct end *theirs, const struct end *ours, uid_t *uid)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 body;
	} request = {
		.head = { .nlmsg_len = sizeof(request),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = NLM_F_REQUEST },
		.body = { .sdiag_family = (unsigned char)theirs->family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = UINT32_MAX,
			  .id = { .idiag_sport = theirs->port,
				  .idiag_dport = ours->port,
				  .idiag_cookie = { INET_DIAG_NOCOOKIE,
						    INET_DIAG_NOCOOKIE } } },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	bool found;

	if (fd < 0)
		return false;
	memcpy(request.body.id.idiag_src, theirs->address, 16);
	memcpy(request.body.id.idiag_dst, ours->address, 16);
	found = send(fd, &request, sizeof(request), 0) == sizeof(request) &&
		receive_uid(fd, uid);
	close(fd);
	return found;
}

/* "0100007F:1F90", each word of the address in the host's byte order. */
static void format_end(const struct end *e, char *to, size_t size)
{
	size_t len = 0;
	uint32_t word;

	for (unsigned i = 0; i < (e->family == AF_INET ? 4u : 16u); i += 4) {
		memcpy(&word, e->address + i, 4);
		len += (size_t)snprintf(to + len, size - len, "%08" PRIX32, word);
	}
	snprintf(to + len, size - len, ":%04X", ntohs(e->port));
}

static bool look_up(const char *file, const struct end *theirs,
		    const struct end *ours, uid_t *uid)
{
	char line[256], a[48], b[48], local[48], remote[48];
	FILE *f = fopen(file, "re");
	bool found = false;
	unsigned n;

	if (!f)
		return false;
	format_end(theirs, a, sizeof(a));
	format_end(ours, b, sizeof(b));
	while (!found && fgets(line, sizeof(line), f)) {
		found = sscanf(line, " %*u: %47s %47s %*x %*s %*s %*s %u", local,
			       remote, &n) == 3 &&
			!strcmp(local, a) && !strcmp(remote, b);
		if (found)
			*uid = n;
	}
	fclose(f);
	return found;
}

void http_peer_read(int fd, struct http_peer *p)
{
	struct sockaddr_storage theirs_raw, ours_raw;
	socklen_t theirs_len = sizeof(theirs_raw), ours_len = sizeof(ours_raw);
	struct end theirs, ours;
	char host[INET6_ADDRSTRLEN] = "?";

	memset(p, 0, sizeof(*p));
	snprintf(p->text, sizeof(p->text), "an unknown address");
	if (getpeername(fd, (struct sockaddr *)&theirs_raw, &theirs_len) ||
	    getsockname(fd, (struct sockaddr *)&ours_raw, &ours_len) ||
	    !read_end(&theirs_raw, &theirs) || !read_end(&ours_raw, &ours))
		return;
	if (theirs.family == AF_INET) {
		memcpy(p->address, mapped, sizeof(mapped));
		memcpy(p->address + 12, theirs.address, 4);
	} else {
		memcpy(p->address, theirs.address, 16);
	}
	inet_ntop(theirs.family, theirs.address, host, sizeof(host));
	snprintf(p->text, sizeof(p->text), "%s port %u", host, ntohs(theirs.port));
	p->is_local = is_loopback(&theirs) && is_loopback(&ours);
	p->has_uid = p->is_local &&
		     (ask_diag(&theirs, &ours, &p->uid) ||
		      look_up(theirs.family == AF_INET ? "/proc/net/tcp" :
							 "/proc/net/tcp6",
			      &theirs, &ours, &p->uid));
}

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
#include <netinet/tcp.h>
#include <stdatomic.h>
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

/*
 * Is the socket one that a process has? The kernel reports root as the owner of a socket that no
 * process has any more, that is being made or has ended. So the state has to be one in which the
 * socket has been connected to us and a process may still have it, and there has to be an inode,
 * which only sockets of processes have.
 */
static bool is_owned(unsigned state, uint32_t inode)
{
	return inode && (state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 ||
			 state == TCP_FIN_WAIT2 || state == TCP_CLOSE_WAIT);
}

enum found { FOUND, FOUND_NOT, CANNOT_ASK };

static enum found receive_owner(int fd, const struct inet_diag_sockid *id,
				struct http_owner *owner)
{
	union {
		struct nlmsghdr head;
		char room[1024];
	} answer;
	struct timeval limit = { .tv_usec = 200000 };
	const struct inet_diag_msg *m = NLMSG_DATA(&answer.head);
	struct sockaddr_nl from;
	socklen_t from_len = sizeof(from);
	ssize_t n;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	n = recvfrom(fd, &answer, sizeof(answer), 0, (struct sockaddr *)&from, &from_len);
	/* Processes can send here, too. */
	if (n < 0 || from_len != sizeof(from) || from.nl_pid)
		return FOUND_NOT;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*m)) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return CANNOT_ASK; /* or there is no such socket */
	if (m->id.idiag_sport != id->idiag_sport || m->id.idiag_dport != id->idiag_dport ||
	    !is_owned(m->idiag_state, m->idiag_inode))
		return FOUND_NOT;
	*owner = (struct http_owner){
		.uid = m->idiag_uid, .inode = m->idiag_inode,
		.cookie = (uint64_t)m->id.idiag_cookie[1] << 32 | m->id.idiag_cookie[0],
	};
	return FOUND;
}

static enum found ask_diag(const struct end *theirs, const struct end *ours,
			   struct http_owner *owner)
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
	enum found found = CANNOT_ASK;

	if (fd < 0)
		return CANNOT_ASK;
	memcpy(request.body.id.idiag_src, theirs->address, 16);
	memcpy(request.body.id.idiag_dst, ours->address, 16);
	if (send(fd, &request, sizeof(request), 0) == sizeof(request))
		found = receive_owner(fd, &request.body.id, owner);
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

/* Takes the user and the inode from a line of the table; false: it is another socket, or no process
 * has it. */
static bool look_at(const char *line, const char *theirs, const char *ours,
		    struct http_owner *owner)
{
	char local[48], remote[48];
	unsigned state, uid;
	unsigned long inode;

	if (sscanf(line, " %*u: %47s %47s %x %*s %*s %*s %u %*s %lu", local, remote, &state, &uid,
		   &inode) != 5 ||
	    strcmp(local, theirs) || strcmp(remote, ours) || !is_owned(state, (uint32_t)inode))
		return false;
	*owner = (struct http_owner){ .uid = uid, .inode = (uint32_t)inode };
	return true;
}

static bool look_up(const char *file, const struct end *theirs,
		    const struct end *ours, struct http_owner *owner)
{
	char line[256], a[48], b[48];
	FILE *f = fopen(file, "re");
	bool found = false;

	if (!f)
		return false;
	format_end(theirs, a, sizeof(a));
	format_end(ours, b, sizeof(b));
	while (!found && fgets(line, sizeof(line), f))
		found = look_at(line, a, b, owner);
	fclose(f);
	return found;
}

/* Is our end still connected? If it is now, it was when the kernel was asked for the other end, and
 * no other connection has had these addresses meanwhile. */
static bool is_connected(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       (info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT);
}

static bool find_owner(int fd, const struct end *theirs, const struct end *ours,
		       struct http_owner *owner)
{
	/* The kernel answers the same when it has no such socket and when it cannot look; once
	 * it has found one, it can. */
	static atomic_bool diag_works;
	enum found found = ask_diag(theirs, ours, owner);

	if (found == FOUND)
		atomic_store_explicit(&diag_works, true, memory_order_relaxed);
	else if (found == CANNOT_ASK && !atomic_load_explicit(&diag_works, memory_order_relaxed) &&
		 look_up(theirs->family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", theirs,
			 ours, owner))
		found = FOUND;
	return found == FOUND && is_connected(fd);
}

static bool read_ends(int fd, struct end *theirs, struct end *ours)
{
	struct sockaddr_storage theirs_raw, ours_raw;
	socklen_t theirs_len = sizeof(theirs_raw), ours_len = sizeof(ours_raw);

	return !getpeername(fd, (struct sockaddr *)&theirs_raw, &theirs_len) &&
	       !getsockname(fd, (struct sockaddr *)&ours_raw, &ours_len) &&
	       read_end(&theirs_raw, theirs) && read_end(&ours_raw, ours);
}

void http_peer_read(int fd, bool owner, struct http_peer *p)
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct end theirs, ours;

	memset(p, 0, sizeof(*p));
	snprintf(p->text, sizeof(p->text), "an unknown address");
	if (!read_ends(fd, &theirs, &ours))
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
	p->has_owner = owner && p->is_local && find_owner(fd, &theirs, &ours, &p->owner);
}

void http_peer_verify(int fd, struct http_peer *p)
{
	struct http_owner now;
	struct end theirs, ours;

	p->has_owner = p->has_owner && read_ends(fd, &theirs, &ours) &&
		       find_owner(fd, &theirs, &ours, &now) && now.uid == p->owner.uid &&
		       now.inode == p->owner.inode && now.cookie == p->owner.cookie;
}

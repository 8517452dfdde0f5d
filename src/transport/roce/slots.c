/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP port of RoCE v2 that processes share; see slots.h.
 *
 * The first socket is bound without SO_REUSEPORT, which fails as long as any other socket
 * has the port, those of processes that are about to end among them: the others would
 * otherwise join the old group and have other places in it. The option is set behind that,
 * and the second one makes the group.
 */
#define LOG_ROOM "roce"
#include "transport/roce/slots.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "hca/host/names.h"
#include "hca/run/progress.h"
#include "hca/share/peers.h"
#include "util/abstract.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif
#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif

#define DESCRIPTORS (ROCE_SLOTS + 1) /* of a message: the sockets, then the listener */
#define BACKLOG 128
#define OPEN_NS NSEC_PER_SEC
#define ANSWER_MS 250                  /* then another process is asked */
#define BUSY_NS (NSEC_PER_SEC * 3 / 10)  /* a group that ends is gone by then */
#define PAUSE_NS 2000000
#define IDLE_BYTES 4096                /* receive buffer of a slot of nobody */
#define LOOPBACK 1                     /* the kernel's index of that interface */

/* What comes with the descriptors. All processes are of one host, so numbers are as the
 * host stores them. */
struct handover {
	char magic[8];
	uint32_t version;
	uint32_t port;
	uint32_t slots;
	uint32_t shift;
};
#define HANDOVER_MAGIC "busbarRo"
#define HANDOVER_VERSION 1

static struct handover handover_for(uint16_t port)
{
	struct handover g = { .version = HANDOVER_VERSION, .port = port, .slots = ROCE_SLOTS,
			  .shift = ROCE_SLOT_SHIFT };

	memcpy(g.magic, HANDOVER_MAGIC, sizeof(g.magic));
	return g;
}

static void name_of(struct abstract_name *name, uint16_t port)
{
	abstract_name(name, "busbar.roce.%u", port);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void reset(struct roce_sockets *s, uint16_t port)
{
	s->listener = -1;
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		s->fds[i] = s->names[i] = -1;
	/* Last: whoever forks meanwhile closes the descriptors of what has a port. */
	atomic_signal_fence(memory_order_seq_cst);
	s->port = port;
}

static void close_all(struct roce_sockets *s)
{
	for (unsigned i = 0; i < ROCE_SLOTS; i++) {
		close_fd(&s->names[i]);
		close_fd(&s->fds[i]);
	}
	close_fd(&s->listener);
}

/* ---- making the sockets ---- */

static int set_one(int fd, int level, int option)
{
	return setsockopt(fd, level, option, &(int){ 1 }, sizeof(int)) ? -errno : 0;
}

static void set_idle(int fd)
{
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){ IDLE_BYTES }, sizeof(int));
}

static int filter_set(int fd, struct sock_filter *code, unsigned n)
{
	struct sock_fprog program = { (unsigned short)n, code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ?
		       -errno : 0;
}

/*
 * Packets of this host come from the port itself, which only this user's processes can be
 * bound to. The kernel drops those that another program sends from another port: unicast
 * ones are seen at the loopback interface, whatever their addresses, and copies for members
 * of groups have a type of their own. Offset 0 is the UDP header.
 */
static int port_filter_set(int fd, uint16_t port)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 4, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, 3, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_LOOPBACK, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};

	return filter_set(fd, code, ARRAY_SIZE(code));
}

static int bind_port(int fd, int family, uint16_t port)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	const struct sockaddr *any = family == AF_INET6 ? (struct sockaddr *)&v6 :
							  (struct sockaddr *)&v4;

	return bind(fd, any, family == AF_INET6 ? sizeof(v6) : sizeof(v4)) ? -errno : 0;
}

/* A socket, of both IP versions or of IPv4; `exclusive`: nobody else may have the port. */
static int socket_make(int family, uint16_t port, bool exclusive)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
	const int off = 0;
	int ret = 0;

	if (fd < 0)
		return -errno;
	/* Who has not joined a group gets none of its packets; where the kernel does not
	 * know the option, the owner of the slot drops them. */
	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off));
	if (family == AF_INET6) {
		setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &off, sizeof(off));
		if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
			ret = -errno;
	}
	set_idle(fd);
	if (!ret)
		ret = port_filter_set(fd, port);
	if (!ret && !exclusive)
		ret = set_one(fd, SOL_SOCKET, SO_REUSEPORT);
	if (!ret)
		ret = bind_port(fd, family, port);
	if (!ret && exclusive)
		ret = set_one(fd, SOL_SOCKET, SO_REUSEPORT);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* roce_slot_of() for the kernel. Offset 0 is the Base Transport Header; a packet that ends
 * before the byte that is loaded ends the program with slot 0. */
static int program_attach(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xffffff),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffff, 2, 0),
		BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, ROCE_SLOT_SHIFT),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		BPF_STMT(BPF_LD | BPF_IMM, 0),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ROCE_SLOTS - 1),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	struct sock_fprog program = { ARRAY_SIZE(code), code };

	_Static_assert((ROCE_SLOTS & (ROCE_SLOTS - 1)) == 0, "a mask of the block");
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
			  sizeof(program)) ? -errno : 0;
}

/* 0 or a negative errno; what was made is in s->fds then too. */
static int group_make(struct roce_sockets *s)
{
	int family = AF_INET6, ret = socket_make(family, s->port, true);

	if (ret == -EAFNOSUPPORT || ret == -EADDRNOTAVAIL) {
		family = AF_INET;
		ret = socket_make(family, s->port, true);
	}
	for (unsigned i = 0; ret >= 0; ) {
		s->fds[i++] = ret;
		if (i == ROCE_SLOTS)
			return program_attach(s->fds[0]);
		ret = socket_make(family, s->port, false);
	}
	return ret;
}

/* As the first process: 0; -EAGAIN: another one is quicker; or another negative errno. */
static int be_first(struct roce_sockets *s)
{
	struct abstract_name name;
	int ret;

	name_of(&name, s->port);
	ret = abstract_open(&name, SOCK_SEQPACKET, BACKLOG);
	if (ret < 0)
		return ret == -EADDRINUSE ? -EAGAIN : ret;
	s->listener = ret;
	ret = group_make(s);
	if (ret)
		close_all(s);
	return ret;
}

/* ---- giving them to another process ---- */

static void give(const struct roce_sockets *s, int fd)
{
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct handover g = handover_for(s->port);
	struct iovec iov = { &g, sizeof(g) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int fds[DESCRIPTORS];

	memcpy(fds, s->fds, sizeof(s->fds));
	fds[ROCE_SLOTS] = s->listener;
	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(fds)),
			       .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	/* It may have asked another process meanwhile, or ended. */
	if (sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EPIPE &&
	    hca_complaint_due())
		log_warn("the sockets of UDP port %u not given to another process: %s",
			 s->port, strerror(errno));
}

static void answer(const struct roce_sockets *s, int fd)
{
	struct ucred cred;

	if (hca_peer_cred(fd, &cred) && hca_peer_is_kin(&cred))
		give(s, fd);
	else if (hca_complaint_due())
		log_warn("pid %d of uid %u refused the sockets of UDP port %u: this process runs as uid %u",
			 (int)cred.pid, cred.uid, s->port, geteuid());
}

/* Every process of the group is called, and one of them gets the connection. Called for new
 * ones only (EPOLLET): where there is no descriptor for one, it waits for another process,
 * or ends and is made again. */
static void serve(void *arg, uint32_t events)
{
	const struct roce_sockets *s = arg;

	for (unsigned i = 0; i < 2 * BACKLOG; i++) {
		int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			if (errno != EAGAIN && hca_complaint_due())
				log_warn("no other process gets the sockets of UDP port %u from this one: %s",
					 s->port, strerror(errno));
			return;
		}
		answer(s, fd);
		close(fd);
	}
}

/* ---- getting them ---- */

static int int_option(int fd, int level, int option)
{
	socklen_t len = sizeof(int);
	int value = -1;

	return getsockopt(fd, level, option, &value, &len) ? -1 : value;
}

/* A UDP socket that is bound to the port of all addresses, of which the others may be. */
static bool is_of_group(int fd, uint16_t port)
{
	struct sockaddr_in6 name = { .sin6_family = AF_UNSPEC };
	struct sockaddr_in v4;
	socklen_t len = sizeof(name);

	if (int_option(fd, SOL_SOCKET, SO_TYPE) != SOCK_DGRAM ||
	    int_option(fd, SOL_SOCKET, SO_PROTOCOL) != IPPROTO_UDP ||
	    int_option(fd, SOL_SOCKET, SO_REUSEPORT) != 1 ||
	    getsockname(fd, (struct sockaddr *)&name, &len))
		return false;
	if (name.sin6_family == AF_INET6)
		return name.sin6_port == htons(port) &&
		       IN6_IS_ADDR_UNSPECIFIED(&name.sin6_addr);
	memcpy(&v4, &name, sizeof(v4));
	return v4.sin_family == AF_INET && v4.sin_port == htons(port) &&
	       v4.sin_addr.s_addr == htonl(INADDR_ANY);
}

/* The socket that listens under our name. */
static bool is_listener(int fd, uint16_t port)
{
	struct abstract_name name, has = { .len = sizeof(has.address) };

	name_of(&name, port);
	return int_option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1 &&
	       int_option(fd, SOL_SOCKET, SO_TYPE) == SOCK_SEQPACKET &&
	       !getsockname(fd, (struct sockaddr *)&has.address, &has.len) &&
	       has.len == name.len && !memcmp(&has.address, &name.address, name.len);
}

/* One descriptor twice would be two slots of one socket. */
static bool are_different(const int *fds, unsigned n)
{
	uint64_t cookies[ROCE_SLOTS];

	for (unsigned i = 0; i < n; i++) {
		socklen_t len = sizeof(cookies[i]);

		if (getsockopt(fds[i], SOL_SOCKET, SO_COOKIE, &cookies[i], &len))
			return false;
		for (unsigned k = 0; k < i; k++)
			if (cookies[k] == cookies[i])
				return false;
	}
	return true;
}

/* 0: it is what give() sends, and s has the descriptors. Else they are the caller's. */
static int handover_take(struct roce_sockets *s, const struct handover *g, ssize_t bytes,
		     const int *fds, unsigned count)
{
	const struct handover want = handover_for(s->port);

	if (bytes != sizeof(*g) || memcmp(g, &want, sizeof(*g)) != 0 ||
	    count != DESCRIPTORS || !is_listener(fds[ROCE_SLOTS], s->port))
		return -EPROTO;
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		if (!is_of_group(fds[i], s->port))
			return -EPROTO;
	if (!are_different(fds, ROCE_SLOTS))
		return -EPROTO;
	memcpy(s->fds, fds, sizeof(s->fds));
	s->listener = fds[ROCE_SLOTS];
	/* A process of a version without the filter may have made these sockets. Those of the other
	 * slots get the filter when they are claimed. */
	return port_filter_set(fds[0], s->port);
}

/* All descriptors of the message, which may have been made by anybody of our user. */
static unsigned descriptors_of(struct msghdr *m, int fds[DESCRIPTORS])
{
	unsigned count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; at + sizeof(int) <= bytes; at += sizeof(int)) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + at, sizeof(fd));
			if (count < DESCRIPTORS)
				fds[count++] = fd;
			else
				close(fd);
		}
	}
	return count;
}

/* 0; -EAGAIN: nothing came, ask again; or another negative errno. */
static int handover_receive(struct roce_sockets *s, int from)
{
	/* The kernel rounds the room for descriptors up to its alignment. */
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(DESCRIPTORS * sizeof(int))];
	} control;
	struct handover g;
	struct iovec iov = { &g, sizeof(g) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			    .msg_controllen = sizeof(control) };
	int fds[DESCRIPTORS], ret;
	ssize_t bytes = recvmsg(from, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	unsigned count;

	if (bytes <= 0) /* its process has ended, or had no room for the connection */
		return -EAGAIN;
	count = descriptors_of(&m, fds);
	if (m.msg_flags & MSG_CTRUNC && count < DESCRIPTORS)
		ret = -EMFILE;
	else if (m.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		ret = -EPROTO;
	else
		ret = handover_take(s, &g, bytes, fds, count);
	while (ret && count)
		close(fds[--count]);
	return ret;
}

/* From another process: 0; -ECONNREFUSED: there is none; -EAGAIN: ask again; or another
 * negative errno. */
static int ask(struct roce_sockets *s, struct ucred *holder)
{
	struct abstract_name name;
	struct pollfd p = { .events = POLLIN };
	int ret;

	name_of(&name, s->port);
	p.fd = abstract_connect(&name);
	if (p.fd < 0)
		return p.fd == -EINTR ? -EAGAIN : p.fd;
	if (!hca_peer_cred(p.fd, holder) || !hca_peer_is_kin(holder))
		ret = -EACCES;
	else if (poll(&p, 1, ANSWER_MS) == 1)
		ret = handover_receive(s, p.fd);
	else
		ret = -EAGAIN;
	close(p.fd);
	return ret;
}

/* ---- open and close ---- */

static void complain(const struct roce_sockets *s, int ret, const struct ucred *holder)
{
	struct rlimit files = { .rlim_cur = 0 };

	switch (ret) {
	case -EACCES:
		log_error("UDP port %u is shared by processes of uid %u (pid %d made it), and this one runs as uid %u: run all as one user, or this one in a network namespace of its own or with another port",
			  s->port, holder->uid, (int)holder->pid, geteuid());
		break;
	case -EADDRINUSE:
		log_error("UDP port %u is taken by another program, or by the kernel's rdma_rxe: `rdma link` lists its devices, and `rdma link delete NAME` removes one; or use a network namespace of your own",
			  s->port);
		break;
	case -EMFILE:
		getrlimit(RLIMIT_NOFILE, &files);
		log_error("sharing UDP port %u takes %d descriptors and this process may have %llu: raise its limit (ulimit -n)",
			  s->port, DESCRIPTORS + 1, (unsigned long long)files.rlim_cur);
		break;
	case -ETIMEDOUT:
		log_error("UDP port %u is shared by processes none of which answers (pid %d made it): are they stopped?",
			  s->port, (int)holder->pid);
		break;
	case -EPROTO:
		log_error("the process that shares UDP port %u is of another version: end it, or use the same version",
			  s->port);
		break;
	default:
		log_error("no sockets of UDP port %u: %s", s->port, strerror(-ret));
	}
}

static void pause_a_little(void)
{
	const struct timespec t = { .tv_nsec = PAUSE_NS };

	nanosleep(&t, NULL);
}

/* 0, or a negative errno that stays. */
static int sockets_get(struct roce_sockets *s, struct ucred *holder)
{
	uint64_t start = progress_now_ns(), now;

	for (;;) {
		int ret = ask(s, holder);

		if (ret == -ECONNREFUSED)
			ret = be_first(s);
		now = progress_now_ns();
		if (ret == -EAGAIN && now - start >= OPEN_NS)
			return -ETIMEDOUT;
		if (ret != -EAGAIN && (ret != -EADDRINUSE || now - start >= BUSY_NS))
			return ret;
		pause_a_little();
	}
}

int roce_sockets_open(struct roce_sockets *s, uint16_t port)
{
	struct ucred holder = { 0 };
	int ret;

	reset(s, port);
	if (!port)
		return -EINVAL;
	ret = sockets_get(s, &holder);
	if (ret) {
		complain(s, ret, &holder);
		s->port = 0;
		return ret;
	}
	pthread_mutex_init(&s->lock, NULL);
	ret = progress_watch(s->listener, EPOLLIN | EPOLLET, serve, s);
	if (!ret)
		return 0;
	log_error("UDP port %u is not shared: %s", port, strerror(-ret));
	pthread_mutex_destroy(&s->lock);
	close_all(s);
	s->port = 0;
	return ret;
}

void roce_sockets_close(struct roce_sockets *s)
{
	if (!s->port)
		return;
	progress_unwatch(s->listener);
	for (unsigned i = 0; i < ROCE_SLOTS; i++)
		roce_slot_release(s, i);
	close_all(s);
	pthread_mutex_destroy(&s->lock);
	s->port = 0;
}

void roce_sockets_forked(struct roce_sockets *s)
{
	if (s->port) /* else its descriptors may be zeros */
		close_all(s);
	s->port = 0;
}

/* ---- slots ---- */

/* Without new ones meanwhile, so that it ends whatever comes. */
static void queue_empty(int fd, uint16_t port)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	unsigned dropped = 0;
	char byte;
	int ret = filter_set(fd, &nothing, 1);

	if (ret)
		log_debug("packets come while a slot is emptied: %s", strerror(-ret));
	while (dropped < 1u << 20 &&
	       (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_TRUNC) >= 0 || errno != EAGAIN))
		dropped++;
	ret = port_filter_set(fd, port);
	if (ret)
		log_error("no packets are received at UDP port %u: %s", port, strerror(-ret));
	log_debug("slot emptied, packets dropped %u", dropped);
}

int roce_slot_reserve(uint16_t port, unsigned slot)
{
	char name[64];

	snprintf(name, sizeof(name), "busbar.roce.%u.slot.%u", port, slot);
	return hca_name_bind(name);
}

void roce_slot_take(struct roce_sockets *s, unsigned slot, int name)
{
	pthread_mutex_lock(&s->lock);
	s->names[slot] = name;
	queue_empty(s->fds[slot], s->port);
	pthread_mutex_unlock(&s->lock);
}

int roce_slot_claim(struct roce_sockets *s, unsigned slot)
{
	int name = roce_slot_reserve(s->port, slot);

	if (name < 0)
		return name;
	roce_slot_take(s, slot, name);
	return 0;
}

void roce_slot_release(struct roce_sockets *s, unsigned slot)
{
	pthread_mutex_lock(&s->lock);
	if (s->names[slot] >= 0) {
		set_idle(s->fds[slot]);
		close_fd(&s->names[slot]);
	}
	pthread_mutex_unlock(&s->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA netlink with soft0: what rdma(8) asks the kernel. The program's socket is one of
 * NETLINK_USERSOCK, by which processes send to each other, so that it exists in every kernel,
 * and its address, its options and all ways to wait for it are real. A request that the program
 * sends to the kernel is answered here, before the call returns: with what `busbar exec` has
 * written of soft0, and with what the kernel answers to the same request, where it has RDMA.
 *
 * Notifications of the kernel do not arrive.
 */
#include "paths/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REQUEST_MAX 2048
#define FILE_MAX 1024
#define KERNEL_MAX 8192 /* the kernel makes its messages as long as the receiver's buffer */

static atomic_bool used;

/* A request, and where the answers go. */
struct asked {
	const struct nlmsghdr *h;
	struct sockaddr_nl to;
	int fd; /* sends the answers */
};

static bool is_dump(const struct asked *a)
{
	return (a->h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
}

static unsigned command_of(const struct asked *a)
{
	return RDMA_NL_GET_CLIENT(a->h->nlmsg_type) == RDMA_NL_NLDEV ?
		       (unsigned)RDMA_NL_GET_OP(a->h->nlmsg_type) : RDMA_NLDEV_CMD_UNSPEC;
}

/* The value of a 32-bit attribute; false: the request has none. */
static bool attribute(const struct asked *a, uint16_t type, uint32_t *value)
{
	const uint8_t *at = (const uint8_t *)a->h + NLMSG_HDRLEN;
	size_t left = a->h->nlmsg_len - NLMSG_HDRLEN;
	struct nlattr attr;

	while (left >= sizeof(attr)) {
		memcpy(&attr, at, sizeof(attr));
		if (attr.nla_len < sizeof(attr) || attr.nla_len > left)
			return false;
		if ((attr.nla_type & NLA_TYPE_MASK) == type &&
		    attr.nla_len >= NLA_HDRLEN + sizeof(*value)) {
			memcpy(value, at + NLA_HDRLEN, sizeof(*value));
			return true;
		}
		if ((size_t)NLA_ALIGN(attr.nla_len) >= left)
			return false;
		at += NLA_ALIGN(attr.nla_len);
		left -= NLA_ALIGN(attr.nla_len);
	}
	return false;
}

/* ---- answers ---- */

/* To the program's socket, which has room for far more than these. */
static void deliver(const struct asked *a, const void *bytes, size_t length)
{
	PATHS_REAL(sendto)(a->fd, bytes, length, MSG_DONTWAIT, (const struct sockaddr *)&a->to,
			   sizeof(a->to));
}

static void answer(const struct asked *a, uint16_t type, const void *payload, size_t length)
{
	union {
		struct nlmsghdr h;
		uint8_t bytes[NLMSG_HDRLEN + FILE_MAX + sizeof(struct nlmsgerr)];
	} m = { .h = {
		.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + length),
		.nlmsg_type = type,
		.nlmsg_flags = is_dump(a) ? NLM_F_MULTI : 0,
		.nlmsg_seq = a->h->nlmsg_seq,
		.nlmsg_pid = a->to.nl_pid,
	} };

	memcpy(m.bytes + NLMSG_HDRLEN, payload, length);
	deliver(a, &m, NLMSG_ALIGN(m.h.nlmsg_len));
}

/* Ends the answer to a request: with the end of a dump, an error, or the acknowledgement if the
 * request asks for one. */
static void finish(const struct asked *a, int error)
{
	struct nlmsgerr e = { .error = error, .msg = *a->h };

	if (is_dump(a) && !error)
		answer(a, NLMSG_DONE, &error, sizeof(error));
	else if (error || a->h->nlmsg_flags & NLM_F_ACK)
		answer(a, NLMSG_ERROR, &e, sizeof(e));
}

/* Answers with the attributes that `busbar exec` has written of a device (`port` 0) or a port;
 * false: there are none. */
static bool answer_file(const struct asked *a, uint32_t device, uint32_t port)
{
	uint8_t bytes[FILE_MAX];
	char path[PATHS_MAX];
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%s/netlink/%u.%u", paths_root(), device, port);
	fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = syscall(SYS_read, fd, bytes, sizeof(bytes));
	syscall(SYS_close, fd);
	if (length > 0)
		answer(a, a->h->nlmsg_type, bytes, (size_t)length);
	return length > 0;
}

/* One message for each device, or for each port of one. */
static void answer_all(const struct asked *a)
{
	uint32_t device, port = 1;
	struct dirent *e;
	char path[PATHS_MAX];
	DIR *d;

	if (command_of(a) == RDMA_NLDEV_CMD_PORT_GET) {
		if (attribute(a, RDMA_NLDEV_ATTR_DEV_INDEX, &device))
			while (answer_file(a, device, port))
				port++;
		return;
	}
	snprintf(path, sizeof(path), "%s/netlink", paths_root());
	d = PATHS_REAL(opendir)(path);
	while (d && (e = readdir(d)))
		if (sscanf(e->d_name, "%u.%u", &device, &port) == 2 && !port)
			answer_file(a, device, 0);
	if (d)
		closedir(d);
}

/* ---- the kernel's ---- */

/* Hands messages of the kernel on, up to the end of a dump. False: the end has come. */
static bool hand_on(const struct asked *a, uint8_t *bytes, size_t length)
{
	size_t at = 0;
	bool more = true;

	while (more && length - at >= NLMSG_HDRLEN) {
		struct nlmsghdr *h = (struct nlmsghdr *)(void *)(bytes + at);

		if (h->nlmsg_len < NLMSG_HDRLEN || h->nlmsg_len > length - at)
			break;
		if (h->nlmsg_type == NLMSG_DONE) {
			more = false;
			break;
		}
		h->nlmsg_pid = a->to.nl_pid;
		at += NLMSG_ALIGN(h->nlmsg_len) < length - at ? NLMSG_ALIGN(h->nlmsg_len) :
								length - at;
	}
	if (at)
		deliver(a, bytes, at);
	return more;
}

/* Asks the kernel, and hands its answers on except for the end of a dump. False: this kernel has
 * no RDMA. */
static bool ask_kernel(const struct asked *a)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[KERNEL_MAX];
	const struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = PATHS_REAL(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	ssize_t n;

	if (fd < 0)
		return false;
	n = PATHS_REAL(sendto)(fd, a->h, a->h->nlmsg_len, 0, (const struct sockaddr *)&kernel,
			       sizeof(kernel));
	/* It answers before sendto() returns, and goes on with a dump in each recv(). */
	while (n >= 0 && (n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0 &&
	       hand_on(a, bytes, (size_t)n))
		;
	syscall(SYS_close, fd);
	return true;
}

/* ---- requests ---- */

static void answer_system(const struct asked *a)
{
	/* Values of the kernel's default: devices are in all network namespaces, and fork()
	 * does no harm. */
	const struct {
		struct nlattr mode_attr;
		uint8_t mode, pad[3];
		struct nlattr fork_attr;
		uint8_t fork, pad2[3];
	} m = { { NLA_HDRLEN + 1, RDMA_NLDEV_SYS_ATTR_NETNS_MODE }, 1, { 0 },
		{ NLA_HDRLEN + 1, RDMA_NLDEV_SYS_ATTR_COPY_ON_FORK }, 1, { 0 } };

	answer(a, a->h->nlmsg_type, &m, sizeof(m));
	finish(a, 0);
}

static void serve(const struct asked *a)
{
	unsigned command = command_of(a);
	bool ours = command == RDMA_NLDEV_CMD_GET || command == RDMA_NLDEV_CMD_PORT_GET;
	uint32_t device, port = 0;

	if (is_dump(a)) {
		ask_kernel(a);
		if (ours)
			answer_all(a);
		finish(a, 0);
		return;
	}
	if (ours && attribute(a, RDMA_NLDEV_ATTR_DEV_INDEX, &device) &&
	    (command == RDMA_NLDEV_CMD_GET || attribute(a, RDMA_NLDEV_ATTR_PORT_INDEX, &port)) &&
	    answer_file(a, device, port)) {
		finish(a, 0);
		return;
	}
	if (ask_kernel(a))
		return;
	if (command == RDMA_NLDEV_CMD_SYS_GET)
		answer_system(a);
	else
		finish(a, ours ? -EINVAL : -EOPNOTSUPP);
}

/* Answers all requests of a message that the program sends. */
static void serve_all(int fd, const uint8_t *bytes, size_t length)
{
	socklen_t size = sizeof(struct sockaddr_nl);
	struct asked a = { .to = { .nl_family = AF_NETLINK } };
	int err = errno;

	/* As the kernel does when an unbound socket sends. */
	if (getsockname(fd, (struct sockaddr *)&a.to, &size) || !a.to.nl_pid) {
		struct sockaddr_nl any = { .nl_family = AF_NETLINK };

		bind(fd, (const struct sockaddr *)&any, sizeof(any));
		getsockname(fd, (struct sockaddr *)&a.to, &size);
	}
	a.to.nl_groups = 0;
	a.fd = PATHS_REAL(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_USERSOCK);
	for (size_t at = 0; a.fd >= 0 && length - at >= NLMSG_HDRLEN;) {
		a.h = (const struct nlmsghdr *)(const void *)(bytes + at);
		if (a.h->nlmsg_len < NLMSG_HDRLEN || a.h->nlmsg_len > length - at)
			break;
		if (a.h->nlmsg_flags & NLM_F_REQUEST)
			serve(&a);
		at += NLMSG_ALIGN(a.h->nlmsg_len) < length - at ? NLMSG_ALIGN(a.h->nlmsg_len) :
								  length - at;
	}
	if (a.fd >= 0)
		syscall(SYS_close, a.fd);
	errno = err;
}

/* ---- the calls ---- */

static int option(int fd, int name)
{
	socklen_t size = sizeof(int);
	int value = -1;

	return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? -1 : value;
}

/* Is it a message to the kernel, by a socket that stands for one of RDMA? */
static bool is_request(int fd, const struct sockaddr *to, socklen_t size)
{
	struct sockaddr_nl kernel;
	bool request;
	int err = errno;

	if (__builtin_expect(!atomic_load_explicit(&used, memory_order_relaxed), 1))
		return false;
	if (to && (size < sizeof(kernel) || to->sa_family != AF_NETLINK))
		return false;
	if (to) {
		memcpy(&kernel, to, sizeof(kernel));
		if (kernel.nl_pid)
			return false;
	}
	request = option(fd, SO_DOMAIN) == AF_NETLINK &&
		  option(fd, SO_PROTOCOL) == NETLINK_USERSOCK;
	errno = err;
	return request;
}

/* Has `busbar exec` written of any device? */
static bool has_devices(void)
{
	char path[PATHS_MAX];
	int err = errno;
	bool has;

	if (!paths_root()[0])
		return false;
	snprintf(path, sizeof(path), "%s/netlink", paths_root());
	has = !syscall(SYS_faccessat, AT_FDCWD, path, F_OK);
	errno = err;
	return has;
}

PATHS_EXPORT int socket(int domain, int type, int protocol)
{
	int fd;

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA || !has_devices())
		return PATHS_REAL(socket)(domain, type, protocol);
	fd = PATHS_REAL(socket)(domain, type, NETLINK_USERSOCK);
	if (fd < 0)
		return PATHS_REAL(socket)(domain, type, protocol);
	atomic_store_explicit(&used, true, memory_order_relaxed);
	paths_note();
	return fd;
}

PATHS_EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[REQUEST_MAX];
	size_t length = 0;

	if (__builtin_expect(!is_request(fd, msg->msg_name, msg->msg_namelen), 1))
		return PATHS_REAL(sendmsg)(fd, msg, flags);
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len > sizeof(bytes) - length) {
			errno = EMSGSIZE;
			return -1;
		}
		memcpy(bytes + length, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		length += msg->msg_iov[i].iov_len;
	}
	serve_all(fd, bytes, length);
	return (ssize_t)length;
}

PATHS_EXPORT ssize_t sendto(int fd, const void *data, size_t length, int flags,
			    const struct sockaddr *to, socklen_t size)
{
	struct iovec iov = { (void *)(uintptr_t)data, length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (__builtin_expect(!is_request(fd, to, size), 1))
		return PATHS_REAL(sendto)(fd, data, length, flags, to, size);
	return sendmsg(fd, &msg, flags);
}

PATHS_EXPORT ssize_t send(int fd, const void *data, size_t length, int flags)
{
	if (__builtin_expect(!is_request(fd, NULL, 0), 1))
		return PATHS_REAL(send)(fd, data, length, flags);
	return sendto(fd, data, length, flags, NULL, 0);
}

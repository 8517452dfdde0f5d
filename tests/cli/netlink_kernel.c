/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In the place of a kernel that has RDMA netlink, for netlink.c: loaded behind libbusbar-paths.so,
 * which calls socket() and sendto() of this library. There is one device, rxe0, of number 0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int asked = -1, answers = -1; /* the latest socket, and its other end */

static void answer(const struct nlmsghdr *h, unsigned short type, int value)
{
	/* An error, the end of a dump, or the attribute of the device's number. */
	struct {
		struct nlmsghdr h;
		union {
			struct nlmsgerr e;
			int value;
			struct {
				struct nlattr a;
				unsigned value;
			} device;
		};
	} m = { .h = { .nlmsg_len = sizeof(m.h) + 8, .nlmsg_type = type,
		       .nlmsg_seq = h->nlmsg_seq, .nlmsg_pid = 99 } };

	if (type == NLMSG_ERROR) {
		m.e = (struct nlmsgerr){ .error = value, .msg = *h };
		m.h.nlmsg_len = sizeof(m.h) + sizeof(m.e);
	} else if (type == NLMSG_DONE) {
		m.value = 0;
		m.h.nlmsg_len = sizeof(m.h) + sizeof(m.value);
	} else {
		m.device.a = (struct nlattr){ 8, RDMA_NLDEV_ATTR_DEV_INDEX };
	}
	if (write(answers, &m, m.h.nlmsg_len) < 0)
		asked = -1;
}

int socket(int domain, int type, int protocol)
{
	int (*real)(int, int, int) = (__typeof__(real))dlsym(RTLD_NEXT, "socket");
	int pair[2];

	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return real(domain, type, protocol);
	if (answers >= 0)
		close(answers);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair))
		return -1;
	asked = pair[0];
	answers = pair[1];
	return asked;
}

ssize_t sendto(int fd, const void *data, size_t length, int flags, const struct sockaddr *to,
	       socklen_t size)
{
	__typeof__(&sendto) real = (__typeof__(real))dlsym(RTLD_NEXT, "sendto");
	const struct nlmsghdr *h = data;
	unsigned device = 0;

	if (fd != asked)
		return real(fd, data, length, flags, to, size);
	if (length >= NLMSG_HDRLEN + 8)
		memcpy(&device, (const char *)data + NLMSG_HDRLEN + 4, sizeof(device));
	if ((h->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP) {
		answer(h, h->nlmsg_type, 0);
		answer(h, NLMSG_DONE, 0);
	} else if (device) {
		answer(h, NLMSG_ERROR, -EINVAL);
	} else {
		answer(h, h->nlmsg_type, 0);
		if (h->nlmsg_flags & NLM_F_ACK)
			answer(h, NLMSG_ERROR, 0);
	}
	return (ssize_t)length;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Run by `busbar exec`: RDMA netlink has soft0, as rdma(8) asks for it.
 *
 * Usage: netlink [kernel] (with netlink_kernel.c, in which the kernel has rxe0), or netlink none
 * (where there is no soft0 and the kernel has no RDMA).
 */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOFT0 = 1 << 20, SEQUENCE = 4711, UNKNOWN = 12345 };
enum how { SEND, SENDTO, SENDMSG, HOWS };

static bool kernel;

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			printf("failed: line %d: %s (errno %d)\n", __LINE__, #condition,  \
			       errno);                                                    \
			_exit(1);                                                         \
		}                                                                         \
	} while (0)

struct request {
	struct nlmsghdr h;
	struct {
		struct nlattr a;
		uint32_t value;
	} device, port;
};

/* What has come for a request. */
struct got {
	int soft0, rxe0;       /* messages about each */
	bool done, ack, named; /* `named`: they have the device's name */
	int error;
	bool interface;        /* of a port */
};

static void send_request(int fd, const struct request *r, enum how how)
{
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	struct iovec iov[2] = { { (void *)(uintptr_t)&r->h, sizeof(r->h) },
				{ (void *)(uintptr_t)&r->device, r->h.nlmsg_len - sizeof(r->h) } };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = iov,
			    .msg_iovlen = 2 };
	ssize_t n = how == SEND	  ? send(fd, r, r->h.nlmsg_len, 0) :
		    how == SENDTO ? sendto(fd, r, r->h.nlmsg_len, 0, (struct sockaddr *)&to,
					   sizeof(to)) :
				    sendmsg(fd, &m, 0);

	CHECK(n == (ssize_t)r->h.nlmsg_len);
}

static void look_at(const struct nlmsghdr *h, struct got *got)
{
	const uint8_t *at = (const uint8_t *)h + NLMSG_HDRLEN, *end = (const uint8_t *)h + h->nlmsg_len;
	uint32_t device = 0;

	while (at < end) {
		struct nlattr a;

		memcpy(&a, at, sizeof(a));
		CHECK(a.nla_len >= sizeof(a) && a.nla_len <= end - at);
		if (a.nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
			memcpy(&device, at + NLA_HDRLEN, sizeof(device));
		if (a.nla_type == RDMA_NLDEV_ATTR_DEV_NAME && device == SOFT0)
			got->named = !strcmp((const char *)at + NLA_HDRLEN, "soft0");
		if (a.nla_type == RDMA_NLDEV_ATTR_NDEV_NAME)
			got->interface = at[NLA_HDRLEN];
		at += NLA_ALIGN(a.nla_len);
	}
	got->soft0 += device == SOFT0;
	got->rxe0 += device == 0;
}

/* All that comes; nothing comes later than the request has been sent. */
static struct got receive(int fd, uint16_t type)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[8192];
	struct sockaddr_nl own, from;
	socklen_t size = sizeof(own);
	struct got got = { 0 };
	ssize_t n;

	CHECK(!getsockname(fd, (struct sockaddr *)&own, &size) && own.nl_pid);
	for (;;) {
		size = sizeof(from);
		n = recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from,
			     &size);
		if (n < 0)
			break;
		CHECK(size == sizeof(from) && from.nl_family == AF_NETLINK);
		for (const struct nlmsghdr *h = (void *)bytes; NLMSG_OK(h, n);
		     h = NLMSG_NEXT(h, n)) {
			CHECK(h->nlmsg_seq == SEQUENCE && h->nlmsg_pid == own.nl_pid && !got.done);
			if (h->nlmsg_type == NLMSG_DONE) {
				got.done = true;
			} else if (h->nlmsg_type == NLMSG_ERROR) {
				got.error = ((const struct nlmsgerr *)NLMSG_DATA(h))->error;
				got.ack = !got.error;
			} else {
				CHECK(h->nlmsg_type == type);
				look_at(h, &got);
			}
		}
	}
	return got;
}

static void ask(int command, uint32_t device, bool dump, bool acknowledge, enum how how)
{
	bool port = command == RDMA_NLDEV_CMD_PORT_GET, system = command == RDMA_NLDEV_CMD_SYS_GET;
	bool known = command == RDMA_NLDEV_CMD_GET || port;
	struct request r = {
		.h = { .nlmsg_len = known && (port || !dump) ? sizeof(r) : sizeof(r.h),
		       .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
		       .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (dump ? NLM_F_DUMP : 0) |
						 (acknowledge ? NLM_F_ACK : 0)),
		       .nlmsg_seq = SEQUENCE },
		.device = { { 8, RDMA_NLDEV_ATTR_DEV_INDEX }, device },
		.port = { { 8, RDMA_NLDEV_ATTR_PORT_INDEX }, 1 },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct sockaddr_nl any = { .nl_family = AF_NETLINK };
	bool soft0 = device == SOFT0 || (dump && !port);
	struct got got;

	CHECK(fd >= 0);
	if (how != SENDTO) /* else it is bound by sending */
		CHECK(!bind(fd, (struct sockaddr *)&any, sizeof(any)));
	send_request(fd, &r, how);
	got = receive(fd, r.h.nlmsg_type);
	close(fd);
	CHECK(got.done == dump);
	if (known) {
		CHECK(got.soft0 == soft0 && got.named == soft0);
		CHECK(got.interface == (port && soft0));
		CHECK(got.rxe0 == (kernel && (dump || device == 0)));
		if (!dump && !got.soft0 && !got.rxe0)
			CHECK(got.error < 0);
	} else if (!dump && !kernel && !system) {
		CHECK(got.error == -EOPNOTSUPP);
	}
	CHECK(got.ack == (acknowledge && !dump && !got.error));
}

int main(int argc, char **argv)
{
	static const int commands[] = { RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_PORT_GET,
					RDMA_NLDEV_CMD_SYS_GET, RDMA_NLDEV_CMD_RES_QP_GET,
					RDMA_NLDEV_CMD_STAT_GET };
	static const uint32_t devices[] = { SOFT0, 0, UNKNOWN };

	kernel = argc > 1 && !strcmp(argv[1], "kernel");
	if (argc > 1 && !strcmp(argv[1], "none")) {
		CHECK(socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA) == -1);
		return 0;
	}
	for (unsigned i = 0; i < 5 * 3 * 2 * 2 * HOWS; i++)
		ask(commands[i % 5], devices[i / 5 % 3], i / 15 % 2, i / 30 % 2,
		    (enum how)(i / 60));
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A pair of veth interfaces by rtnetlink(7); see namespaces.h. */
#define LOG_ROOM "bench/node"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/node/namespaces.h"

#define MESSAGE_BYTES 1024

struct message {
	struct nlmsghdr header;
	struct ifinfomsg link;
	char attributes[MESSAGE_BYTES];
};

/* Where the next attribute begins. */
static struct rtattr *tail(struct message *m)
{
	return (struct rtattr *)((char *)m + NLMSG_ALIGN(m->header.nlmsg_len));
}

static void add(struct message *m, unsigned short type, const void *data, size_t size)
{
	struct rtattr *a = tail(m);

	a->rta_type = type;
	a->rta_len = (unsigned short)RTA_LENGTH(size);
	if (size)
		memcpy(RTA_DATA(a), data, size);
	m->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(m->header.nlmsg_len) +
					 RTA_ALIGN(RTA_LENGTH(size)));
}

/* What is added from now on belongs to the attribute that is returned, until close_group(). */
static struct rtattr *open_group(struct message *m, unsigned short type)
{
	struct rtattr *a = tail(m);

	add(m, type, NULL, 0);
	return a;
}

static void close_group(struct message *m, struct rtattr *a)
{
	a->rta_len = (unsigned short)((char *)tail(m) - (char *)a);
}

static int send_message(const struct message *m)
{
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[MESSAGE_BYTES];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int ret = -EIO;

	if (fd < 0)
		return -errno;
	if (send(fd, m, m->header.nlmsg_len, 0) < 0)
		ret = -errno;
	else if (recv(fd, &answer, sizeof(answer), 0) >=
			 (ssize_t)(sizeof(answer.header) + sizeof(int)) &&
		 answer.header.nlmsg_type == NLMSG_ERROR)
		ret = answer.error.error;
	close(fd);
	return ret;
}

int bench_node_cable_make(const char *name, const char *other, pid_t to)
{
	struct message m = {
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(m.link)),
			    .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE |
					   NLM_F_EXCL | NLM_F_ACK },
		.link = { .ifi_family = AF_UNSPEC },
	};
	struct rtattr *info, *data, *peer;
	uint32_t pid = (uint32_t)to;

	add(&m, IFLA_IFNAME, name, strlen(name) + 1);
	info = open_group(&m, IFLA_LINKINFO);
	add(&m, IFLA_INFO_KIND, "veth", strlen("veth"));
	data = open_group(&m, IFLA_INFO_DATA);
	peer = open_group(&m, VETH_INFO_PEER);
	/* The other end has a head of its own. */
	m.header.nlmsg_len += (uint32_t)sizeof(struct ifinfomsg);
	add(&m, IFLA_IFNAME, other, strlen(other) + 1);
	add(&m, IFLA_NET_NS_PID, &pid, sizeof(pid));
	close_group(&m, peer);
	close_group(&m, data);
	close_group(&m, info);
	return send_message(&m);
}

static int set_up(int fd, const char *name)
{
	struct ifreq r = { 0 };

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	if (ioctl(fd, SIOCGIFFLAGS, &r))
		return -errno;
	r.ifr_flags |= IFF_UP;
	return ioctl(fd, SIOCSIFFLAGS, &r) ? -errno : 0;
}

static int set_address(int fd, const char *name, unsigned long request,
		       const char *address)
{
	struct ifreq r = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET };

	strncpy(r.ifr_name, name, IFNAMSIZ - 1);
	inet_pton(AF_INET, address, &a.sin_addr);
	memcpy(&r.ifr_addr, &a, sizeof(a));
	return ioctl(fd, request, &r) ? -errno : 0;
}

int bench_node_cable_up(const char *name, const char *address)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = set_address(fd, name, SIOCSIFADDR, address);
	if (!ret)
		ret = set_address(fd, name, SIOCSIFNETMASK, "255.255.255.252");
	if (!ret)
		ret = set_up(fd, name);
	if (!ret)
		ret = set_up(fd, "lo");
	close(fd);
	return ret;
}

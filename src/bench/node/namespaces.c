/* SPDX-License-Identifier: BSD-2-Clause */
/* See namespaces.h. */
#define LOG_ROOM "bench/node"
#include "bench/node/namespaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/tune/tree.h"
#include "util/log.h"
#include "util/spawn.h"

/* ---- a pair of veth interfaces, by rtnetlink(7) in the namespace of the caller ---- */

#define INTERFACE_SOURCE "busbar0"
#define INTERFACE_TARGET "busbar1"

/* The message that makes the cable. `info`, `data` and `peer_head` hold all that follows them. */
struct cable {
	struct nlmsghdr header;
	struct ifinfomsg link;
	struct rtattr name_head;
	char name[8];
	struct rtattr info, kind_head;
	char kind[4];
	struct rtattr data, peer_head;
	struct ifinfomsg peer;
	struct rtattr other_head;
	char other[8];
	struct rtattr pid_head;
	uint32_t pid;
};

#define HEAD(type, bytes) { .rta_len = RTA_LENGTH(bytes), .rta_type = (type) }
#define REST(type, member) { .rta_len = sizeof(struct cable) - offsetof(struct cable, member), \
			     .rta_type = (type) }

/* Makes the cable from here to the namespace of process `to`. 0 or a negative errno. */
static int make_cable(pid_t to)
{
	const struct cable m = {
		.header = { .nlmsg_len = sizeof(m), .nlmsg_type = RTM_NEWLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK },
		.link = { .ifi_family = AF_UNSPEC },
		.name_head = HEAD(IFLA_IFNAME, sizeof(m.name)), .name = INTERFACE_SOURCE,
		.info = REST(IFLA_LINKINFO, info),
		.kind_head = HEAD(IFLA_INFO_KIND, sizeof(m.kind)), .kind = "veth",
		.data = REST(IFLA_INFO_DATA, data),
		.peer_head = REST(VETH_INFO_PEER, peer_head),
		.other_head = HEAD(IFLA_IFNAME, sizeof(m.other)), .other = INTERFACE_TARGET,
		.pid_head = HEAD(IFLA_NET_NS_PID, sizeof(m.pid)), .pid = (uint32_t)to,
	};
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[sizeof(m)];
	} answer;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int ret = -EIO;

	if (fd < 0)
		return -errno;
	if (send(fd, &m, sizeof(m), 0) < 0)
		ret = -errno;
	else if (recv(fd, &answer, sizeof(answer), 0) >=
			 (ssize_t)(sizeof(answer.header) + sizeof(int)) &&
		 answer.header.nlmsg_type == NLMSG_ERROR)
		ret = answer.error.error;
	close(fd);
	return ret;
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

/* Gives the interface (and "lo") its address, and takes it up. 0 or a negative errno. */
static int take_up(const char *name, const char *address)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret;

	if (fd < 0)
		return -errno;
	ret = set_address(fd, name, SIOCSIFADDR, address) ?:
	      set_address(fd, name, SIOCSIFNETMASK, "255.255.255.252") ?: set_up(fd, name) ?:
	      set_up(fd, "lo");
	close(fd);
	return ret;
}

/* ---- the processes that hold the namespaces ---- */

/* What a holder reports: its end is made, or what was refused. */
struct report {
	pid_t pid;
	int err;
	char what[48];
};

static void report(int fd, int err, const char *what)
{
	struct report r = { .pid = getpid(), .err = err };

	snprintf(r.what, sizeof(r.what), "%s", what);
	if (write(fd, &r, sizeof(r)) != sizeof(r))
		_exit(1);
	if (err)
		_exit(1);
}

/* Stays until the other end of the pipe is gone. */
static void hold(int life)
{
	char byte;

	while (read(life, &byte, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/* Who is not root is so in a user namespace of his own, where the kernel permits it. */
static int become_root(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	char map[64];
	int ret;

	if (!uid)
		return 0;
	if (unshare(CLONE_NEWUSER))
		return -errno;
	ret = tune_tree_put(&tune_here, "/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	ret = ret ? ret : tune_tree_put(&tune_here, "/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return ret ? ret : tune_tree_put(&tune_here, "/proc/self/gid_map", map);
}

/* The holder of the target; `go`: the cable has been laid. */
static void hold_target(int out, int life, int go)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET))
		report(out, -errno, "a network namespace");
	report(out, 0, "");
	if (read(go, &byte, 1) != 1)
		_exit(1);
	report(out, take_up(INTERFACE_TARGET, BENCH_NODE_ADDRESS_TARGET),
	       "the address of the second end");
	hold(life);
}

/* The holder of the source, which makes all else. */
static void hold_source(int out, int life)
{
	int go[2], from[2], err = become_root();
	struct report r;

	report(out, err, "a user namespace"); /* ends the process after an error */
	if (unshare(CLONE_NEWNET) || pipe(go) || pipe(from))
		report(out, -errno, "a network namespace");
	switch (fork()) {
	case -1:
		report(out, -errno, "a process");
		break;
	case 0:
		close(go[1]);
		hold_target(from[1], life, go[0]);
	}
	if (read(from[0], &r, sizeof(r)) != sizeof(r) || r.err)
		report(out, -EPERM, "a second network namespace");
	err = make_cable(r.pid);
	if (err)
		report(out, err, "a pair of veth interfaces");
	err = take_up(INTERFACE_SOURCE, BENCH_NODE_ADDRESS_SOURCE);
	if (err)
		report(out, err, "the address of the first end");
	if (write(go[1], "", 1) != 1 || read(from[0], &r, sizeof(r)) != sizeof(r))
		report(out, -EIO, "the second end");
	if (write(out, &r, sizeof(r)) != sizeof(r))
		_exit(1);
	hold(life);
}

/* 0; or what the holder says was refused. */
static int take_report(int fd, struct report *r)
{
	if (read(fd, r, sizeof(*r)) != sizeof(*r))
		return log_fail(-EIO, "the process that makes network namespaces has ended");
	if (!r->err)
		return 0;
	return log_fail(r->err == -EPERM || r->err == -EOPNOTSUPP || r->err == -ENOSPC ||
					r->err == -EACCES
				? -EOPNOTSUPP
				: r->err,
			"cannot make %s: %s; namespaces need root, or user namespaces", r->what,
			strerror(-r->err));
}

int bench_node_namespaces_make(struct bench_node_namespaces *n)
{
	struct report r;
	int out[2], life[2], ret;

	*n = (struct bench_node_namespaces){ .pipe = -1 };
	if (pipe2(out, O_CLOEXEC))
		return -errno;
	if (pipe2(life, O_CLOEXEC)) {
		close(out[0]);
		close(out[1]);
		return -errno;
	}
	fflush(NULL);
	/* It becomes no program: it only holds what it makes. */
	n->holder[0] = fork();
	if (!n->holder[0]) {
		setpgid(0, 0);
		close(life[1]);
		close(out[0]);
		hold_source(out[1], life[0]);
	}
	close(out[1]);
	close(life[0]);
	n->pipe = life[1];
	ret = (n->holder[0] < 0 ? -errno : take_report(out[0], &r)) ?: take_report(out[0], &r);
	close(out[0]);
	if (ret)
		bench_node_namespaces_end(n);
	else
		n->holder[1] = r.pid;
	return ret;
}

void bench_node_namespaces_end(struct bench_node_namespaces *n)
{
	if (n->pipe >= 0)
		close(n->pipe);
	n->pipe = -1;
	if (n->holder[0] > 0)
		spawn_wait(n->holder[0]);
	n->holder[0] = 0;
}

static int enter(pid_t holder, const char *kind, int type)
{
	char path[64];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", holder, kind);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, type))
		ret = -errno;
	if (fd >= 0)
		close(fd);
	return ret;
}

int bench_node_namespaces_enter(pid_t holder)
{
	return (geteuid() ? enter(holder, "user", CLONE_NEWUSER) : 0) ?:
	       enter(holder, "net", CLONE_NEWNET);
}

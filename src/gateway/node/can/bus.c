/* SPDX-License-Identifier: BSD-2-Clause */
/* A raw socket of SocketCAN; see can.h. */
#include <errno.h>
#include <linux/can/error.h>
#include <linux/can/raw.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/node/can/can.h"
#include "util/clock.h"

/* Room for frames that wait for the reader: a full bus of 1 Mbit/s for some 100 ms. */
#define RECEIVE_BYTES (2 << 20)
/* All classes of error frames. */
#define ALL_ERRORS CAN_ERR_MASK

static int say_errno(char why[CAN_WHY_MAX], const char *what)
{
	int err = errno;

	snprintf(why, CAN_WHY_MAX, "%s: %s", what, strerror(err));
	return -err;
}

/* ---- opening ---- */

static int set(int fd, int option, const void *value, size_t size, char why[CAN_WHY_MAX],
	       const char *what)
{
	return setsockopt(fd, SOL_CAN_RAW, option, value, (socklen_t)size) ?
		       say_errno(why, what) : 0;
}

static int set_filters(int fd, const struct can_bus_settings *s, char why[CAN_WHY_MAX])
{
	/* Lets through all frames with data, standard and extended ones. */
	const struct can_filter all = { .can_id = 0, .can_mask = CAN_RTR_FLAG };
	const can_err_mask_t errors = ALL_ERRORS;
	int ret = s->all ? set(fd, CAN_RAW_FILTER, &all, sizeof(all), why, "filters") :
			   set(fd, CAN_RAW_FILTER, s->filter_count ? s->filters : NULL,
			       s->filter_count * sizeof(*s->filters), why, "filters");

	return ret ?: set(fd, CAN_RAW_ERR_FILTER, &errors, sizeof(errors), why, "error frames");
}

static int set_options(int fd, const struct can_bus_settings *s, char why[CAN_WHY_MAX])
{
	int one = 1, receive = RECEIVE_BYTES, loopback = s->loopback, own = s->receive_own;
	int ret = set(fd, CAN_RAW_LOOPBACK, &loopback, sizeof(loopback), why, "loopback");

	ret = ret ?: set(fd, CAN_RAW_RECV_OWN_MSGS, &own, sizeof(own), why, "receive_own");
	if (!ret && s->fd)
		ret = set(fd, CAN_RAW_FD_FRAMES, &one, sizeof(one), why,
			  "fd: the kernel has no CAN FD");
	/* These settings are optional: the node works when the kernel refuses them. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive, sizeof(receive)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive));
	setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
	return ret;
}

static int bus_open(const struct can_bus_settings *s, char why[CAN_WHY_MAX])
{
	int fd = socket(AF_CAN, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, CAN_RAW), ret;

	if (fd < 0 && (errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT)) {
		ret = -errno;
		snprintf(why, CAN_WHY_MAX,
			 "this kernel has no CAN sockets: `modprobe can_raw` loads them where they are a module");
		return ret;
	}
	if (fd < 0)
		return say_errno(why, "a CAN socket");
	ret = set_options(fd, s, why);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

/* ---- the interface ---- */

static int check_kind(int fd, struct ifreq *r, const struct can_bus_settings *s,
		      char why[CAN_WHY_MAX])
{
	if (ioctl(fd, SIOCGIFHWADDR, r))
		return say_errno(why, s->interface);
	if (r->ifr_hwaddr.sa_family != ARPHRD_CAN) {
		snprintf(why, CAN_WHY_MAX, "%s is no interface of CAN", s->interface);
		return -EINVAL;
	}
	if (ioctl(fd, SIOCGIFMTU, r))
		return say_errno(why, s->interface);
	if (s->fd && r->ifr_mtu < (int)CANFD_MTU) {
		snprintf(why, CAN_WHY_MAX,
			 "%s has no CAN FD, which `fd` asks for (`ip link set %s type can ... fd on`, of vcan: mtu 72)",
			 s->interface, s->interface);
		return -EINVAL;
	}
	return 0;
}

static int bind_to(int fd, const struct can_bus_settings *s, unsigned index,
		   char why[CAN_WHY_MAX])
{
	struct sockaddr_can address = { .can_family = AF_CAN, .can_ifindex = (int)index };

	/* The kernel forgets the filters with the interface. */
	int ret = set_filters(fd, s, why);

	if (!ret && bind(fd, (struct sockaddr *)&address, sizeof(address)))
		ret = say_errno(why, s->interface);
	return ret;
}

static int bus_attach(int fd, const struct can_bus_settings *s, unsigned *index,
		      char why[CAN_WHY_MAX])
{
	struct ifreq r = { 0 };
	unsigned now;
	int ret;

	if (strlen(s->interface) >= sizeof(r.ifr_name)) {
		errno = ENODEV;
		return say_errno(why, s->interface);
	}
	strcpy(r.ifr_name, s->interface);
	if (ioctl(fd, SIOCGIFINDEX, &r))
		return say_errno(why, s->interface);
	now = (unsigned)r.ifr_ifindex;
	ret = check_kind(fd, &r, s, why);
	if (!ret && now != *index)
		ret = bind_to(fd, s, now, why);
	if (ret)
		return ret;
	*index = now;
	if (ioctl(fd, SIOCGIFFLAGS, &r))
		return say_errno(why, s->interface);
	if (r.ifr_flags & IFF_UP)
		return 0;
	snprintf(why, CAN_WHY_MAX, "%s is down (`ip link set %s up`)", s->interface, s->interface);
	return -ENETDOWN;
}

/* ---- frames ---- */

static int bus_send(int fd, const void *frame, size_t size)
{
	return send(fd, frame, size, MSG_DONTWAIT) < 0 ? -errno : 0;
}

static void take_control(struct msghdr *m, struct can_arrival *a)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_TIMESTAMPNS)
			memcpy(&a->received, CMSG_DATA(c), sizeof(a->received));
		else if (c->cmsg_type == SO_RXQ_OVFL)
			memcpy(&a->overruns, CMSG_DATA(c), sizeof(a->overruns));
	}
}

static int bus_receive(int fd, struct can_arrival *a)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(uint32_t))];
	} control;
	struct iovec io = { a->bytes, sizeof(a->bytes) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	a->size = (size_t)n;
	a->received = (struct timespec){ 0 };
	take_control(&m, a);
	if (!a->received.tv_sec)
		a->received = clock_realtime();
	return 0;
}

const struct can_bus_ops can_bus_socket = {
	.open = bus_open,
	.attach = bus_attach,
	.send = bus_send,
	.receive = bus_receive,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* See ethernet.h. */
#include "gateway/part/ethernet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/container_of.h"

/* Room for frames that wait for the reader: 100 ms of the fastest sampled values. */
#define RECEIVE_BYTES (4 << 20)
#define SEND_BYTES (1 << 20)
#define VLAN_ID 0x0fff

static int say_errno(char why[ETHERNET_WHY_MAX], const char *what)
{
	int err = errno;

	snprintf(why, ETHERNET_WHY_MAX, "%s: %s%s", what, strerror(err),
		 err == EPERM || err == EACCES ?
			 "; frames of Ethernet need root or CAP_NET_RAW" : "");
	return -err;
}

static int ask_interface(struct ethernet *e, const char *interface, char why[ETHERNET_WHY_MAX])
{
	struct ifreq r = { 0 };

	if (strlen(interface) >= sizeof(r.ifr_name)) {
		errno = ENODEV;
		return say_errno(why, interface);
	}
	strcpy(r.ifr_name, interface);
	if (ioctl(e->fd, SIOCGIFINDEX, &r))
		return say_errno(why, interface);
	e->index = (unsigned)r.ifr_ifindex;
	if (ioctl(e->fd, SIOCGIFHWADDR, &r))
		return say_errno(why, interface);
	if (r.ifr_hwaddr.sa_family != ARPHRD_ETHER && r.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK) {
		snprintf(why, ETHERNET_WHY_MAX, "%s carries no frames of Ethernet", interface);
		return -EINVAL;
	}
	memcpy(e->own, r.ifr_hwaddr.sa_data, sizeof(e->own));
	if (ioctl(e->fd, SIOCGIFMTU, &r))
		return say_errno(why, interface);
	e->mtu = (unsigned)r.ifr_mtu;
	return 0;
}

/*
 * A socket for one Ethertype alone would get frames whose VLAN no interface of this host has
 * without their tag. One for all frames gets them with it, and a filter leaves the others out.
 */
static int leave_others_out(const struct ethernet *e)
{
	struct sock_filter steps[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct ether_header, ether_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, e->type, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { ARRAY_SIZE(steps), steps };

	return setsockopt(e->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) ?
		       -errno : 0;
}

/* Options without which it works, too. */
static void set_options(const struct ethernet *e)
{
	int one = 1, receive = RECEIVE_BYTES, send = SEND_BYTES;

	if (setsockopt(e->fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive, sizeof(receive)))
		setsockopt(e->fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive));
	if (setsockopt(e->fd, SOL_SOCKET, SO_SNDBUFFORCE, &send, sizeof(send)))
		setsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof(send));
	setsockopt(e->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	setsockopt(e->fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one));
	setsockopt(e->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
}

int ethernet_open(struct ethernet *e, const char *interface, uint16_t type, bool receive,
		  char why[ETHERNET_WHY_MAX])
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET };
	int ret;

	*e = (struct ethernet){ .type = type };
	/* It receives nothing until it is bound to the interface. */
	e->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (e->fd < 0)
		return say_errno(why, interface);
	ret = ask_interface(e, interface, why);
	if (ret) {
		ethernet_close(e);
		return ret;
	}
	set_options(e);
	address.sll_ifindex = (int)e->index;
	address.sll_protocol = receive ? htons(ETH_P_ALL) : 0;
	if (leave_others_out(e) || bind(e->fd, (struct sockaddr *)&address, sizeof(address))) {
		ret = say_errno(why, interface);
		ethernet_close(e);
	}
	return ret;
}

void ethernet_close(struct ethernet *e)
{
	if (e->fd >= 0)
		close(e->fd);
	ethernet_capture_close(e->capture);
	e->fd = -1;
	e->capture = NULL;
}

int ethernet_join(struct ethernet *e, const uint8_t group[ETHERNET_MAC])
{
	struct packet_mreq m = { .mr_ifindex = (int)e->index, .mr_type = PACKET_MR_MULTICAST,
				 .mr_alen = ETHERNET_MAC };

	memcpy(m.mr_address, group, ETHERNET_MAC);
	return setsockopt(e->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)) ? -errno : 0;
}

int ethernet_join_all(struct ethernet *e)
{
	struct packet_mreq m = { .mr_ifindex = (int)e->index, .mr_type = PACKET_MR_ALLMULTI };

	return setsockopt(e->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof(m)) ? -errno : 0;
}

bool ethernet_parse(const char *text, uint8_t mac[ETHERNET_MAC])
{
	unsigned byte[ETHERNET_MAC];
	char separator[ETHERNET_MAC], rest;

	if (sscanf(text, "%2x%c%2x%c%2x%c%2x%c%2x%c%2x%c", &byte[0], &separator[0], &byte[1],
		   &separator[1], &byte[2], &separator[2], &byte[3], &separator[3], &byte[4],
		   &separator[4], &byte[5], &rest) != 11)
		return false;
	for (unsigned i = 0; i < ETHERNET_MAC; i++) {
		if (i < ETHERNET_MAC - 1 && separator[i] != ':' && separator[i] != '-')
			return false;
		mac[i] = (uint8_t)byte[i];
	}
	return true;
}

size_t ethernet_header(const struct ethernet *e, uint8_t to[ETHERNET_HEADER_MAX],
		       const uint8_t destination[ETHERNET_MAC], const struct ethernet_vlan *vlan)
{
	uint8_t *at = to;
	uint16_t type = htons(e->type);

	memcpy(at, destination, ETHERNET_MAC);
	memcpy(at + ETHERNET_MAC, e->own, ETHERNET_MAC);
	at += 2 * ETHERNET_MAC;
	if (vlan && vlan->enabled) {
		uint16_t tag[2] = { htons(ETHERTYPE_VLAN),
				    htons((uint16_t)(vlan->priority << 13 | (vlan->id & VLAN_ID))) };

		memcpy(at, tag, sizeof(tag));
		at += sizeof(tag);
	}
	memcpy(at, &type, sizeof(type));
	return (size_t)(at - to) + sizeof(type);
}

int ethernet_send(const struct ethernet *e, const void *frame, size_t len)
{
	/* The socket may be bound for receiving or not; the address says where to send. */
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = (int)e->index,
				  .sll_halen = ETHERNET_MAC, .sll_protocol = htons(e->type) };
	ssize_t n;

	memcpy(to.sll_addr, frame, ETHERNET_MAC);
	n = sendto(e->fd, frame, len, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
	return n < 0 ? -errno : 0;
}

/* The kernel takes the tag out of the frame, and says it beside it. */
static void take_control(struct msghdr *m, struct ethernet_frame *f)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		struct tpacket_auxdata a;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
			memcpy(&f->received, CMSG_DATA(c), sizeof(f->received));
		} else if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
			memcpy(&a, CMSG_DATA(c), sizeof(a));
			if (a.tp_status & TP_STATUS_VLAN_VALID)
				f->vlan = (struct ethernet_vlan){
					true, a.tp_vlan_tci & VLAN_ID,
					(uint8_t)(a.tp_vlan_tci >> 13) };
		}
	}
}

/* One frame of the socket. 1: it is for this node; 0: it is not; or a negative errno. */
static int take_frame(const struct ethernet *e, uint8_t *at, size_t size,
		      struct ethernet_frame *f)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata)) +
			   CMSG_SPACE(sizeof(struct timespec))];
	} control;
	struct sockaddr_ll from;
	struct iovec io = { at, size };
	struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &io,
			    .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(e->fd, &m, MSG_DONTWAIT | MSG_TRUNC);
	size_t head = sizeof(struct ether_header);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	if (from.sll_pkttype == PACKET_OUTGOING || (size_t)n < head || size < head)
		return 0;
	f->truncated = (size_t)n > size;
	f->len = MIN((size_t)n, size) - head;
	f->payload = at + head;
	f->vlan = (struct ethernet_vlan){ 0 };
	f->received = (struct timespec){ 0 };
	memcpy(f->destination, at, ETHERNET_MAC);
	memcpy(f->source, at + ETHERNET_MAC, ETHERNET_MAC);
	take_control(&m, f);
	if (!f->received.tv_sec)
		f->received = clock_realtime();
	return 1;
}

int ethernet_receive(const struct ethernet *e, void *buffer, size_t size,
		     struct ethernet_frame *f)
{
	int ret;

	if (e->capture)
		return ethernet_capture_receive(e, f);
	do {
		ret = take_frame(e, buffer, size, f);
	} while (!ret);
	return ret > 0 ? 0 : ret;
}

unsigned ethernet_overruns(const struct ethernet *e)
{
	struct tpacket_stats s = { 0 };
	socklen_t len = sizeof(s);

	if (e->capture)
		return 0;
	return getsockopt(e->fd, SOL_PACKET, PACKET_STATISTICS, &s, &len) ? 0 : s.tp_drops;
}

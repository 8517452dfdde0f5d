/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole frames of one Ethertype on one interface, with or without a VLAN tag (IEEE 802.1Q), for
 * node-types whose protocol stands directly on Ethernet. Needs CAP_NET_RAW.
 *
 * One thread may send while another one receives.
 */
#ifndef GATEWAY_PART_ETHERNET_H
#define GATEWAY_PART_ETHERNET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define ETHERNET_MAC 6
/* Destination, source, tag, Ethertype. */
#define ETHERNET_HEADER_MAX 18
#define ETHERNET_WHY_MAX 200

struct ethernet_capture;

struct ethernet {
	int fd; /* -1: closed; readable when a frame has come */
	struct ethernet_capture *capture; /* of ethernet_open_capture(); else NULL */
	unsigned index, mtu;
	uint16_t type;
	uint8_t own[ETHERNET_MAC];
};

struct ethernet_vlan {
	bool enabled;
	uint16_t id;      /* 0: priority alone; 4094 at most */
	uint8_t priority; /* 0 to 7 */
};

/* Opens `interface` for frames of `type`: those to its own address and to all, and those to
 * groups that ethernet_join() names. Frames that this host sends are not received, unless the
 * interface is a loopback. `receive` false: for sending alone. 0 or a negative errno, with the
 * reason in `why`. */
int ethernet_open(struct ethernet *e, const char *interface, uint16_t type, bool receive,
		  char why[ETHERNET_WHY_MAX]);
/* In place of an interface: the frames of a capture file (pcap or pcapng), each as soon as it is
 * asked for, with the time at which it was captured. Nothing can be sent, and no group joined. */
int ethernet_open_capture(struct ethernet *e, const char *file, uint16_t type,
			  char why[ETHERNET_WHY_MAX]);
void ethernet_close(struct ethernet *e); /* without effect if it is closed */
/* Receives frames to the group, too. 0 or a negative errno. */
int ethernet_join(struct ethernet *e, const uint8_t group[ETHERNET_MAC]);

/* Receives frames to all groups. Likewise. */
int ethernet_join_all(struct ethernet *e);

/* The text of an address, "01-0c-cd-01-00-00" or with colons. */
bool ethernet_parse(const char *text, uint8_t mac[ETHERNET_MAC]);

/* Writes the header of a frame; its length. `vlan` NULL: without a tag. */
size_t ethernet_header(const struct ethernet *e, uint8_t to[ETHERNET_HEADER_MAX],
		       const uint8_t destination[ETHERNET_MAC], const struct ethernet_vlan *vlan);
/* Sends a frame with its header, without waiting. 0; -ENOBUFS or -EAGAIN: no room for now;
 * -EMSGSIZE: longer than the interface allows; -ENETDOWN; or another negative errno. */
int ethernet_send(const struct ethernet *e, const void *frame, size_t len);

struct ethernet_frame {
	uint8_t destination[ETHERNET_MAC], source[ETHERNET_MAC];
	struct ethernet_vlan vlan;
	const uint8_t *payload; /* behind the Ethertype; in the caller's buffer, or in that of the
				 * capture, until the next call */
	size_t len;             /* of the payload; short frames have zeros at their end */
	bool truncated;         /* the frame was longer than the buffer, or than what was captured */
	struct timespec received; /* by the clock of the kernel, or of the host that captured it */
};

/* Takes a frame, without waiting. 0; -EAGAIN: none has come; or another negative errno. Of a
 * capture: -ENODATA behind its last frame; other errors were logged, and nothing follows. */
int ethernet_receive(const struct ethernet *e, void *buffer, size_t size,
		     struct ethernet_frame *f);
/* Frames that the kernel had no room for since the last call. */
unsigned ethernet_overruns(const struct ethernet *e);

/* ethernet_capture.c, for ethernet.c. */
int ethernet_capture_receive(const struct ethernet *e, struct ethernet_frame *f);
void ethernet_capture_close(struct ethernet_capture *c);

#endif

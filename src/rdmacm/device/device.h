/* SPDX-License-Identifier: BSD-2-Clause */
/* The soft0 devices, and what has an address. */
#ifndef RDMACM_DEVICE_DEVICE_H
#define RDMACM_DEVICE_DEVICE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "util/list.h"

struct cma_device {
	struct list entry;
	struct ibv_context *verbs;
	struct ibv_pd *pd;   /* default protection domain */
	struct ibv_xrcd *xrcd; /* default XRC domain, made on first use */
	uint64_t guid;       /* network order */
	uint8_t max_responder_resources, max_initiator_depth;
	uint8_t port_count;
	bool datagrams, multicast; /* some adapters have none */
	struct list users;   /* struct cma_device_user; under the lock of device.c */
	bool removed;        /* it failed and was replaced; under the lock of device.c */
};

/* Who uses a device, and learns when it has failed. */
struct cma_device_user {
	struct list entry;
	void (*removed)(struct cma_device_user *user); /* on the progress thread */
};

/* Device, port and GID table entry of a local address. */
struct cma_gid_place {
	struct cma_device *device;
	uint8_t port_num;
	uint8_t index;
	uint8_t mtu;         /* enum ibv_mtu, active */
	uint32_t interface;  /* index of the interface that has the address */
	union ibv_gid gid;
};

/* Opens soft0 devices on first use and replaces failed ones. 0; -ENODEV: there are none;
 * or another error. */
int cma_devices_open(void);
/* The device's default XRC domain; NULL with errno. */
struct ibv_xrcd *cma_device_xrcd(struct cma_device *d);
bool cma_devices_present(void); /* is a device of ours open? */
bool cma_devices_have_datagrams(void); /* does one of them have UD? */
/* The contexts of the devices, to be freed; NULL: out of memory. */
struct ibv_context **cma_devices_contexts(unsigned *count);
/* Is a device of this transport open? */
bool cma_devices_have(enum ibv_transport_type transport);
/* The first device of the transport (IBV_TRANSPORT_UNKNOWN: any) that has `addr`: one of InfiniBand
 * has a GID for it, one of iWARP has all addresses of the host. 0 or -ENODEV. */
int cma_device_find(const struct sockaddr *addr, enum ibv_transport_type transport,
		    struct cma_gid_place *place);
/* Enters the user in the device's list: user->removed() is called if the device fails. 0, or
 * -ENODEV: the device has failed already. */
int cma_device_join(struct cma_device *d, struct cma_device_user *user);
/* Takes the user out of the list; afterwards its removed() is not running and will not be
 * called. No lock that removed() takes is held. */
void cma_device_leave(struct cma_device_user *user);
/* The largest path MTU (enum ibv_mtu) whose packets an interface sends. */
uint8_t cma_interface_mtu(uint32_t interface);

#endif

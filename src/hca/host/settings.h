/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings of the adapter, from the environment. One table yields the names,
 * defaults and help that `busbar devices --settings` prints.
 */
#ifndef HCA_SETTINGS_H
#define HCA_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/settings.h"

/* The kind of network that the port says it belongs to. */
enum hca_link_layer {
	HCA_LINK_ETHERNET,
	HCA_LINK_INFINIBAND,
};

/* The processes that may exchange messages with this one: see peers.h. */
enum hca_peers {
	HCA_PEERS_USER, /* of our user and of root; if we are root: all */
	HCA_PEERS_GROUP, /* also of our group */
	HCA_PEERS_ANY,
};

/* Ways in which peers of our user may reach our memory by themselves. */
enum hca_memory_lent {
	HCA_MEMORY_TARGET,  /* none: this process carries their operations out */
	HCA_MEMORY_REGIONS, /* they may map memory files of registered memory */
	HCA_MEMORY_PTRACE,  /* also process_vm_readv and _writev, if the kernel permits */
	HCA_MEMORY_ALL,     /* also by a descriptor of /proc/self/mem that is passed */
};

/* Which devices a program sees: bits. */
enum hca_devices_seen {
	HCA_DEVICES_SOFT0 = 1 << 0, /* RoCE v2 */
	HCA_DEVICES_SOFT1 = 1 << 1, /* iWARP */
	HCA_DEVICES_SYSTEM = 1 << 2,
};

/* How to reach a peer's memory; if that is not possible, the target does the copies. */
enum hca_copy_access {
	HCA_ACCESS_AUTO,
	HCA_ACCESS_PROCESS_VM,
	HCA_ACCESS_PROCMEM,
	HCA_ACCESS_TARGET,
};

/* What the device is said not to have, one bit each (BUSBAR_WITHOUT). */
enum hca_without {
	HCA_WITHOUT_UD = 1 << 0, /* then without multicast, too */
	HCA_WITHOUT_UC = 1 << 1,
	HCA_WITHOUT_XRC = 1 << 2,
	HCA_WITHOUT_MULTICAST = 1 << 3,
	HCA_WITHOUT_SRQ = 1 << 4,
	HCA_WITHOUT_WINDOWS = 1 << 5,
	HCA_WITHOUT_ATOMICS = 1 << 6, /* ATOMIC WRITE included */
	HCA_WITHOUT_IMMEDIATE = 1 << 7,
	/* Parts of these that only an RNIC lacks, with BUSBAR_IWARP_EXTENSIONS. */
	HCA_WITHOUT_ATOMIC_WRITE = 1 << 8,
	HCA_WITHOUT_SEND_IMMEDIATE = 1 << 9,
};

#define HCA_MAP_NOTHING UINT64_MAX

struct hca_settings {
	int devices_named;        /* by the names of the setting */
	unsigned devices;         /* enum hca_devices_seen */
	const char *system_libibverbs; /* path, "auto" or "off" */
	int link_layer;           /* enum hca_link_layer */
	int mtu;                  /* enum ibv_mtu that the port offers; 0: what fits */
	const char *without_text;
	unsigned without;         /* enum hca_without */
	int peers;                /* enum hca_peers */
	int memory;               /* enum hca_memory_lent */
	const char *transports;   /* names, in order of preference */
	const char *fabric;       /* NAME/HOST of a simulated fabric; "": none (subnet.h) */
	const char *network;      /* addresses by which other hosts are reached: "all", "off", list */
	uint64_t udp_port;       /* UDP */
	bool rnic_extensions;   /* atomics and immediate data over streams (RFC 7306) */
	const char *paging;       /* a profile of regions on demand, see memory/demand.h; "": none */
	const char *faults;       /* what transports of packets do to packets; "": nothing */
	/* A file for all packets ("": none), and its limits. */
	const char *capture;
	uint64_t capture_bytes, capture_files, capture_snap;
	uint64_t eager_bytes;     /* longer messages are copied by the receiver */
	int copy_access;          /* enum hca_copy_access */
	bool poll_yields;         /* polling without result yields the processor */
	const char *map_memory_text;
	uint64_t map_memory;      /* smallest length that is moved; HCA_MAP_NOTHING */
};

extern const struct setting hca_setting_table[];
extern const size_t hca_setting_count;

/* Filled once per process; later calls of hca_settings_init() do nothing. */
extern struct hca_settings hca_settings;
void hca_settings_init(void);

#endif

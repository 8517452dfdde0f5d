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

/* Whose processes may exchange messages with this one: see peers.h. */
enum hca_peers {
	HCA_PEERS_USER, /* those of our user, and root's; of root: all */
	HCA_PEERS_GROUP, /* those of our group, too */
	HCA_PEERS_ANY,
};

/* How far peers of our user may reach into our memory. */
enum hca_memory_lent {
	HCA_MEMORY_TARGET,  /* not at all: we carry their operations out */
	HCA_MEMORY_REGIONS, /* what lies in memory files, they may map */
	HCA_MEMORY_PTRACE,  /* and as far as the kernel lets them */
	HCA_MEMORY_ALL,     /* and by the descriptor that we pass */
};

/* Which devices a program sees. */
enum hca_devices_seen {
	HCA_DEVICES_BOTH,
	HCA_DEVICES_SOFT,
	HCA_DEVICES_SYSTEM,
};

/* What is given does not work: target. */
enum hca_copy_access {
	HCA_ACCESS_AUTO,
	HCA_ACCESS_PROCESS_VM,
	HCA_ACCESS_PROCMEM,
	HCA_ACCESS_TARGET,
};

#define HCA_MAP_NOTHING UINT64_MAX

struct hca_settings {
	int devices; /* enum hca_devices_seen */
	const char *system_libibverbs; /* path, "auto" or "off" */
	int peers;                /* enum hca_peers */
	int memory;               /* enum hca_memory_lent */
	const char *transports;   /* names, the preferred one first */
	const char *faults;       /* what transports of packets do to them, "" */
	uint64_t eager_bytes;     /* messages above are pulled by the receiver */
	int copy_access;          /* enum hca_copy_access */
	bool poll_yields;         /* pollers that find nothing let others run */
	const char *map_memory_text;
	uint64_t map_memory;      /* from this size on; HCA_MAP_NOTHING */
};

extern const struct setting hca_setting_table[];
extern const size_t hca_setting_count;

/* Read once per process, however often it is called. */
extern struct hca_settings hca_settings;
void hca_settings_init(void);

#endif

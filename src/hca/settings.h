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

enum hca_shm_peers {
	HCA_PEERS_SAME, /* processes of our user and of root */
	HCA_PEERS_ANY,
};

struct hca_settings {
	int shm_peers;            /* enum hca_shm_peers */
	uint64_t shm_eager_bytes; /* messages above are pulled by the receiver */
	bool process_vm;          /* process_vm_readv/writev may be used */
};

extern const struct setting hca_setting_table[];
extern const size_t hca_setting_count;

/* Read once per process, at the first device list. */
extern struct hca_settings hca_settings;
void hca_settings_init(void);

#endif

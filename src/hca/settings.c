/* SPDX-License-Identifier: BSD-2-Clause */
/* The adapter's settings; see settings.h. */
#include "hca/settings.h"

#include "util/container_of.h"

static const char *const peers_names[] = { "same", "any", NULL };

const struct setting hca_setting_table[] = {
	{ .env = "BUSBAR_SHM_PEERS",
	  .fallback = "same",
	  .type = SETTING_ENUM,
	  .names = peers_names,
	  .offset = offsetof(struct hca_settings, shm_peers),
	  .help = "whose processes on this host may connect: those of the same user and of root, or any" },
	{ .env = "BUSBAR_SHM_EAGER",
	  .fallback = "1g",
	  .type = SETTING_SIZE,
	  .max = 1 << 30,
	  .offset = offsetof(struct hca_settings, shm_eager_bytes),
	  .help = "messages up to this size are copied through shared memory, larger ones are pulled by the receiver" },
	{ .env = "BUSBAR_PROCESS_VM",
	  .fallback = "1",
	  .type = SETTING_BOOL,
	  .offset = offsetof(struct hca_settings, process_vm),
	  .help = "use process_vm_readv and process_vm_writev where the kernel allows them" },
};
const size_t hca_setting_count = ARRAY_SIZE(hca_setting_table);

struct hca_settings hca_settings = { .shm_eager_bytes = 1 << 30,
				     .process_vm = true };

void hca_settings_init(void)
{
	settings_load(hca_setting_table, hca_setting_count, &hca_settings);
}

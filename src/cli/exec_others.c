/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings for MPI and UCX; see exec_others.h. */
#include "cli/exec_others.h"

#include <errno.h>
#include <stdlib.h>

#include "util/container_of.h"

static const struct {
	const char *name, *value;
} settings[] = {
	/* UCX, which both MPIs use: no shared memory of its own. Not "rc,ud,self",
	 * so that TCP and real adapters stay usable. */
	{ "UCX_TLS", "^sm" },
	/* UCX: threads that share a worker sleep until it is theirs. They would spin
	 * otherwise, and it is polled with the lock held: where threads are more than
	 * processors each turn of the scheduler goes to one that waits for the lock. */
	{ "UCX_USE_MT_MUTEX", "y" },
	/* Open MPI: all components may be used; Debian's configuration file excludes
	 * UCX. */
	{ "OMPI_MCA_pml", "" },
	/* UCX is preferred if a device has one of these drivers. */
	{ "OMPI_MCA_opal_common_ucx_devices", "mlx*,busbar" },
};

int exec_others_set(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (setenv(settings[i].name, settings[i].value, 0))
			return -errno;
	return 0;
}

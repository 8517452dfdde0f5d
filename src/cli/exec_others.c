/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of other people's libraries; see exec_others.h. */
#include "cli/exec_others.h"

#include <errno.h>
#include <stdlib.h>

#include "util/container_of.h"

static const struct {
	const char *name, *value;
} settings[] = {
	/* UCX, below both MPIs: no shared memory of its own. Not "rc,ud,self": what
	 * else there is (TCP, real adapters) stays. */
	{ "UCX_TLS", "^sm" },
	/* Open MPI: all ways to send may be taken. Debian's configuration file leaves
	 * UCX out. */
	{ "OMPI_MCA_pml", "" },
	/* And UCX comes first where one of these drivers is. */
	{ "OMPI_MCA_opal_common_ucx_devices", "mlx*,busbar" },
};

int exec_others_set(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (setenv(settings[i].name, settings[i].value, 0))
			return -errno;
	return 0;
}

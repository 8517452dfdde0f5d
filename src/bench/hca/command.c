/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench hca`: one case from options as of any kind, or the server for another host. */
#include <string.h>

#include "bench/hca/hca.h"
#include "bench/hca/remote.h"
#include "bench/suite/commands.h"

int bench_hca_main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--server"))
			return hca_server_main(argc, argv);
	return bench_single_main(argc, argv);
}

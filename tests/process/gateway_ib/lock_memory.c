/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded: locks all memory of the process, as real-time programs do for themselves. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void lock_memory(void)
{
	static const char refused[] = "mlockall is refused\n";

	if (mlockall(MCL_CURRENT | MCL_FUTURE) &&
	    write(STDERR_FILENO, refused, strlen(refused)) < 0)
		_exit(errno);
}

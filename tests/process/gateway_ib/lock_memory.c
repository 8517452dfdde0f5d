/* SPDX-License-Identifier: BSD-2-Clause */
/* Preloaded: locks all memory of the process, as real-time programs do for themselves. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* More than a gateway reserves; with a limit (`ulimit -l`) below it nothing is locked. */
#define ADDRESSES (UINT64_C(4) << 30)

__attribute__((constructor)) static void lock_memory(void)
{
	static const char refused[] = "mlockall is refused\n";
	void *reserved;

	if (!mlockall(MCL_CURRENT | MCL_FUTURE)) {
		reserved = mmap(NULL, ADDRESSES, PROT_NONE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (reserved != MAP_FAILED) {
			munmap(reserved, ADDRESSES);
			return;
		}
		munlockall();
	}
	if (write(STDERR_FILENO, refused, strlen(refused)) < 0)
		_exit(errno);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that a peer cuts off; see guard.h. */
#include "shmem/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Mappings beyond these are not guarded. */
#define RANGES 256
/* No address of a mapping: somebody fills the entry in. */
#define TAKEN 1

/* What the handler reads: no lock, no allocation. */
static struct range {
	atomic_uintptr_t start; /* 0: free */
	atomic_size_t bytes;
	atomic_bool hit;
} ranges[RANGES];

static struct sigaction before;

static struct range *find(uintptr_t address)
{
	for (int i = 0; i < RANGES; i++) {
		uintptr_t start = atomic_load(&ranges[i].start);

		if (start > TAKEN && address >= start &&
		    address - start < atomic_load(&ranges[i].bytes))
			return &ranges[i];
	}
	return NULL;
}

/* What would have happened without us: at the return the access is repeated. */
static void pass_on(int number, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(number, info, context);
	else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)
		signal(SIGBUS, SIG_DFL);
	else
		before.sa_handler(number);
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
	int saved_errno = errno;
	struct range *r = find((uintptr_t)info->si_addr);

	/* In one step, as other threads are in it; and by the bare system call: the C
	 * library does not promise its mmap() to signal handlers. */
	if (r && syscall(SYS_mmap, atomic_load(&r->start), atomic_load(&r->bytes),
			 PROT_READ | PROT_WRITE,
			 MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != -1)
		atomic_store(&r->hit, true);
	else
		pass_on(number, info, context);
	errno = saved_errno;
}

void shmem_guard_start(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction sa = { .sa_sigaction = on_bus_error,
				.sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct sigaction now;

	sigemptyset(&sa.sa_mask);
	pthread_mutex_lock(&lock);
	/* Somebody else may have taken the signal since the last time. */
	if (!sigaction(SIGBUS, NULL, &now) &&
	    (!(now.sa_flags & SA_SIGINFO) || now.sa_sigaction != on_bus_error)) {
		before = now;
		sigaction(SIGBUS, &sa, NULL);
	}
	pthread_mutex_unlock(&lock);
}

void shmem_guard_add(void *start, size_t bytes)
{
	for (int i = 0; i < RANGES; i++) {
		uintptr_t none = 0;

		if (!atomic_compare_exchange_strong(&ranges[i].start, &none,
						    TAKEN))
			continue;
		atomic_store(&ranges[i].hit, false);
		atomic_store(&ranges[i].bytes, bytes);
		atomic_store(&ranges[i].start, (uintptr_t)start);
		return;
	}
}

void shmem_guard_remove(const void *start)
{
	struct range *r = start ? find((uintptr_t)start) : NULL;

	if (r)
		atomic_store(&r->start, 0);
}

bool shmem_guard_hit(const void *start)
{
	const struct range *r = start ? find((uintptr_t)start) : NULL;

	return r && atomic_load(&r->hit);
}

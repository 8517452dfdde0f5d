/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * a_library_that_is_closed_with_a_device_open_stays: programs load the libraries as
 * plug-ins of plug-ins and close them while the adapter's thread runs.
 *
 *   unload LIBRARY...
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLLS = 20000 }; /* enough for the thread to be told */

static void *need(void *lib, const char *name)
{
	void *at = dlsym(lib, name);

	if (at)
		return at;
	printf("failed: %s\n", dlerror());
	exit(1);
}

#define NEED(lib, name) ((__typeof__(&(name)))need(lib, #name))

static struct ibv_cq *open_device(void *lib)
{
	struct ibv_device **list = NEED(lib, ibv_get_device_list)(NULL);
	struct ibv_context *ctx = list && list[0] ?
					  NEED(lib, ibv_open_device)(list[0]) :
					  NULL;
	struct ibv_cq *cq = ctx ? NEED(lib, ibv_create_cq)(ctx, 4, NULL, NULL, 0) :
				  NULL;

	if (cq)
		return cq;
	printf("failed: no device\n");
	exit(1);
}

static void poll_in_vain(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	for (int i = 0; i < POLLS; i++)
		if (ibv_poll_cq(cq, 1, &wc))
			exit(1);
}

static int check(const char *path)
{
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL), *again;
	struct ibv_cq *cq = NULL;
	int failed = 0;

	if (!lib) {
		printf("failed: %s\n", dlerror());
		return 1;
	}
	if (strstr(path, "librdmacm"))
		failed |= !NEED(lib, rdma_create_event_channel)();
	else if (strstr(path, "libibverbs"))
		cq = open_device(lib);
	dlclose(lib);
	again = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
	if (!again) {
		printf("failed: %s is gone\n", path);
		return 1;
	}
	if (cq) {
		poll_in_vain(cq);
		NEED(again, ibv_destroy_cq)(cq);
	}
	dlclose(again);
	return failed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	for (int i = 1; i < argc; i++)
		failed |= check(argv[i]);
	return failed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * the_systems_library_answers_behind_ours: usage system PROVIDER..., with
 * BUSBAR_SYSTEM_LIBIBVERBS set to the real one. No device is needed: two of its
 * private functions work on plain memory, and a provider registers when it is
 * loaded.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int failed;

#define CHECK(what)                                          \
	do {                                                 \
		if (!(what)) {                               \
			printf("%d: not so: %s\n", __LINE__, \
			       #what);                       \
			failed = 1;                          \
		}                                            \
	} while (0)

/* As providers see it: through whatever the loader bound the soname to. */
static void *private_symbol(const char *name)
{
	char version[32];
	void *symbol = NULL;

	for (int node = 20; node < 70 && !symbol; node++) {
		snprintf(version, sizeof(version), "IBVERBS_PRIVATE_%d", node);
		symbol = dlvsym(RTLD_DEFAULT, name, version);
	}
	if (!symbol)
		printf("no private %s\n", name);
	return symbol;
}

static bool soft0_is_listed(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool found = false;

	for (size_t i = 0; list && list[i]; i++)
		found |= !strcmp(ibv_get_device_name(list[i]), "soft0");
	if (list)
		ibv_free_device_list(list);
	return found;
}

int main(int argc, char **argv)
{
	unsigned int (*count)(unsigned int, void *) =
		private_symbol("__ioctl_final_num_attrs");
	void (*init_cq)(struct ibv_cq *, struct ibv_context *,
			struct ibv_comp_channel *, void *) =
		private_symbol("verbs_init_cq");
	struct ibv_context context = { 0 };
	struct ibv_cq cq = { 0 };

	if (!count || !init_cq)
		return 1;
	/* One provider before the library is open, the others after. */
	CHECK(argc < 2 || dlopen(argv[1], RTLD_NOW));
	init_cq(&cq, &context, NULL, &cq);
	CHECK(cq.context == NULL && count(7, NULL) == 0);
	CHECK(soft0_is_listed());
	for (int i = 2; i < argc; i++)
		CHECK(dlopen(argv[i], RTLD_NOW));
	init_cq(&cq, &context, NULL, &cq);
	CHECK(cq.context == &context && cq.cq_context == &cq);
	CHECK(count(7, NULL) == 7);
	CHECK(soft0_is_listed());
	return failed;
}

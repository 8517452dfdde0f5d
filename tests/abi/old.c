/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * a_program_of_the_1_0_interface_is_refused_with_one_line: calls the old
 * symbols as such a program would, through the dynamic loader. Usage: old LIB.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int failed;

#define CHECK(what)                                               \
	do {                                                      \
		if (!(what)) {                                    \
			printf("%d: %s\n", __LINE__, #what);      \
			failed = 1;                               \
		}                                                 \
	} while (0)

static void *lookup(void *lib, const char *name, const char *version)
{
	void *symbol = dlvsym(lib, name, version);

	if (!symbol) {
		printf("%s@%s: %s\n", name, version, dlerror());
		failed = 1;
	}
	return symbol;
}

/* What the calls print to standard error ends up in `text`. */
static void refused(void *lib, char *text, size_t size)
{
	void *(*list)(int *) = lookup(lib, "ibv_get_device_list", "IBVERBS_1.0");
	int (*destroy)(void *) = lookup(lib, "ibv_destroy_cq", "IBVERBS_1.0");
	int (*event)(void *, void *) =
		lookup(lib, "ibv_get_async_event", "IBVERBS_1.0");
	int saved = dup(2);
	int pipes[2];
	ssize_t len;
	int n = 0;

	if (failed || pipe(pipes)) {
		failed = 1;
		return;
	}
	dup2(pipes[1], 2);
	errno = 0;
	CHECK(list(&n) == NULL && errno == ENOSYS);
	CHECK(destroy(NULL) == ENOSYS);
	CHECK(event(NULL, NULL) == -1);
	dup2(saved, 2);
	close(pipes[1]);
	len = read(pipes[0], text, size - 1);
	text[len > 0 ? len : 0] = '\0';
	close(pipes[0]);
	close(saved);
}

int main(int argc, char **argv)
{
	char text[4096];
	void *lib = dlopen(argc > 1 ? argv[1] : "libibverbs.so.1", RTLD_NOW);
	bool *flag;

	if (!lib) {
		printf("%s\n", dlerror());
		return 1;
	}
	refused(lib, text, sizeof(text));
	if (!failed) {
		CHECK(strstr(text, "1.0 interface") != NULL);
		CHECK(strchr(text, '\n') && strchr(text, '\n')[1] == '\0');
	}
	/* A provider of any release registers, and is not used. */
	((void (*)(const void *))lookup(lib, "verbs_register_driver_34",
					"IBVERBS_PRIVATE_34"))("provider");
	((void (*)(const void *))lookup(lib, "verbs_register_driver_59",
					"IBVERBS_PRIVATE_59"))("provider");
	flag = lookup(lib, "verbs_allow_disassociate_destroy",
		      "IBVERBS_PRIVATE_34");
	CHECK(flag && !*flag);
	return failed;
}

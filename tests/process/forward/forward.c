/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our libibverbs.so.1 in front of another one: which devices a program sees, who
 * gets its calls, and what happens when the other library is not there or is not
 * what it should be. Usage: forward STANDINS, the folder of the stand-ins; every
 * case is the program again, with the environment of the case.
 */
#include "forward.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 6

struct standin_state *standin(void)
{
	static struct standin_state *_Atomic known;
	struct standin_state *state = atomic_load(&known);
	const char *path = getenv("BUSBAR_SYSTEM_LIBIBVERBS");
	void *handle;

	if (state)
		return state;
	/* Only if it is there already. */
	handle = path && path[0] == '/' ?
			 dlopen(path, RTLD_LAZY | RTLD_NOLOAD) :
			 NULL;
	state = handle ? dlsym(handle, "standin_state") : NULL;
	atomic_store(&known, state);
	return state;
}

struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	CHECK(list);
	for (size_t i = 0; list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	CHECK_FOR(name, context);
	ibv_free_device_list(list);
	return context;
}

/* The devices' names are these, in this order; NULL for none. */
static void check_devices(const char *first, const char *second)
{
	int want = (first != NULL) + (second != NULL);
	int count = -1;
	struct ibv_device **list = ibv_get_device_list(&count);

	CHECK(list);
	CHECK(count == want);
	CHECK(!first || !strcmp(list[0]->name, first));
	CHECK(!second || !strcmp(list[1]->name, second));
	CHECK(!list[want]);
	ibv_free_device_list(list);
}

static void both_are_listed(void)
{
	check_devices("soft0", "stand0");
	check_devices("soft0", "stand0");
	CHECK(standin() && atomic_load(&standin()->lists) == 0);
	/* Whose list it is does not depend on its order. */
	{
		struct ibv_device **list = ibv_get_device_list(NULL);
		struct ibv_device *first = list[0];

		list[0] = list[1];
		list[1] = first;
		ibv_free_device_list(list);
		CHECK(atomic_load(&standin()->lists) == 0);
	}
}

static void soft0_comes_first_while_no_port_is_active(void)
{
	check_devices("soft0", "stand0");
}

static void an_active_adapter_comes_first(void)
{
	check_devices("stand0", "soft0");
}

static void soft_alone_does_not_open_it(void)
{
	check_devices("soft0", NULL);
	CHECK(ibv_fork_init() == 0);
	CHECK(!standin());
}

static void system_alone_hides_soft0(void)
{
	check_devices("stand0", NULL);
}

static void system_alone_without_a_library_is_an_error(void)
{
	int count = 5;

	errno = 0;
	CHECK(!ibv_get_device_list(&count));
	CHECK(errno == ENOSYS && count == 0);
}

static void only_soft0_is_left(void)
{
	check_devices("soft0", NULL);
	CHECK(ibv_fork_init() == 0);
	CHECK(ibv_is_fork_initialized() == IBV_FORK_UNNEEDED);
	errno = 0;
	CHECK(!ibv_import_device(-1) && errno == EBADF);
}

static void fork_init_reaches_both(void)
{
	struct ibv_context *c;

	/* Before any list, and for all devices that will be in it. */
	CHECK(ibv_fork_init() == (int)standin_answer("ibv_fork_init"));
	CHECK(standin() && atomic_load(&standin()->forks) == 1);
	CHECK((int)ibv_is_fork_initialized() ==
	      (int)standin_answer("ibv_is_fork_initialized"));
	c = open_named("soft0");
	CHECK(ibv_close_device(c) == 0);
	CHECK((long)ibv_import_device(3) ==
	      standin_answer("ibv_import_device"));
	CHECK((int)standin()->call()->args[0] == 3);
}

static void provider_registers(unsigned int node, const void *driver)
{
	char name[64], version[64];
	void (*f)(const void *);

	snprintf(name, sizeof(name), "verbs_register_driver_%u", node);
	snprintf(version, sizeof(version), "IBVERBS_PRIVATE_%u", node);
	f = (void (*)(const void *))(uintptr_t)dlvsym(RTLD_DEFAULT, name, version);
	CHECK_FOR(name, f);
	f(driver);
}

static void providers_are_handed_over(void)
{
	provider_registers(34, "early");
	provider_registers(34, "early too");
	provider_registers(33, "of another release");
	CHECK(!standin());
	check_devices("soft0", "stand0");
	CHECK(atomic_load(&standin()->drivers) == 2);
	provider_registers(34, "late");
	provider_registers(59, "of another release");
	CHECK(atomic_load(&standin()->drivers) == 3);
	CHECK(!strcmp(standin()->driver[2], "late"));
}

static void private_data_is_kept_in_step(void)
{
	bool *ours = dlvsym(RTLD_DEFAULT, "verbs_allow_disassociate_destroy",
			    "IBVERBS_PRIVATE_34");

	CHECK(ours && !*ours);
	check_devices("soft0", "stand0");
	CHECK(standin()->allow_destroy != ours && *standin()->allow_destroy);
	CHECK(*ours);
}

static void a_library_may_list_while_it_is_loaded(void)
{
	check_devices("soft0", "stand0");
	CHECK(standin()->listed_in_constructor >= 1);
}

static void inline_verbs_reach_the_right_adapter(void)
{
	struct ibv_context *stand = open_named("stand0");
	struct ibv_context *soft = open_named("soft0");
	struct ibv_cq cq = { .context = stand };
	struct ibv_qp qp = { .context = stand };
	struct ibv_send_wr wr = { 0 }, *bad;
	struct ibv_port_attr port;
	struct ibv_cq *own;
	struct ibv_wc wc;
	unsigned long before;

	CHECK(ibv_poll_cq(&cq, 1, &wc) == 0);
	CHECK(!strcmp(standin()->call()->name, "poll_cq"));
	CHECK(ibv_post_send(&qp, &wr, &bad) == 0);
	CHECK(!strcmp(standin()->call()->name, "post_send"));
	CHECK(ibv_query_port(stand, 1, &port) == 0);
	CHECK(port.state == IBV_PORT_ARMED);
	before = atomic_load(&standin()->calls);
	CHECK(ibv_query_port(soft, 1, &port) == 0);
	CHECK(port.state == IBV_PORT_ACTIVE);
	own = ibv_create_cq(soft, 1, NULL, NULL, 0);
	CHECK(own && ibv_poll_cq(own, 1, &wc) == 0);
	CHECK(atomic_load(&standin()->calls) == before);
	CHECK(ibv_destroy_cq(own) == 0 && ibv_close_device(soft) == 0);
}

static pthread_barrier_t barrier;

/* Lists, opens, uses and closes both, with all the others. */
static void *thread_run(void *arg)
{
	struct ibv_device_attr attr;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 50; i++) {
		struct ibv_context *soft, *stand;
		struct ibv_pd *pd;

		check_devices("soft0", "stand0");
		soft = open_named("soft0");
		stand = open_named("stand0");
		pd = ibv_alloc_pd(soft);
		CHECK(pd && ibv_query_device(soft, &attr) == 0);
		CHECK(attr.max_qp > 0);
		CHECK(ibv_query_device(stand, &attr) ==
		      (int)standin_answer("ibv_query_device"));
		CHECK(!strcmp(standin()->call()->name, "ibv_query_device"));
		CHECK(ibv_dealloc_pd(pd) == 0);
		CHECK(ibv_close_device(stand) == 0);
		CHECK(ibv_close_device(soft) == 0);
	}
	return NULL;
}

static void threads_open_and_use_both(void)
{
	pthread_t threads[THREADS];

	provider_registers(34, "early");
	CHECK(!pthread_barrier_init(&barrier, NULL, THREADS));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, thread_run, NULL));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(atomic_load(&standin()->lists) == 0);
	CHECK(atomic_load(&standin()->drivers) == 1);
}

/* ---- running the cases ---- */

/* NAME=VALUE; %s in a value is the folder of the stand-ins. */
#define STANDIN "BUSBAR_SYSTEM_LIBIBVERBS=%s/standin.so"

static const struct forward_case {
	const char *name;
	void (*run)(void);
	const char *env[3];
	const char *says; /* on standard error; NULL: it must stay empty */
} cases[] = {
#define NAMED(title, fn, ...) { .name = title, .run = fn, .env = __VA_ARGS__ }
#define CASE(fn, ...) NAMED(#fn, fn, __VA_ARGS__)
	CASE(both_are_listed, { STANDIN }),
	CASE(soft0_comes_first_while_no_port_is_active,
	     { STANDIN, "STANDIN_SYSFS=%s/sysfs-down" }),
	CASE(an_active_adapter_comes_first,
	     { STANDIN, "STANDIN_SYSFS=%s/sysfs-active" }),
	CASE(soft_alone_does_not_open_it, { STANDIN, "BUSBAR_DEVICES=soft" }),
	CASE(system_alone_hides_soft0, { STANDIN, "BUSBAR_DEVICES=system" }),
	CASE(system_alone_without_a_library_is_an_error,
	     { "BUSBAR_SYSTEM_LIBIBVERBS=off", "BUSBAR_DEVICES=system" },
	     .says = "BUSBAR_DEVICES=system"),
	CASE(only_soft0_is_left, { "BUSBAR_SYSTEM_LIBIBVERBS=off" }),
	NAMED("a_path_without_a_library_is_said", only_soft0_is_left,
	      { "BUSBAR_SYSTEM_LIBIBVERBS=%s/nothing.so" },
	      .says = "nothing.so"),
	NAMED("a_relative_path_is_refused", only_soft0_is_left,
	      { "BUSBAR_SYSTEM_LIBIBVERBS=libibverbs.so.1" },
	      .says = "absolute path"),
	NAMED("our_own_library_is_refused", only_soft0_is_left,
	      { "BUSBAR_SYSTEM_LIBIBVERBS=%s/own.so" },
	      .says = "is this busbar library itself"),
	NAMED("a_copy_of_our_library_is_refused", only_soft0_is_left,
	      { "BUSBAR_SYSTEM_LIBIBVERBS=%s/copy.so" },
	      .says = "is a library of busbar"),
	NAMED("an_unknown_private_interface_is_left_out", only_soft0_is_left,
	      { "BUSBAR_SYSTEM_LIBIBVERBS=%s/standin_unknown.so" },
	      .says = "does not know"),
	CASE(public_functions_of_stand0_are_the_stand_ins, { STANDIN }),
	CASE(public_functions_of_soft0_are_ours, { STANDIN }),
	CASE(private_functions_are_the_stand_ins, { STANDIN }),
	CASE(an_old_library_lacks_functions,
	     { "BUSBAR_SYSTEM_LIBIBVERBS=%s/standin_old.so" }),
	CASE(fork_init_reaches_both, { STANDIN }),
	CASE(providers_are_handed_over, { STANDIN }),
	CASE(private_data_is_kept_in_step,
	     { STANDIN, "RDMAV_ALLOW_DISASSOC_DESTROY=1" }),
	CASE(a_library_may_list_while_it_is_loaded,
	     { STANDIN, "STANDIN_LISTS=1" }),
	CASE(inline_verbs_reach_the_right_adapter, { STANDIN }),
	CASE(threads_open_and_use_both, { STANDIN }),
};

static void write_state(const char *dir, const char *sysfs, const char *state)
{
	static const char *const parts[] = { "", "/ports", "/ports/1" };
	char path[4096];
	FILE *f;

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, sysfs, parts[i]);
		CHECK(!mkdir(path, 0755) || errno == EEXIST);
	}
	snprintf(path, sizeof(path), "%s/%s/ports/1/state", dir, sysfs);
	f = fopen(path, "we");
	CHECK(f && fputs(state, f) > 0 && !fclose(f));
}

static void run_child(const struct forward_case *c, const char *self,
		      const char *dir, int err)
{
	static char env[3][4096];

	for (int i = 0; i < 3 && c->env[i]; i++) {
		const char *mark = strstr(c->env[i], "%s");

		snprintf(env[i], sizeof(env[i]), "%.*s%s%s",
			 mark ? (int)(mark - c->env[i]) : 4000, c->env[i],
			 mark ? dir : "", mark ? mark + 2 : "");
		putenv(env[i]);
	}
	dup2(err, 2);
	execl(self, self, "--case", c->name, (char *)NULL);
	_exit(1);
}

static bool run_case(const struct forward_case *c, const char *self,
		     const char *dir)
{
	FILE *err = tmpfile();
	char text[4096];
	size_t len;
	bool passed;
	int status;
	pid_t pid;

	CHECK(err);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		run_child(c, self, dir, fileno(err));
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	rewind(err);
	len = fread(text, 1, sizeof(text) - 1, err);
	text[len] = '\0';
	fclose(err);
	passed = WIFEXITED(status) && WEXITSTATUS(status) == 0 &&
		 (c->says ? strstr(text, c->says) != NULL : len == 0);
	printf("%s %s\n", passed ? "ok    " : "failed", c->name);
	if (!passed)
		printf("  status 0x%x, standard error%s%s: %s\n",
		       (unsigned)status, c->says ? " without " : "",
		       c->says ? c->says : "", text);
	return passed;
}

int main(int argc, char **argv)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && !strcmp(argv[1], "--case")) {
		alarm(60);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			if (!strcmp(cases[i].name, argv[2]))
				cases[i].run();
		return 0;
	}
	if (argc != 2)
		return 2;
	unsetenv("BUSBAR_DEVICES");
	write_state(argv[1], "sysfs-active", "4: ACTIVE\n");
	write_state(argv[1], "sysfs-down", "1: DOWN\n");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		failed += !run_case(&cases[i], argv[0], argv[1]);
	return failed ? 1 : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The two processes of `busbar exec --verdict`; see exec_verdict.h. */
#include "cli/exec_verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exec_dir.h"
#include "util/container_of.h"
#include "util/log.h"
#include "verdict/facts.h"

int exec_verdict_take(const struct option_given *g)
{
	struct exec_verdict *v = container_of(option_member(g), struct exec_verdict, on);
	const char *option = g->value;

	v->on = true;
	v->json = option && !strncmp(option, "json", 4) && (!option[4] || option[4] == ':');
	v->file = option;
	if (v->json)
		v->file = option[4] ? option + 5 : NULL;
	return OPTIONS_GO_ON;
}

/* The file begins anew. */
static int open_file(struct exec_verdict *v)
{
	v->out_fd = STDERR_FILENO;
	if (!v->file)
		return 0;
	v->out_fd = open(v->file, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (v->out_fd >= 0)
		return 0;
	log_error("exec: verdict file '%s': %s", v->file, strerror(errno));
	return -errno;
}

static int make_folder(struct exec_verdict *v)
{
	int err = exec_dir_make_root(v->folder, sizeof(v->folder), &v->lock_fd);

	if (err)
		log_error("exec: no folder for --verdict can be made below $XDG_RUNTIME_DIR, $TMPDIR or /tmp: %s",
			  strerror(-err));
	else if (setenv(VERDICT_ENV, v->folder, 1))
		return -errno;
	return err;
}

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* What a program closes, others see as closed: this process keeps no descriptor of the program but
 * standard error. */
static void close_others(const struct exec_verdict *v, const struct exec_watch *w)
{
	int keep[] = { STDERR_FILENO, v->out_fd, v->lock_fd, w->signals_fd, w->folder_fd };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	qsort(keep, sizeof(keep) / sizeof(*keep), sizeof(*keep), by_number);
	for (size_t i = 0; i < sizeof(keep) / sizeof(*keep); i++) {
		int next = i + 1 < sizeof(keep) / sizeof(*keep) ? keep[i + 1] - 1 : INT_MAX;

		if (keep[i] >= STDERR_FILENO && keep[i] + 1 <= next)
			close_range((unsigned)keep[i] + 1, (unsigned)next, 0);
	}
}

/* Ends this process as the program ended. */
_Noreturn static void end_as(int status)
{
	const struct rlimit none = { 0, 0 };
	sigset_t set;

	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	/* The program has left its core already. */
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	kill(getpid(), WTERMSIG(status));
	_exit(128 + WTERMSIG(status));
}

/* Each process that is observed costs a descriptor. */
static void allow_many(void)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &most))
		return;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

_Noreturn static void stay(const struct exec_verdict *v, struct exec_watch *w)
{
	int status;

	prctl(PR_SET_NAME, "busbar-verdict");
	close_others(v, w);
	allow_many();
	status = exec_watch_run(w);
	exec_report(v, w, status);
	exec_dir_remove(v->folder);
	end_as(status);
}

int exec_verdict_start(struct exec_verdict *v)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	struct sigaction before;
	struct exec_watch w;
	sigset_t mask;
	int err = open_file(v);

	if (err || (err = make_folder(v)))
		return err;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	/* If the caller ignores SIGCHLD, waitpid() would fail. */
	sigaction(SIGCHLD, &plain, &before);
	err = exec_watch_open(&w, v->folder);
	/* Not by util/spawn.h: the child has much to do before it becomes the program, and the keeper
	 * (exec_dir.h) is to know it by its number. */
	w.program = err ? -1 : fork();
	if (w.program > 0)
		stay(v, &w);
	if (w.program < 0) {
		err = err ? err : -errno;
		log_error("exec: --verdict: %s", strerror(-err));
		exec_dir_remove(v->folder);
		return err;
	}
	/* What ends this command, also SIGKILL, ends the program. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(w.signals_fd);
	close(w.folder_fd);
	sigaction(SIGCHLD, &before, NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	return 0;
}

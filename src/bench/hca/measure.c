/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs the ends of a case as child processes, and looks after them: it wakes an end that sleeps
 * in wait for an event which a lost message does not bring, ends them on Ctrl-C, and takes
 * note when one of them dies.
 */
#define LOG_ROOM "bench/hca"
#include "bench/hca/case.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "gateway/plugin/plugin.h"
#include "util/clock.h"
#include "util/log.h"

#define PAGE 4096
#define NUDGE_LOOKS 4
#define PATIENCE_NS (3 * NSEC_PER_SEC) /* of the ends, once they are to stop */

int hca_shared_create(const struct hca_case *c, struct hca_shared **out)
{
	size_t rows = hca_case_rows(c);
	size_t head = hca_round_up(sizeof(struct hca_shared), PAGE);
	size_t column = hca_round_up(rows * sizeof(uint64_t), PAGE);
	size_t stamped = hca_round_up(c->size + 128 * c->sges, PAGE);
	size_t bytes = hca_round_up(head + HCA_COLUMNS * column + stamped, HCA_HUGE_BYTES);
	bool huge;
	struct hca_shared *s = hca_map(bytes, MAP_SHARED, &huge);

	if (!s)
		return log_fail(-errno, "no memory for the times of %zu messages: %s", rows,
				strerror(errno));
	s->bytes = bytes;
	s->rows = rows;
	s->huge = huge;
	for (int i = 0; i < HCA_COLUMNS; i++)
		s->column[i] = (uint64_t *)(void *)((char *)s + head + (size_t)i * column);
	s->stamped = (char *)s + head + HCA_COLUMNS * column;
	*out = s;
	return 0;
}

void hca_shared_destroy(struct hca_shared *s)
{
	if (s)
		munmap(s, s->bytes);
}

/* ---- in a child ---- */

/* The ends that a child runs: one, or both as threads. */
struct child {
	const struct hca_case *c;
	struct hca_shared *s;
	enum hca_side side; /* of the first one */
	int fd[2];          /* by side */
	bool both;
	hca_end_fn *end;
	struct process process;
};

static struct hca_shared *told; /* of this child */

/* The first error is the reason why the case fails: the parent's to say. */
static bool tell_parent(enum log_level level, const char *line)
{
	const char *message = strstr(line, ": "); /* behind time, level and room */

	if (level != LOG_ERROR || !message || atomic_exchange(&told->has_why, true))
		return false;
	snprintf(told->why, sizeof(told->why), "%s", message + 2);
	return true;
}

static void on_nudge(int number)
{
}

static void set_signals(void)
{
	struct sigaction nudge = { .sa_handler = on_nudge }; /* interrupts system calls */
	sigset_t set;

	/* The parent tells the ends when to stop. */
	signal(SIGTERM, SIG_IGN);
	sigaction(SIGUSR1, &nudge, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void *run_receiver(void *arg)
{
	const struct child *l = arg;

	l->end(l->c, l->s, HCA_RECEIVER, l->fd[HCA_RECEIVER]);
	return NULL;
}

static void run_child(void *arg)
{
	struct child *l = arg;
	pthread_t second;
	int err;

	set_signals();
	told = l->s;
	log_set_sink(tell_parent);
	l->end = (hca_end_fn *)plugin_symbol("bench_hca", "bench_hca_end");
	err = !l->end ? EOPNOTSUPP : l->both ? pthread_create(&second, NULL, run_receiver, l) : 0;
	if (l->end && err)
		log_error("cannot start a thread: %s", strerror(err));
	l->s->end[l->side].error = -err;
	if (err)
		return;
	l->end(l->c, l->s, l->side, l->fd[l->side]);
	if (l->both)
		pthread_join(second, NULL);
}

/* ---- the parent ---- */

/* By side; of a side without a child no process runs. */
struct children {
	struct child end[2];
	struct hca_shared *s;
	bool died;
};

static bool some_run(const struct children *all)
{
	return all->end[0].process.pid || all->end[1].process.pid;
}

static void nudge(const struct children *all)
{
	pid_t only = all->end[0].process.pid ?: all->end[1].process.pid;

	for (int side = 0; side < 2; side++) {
		int tid = atomic_load(&all->s->end[side].tid);

		/* Threads of one process have one child for both. */
		if (tid && only)
			syscall(SYS_tgkill, all->end[side].process.pid ?: only, tid, SIGUSR1);
	}
}

static void reap(struct children *all)
{
	for (int side = 0; side < 2; side++) {
		struct process *p = &all->end[side].process;

		if (!p->pid || !process_has_ended(p) || !p->status)
			continue;
		log_error("the %s died%s%s", side ? "receiver" : "sender",
			  WIFSIGNALED(p->status) ? " by signal " : "",
			  WIFSIGNALED(p->status) ? strsignal(WTERMSIG(p->status)) : "");
		all->died = true;
	}
	/* One that failed before it began does not stop the other by itself. */
	if (all->died || all->s->end[0].error || all->s->end[1].error)
		atomic_store(&all->s->stop, true);
}

/* Who sleeps though nothing moves may wait for what is lost; others are not disturbed. */
static bool stands_still(const struct hca_shared *s, uint64_t *messages)
{
	uint64_t before = *messages;

	*messages = atomic_load_explicit(&s->messages, memory_order_relaxed);
	return *messages == before;
}

static void look_after(struct children *all, const struct hca_case *c,
		       const struct bench_context *context)
{
	double messages_all = c->warmup + (double)c->burst * c->repetitions;
	uint64_t stopped_ns = 0, messages = 0;

	for (unsigned looks = 1; reap(all), some_run(all); looks++) {
		bool stop = atomic_load(&all->s->stop);

		process_pause();
		if (atomic_load(context->stop) && !stop)
			atomic_store(&all->s->stop, stop = true);
		if (looks % NUDGE_LOOKS == 0) {
			bool still = stands_still(all->s, &messages);

			if (stop || (still && atomic_load(&all->s->nudge)))
				nudge(all);
		}
		if (stop && !stopped_ns)
			stopped_ns = clock_monotonic_ns_slow();
		for (int side = 0; side < 2; side++)
			if (stopped_ns && clock_monotonic_ns_slow() - stopped_ns > PATIENCE_NS)
				process_kill(&all->end[side].process);
		if (looks % 20 == 0)
			context->progress(context, MIN(1, (double)atomic_load(&all->s->messages) /
							       messages_all));
	}
}

static int result_of(const struct children *all, const struct bench_context *context)
{
	int ret = 0;

	if (atomic_load(context->stop))
		return -EINTR;
	if (atomic_load(&all->s->has_why))
		log_error("%s", all->s->why);
	/* Who was only told to stop is not the cause. */
	for (int side = 0; side < 2; side++)
		if (all->s->end[side].error && (!ret || ret == -EINTR))
			ret = all->s->end[side].error;
	return ret ?: all->died ? -ECHILD : 0;
}

static int start_end(struct children *all, const struct hca_case *c, enum hca_side side,
		     int fd_sender, int fd_receiver)
{
	struct child *l = &all->end[side];

	*l = (struct child){ .c = c, .s = all->s, .side = side, .both = c->threads,
			     .fd = { fd_sender, fd_receiver } };
	return process_copy(&l->process, run_child, l);
}

int hca_measure_local(const struct hca_case *c, struct hca_shared *s,
		      const struct bench_context *context)
{
	struct children all = { .s = s };
	int fd[2], ret = 0;

	clock_init(); /* before the fork: both ends have the same line */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return log_fail(-errno, "no socket: %s", strerror(errno));
	for (int side = 0; side < (c->threads ? 1 : 2) && !ret; side++)
		ret = start_end(&all, c, (enum hca_side)side, fd[0], fd[1]);
	if (ret)
		atomic_store(&s->stop, true);
	close(fd[0]);
	close(fd[1]);
	look_after(&all, c, context);
	return ret ?: result_of(&all, context);
}

int hca_measure_end(const struct hca_case *c, struct hca_shared *s, enum hca_side side, int fd,
		    const struct bench_context *context)
{
	struct children all = { .s = s };
	int ret;

	clock_init();
	ret = start_end(&all, c, side, fd, fd);
	if (!ret)
		look_after(&all, c, context);
	return ret ?: result_of(&all, context);
}

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

#include "gateway/plugin/plugin.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/spawn.h"

#define PAGE 4096
#define LOOK_NS (5 * UINT64_C(1000000))
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

struct life {
	const struct hca_case *c;
	struct hca_shared *s;
	enum hca_side side;
	int fd;
	hca_end_fn *end;
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

/* Ctrl-C reaches all processes of the terminal; the parent tells the ends when to stop. */
static void set_signals(void)
{
	struct sigaction nudge = { .sa_handler = on_nudge }; /* interrupts system calls */
	sigset_t set;

	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	sigaction(SIGUSR1, &nudge, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void *live(void *arg)
{
	struct life *l = arg;

	l->end(l->c, l->s, l->side, l->fd);
	return NULL;
}

/* One end, or both as threads of this process; does not return. */
static void run_child(struct life *lives, int count)
{
	hca_end_fn *end;
	pthread_t second;
	int err = 0;

	set_signals();
	told = lives[0].s;
	log_set_sink(tell_parent);
	end = (hca_end_fn *)plugin_symbol("bench_hca", "bench_hca_end");
	if (!end) {
		lives[0].s->end[lives[0].side].error = -EOPNOTSUPP;
		_exit(0);
	}
	for (int i = 0; i < count; i++)
		lives[i].end = end;
	if (count > 1)
		err = pthread_create(&second, NULL, live, &lives[1]);
	if (err) {
		log_error("cannot start a thread: %s", strerror(err));
		lives[0].s->end[0].error = -err;
		_exit(0);
	}
	live(&lives[0]);
	if (count > 1)
		pthread_join(second, NULL);
	_exit(0);
}

/* ---- the parent ---- */

struct children {
	pid_t pid[2]; /* by side; 0: has ended, or there is none */
	struct hca_shared *s;
	bool died;
};

static int start_child(struct children *all, struct life *lives, int count)
{
	pid_t pid = spawn_copy(SIGKILL);

	if (pid < 0)
		return log_fail(-errno, "cannot start a process: %s", strerror(errno));
	if (pid == 0)
		run_child(lives, count);
	all->pid[lives[0].side] = pid;
	return 0;
}

static void nudge(const struct children *all)
{
	pid_t only = all->pid[0] ?: all->pid[1];

	for (int side = 0; side < 2; side++) {
		int tid = atomic_load(&all->s->end[side].tid);

		/* Threads of one process have one child for both. */
		if (tid && only)
			syscall(SYS_tgkill, all->pid[side] ?: only, tid, SIGUSR1);
	}
}

static void reap(struct children *all)
{
	for (int side = 0; side < 2; side++) {
		int status;

		if (!all->pid[side] || !spawn_has_ended(all->pid[side], 0, &status))
			continue;
		all->pid[side] = 0;
		if (!status)
			continue;
		log_error("the %s died%s%s", side ? "receiver" : "sender",
			  WIFSIGNALED(status) ? " by signal " : "",
			  WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
		all->died = true;
	}
	/* One that failed before it began does not stop the other by itself. */
	if (all->died || all->s->end[0].error || all->s->end[1].error)
		atomic_store(&all->s->stop, true);
}

static void kill_all(const struct children *all)
{
	for (int side = 0; side < 2; side++)
		if (all->pid[side])
			kill(all->pid[side], SIGKILL);
}

static void show_progress(const struct hca_case *c, const struct hca_shared *s,
			  const struct hca_watch *watch)
{
	double all = c->warmup + (double)c->burst * c->repetitions;

	if (watch->progress)
		watch->progress(watch->data, (double)atomic_load(&s->messages) / all);
}

/* Who sleeps though nothing moves may wait for what is lost; others are not disturbed. */
static bool stands_still(const struct hca_shared *s, uint64_t *messages)
{
	uint64_t before = *messages;

	*messages = atomic_load_explicit(&s->messages, memory_order_relaxed);
	return *messages == before;
}

static void look_after(struct children *all, const struct hca_case *c,
		       const struct hca_watch *watch)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t stopped_ns = 0, messages = 0;

	for (unsigned looks = 1; reap(all), all->pid[0] || all->pid[1]; looks++) {
		bool stop = atomic_load(&all->s->stop);

		nanosleep(&pause, NULL);
		if (watch->stop && atomic_load(watch->stop) && !stop)
			atomic_store(&all->s->stop, stop = true);
		if (looks % NUDGE_LOOKS == 0) {
			bool still = stands_still(all->s, &messages);

			if (stop || (still && atomic_load(&all->s->nudge)))
				nudge(all);
		}
		if (stop && !stopped_ns)
			stopped_ns = clock_monotonic_ns_slow();
		if (stopped_ns && clock_monotonic_ns_slow() - stopped_ns > PATIENCE_NS)
			kill_all(all);
		if (looks % 20 == 0)
			show_progress(c, all->s, watch);
	}
}

static int result_of(const struct children *all, const struct hca_watch *watch)
{
	int ret = 0;

	if (watch->stop && atomic_load(watch->stop))
		return -EINTR;
	if (atomic_load(&all->s->has_why))
		log_error("%s", all->s->why);
	/* Who was only told to stop is not the cause. */
	for (int side = 0; side < 2; side++)
		if (all->s->end[side].error && (!ret || ret == -EINTR))
			ret = all->s->end[side].error;
	return ret ?: all->died ? -ECHILD : 0;
}

int hca_measure_local(const struct hca_case *c, struct hca_shared *s,
		      const struct hca_watch *watch)
{
	struct children all = { .s = s };
	struct life lives[2];
	int fd[2], ret;

	clock_init(); /* before the fork: both ends have the same line */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return log_fail(-errno, "no socket: %s", strerror(errno));
	for (int side = 0; side < 2; side++)
		lives[side] = (struct life){ .c = c, .s = s, .side = (enum hca_side)side,
					     .fd = fd[side] };
	ret = start_child(&all, &lives[0], c->threads ? 2 : 1);
	if (!ret && !c->threads)
		ret = start_child(&all, &lives[1], 1);
	if (ret)
		atomic_store(&s->stop, true);
	close(fd[0]);
	close(fd[1]);
	look_after(&all, c, watch);
	return ret ?: result_of(&all, watch);
}

int hca_measure_end(const struct hca_case *c, struct hca_shared *s, enum hca_side side, int fd,
		    const struct hca_watch *watch)
{
	struct children all = { .s = s };
	struct life life = { .c = c, .s = s, .side = side, .fd = fd };
	int ret;

	clock_init();
	ret = start_child(&all, &life, 1);
	if (!ret)
		look_after(&all, c, watch);
	return ret ?: result_of(&all, watch);
}

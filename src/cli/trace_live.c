/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar trace --live -- PROGRAM`: runs the program as `busbar exec --capture` does, with a pipe, and
 * tells each pitfall when it is found. Its traffic does not wait for us: what finds no room is left out
 * of the capture, which says how much that was (transport/carrier/capture.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "analyzer/words.h"
#include "cli/cli.h"
#include "cli/exec_environment.h"
#include "cli/trace.h"
#include "cli/trace_text.h"
#include "util/beside.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/spawn.h"

#define LOOK_MS 100           /* between two looks for news */
#define PIPE_BYTES (1 << 20)  /* the most that everybody may have */
#define READS_MAX 8           /* of the pipe, before a look */
#define SNAP_BYTES "160"      /* of a packet: its headers */

struct live {
	const struct trace_settings *s;
	char dir[PATH_MAX], fifo[PATH_MAX + 16];
	struct trace_input in;
	struct trace_report report; /* for times */
	pid_t pid;
	int pid_fd;
	int ended;                  /* how the program has ended, as wait() says */
	bool has_ended;
	uint64_t look_ns;           /* not before */
};

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t stops;
static volatile pid_t program;

/* The terminal sends its signal to the program, too; somebody's kill does not. */
static void on_stop(int signal_number, siginfo_t *info, void *context)
{
	stops++;
	if (info->si_code != SI_KERNEL && program > 0)
		kill(program, signal_number);
}

static void catch_stops(void)
{
	struct sigaction stop = { .sa_sigaction = on_stop, .sa_flags = SA_SIGINFO };

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	/* Otherwise a reader who goes away would leave the pipe behind. */
	signal(SIGPIPE, SIG_IGN);
}

/* ---- the program ---- */

/* A pipe with a name, in a folder of its own, which we read. Its descriptor or a negative errno. */
static int make_pipe(struct live *l)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	snprintf(l->dir, sizeof(l->dir), "%s/busbar-trace.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(l->dir)) {
		l->dir[0] = '\0';
		return -errno;
	}
	snprintf(l->fifo, sizeof(l->fifo), "%s/packets", l->dir);
	if (mkfifo(l->fifo, 0600))
		return -errno;
	fd = open(l->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
	return fd;
}

static void remove_pipe(const struct live *l)
{
	if (!l->dir[0])
		return;
	unlink(l->fifo);
	rmdir(l->dir);
}

/* "busbar exec". Its standard output is our standard error, so that ours has nothing but
 * findings. */
static pid_t start_exec(char **argv, char **envp)
{
	sigset_t both, before;
	const struct spawn s = { .argv = argv, .envp = envp, .blocked = &before,
				 .streams = { SPAWN_INHERITS, STDERR_FILENO, SPAWN_INHERITS } };

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	/* A signal finds no program, or one that it can be passed on to. */
	sigprocmask(SIG_BLOCK, &both, &before);
	program = spawn_program(&s);
	if (program > 0)
		catch_stops();
	sigprocmask(SIG_SETMASK, &before, NULL);
	return program;
}

static int start(struct live *l)
{
	char self[PATH_MAX], name[2 * sizeof(l->fifo)];
	char *const head[] = { self, (char *)"exec", (char *)"--quiet", (char *)"--" };
	const struct spawn_variable changes[] = {
		{ .name = "BUSBAR_CAPTURE", .value = name },
		{ .name = "BUSBAR_CAPTURE_SNAP", .value = SNAP_BYTES },
		{ .name = "BUSBAR_CAPTURE_SIZE" }, { .name = "BUSBAR_CAPTURE_FILES" },
		{ .name = NULL },
	};
	size_t names = (size_t)l->s->name_count, heads = ARRAY_SIZE(head);
	char **argv = calloc(heads + names + 1, sizeof(*argv)), **envp;

	exec_capture_name(name, l->fifo);
	envp = spawn_environment(changes);
	l->pid = argv && envp ? beside_self(self) : -ENOMEM;
	if (!l->pid) {
		memcpy(argv, head, sizeof(head));
		memcpy(argv + heads, l->s->names, names * sizeof(*argv));
		l->pid = start_exec(argv, envp);
	}
	spawn_environment_free(envp);
	free(argv);
	if (l->pid < 0)
		return (int)l->pid;
	l->pid_fd = (int)syscall(SYS_pidfd_open, l->pid, 0);
	return l->pid_fd < 0 ? -errno : 0;
}

static void reap(struct live *l)
{
	if (l->has_ended || !spawn_has_ended(l->pid, 0, &l->ended))
		return;
	l->has_ended = true;
	program = 0;
}

/* ---- findings ---- */

/* The sentence is that of a flow with this finding alone. */
static void say_news(void *arg, const struct analyzer_news *n)
{
	const struct live *l = arg;
	struct analyzer_result one = *n->flow;
	struct analyzer_finding finding;
	char sentence[512];

	if (l->s->flow && l->s->flow != one.number)
		return;
	one.verdict = n->kind;
	one.findings = n->finding != NULL;
	if (n->finding) {
		finding = *n->finding;
		one.finding = &finding;
		one.timeouts = finding.timeouts;
	}
	trace_sentence(&one, sentence, sizeof(sentence));
	if (l->s->json)
		trace_print_line(json_pack("{s:I, s:i, s:s, s:s}", "when_ns",
			(json_int_t)(n->when_ns - analyzer_totals(l->in.analyzer)->first_ns), "flow",
			(int)one.number, "kind", analyzer_kind_key(n->kind), "sentence", sentence));
	else
		printf("%12s s  flow %u: %s\n", TRACE_WHEN(&l->report, n->when_ns), one.number,
		       sentence);
	fflush(stdout);
}

static int64_t present_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t); /* the clock of the capture */
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Now and then, however many packets come. */
static void look(struct live *l)
{
	uint64_t now_ns = clock_monotonic_ns_slow();

	if (now_ns < l->look_ns)
		return;
	l->look_ns = now_ns + LOOK_MS * UINT64_C(1000000);
	analyzer_catch_up(l->in.analyzer, present_ns());
	analyzer_news(l->in.analyzer, say_news, l);
}

/* ---- the pipe ---- */

/* What is in the pipe now. False: nothing was. A program that writes faster than we judge must not keep
 * us from telling what was found, and from Ctrl-C. */
static bool take(struct live *l)
{
	ssize_t got = 0;
	bool any = false;

	for (int i = 0; i < READS_MAX && !l->in.capture.corrupt && (got = trace_input_read(&l->in)) > 0; i++)
		any = true;
	return any || (got < 0 && got == -EINTR);
}

/* Until the program has ended and nothing is in the pipe, the second Ctrl-C, or nobody reads what
 * is found. */
static void follow(struct live *l)
{
	bool hung_up = false;

	while (stops < 2 && !l->in.capture.corrupt && !ferror(stdout)) {
		struct pollfd wait[] = { { .fd = l->pid_fd, .events = POLLIN },
					 { .fd = l->in.fd, .events = POLLIN } };

		/* A pipe without a writer is always ready; another one may come. */
		poll(wait, hung_up ? 1 : 2, LOOK_MS);
		hung_up = wait[1].revents & POLLHUP;
		reap(l);
		if (!take(l) && l->has_ended)
			break;
		look(l);
	}
}

/* What the user should know of the program besides the report. */
static void say_end(const struct live *l)
{
	const char *name = l->s->names[0];

	if (!l->has_ended)
		fprintf(stderr, "busbar trace: %s has not ended; its further packets are not captured\n", name);
	else if (WIFSIGNALED(l->ended))
		fprintf(stderr, "busbar trace: %s was ended by signal %d\n", name, WTERMSIG(l->ended));
	else if (WEXITSTATUS(l->ended))
		fprintf(stderr, "busbar trace: %s ended with status %d\n", name, WEXITSTATUS(l->ended));
}

static int conclude(struct live *l)
{
	say_end(l);
	if (!l->in.capture.packets && !l->in.have) {
		fprintf(stderr, "busbar trace: %s has captured no packet: it opened no device of busbar's "
			"adapter, or sent nothing\n", l->s->names[0]);
		return CLI_INCOMPLETE;
	}
	trace_input_end(&l->in);
	analyzer_news(l->in.analyzer, say_news, l);
	return trace_conclude(l->s, &l->in.capture, l->in.analyzer);
}

int trace_live(struct trace_settings *s)
{
	static struct live l = { .pid_fd = -1 };
	int fd, error, status = CLI_INCOMPLETE;

	l.s = s;
	fd = make_pipe(&l);
	error = fd < 0 ? fd : trace_input_open(&l.in, fd, trace_wanted_ladder(s));
	if (!error) {
		l.report.analyzer = l.in.analyzer;
		error = start(&l);
	}
	if (!error) {
		follow(&l);
		status = conclude(&l);
	} else {
		fprintf(stderr, "busbar trace: %s cannot be started with a capture: %s\n", s->file,
			strerror(-error));
	}
	remove_pipe(&l);
	if (fd >= 0)
		trace_input_close(&l.in);
	if (l.pid_fd >= 0)
		close(l.pid_fd);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits for the program of `busbar exec --verdict`, notes when the processes end that it started
 * and that used verbs, and reports on them; see exec_verdict.h. One thread, no handlers: signals
 * come by a descriptor.
 */
#include "cli/exec_verdict.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/log.h"
#include "verdict/say.h"

enum { SIGNALS, FOLDER, FIXED };

#define AGAIN_MS 20 /* between two looks where poll() fails */

int exec_watch_open(struct exec_watch *w, const char *folder)
{
	sigset_t all;

	*w = (struct exec_watch){ .folder = folder, .signals_fd = -1, .folder_fd = -1 };
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	w->signals_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->signals_fd < 0)
		return -errno;
	/* Without it the ends of other processes have no time. */
	w->folder_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->folder_fd >= 0 && inotify_add_watch(w->folder_fd, folder, IN_CREATE) < 0)
		log_debug("%s: %m", folder);
	return 0;
}

static void add_process(struct exec_watch *w, const char *name)
{
	struct exec_observed *all =
		reallocarray(w->observed, w->count + 1, sizeof(*w->observed));
	struct exec_observed *o;

	if (!all)
		return;
	w->observed = all;
	o = &all[w->count++];
	*o = (struct exec_observed){ .pid = atoi(name), .status = -1 };
	snprintf(o->name, sizeof(o->name), "%s", name);
	o->fd = (int)syscall(SYS_pidfd_open, o->pid, 0);
	if (o->fd < 0 && errno == ESRCH)
		o->end_ns = clock_monotonic_ns_slow();
}

static void read_folder(struct exec_watch *w)
{
	_Alignas(struct inotify_event) char buf[4096];
	ssize_t n;

	while ((n = read(w->folder_fd, buf, sizeof(buf))) > 0) {
		const struct inotify_event *e;

		for (char *at = buf; at < buf + n; at += sizeof(*e) + e->len) {
			e = (const struct inotify_event *)at;
			if (e->len)
				add_process(w, e->name);
		}
	}
}

/* Linux 6.15 keeps the status for descriptors of a process whose parent has waited for it; -1:
 * it is not known. The structure is that of linux/pidfd.h, whose older versions lack it. */
static int status_by_fd(int fd)
{
	struct {
		uint64_t mask, cgroup;
		uint32_t numbers[11]; /* of processes, users and groups */
		int32_t exit_code;
	} info = { .mask = 1 << 3 };

	_Static_assert(sizeof(info) == 64, "the first version of struct pidfd_info");
	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, sizeof(info)), &info) ||
	    !(info.mask & 1 << 3))
		return -1;
	return info.exit_code;
}

/* The status of a process that has ended and that its parent has not waited for yet; -1: too
 * late. */
static int status_of(pid_t pid)
{
	char path[64], line[1024] = "";
	const char *at;
	int status = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fgets(line, sizeof(line), f) && (at = strrchr(line, ')')) && at[2] == 'Z' &&
	    (at = strrchr(line, ' ')))
		status = atoi(at + 1);
	fclose(f);
	return status;
}

static void ended(struct exec_observed *o)
{
	o->end_ns = clock_monotonic_ns_slow();
	o->status = status_of(o->pid);
	/* Its parent waits now or has waited. */
	if (o->status == -1)
		o->status = status_by_fd(o->fd);
	close(o->fd);
	o->fd = -1;
}

/* What the terminal sends, the program gets from there as well. A timer of who became this command
 * (alarm(2)) was for the program. */
static bool is_for_program(const struct signalfd_siginfo *s)
{
	return s->ssi_code <= 0 || s->ssi_signo == SIGALRM;
}

/* Is there a terminal, at which somebody may continue a job that has stopped? */
static bool has_terminal(void)
{
	int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* Returns whether the program has ended. */
static bool look_at_program(const struct exec_watch *w, int *status)
{
	pid_t pid;

	while ((pid = waitpid(w->program, status, WNOHANG | WUNTRACED)) > 0) {
		if (!WIFSTOPPED(*status))
			return true;
		/* A shell that stops its job waits for both. Without one whoever continues the program
		 * does not know of this process. */
		if (has_terminal())
			raise(SIGSTOP);
	}
	return false;
}

static bool read_signals(const struct exec_watch *w, int *status)
{
	struct signalfd_siginfo s;
	bool over = false;

	while (!over && read(w->signals_fd, &s, sizeof(s)) == sizeof(s)) {
		if (s.ssi_signo == SIGCHLD)
			over = look_at_program(w, status);
		else if (is_for_program(&s))
			kill(w->program, (int)s.ssi_signo);
	}
	return over;
}

/* Of this process and those that run: poll() takes no more descriptors than a process may have
 * open, so those that have ended are left out. Returns how many. */
static unsigned fill(const struct exec_watch *w, unsigned seen, struct pollfd *p)
{
	unsigned n = FIXED;

	p[SIGNALS] = (struct pollfd){ .fd = w->signals_fd, .events = POLLIN };
	p[FOLDER] = (struct pollfd){ .fd = w->folder_fd, .events = POLLIN };
	for (unsigned i = 0; i < seen; i++)
		if (w->observed[i].fd >= 0)
			p[n++] = (struct pollfd){ .fd = w->observed[i].fd, .events = POLLIN };
	return n;
}

static void look_at_ends(const struct exec_watch *w, unsigned seen, const struct pollfd *p)
{
	unsigned n = FIXED;

	for (unsigned i = 0; i < seen; i++)
		if (w->observed[i].fd >= 0 && p[n++].revents)
			ended(&w->observed[i]);
}

int exec_watch_run(struct exec_watch *w)
{
	struct pollfd *p = NULL;
	int status = 0;
	bool over = false;

	while (!over) {
		struct pollfd *more = reallocarray(p, FIXED + w->count, sizeof(*p));
		unsigned seen = more ? w->count : 0;
		struct pollfd fixed[FIXED];

		p = more ? more : p;
		if (!more)
			more = fixed;
		if (poll(more, fill(w, seen, more), -1) >= 0)
			look_at_ends(w, seen, more);
		else if (errno != EINTR)
			poll(NULL, 0, AGAIN_MS); /* no memory */
		read_folder(w);
		over = read_signals(w, &status);
	}
	free(p);
	return status;
}

struct reports {
	const struct verdict_facts **facts;
	struct verdict_ended *ended;
	unsigned count;
	unsigned missing; /* processes without facts */
};

/* A copy of the facts in a file, as the process may still run; NULL: they are not complete. */
static const struct verdict_facts *read_facts(int dir, const char *name)
{
	struct verdict_facts *f = malloc(sizeof(*f));
	/* A program that makes a FIFO there must not stop the report. */
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (f && (fd < 0 || pread(fd, f, sizeof(*f), 0) != (ssize_t)sizeof(*f) ||
		  f->magic != VERDICT_MAGIC)) {
		free(f);
		f = NULL;
	}
	if (fd >= 0)
		close(fd);
	if (f)
		verdict_facts_clean(f);
	return f;
}

static void set_status(struct verdict_ended *e, int status)
{
	e->how = WIFSIGNALED(status) ? VERDICT_END_SIGNAL : VERDICT_END_STATUS;
	e->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static const struct exec_observed *find_observed(const struct exec_watch *w, const char *name)
{
	for (unsigned i = 0; i < w->count; i++)
		if (!strcmp(w->observed[i].name, name))
			return &w->observed[i];
	return NULL;
}

/* A process other than the program. Its own word counts, if it came to say it. */
static struct verdict_ended end_of(const struct exec_watch *w, const char *name,
				   const struct verdict_facts *f)
{
	const struct exec_observed *o = find_observed(w, name);
	struct verdict_ended e = { .how = VERDICT_END_UNKNOWN, .at_ns = clock_monotonic_ns_slow() };

	if (o && o->end_ns)
		e.at_ns = o->end_ns;
	if (f->end == VERDICT_EXITS) {
		e = (struct verdict_ended){ VERDICT_END_STATUS, f->exit_status, f->end_ns };
		if (o && o->status != -1 && WIFSIGNALED(o->status))
			set_status(&e, o->status);
	} else if (o && o->status != -1) {
		set_status(&e, o->status);
	} else if (o && o->fd >= 0) {
		e.how = VERDICT_END_RUNS;
	}
	return e;
}

static void add(struct reports *r, const struct verdict_facts *f, struct verdict_ended e)
{
	const struct verdict_facts **facts =
		reallocarray(r->facts, r->count + 1, sizeof(*facts));
	struct verdict_ended *ended;

	if (!facts)
		return;
	r->facts = facts;
	ended = reallocarray(r->ended, r->count + 1, sizeof(*ended));
	if (!ended)
		return;
	r->ended = ended;
	facts[r->count] = f;
	ended[r->count++] = e;
}

/* The status is that of the last program that the process was. */
static void set_program(struct reports *r, const struct exec_watch *w, int status)
{
	unsigned last = r->count;

	for (unsigned i = 0; i < r->count; i++)
		if (r->facts[i]->pid == (uint32_t)w->program &&
		    (last == r->count || r->facts[i]->start_ns > r->facts[last]->start_ns))
			last = i;
	if (last == r->count)
		return;
	set_status(&r->ended[last], status);
	if (!r->facts[last]->end_ns)
		r->ended[last].at_ns = clock_monotonic_ns_slow();
}

static void collect(struct reports *r, const struct exec_verdict *v, const struct exec_watch *w)
{
	DIR *dir = opendir(v->folder);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		const struct verdict_facts *f =
			e->d_name[0] == '.' ? NULL : read_facts(dirfd(dir), e->d_name);

		if (f)
			add(r, f, end_of(w, e->d_name, f));
		else if (e->d_name[0] != '.')
			r->missing++;
	}
	if (dir)
		closedir(dir);
}

static void say(FILE *out, const struct exec_verdict *v, const struct reports *r, unsigned i)
{
	int peer = verdict_peer_of(r->facts, r->count, i);
	struct verdict_case c = { .facts = r->facts[i], .ended = r->ended[i] };
	struct verdict verdict;

	if (peer >= 0) {
		c.peer = r->facts[peer];
		c.peer_ended = r->ended[peer];
	}
	verdict_judge(&c, &verdict);
	(v->json ? verdict_say_json : verdict_say_text)(out, &c, &verdict);
}

static void put(int fd, const char *text, size_t size)
{
	while (size) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR) {
			log_error("exec: the verdict cannot be written: %m");
			return;
		}
		text += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
}

void exec_report(const struct exec_verdict *v, const struct exec_watch *w, int status)
{
	struct reports r = { 0 };
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	collect(&r, v, w);
	set_program(&r, w, status);
	for (unsigned i = 0; i < r.count; i++)
		say(out, v, &r, i);
	if (r.missing)
		log_warn("exec: %u processes have no verdict: %s had no room for their facts",
			 r.missing, v->folder);
	if (!r.count && !r.missing && !v->json)
		fputs("busbar verdict: no process used verbs\n", out);
	fclose(out);
	put(v->out_fd, text, size);
	free(text);
	for (unsigned i = 0; i < r.count; i++)
		free((void *)(uintptr_t)r.facts[i]);
	free(r.facts);
	free(r.ended);
}

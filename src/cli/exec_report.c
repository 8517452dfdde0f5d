/* SPDX-License-Identifier: BSD-2-Clause */
/* The reports of `busbar exec --verdict`; see exec_verdict.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/exec_verdict.h"
#include "util/clock.h"
#include "util/log.h"
#include "verdict/say.h"

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

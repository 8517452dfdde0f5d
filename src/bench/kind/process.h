/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Other people's programs that a kind measures with: command lines, and processes whose output
 * goes into files. A process has a group of its own, so Ctrl-C does not reach it before us, and
 * ends when this one does.
 */
#ifndef BENCH_KIND_PROCESS_H
#define BENCH_KIND_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/spawn.h"

#define PROCESS_WORDS_MAX 64

/* A command line; the words belong to it. */
struct process_words {
	char *argv[PROCESS_WORDS_MAX + 1];
	size_t count;
	bool failed;          /* no memory, or too many words */
};

void process_words_add(struct process_words *w, const char *word);
/* All of them; the last one is NULL. */
void process_words_list(struct process_words *w, ...) __attribute__((sentinel));
/* An option with a number. */
void process_words_number(struct process_words *w, const char *option, long long value);
/* Each word of a text with spaces between them. */
void process_words_split(struct process_words *w, const char *words);
/* This executable, and each word of a text. */
void process_words_self(struct process_words *w, const char *words);
/* "busbar exec --quiet --" with the path of this executable; `option` is one more, or NULL. */
void process_words_exec(struct process_words *w, const char *option);
void process_words_free(struct process_words *w);

struct process {
	char *const *argv;        /* argv[0] is looked for in PATH */
	const char *output;       /* file for standard output and error */
	const char *errors;       /* file for standard error alone; NULL: there is none */
	const struct spawn_variable *set; /* ends with name NULL; NULL: none */
	const char *folder;       /* where it runs; NULL: here */
	int cpu;                  /* -1: any */
	bool session;             /* leads a session, too */
	int death_signal;         /* when this process ends; 0: SIGKILL */
	int (*prepare)(void *arg); /* as in struct spawn */
	void *arg;

	pid_t pid;                /* 0: does not run */
	int status;               /* of its end, as of waitpid() */
};

/* 0 or a negative errno, logged. */
int process_start(struct process *p);
/* Likewise, a copy of this process that shares memory with it: it calls `run` and ends. */
int process_copy(struct process *p, void (*run)(void *arg), void *arg);
/* Starts a program, and waits until it has ended: as process_await(). It is killed then. */
int process_run(struct process *p, uint64_t until_ns, const atomic_bool *stop);
/* Has it ended? Then it has its status, and what it has started itself is ended, too. */
bool process_has_ended(struct process *p);
/* Waits for that. 0; -EINTR: `stop` (NULL allowed) is set; -ETIMEDOUT: not until then, on
 * clock_monotonic_ns_slow(). */
int process_await(struct process *p, uint64_t until_ns, const atomic_bool *stop);
/* Nothing is done when it does not run. */
void process_kill(struct process *p);
/* Asks it to end (SIGTERM), so that it takes with it what runs elsewhere, and kills it after
 * `seconds`: false. */
bool process_end(struct process *p, unsigned seconds);
/* Logs with what it failed: -EIO. `who`: "server". */
int process_failed(const struct process *p, const char *who);
/* Logs the last lines of its output. */
void process_show_end(const char *who, const char *path);
/* TCP ports of this host that nobody uses now, for UDP too as a rule. 0 or a negative errno. */
int process_free_ports(unsigned *ports, size_t count);
/* A program is ended after so many seconds: a multiple of the guess, and a time besides that goes
 * with the scale. */
static inline double process_patience(double guess, double factor, double scale)
{
	return (scale < 0.2 ? 60 : scale < 1 ? 300 * scale : 300) + factor * guess;
}
/* A few milliseconds, between two looks at it. */
void process_pause(void);

#endif

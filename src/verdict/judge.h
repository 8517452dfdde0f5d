/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges how a program handled its first error, from the facts of its process (facts.h). Pure: no
 * clock, no input or output. man busbar-exec(1), VERDICT, defines questions and verdicts.
 */
#ifndef VERDICT_JUDGE_H
#define VERDICT_JUDGE_H

#include <stddef.h>

#include "verdict/facts.h"

enum {
	VERDICT_LATE_S = 10, /* a program that tells later tells late, a reaction is none */
	VERDICT_HUNG_S = 5,  /* without progress before a signal */
	VERDICT_EVIDENCE = 480,
};

enum verdict_word {
	VERDICT_NO_ERROR,
	VERDICT_HANDLED,
	VERDICT_RECOVERED,
	VERDICT_TOLD_LATE,
	VERDICT_HIDDEN,
	VERDICT_HUNG,
	VERDICT_NOT_SEEN,
	VERDICT_UNDECIDED,
	VERDICT_WORDS,
};

enum verdict_question {
	VERDICT_FIRST,
	VERDICT_FETCHED,
	VERDICT_REACTED,
	VERDICT_TOLD,
	VERDICT_PEER,
	VERDICT_SECOND,
	VERDICT_REPEATED,
	VERDICT_OTHERS,
	VERDICT_FLOWED,
	VERDICT_QUESTIONS,
};

enum verdict_says {
	VERDICT_MOOT, /* without an error there is no question */
	VERDICT_YES,
	VERDICT_NO,
	VERDICT_UNSEEN,
};

struct verdict_answer {
	enum verdict_says says;
	char evidence[VERDICT_EVIDENCE];
};

/* How the process ended, as far as it is known. */
struct verdict_ended {
	enum { VERDICT_END_UNKNOWN, VERDICT_END_RUNS, VERDICT_END_STATUS, VERDICT_END_SIGNAL } how;
	int code; /* exit status or signal */
	uint64_t at_ns;
};

struct verdict_case {
	const struct verdict_facts *facts;
	struct verdict_ended ended;
	/* The process at the other side of the broken queue pair, or of the last one. NULL: it did not
	 * run under the same call. */
	const struct verdict_facts *peer;
	struct verdict_ended peer_ended;
};

struct verdict {
	enum verdict_word word;
	struct verdict_answer answers[VERDICT_QUESTIONS];
};

void verdict_judge(const struct verdict_case *c, struct verdict *v);
/* Facts that a process has written, which may have damaged its memory: numbers that stand for
 * something else become 0. */
void verdict_facts_clean(struct verdict_facts *f);

/* ---- parts of it: first.c ---- */
/* The first error. NULL: there is none, or none that the program was told of. */
const struct verdict_error *verdict_first(const struct verdict_facts *f);
enum verdict_channel verdict_first_channel(const struct verdict_facts *f);
void verdict_first_answer(const struct verdict_case *c, struct verdict_answer *a);
/* Requests that wait for a completion, and receives, of all queue pairs. */
uint64_t verdict_open_requests(const struct verdict_facts *f);
uint64_t verdict_open_receives(const struct verdict_facts *f);

/* ---- answers.c ---- */
void verdict_answers(const struct verdict_case *c, struct verdict *v);
/* ---- peers.c ---- */
/* The process at the other side of the queue pair with the error, or of one whose receives have
 * not completed; its index in `all`, or -1. */
int verdict_peer_of(const struct verdict_facts *const *all, unsigned count, unsigned self);

/* ---- words.c ---- */
const char *verdict_word(enum verdict_word word);
const char *verdict_wc_status(uint32_t status);
const char *verdict_opcode(uint32_t opcode);
const char *verdict_event(uint32_t event);
const char *verdict_cm_event(uint32_t event);
__attribute__((format(printf, 3, 4))) void verdict_answer(struct verdict_answer *a,
							   enum verdict_says says,
							   const char *format, ...);
/* "0.350 s"; a time that is not known to the nanosecond may lie behind `to`. */
struct verdict_time {
	char text[32];
} verdict_between(uint64_t from_ns, uint64_t to_ns);

#endif

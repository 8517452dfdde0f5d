/* SPDX-License-Identifier: BSD-2-Clause */
/* See runner.h. */
#define LOG_ROOM "bench"
#include "bench/suite/runner.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/suite/live.h"
#include "bench/result/show.h"
#include "bench/tune/tree.h"
#include "util/log.h"
#include "util/num.h"

bool runner_wants(const struct runner_options *o, const struct suite_case *c)
{
	return !o->only || !fnmatch(o->only, c->id, 0) || !fnmatch(o->only, c->scenario, 0);
}

/* Of whole scripts, which is how the commands of the documents are tried. */
static double scale_of_all(void)
{
	const char *text = getenv("BUSBAR_BENCH_SCALE");
	double scale;

	if (!text || !*text)
		return 1;
	if (num_parse_double(text, text + strlen(text), &scale) == text + strlen(text) &&
	    scale > 0 && scale <= 1e6)
		return scale;
	log_warn("BUSBAR_BENCH_SCALE=%s is not usable, expected a number above 0", text);
	return 1;
}

static double scale_of(const struct runner_options *o, const struct suite_case *c)
{
	static double all;

	if (!(all > 0))
		all = scale_of_all();
	return all * o->scale * (o->ci ? c->scale_ci : 1);
}

double runner_seconds(const struct runner_options *o, const struct suite_case *c)
{
	return c->kind && c->kind->seconds ?
		       c->kind->seconds(c->parameters, scale_of(o, c)) : 0;
}

/* Adds those words that are not there yet. */
static void add_words(char *all, size_t size, const char *words)
{
	while (*words) {
		size_t n = strcspn(words, " "), len = strlen(all);
		char word[60];

		snprintf(word, sizeof(word), "%.*s", (int)n, words);
		if (!tune_has_word(all, word, " "))
			snprintf(all + len, size - len, "%s%s", len ? " " : "", word);
		words += n + strspn(words + n, " ");
	}
}

size_t runner_lacks(const struct suite *s, const struct runner_options *o, char *packages,
		    size_t size)
{
	size_t count = 0;

	*packages = '\0';
	for (size_t i = 0; i < s->count; i++) {
		const struct suite_case *c = &s->cases[i];
		const char *lacks = runner_wants(o, c) && c->kind && c->kind->lacks ?
					    c->kind->lacks(c->parameters) : NULL;

		if (!lacks)
			continue;
		add_words(packages, size, lacks);
		count++;
	}
	return count;
}

static void on_progress(const struct bench_context *context, double share)
{
	live_share(share);
}

int runner_measure(struct result_run *run, const struct suite_case *c,
		   const struct runner_options *o,
		   void (*done)(const struct suite_case *c, const json_t *summary))
{
	struct place before;
	struct bench_context context = { .scale = scale_of(o, c), .stop = o->stop,
					 .progress = on_progress };
	int ret;

	json_object_set_new(c->description, "scale", json_real(context.scale));
	ret = result_case_begin(run, c->id, c->description, &context.result);
	if (ret)
		return ret;
	place_enter(o->place, c->kind, &before);
	ret = c->kind->run(c->parameters, &context);
	place_leave(&before);
	/* A kind that did not look at the flag, or was disturbed by the signal. */
	if (atomic_load(o->stop))
		ret = -EINTR;
	if (ret) {
		result_case_abandon(context.result);
		return ret;
	}
	if (done)
		done(c, result_case_summary(context.result));
	return result_case_end(context.result);
}

/* "[ 3/36] A1_RC  " */
static void print_head(size_t index, size_t count, const struct suite_case *c)
{
	int digits = snprintf(NULL, 0, "%zu", count);

	printf("[%*zu/%zu] %-28s ", digits, index, count, c->id);
}

static size_t shown_index, shown_count;

static void print_done(const struct suite_case *c, const json_t *summary)
{
	char left[32];
	double taken = live_case_end(), rest = live_seconds_left();

	print_head(shown_index, shown_count, c);
	show_brief(stdout, summary);
	printf("  (%.1f s", taken);
	if (shown_index < shown_count)
		printf(", %s left", live_duration(rest, left));
	printf(")\n");
	fflush(stdout);
}

/* The case is not possible here: noted, and no failure. */
static int leave_out(struct result_run *run, const struct suite_case *c, const char *reason)
{
	print_head(shown_index, shown_count, c);
	printf("left out: %s\n", reason);
	fflush(stdout);
	return result_run_left_out(run, c->id, c->scenario, reason);
}

/* One case with all that is printed about it. 0, -EINTR or an error of the folder. */
static int run_case(const struct suite_case *c, struct result_run *run,
		    const struct runner_options *o, struct runner_counts *counts)
{
	char reason[LIVE_REASON_SIZE];
	int ret;

	if (result_case_done(run, c->id)) {
		counts->there_already++;
		return 0;
	}
	if (!c->kind) {
		counts->left_out++;
		return leave_out(run, c, c->why);
	}
	live_case(c->id, runner_seconds(o, c));
	ret = runner_measure(run, c, o, print_done);
	if (!ret) {
		counts->measured++;
		return 0;
	}
	if (ret == -EOPNOTSUPP)
		live_take_reason(reason);
	live_case_end();
	if (ret == -EINTR)
		return ret;
	if (ret == -EOPNOTSUPP) {
		counts->left_out++;
		return leave_out(run, c, *reason ? reason : "not possible on this machine");
	}
	counts->failed++;
	print_head(shown_index, shown_count, c);
	printf("failed: %s\n", strerror(-ret));
	fflush(stdout);
	return ret == -ENOSPC || ret == -EROFS || ret == -EDQUOT ? ret : 0;
}

int runner_run(const struct suite *s, struct result_run *run,
	       const struct runner_options *o, struct runner_counts *counts)
{
	double seconds = 0;
	int ret = 0;

	*counts = (struct runner_counts){ .wanted = 0 };
	for (size_t i = 0; i < s->count; i++) {
		if (!runner_wants(o, &s->cases[i]))
			continue;
		counts->wanted++;
		if (result_case_done(run, s->cases[i].id))
			continue;
		seconds += runner_seconds(o, &s->cases[i]);
	}
	shown_count = counts->wanted;
	shown_index = 0;
	live_begin(counts->wanted, seconds);
	for (size_t i = 0; !ret && i < s->count; i++) {
		if (!runner_wants(o, &s->cases[i]))
			continue;
		if (shown_index++ == counts->wanted / 2 && counts->measured)
			result_run_check(run, "middle");
		ret = atomic_load(o->stop) ? -EINTR :
					     run_case(&s->cases[i], run, o, counts);
	}
	live_end();
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What apply.c and undo.c share. */
#ifndef BENCH_TUNE_CHANGE_PARTS_H
#define BENCH_TUNE_CHANGE_PARTS_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>

#include "bench/tune/change.h"

/* Do two texts of a file say the same? White space at the ends, zeros in front of masks and
 * the words that were not chosen do not count. */
bool change_same(enum tune_kind kind, const char *a, const char *b);

/* A text of the file as a person wants to read it; `to` is used for it. */
const char *change_shown(const struct tune_change *c, const char *text, char *to, size_t size);

/* One line of the report: mark, setting, path and the text. */
void change_say(struct tune_report *r, const char *mark, const struct tune_change *c,
		const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Between these two, SIGINT, SIGTERM and SIGHUP wait; those that came do not end the
 * process afterwards, either. */
void change_hold_signals(sigset_t *before);
bool change_interrupted(void);
void change_release_signals(const sigset_t *before);

#endif

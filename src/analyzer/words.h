/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what the analyzer finds, and what a user can change. */
#ifndef ANALYZER_WORDS_H
#define ANALYZER_WORDS_H

#include "analyzer/result.h"

const char *analyzer_kind_name(enum analyzer_kind kind);   /* "packet damming" */
const char *analyzer_kind_key(enum analyzer_kind kind);    /* "damming": for programs */
/* What to change, in one or two sentences; "" if there is nothing. */
const char *analyzer_kind_advice(enum analyzer_kind kind);
const char *analyzer_side_key(enum analyzer_side side);
const char *analyzer_confidence_key(enum analyzer_confidence confidence);
const char *analyzer_trigger_key(enum analyzer_trigger trigger);
const char *analyzer_trigger_name(enum analyzer_trigger trigger);
/* The nth reason why a flow was not judged in full; NULL behind the last. */
const char *analyzer_gap_text(unsigned nth);
const char *analyzer_gap_key(unsigned nth);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process did with devices, told to `busbar exec`. */
#ifndef VERBS_NOTE_H
#define VERBS_NOTE_H

enum verbs_note { VERBS_LISTED, VERBS_OPENED };

/* Keeps errno. */
void verbs_note(enum verbs_note what);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells `busbar exec` what this process did with devices; see note.c. */
#ifndef VERBS_NOTE_H
#define VERBS_NOTE_H

enum verbs_note { VERBS_LISTED, VERBS_OPENED };

/* Leaves errno unchanged. */
void verbs_note(enum verbs_note what);

#endif

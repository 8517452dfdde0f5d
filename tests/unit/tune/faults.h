/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults at the places where tune changes the tree or its state file. All changes are
 * counted from 0; at the chosen one the fault happens.
 */
#ifndef TESTS_TUNE_FAULTS_H
#define TESTS_TUNE_FAULTS_H

enum fault {
	FAULT_NONE,
	FAULT_ERROR,       /* nothing happens, -EIO */
	FAULT_ERROR_AFTER, /* it is written, and -EIO */
	FAULT_KILL,        /* the process ends before it */
	FAULT_KILL_AFTER,  /* the process ends after it */
	FAULT_OTHER,       /* the kernel makes 77 of it: a value, and no failure */
	FAULT_STATE,       /* the state file is not written, -ENOSPC; counts these writes */
	FAULT_KINDS,
};

/* From now on; `at` counts from here. */
void fault_arm(enum fault kind, unsigned at);
/* How many changes of the tree, and writes of the state file, since then. */
unsigned fault_changes(void);
unsigned fault_states(void);

#endif

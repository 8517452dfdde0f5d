/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that do not take part in the settings of the whole process: those whose
 * node or path has settings of its own, and those that never belong to real time.
 */
#ifndef GATEWAY_BASE_OWN_THREAD_H
#define GATEWAY_BASE_OWN_THREAD_H

#include <sys/types.h>

enum own_setting {
	OWN_AFFINITY = 1 << 0,
	OWN_PRIORITY = 1 << 1,
};

/* The calling thread keeps these (enum own_setting) until it ends. */
void own_thread_keep(unsigned settings);
/* What the thread `tid` keeps. */
unsigned own_thread_settings(pid_t tid);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of threads that do not follow the process's settings of affinity and priority:
 * threads whose node or path has settings of its own, and threads that must never run
 * in real time. A reload of the configuration leaves them as they are.
 */
#ifndef GATEWAY_BASE_OWN_THREAD_H
#define GATEWAY_BASE_OWN_THREAD_H

#include <sys/types.h>

enum own_setting {
	OWN_AFFINITY = 1 << 0,
	OWN_PRIORITY = 1 << 1,
};

/* The calling thread keeps its own `settings` (enum own_setting) until it ends. */
void own_thread_keep(unsigned settings);
/* The settings (enum own_setting) that thread `tid` keeps. Any thread. */
unsigned own_thread_settings(pid_t tid);

#endif

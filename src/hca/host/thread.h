/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says about a thread of this process. */
#ifndef HCA_THREAD_H
#define HCA_THREAD_H

#include <stdbool.h>
#include <sys/types.h>

/* The kernel's number of the calling thread, which is asked for once. */
pid_t hca_thread_number(void);
/* In a forked child, whose thread has another one. */
void hca_thread_forked(void);

/* Is the thread running, or ready to run and without a processor? False also if the kernel does not
 * say (no /proc, no such thread). Takes some microseconds. */
bool hca_thread_is_ready(pid_t tid);

#endif

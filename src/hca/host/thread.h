/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says about a thread of this process. */
#ifndef HCA_THREAD_H
#define HCA_THREAD_H

#include <stdbool.h>
#include <sys/types.h>

/* Is the thread running, or ready to run and without a processor? False also if the kernel does not
 * say (no /proc, no such thread). Takes some microseconds. */
bool hca_thread_is_ready(pid_t tid);

#endif

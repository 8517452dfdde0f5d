/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that fails on request, so that a program's reaction can be tested: all queue
 * pairs go to the error state, and each open context gets IBV_EVENT_DEVICE_FATAL. From
 * then on these contexts make no queue pair and move none out of the error state (-EIO).
 * A context that is opened later works, as after the reset of an adapter.
 */
#ifndef HCA_FAIL_H
#define HCA_FAIL_H

#include <stdint.h>

/*
 * Lets the device fail (N of softN, or HCA_INSPECT_DEVICES); the process that asked on
 * `fd` is answered when it has failed. 0, -ENODEV, or -EBUSY: too many requests at
 * once. Any thread.
 */
int hca_fail_request(int fd, uint32_t device);
/* The adapter ends: answers requests that are open. After the transport's end. */
void hca_fail_stop(void);
/* In a forked child: forgets the parent's open requests. */
void hca_fail_forked(void);

#endif

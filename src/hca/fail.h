/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device that fails on request, for programs that want to show what they do
 * then: all queue pairs go to the error state, and each context that is open
 * gets IBV_EVENT_DEVICE_FATAL. From then on these contexts make no queue pair and
 * lead none out of the error state (-EIO); one that is opened later is as good as
 * ever, as after the reset of an adapter.
 */
#ifndef HCA_FAIL_H
#define HCA_FAIL_H

#include <stdint.h>

/*
 * The device (N of softN, or HCA_INSPECT_DEVICES) shall fail; who asked on `fd`
 * is answered when it has. 0, -ENODEV, or -EBUSY: too many ask at once. Progress
 * thread.
 */
int hca_fail_request(int fd, uint32_t device);
/* The adapter ends: who still waits is told. After the transport's end. */
void hca_fail_stop(void);
/* In a forked child: those who wait are the parent's. */
void hca_fail_forked(void);

#endif

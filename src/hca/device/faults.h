/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The faults that messages and packets of this process meet, for tests: those of
 * BUSBAR_FAULTS at first, and others when another process asks for them (`busbar devices
 * --faults`). They belong to the process, and stay when its devices are closed.
 */
#ifndef HCA_FAULTS_H
#define HCA_FAULTS_H

#include "hca/share/inspect_message.h"

/*
 * Sets the faults that `msg` names, or tells the event that it asks for; the process that asked on `fd` is answered when that is
 * done. 0; -EINVAL: the text does not end; -EBUSY: too many requests at once; or another
 * negative errno. Any thread.
 */
int hca_faults_request(int fd, const struct hca_inspect_faults *msg);
/* Answers which are set. Any thread. */
void hca_faults_show(int fd);
/* The adapter ends: answers requests that are open. After the transports' end. */
void hca_faults_stop(void);
/* In a forked child: forgets the parent's open requests. */
void hca_faults_forked(void);

#endif

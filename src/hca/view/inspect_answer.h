/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers inspections of this process. */
#ifndef HCA_INSPECT_ANSWER_H
#define HCA_INSPECT_ANSWER_H

#include <stdbool.h>

/*
 * If the first message on a new connection is one of these, answers it and returns true;
 * the connection may then be closed. A request to fail, or for faults, is answered later, on
 * a duplicated descriptor. peers.h decides which processes may ask. Progress thread.
 */
bool hca_inspect_answer(int fd);

#endif

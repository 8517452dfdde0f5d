/* SPDX-License-Identifier: BSD-2-Clause */
/* What the module of `busbar zmq-keygen` has. */
#ifndef CLI_ZMQ_PAIR_H
#define CLI_ZMQ_PAIR_H

#include <assert.h>

#define CLI_ZMQ_KEY_SIZE 41

/* A new key pair as texts. 0 or a negative errno: -ENOTSUP if libzmq has no CURVE. */
int cli_zmq_pair(char public[CLI_ZMQ_KEY_SIZE], char secret[CLI_ZMQ_KEY_SIZE]);

#endif

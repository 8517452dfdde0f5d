/* SPDX-License-Identifier: BSD-2-Clause */
/* A key pair of CURVE, by libzmq; a module of its own, because only this needs the library. */
#include "cli/zmq_pair.h"

#include <errno.h>
#include <zmq.h>

static_assert(CLI_ZMQ_KEY_SIZE == 41, "40 characters of Z85");

int cli_zmq_pair(char public[CLI_ZMQ_KEY_SIZE], char secret[CLI_ZMQ_KEY_SIZE])
{
	return zmq_curve_keypair(public, secret) ? -errno : 0;
}

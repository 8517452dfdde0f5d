/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hosts: one runs `busbar bench hca --server`, the other one measures with the parameter
 * `peer`. The case goes to the server by a TCP connection, which stays the ends' control
 * connection: a length of 4 bytes (little-endian) and the parameters as JSON; the answer is
 * a length and a text, empty if all is well.
 *
 * Nobody is asked who he is: whoever reaches the port can have a case measured.
 */
#ifndef BENCH_HCA_REMOTE_H
#define BENCH_HCA_REMOTE_H

#include <jansson.h>
#include <stdatomic.h>

#define HCA_PORT "18516"

/* Connects to "HOST[:PORT]" and hands the case over; the descriptor, or a negative errno,
 * logged. */
int hca_remote_connect(const char *peer, const json_t *parameters, double scale);

#endif

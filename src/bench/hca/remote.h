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
#include <stdbool.h>

#define HCA_PORT "18516"

/* Connects to "HOST[:PORT]" and hands the case over; the descriptor, or a negative errno,
 * logged. */
int hca_remote_connect(const char *peer, const json_t *parameters, double scale);

/* ---- what the two sides share ---- */

#define HCA_HOST_MAX 256
#define HCA_TEXT_MAX 65536

/* A connected or listening socket, or a negative errno, logged. */
int hca_socket_open(const char *text, bool serve);
/* No delays, and no waiting for ever for the other side's text. */
void hca_socket_tune(int fd);

/* A length and a text. 0 or a negative errno, not logged. The text is malloc()ed. */
int hca_text_send(int fd, const char *text);
int hca_text_receive(int fd, char **text);

#endif

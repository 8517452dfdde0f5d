/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two sides of remote.h share. */
#ifndef BENCH_HCA_REMOTE_PARTS_H
#define BENCH_HCA_REMOTE_PARTS_H

#include <stdbool.h>

#define HCA_HOST_MAX 256
#define HCA_TEXT_MAX 65536

/* "HOST", "HOST:PORT", "[IPV6]:PORT"; an empty HOST is any address. *port points into the
 * text, or is HCA_PORT. 0 or -EINVAL. */
int hca_address_split(const char *text, char host[HCA_HOST_MAX], const char **port);
/* A connected or listening socket, or a negative errno, logged. */
int hca_socket_open(const char *text, bool serve);
/* No delays, and no waiting for ever for the other side's text. */
void hca_socket_tune(int fd);

/* A length and a text. 0 or a negative errno, not logged. The text is malloc()ed. */
int hca_text_send(int fd, const char *text);
int hca_text_receive(int fd, char **text);

#endif

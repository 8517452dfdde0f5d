/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses of both families, and their 16 bytes in packets. */
#ifndef RIPC_ADDRESS_H
#define RIPC_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

socklen_t address_length(const union address *a);
uint16_t address_port(const union address *a);
/* The same host, and with `port` the same port. An IPv4 address is the same as its mapped
 * one; the interface of a link-local one counts. */
bool address_same(const union address *a, const union address *b, bool port);
/* IPv6, or IPv4 mapped. False: means something on one link only (fe80::/10). */
bool address_to_bytes(const union address *a, uint8_t out[16]);
/* An address in digits. False: not one. */
bool address_parse(const char *text, uint16_t port, union address *out);

#endif

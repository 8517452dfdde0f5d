/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses: their kind, whether they are local, and their GIDs. */
#ifndef RDMACM_BASE_ADDR_H
#define RDMACM_BASE_ADDR_H

#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/* 0 for an unsupported family. */
socklen_t cma_addr_len(const struct sockaddr *addr);
bool cma_addr_is_any(const struct sockaddr *addr);
bool cma_addr_is_multicast(const struct sockaddr *addr);
bool cma_addr_is_loopback(const struct sockaddr *addr);
bool cma_addr_same_host(const struct sockaddr *a, const struct sockaddr *b);
uint16_t cma_addr_port(const struct sockaddr *addr);
void cma_addr_set_port(struct sockaddr *addr, uint16_t port);
void cma_addr_set_loopback(struct sockaddr *addr);
/* Copies; an IPv4 address mapped into IPv6 becomes IPv4. */
void cma_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from);
void cma_addr_to_gid(const struct sockaddr *addr, union ibv_gid *gid);
void cma_addr_to_bytes(const struct sockaddr *addr, uint8_t bytes[16]);
void cma_addr_from_bytes(struct sockaddr_storage *addr, int ip_version,
			 const uint8_t bytes[16], uint16_t port);
/* An AF_IB address; service_id 0: no service is chosen yet (mask 0). */
void cma_addr_from_gid(struct sockaddr_storage *addr, const union ibv_gid *gid,
		       uint64_t service_id);
/*
 * Sets the port space of an AF_IB address to `ps` if its service identifier leaves
 * the port space open. 0, or -EPROTONOSUPPORT: it has another port space, or one
 * that is not of IP. Other families: 0.
 */
int cma_addr_settle(struct sockaddr *addr, enum rdma_port_space ps);
/* For AF_IB the port space in the service identifier, else `ps`. */
uint16_t cma_addr_port_space(const struct sockaddr *addr, enum rdma_port_space ps);
/* Sets sin6_scope_id of a link-local address of this host, if it is 0. */
void cma_addr_find_scope(struct sockaddr *addr);
/* 0; -EADDRNOTAVAIL: `addr` is not of this network namespace; or another error. */
int cma_addr_check_local(const struct sockaddr *addr);
/* The source address that the routing table gives for `dst`. 0 or negative errno. */
int cma_addr_source(const struct sockaddr *dst, struct sockaddr_storage *src);

#define CMA_ADDR_TEXT 64
const char *cma_addr_text(const struct sockaddr *addr, char text[CMA_ADDR_TEXT]);

/* The LID of the port with the GID in a simulated subnet; 0 elsewhere, and if there is none. */
uint16_t cma_lid_of(const union ibv_gid *gid);

#endif

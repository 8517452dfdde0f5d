/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of this process in a simulated InfiniBand subnet (BUSBAR_FABRIC): what the agent of the
 * host says about it, that is, PortInfo with the tables of P_Keys and GUIDs. Transport fabric is
 * connected to the running fabric and keeps this up to date; the device, address handles and queue
 * pairs read it. Without the setting nothing here is ever used.
 */
#ifndef HCA_SUBNET_H
#define HCA_SUBNET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "plug/plug.h"

#define HCA_LID_GROUPS 0xc000 /* LIDs from here on are those of groups */
#define HCA_LID_PERMISSIVE 0xffff

/* Is soft0 a port of a fabric? Constant once the settings are read. */
bool hca_subnet_on(void);
/* A number for the fabric and the host in it, which names of the abstract namespace contain. */
uint64_t hca_subnet_place(void);
/* Asks the fabric who the host is, once in the life of the process; it may take seconds. 0, or a
 * negative errno, logged: there is no soft0. */
int hca_subnet_learn(void);
/* The connection's answer and later states of the port. Any thread, with any locks. */
void hca_subnet_set_host(const struct plug_welcome *welcome);
void hca_subnet_set_port(const struct plug_port *port);

void hca_subnet_host(struct plug_welcome *welcome);
void hca_subnet_port(struct plug_port *port);

/* The P_Key at the index, which is invalid (0) if there is none. For each packet. */
uint16_t hca_subnet_pkey(unsigned index);
/* Are the two P_Keys of one partition, and is one of them a full member's (10.9.3)? */
static inline bool hca_pkeys_match(uint16_t a, uint16_t b)
{
	return !((a ^ b) & 0x7fff) && a & 0x7fff && (a | b) & 0x8000;
}

/* The first LID of the port; 0: it has none yet. */
uint16_t hca_subnet_lid(void);
/* How many low bits of a LID choose a path. */
unsigned hca_subnet_lmc(void);
/* Is it one of the port's LIDs? */
bool hca_subnet_is_own_lid(uint16_t lid);
/* 0; -EINVAL: no packet can be sent by the address vector, as the LID, the path bits, or the GRH of a
 * group is wrong. Does not look at the index of the source GID. */
int hca_subnet_check_address(const struct ibv_ah_attr *to);

/* In a forked child: another thread of the parent may have held the lock. */
void hca_subnet_forked(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and options of the groups; of net.c only. */
#ifndef RIPC_NET_GROUP_H
#define RIPC_NET_GROUP_H

#include "ripc/find/net.h"

/* Within a site and within a link, of those that anyone may use. */
union address net_group4(uint16_t port);
union address net_group6(uint16_t port, unsigned interface);
/* Only what is for groups that this very socket has joined; -1: none. */
void net_group_strict(int fd4, int fd6);

#endif

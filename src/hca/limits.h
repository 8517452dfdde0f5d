/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of the software adapter, and fixed numbers of the protocol. */
#ifndef HCA_LIMITS_H
#define HCA_LIMITS_H

#include <stdint.h>

#define HCA_MAX_SGE 32
#define HCA_MAX_INLINE 1024
#define HCA_MAX_QP_WR 32768
#define HCA_MAX_CQE (1 << 22)
#define HCA_MAX_MSG_BYTES (UINT32_C(1) << 30)
#define HCA_MAX_DM_BYTES (UINT64_C(64) << 20)
#define HCA_MAX_GIDS 128
#define HCA_MAX_RD_ATOM 128
#define HCA_PORT_LID 1
#define HCA_UD_MTU 4096
#define HCA_GRH_BYTES 40
/* Around the payload of a packet of RoCE v2, at most, as Linux counts: IPv6, UDP, BTH, XRC or
 * DETH, atomic, ICRC. */
#define HCA_PACKET_HEADERS 96
#define HCA_PSN_MASK 0xffffffu

/* IBV_ACCESS_FLUSH_GLOBAL and IBV_ACCESS_FLUSH_PERSISTENT of later versions of the interface. */
#define HCA_ACCESS_FLUSH (1u << 8 | 1u << 9)

/* Destination QP number of datagrams to a multicast group; no QP has this number. */
#define HCA_QPN_MULTICAST 0xffffffu
#define HCA_MCAST_GROUPS 256   /* groups joined, per process */
#define HCA_MCAST_MEMBERS 4096 /* attachments of QPs to groups, per process */
#define HCA_MCAST_BITS 256     /* in hca_segment.mcast_filter, which peers read */

#endif

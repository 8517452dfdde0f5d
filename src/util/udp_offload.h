/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of UDP sockets for segmentation by the kernel, from <linux/udp.h>, which older systems
 * do not have them in. */
#ifndef UTIL_UDP_OFFLOAD_H
#define UTIL_UDP_OFFLOAD_H

#include <netinet/udp.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SOL_UDP
#define SOL_UDP 17
#endif

#endif

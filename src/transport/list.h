/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of the transports, each defined in its folder. */
#ifndef TRANSPORT_LIST_H
#define TRANSPORT_LIST_H

#include "hca/path/transport.h"

extern const struct hca_transport_ops fabric_ops;
extern const struct hca_transport_ops iwarp_ops;
extern const struct hca_transport_ops loop_ops;
extern const struct hca_transport_ops roce_ops;
extern const struct hca_transport_ops shm_ops;

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What soft0 says of itself as a port of a simulated InfiniBand subnet (hca/host/subnet.h). */
#ifndef HCA_INFINIBAND_H
#define HCA_INFINIBAND_H

#include <infiniband/verbs.h>

struct hca_device;

/* Asks the fabric for the GUID. 0, or a negative errno, logged: there is no such device. */
int hca_infiniband_init(struct hca_device *d);
/* Overwrite what the subnet knows better. */
void hca_infiniband_device(struct ibv_device_attr *a);
void hca_infiniband_port(struct ibv_port_attr *a);
/* 0 or -EINVAL. */
int hca_infiniband_pkey(int index, __be16 *pkey);
/* The index, or -EINVAL. */
int hca_infiniband_pkey_index(__be16 pkey);

#endif

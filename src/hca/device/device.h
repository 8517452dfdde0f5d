/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices and their contexts. */
#ifndef HCA_DEVICE_H
#define HCA_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>

struct hca_device;

/* The name "softN" of device N, or NULL: there is no such device. */
const char *hca_device_name(uint32_t index);
/* Makes a context. It owns `cmd_fd` and closes it at its end. 0 or a negative errno. */
int hca_context_make(struct hca_device *device, int cmd_fd,
		     struct ibv_context **out);

/* ---- cmd_fd.c ---- */
/* A descriptor for a context that is being opened, or a negative errno. */
int hca_cmd_fd_create(void);

#endif

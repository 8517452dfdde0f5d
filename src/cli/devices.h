/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a device as text or JSON; uses the public verbs only. */
#ifndef CLI_DEVICES_H
#define CLI_DEVICES_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include <jansson.h>

#include "cli/json_out.h"

/* 0 or a negative errno, logged. */
int device_print(struct ibv_device *dev, bool verbose);
/* Writes it as one element of the open array. */
int device_json(struct cli_json *j, struct ibv_device *dev);

/* Sets the faults of the messages of these processes (numbers, and names of devices that they
 * use; none: all of this user), or shows them: `faults` is as BUSBAR_FAULTS, "off", or "show".
 * 0, or a negative errno, logged, also if one of them cannot. */
int devices_faults(const char *faults, char **names, int count, bool as_json);

/* ---- shared by the two ---- */
#define DEVICE_GUID_TEXT 20
/* Opens a device and queries its attributes and the text of its GUID; 0 or a negative
 * errno, logged. */
int devices_open(struct ibv_device *dev, struct ibv_context **ctx,
		struct ibv_device_attr *attr, char guid[DEVICE_GUID_TEXT]);
const char *device_kind(const struct ibv_device *dev);
/* The GID of an iWARP device is a hardware address, all others are of IPv6. */
#define DEVICE_GID_TEXT 46
const char *device_gid(const struct ibv_device *dev, const struct ibv_gid_entry *e,
		       char text[DEVICE_GID_TEXT]);
const char *device_gid_type(const struct ibv_device *dev, const struct ibv_gid_entry *e);
const char *device_link_layer(uint8_t layer);
const char *device_atomics(enum ibv_atomic_cap cap);
unsigned device_mtu_bytes(enum ibv_mtu mtu);
/* Gbit/s of a port; 0 when unknown. */
double device_port_gbit(const struct ibv_port_attr *a);

/* Figures of this process on the software adapter, as metrics_set_adapters() takes them
 * (gateway/control/metrics.h); NULL: it uses none. devices_figures.c. */
json_t *cli_devices_figures(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a device as text or JSON; uses the public verbs only. */
#ifndef CLI_DEVICES_H
#define CLI_DEVICES_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include <jansson.h>

#include "cli/json_out.h"

/* As text, `verbose`: with its limits; or, where `j` is not NULL, all of it as one element of the
 * open array. 0 or a negative errno, logged. */
int device_show(struct cli_json *j, struct ibv_device *dev, bool verbose);

/* Sets the faults of the messages of these processes (numbers, and names of devices that they
 * use; none: all of this user), or shows them: `faults` is as BUSBAR_FAULTS, "off", or "show".
 * 0, or a negative errno, logged, also if one of them cannot. */
int devices_faults(const char *faults, char **names, int count, bool as_json);

/* Figures of this process on the software adapter, as metrics_set_adapters() takes them
 * (gateway/control/metrics.h); NULL: it uses none. devices_figures.c. */
json_t *cli_devices_figures(void);

#endif

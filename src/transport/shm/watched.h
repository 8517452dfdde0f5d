/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the transport with a capture or faults. */
#ifndef TRANSPORT_SHM_WATCHED_H
#define TRANSPORT_SHM_WATCHED_H

#include "hca/path/transport.h"

/* hca_transport_ops.variant: `ops`, or with a capture or faults a table that calls it. */
const struct hca_transport_ops *shm_watched_variant(const struct hca_transport_ops *ops);

#endif

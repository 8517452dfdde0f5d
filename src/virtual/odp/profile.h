/* SPDX-License-Identifier: BSD-2-Clause */
/* The profile of a point, with what the point changes in it. */
#ifndef VIRTUAL_ODP_PROFILE_H
#define VIRTUAL_ODP_PROFILE_H

#include "virtual/odp/point.h"

/* What BUSBAR_PAGING is for the point; valid until the next call. NULL: it is not usable, which is
 * logged. */
const char *odp_profile(const struct odp_point *p);

#endif

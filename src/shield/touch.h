/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter itself brings pages, where it cannot be asked to (ibv_advise_mr): it WRITEs a byte from
 * each page to a place of the shield's. That changes nothing in the region, and the adapter maps a
 * page as the region permits it, also writable. The two queue pairs are of the region's protection
 * domain, connected to each other by the adapter's own address, and are made when they are needed.
 */
#ifndef SHIELD_TOUCH_H
#define SHIELD_TOUCH_H

#include "shield/shield.h"

/* Brings these bytes. The number that it brought: less where the adapter refuses or fails, or where it
 * takes longer than SHIELD_TOUCH_NS. */
uint64_t touch_pages(struct ibv_pd *pd, uint32_t lkey, uint64_t addr, uint64_t length);
void touch_context_goes(struct ibv_context *context);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions on demand, as an adapter of a chosen generation serves them (BUSBAR_PAGING): the model
 * of engine/paging for one port, with the keys of this process, a lock and a timer. Without the
 * setting ports have none of this, and memory on demand is there whenever the host can bring it.
 *
 * A page that the host has taken back, because the program has freed it or the kernel needed it,
 * is missing again when it is used next: then the page table of the process is looked at
 * (/proc/self/pagemap), as no kernel tells a program of it. What was seen there holds for
 * HCA_DEMAND_LOOK_NS, for a look is a system call.
 */
#ifndef HCA_MEMORY_DEMAND_H
#define HCA_MEMORY_DEMAND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/paging/paging.h"

#define HCA_DEMAND_LOOK_NS 100000u

struct hca_demand;

/* *out is NULL if BUSBAR_PAGING is not set, or not usable, which is logged. `due` is called on the
 * progress thread when hca_demand_take() has an event. 0 or a negative errno. */
int hca_demand_open(void (*due)(void *arg), void *arg, struct hca_demand **out);
/* NULL is allowed. No lock is held that `due` takes. */
void hca_demand_close(struct hca_demand *d);

const struct paging_profile *hca_demand_profile(const struct hca_demand *d);

/* [addr, addr + length) as a key of this process names it: are its pages there for the queue pair?
 * False: an event will follow, see paging.h. True also for regions that are not on demand, and for
 * keys that are not valid. */
bool hca_demand_use(struct hca_demand *d, uint32_t qpn, enum paging_side side, uint32_t key,
		    uint64_t addr, uint64_t length);
/* The same for [at, at + length) of buffers. */
bool hca_demand_use_sges(struct hca_demand *d, uint32_t qpn, enum paging_side side,
			 const struct ibv_sge *sge, unsigned count, uint32_t at,
			 uint32_t length);
/* [at, at + length) of a buffer: are all of its pages there? Nothing follows if they are not. */
bool hca_demand_there(struct hca_demand *d, uint32_t qpn, enum paging_side side,
		      const struct ibv_sge *sge, uint32_t at, uint32_t length);
/* Is a part of the range used for the first time since its fault? */
bool hca_demand_first_use(struct hca_demand *d, uint32_t key, uint64_t addr, uint64_t length);
/* An event after this time. */
void hca_demand_remind(struct hca_demand *d, uint32_t qpn, enum paging_side side,
		       uint64_t after_ns);
/* The next event whose time has come. */
bool hca_demand_take(struct hca_demand *d, struct paging_event *event);
void hca_demand_forget_qp(struct hca_demand *d, uint32_t qpn);
/* paging_watch(); `saw` is called with the lock held. */
void hca_demand_watch(struct hca_demand *d, paging_saw *saw, void *arg);

/* In a forked child: the parent's are no more. */
void hca_demand_forked(void);

/* In all ports: the program has asked for the pages of a region, by the index of its key and by
 * addresses of this process; the region is deregistered. */
void hca_demand_prefetch(uint32_t index, uint64_t addr, uint64_t length);
void hca_demand_forget(uint32_t index);

#endif

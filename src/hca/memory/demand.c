/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions on demand by the model of an adapter; see demand.h. */
#define LOG_ROOM "hca"
#include "hca/memory/demand.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/paging/table.h"
#include "hca/host/mapping.h"
#include "hca/host/settings.h"
#include "hca/memory/key.h"
#include "hca/run/progress.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/log.h"
#include "util/spin.h"
#include "util/text_file.h"

/* Of pages of the adapter, whatever those of the host are. */
#define PAGE_SHIFT 12
#define PROFILE_BYTES_MAX 65536
/* Pages of the host that one look at its table covers, and looks that are kept. */
#define LOOK_PAGES 64u
#define LOOKS 64u
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)

/* What the host's table said of the pages from LOOK_PAGES * `number` on, until this time. */
struct look {
	uint64_t number, until_ns;
	uint64_t missing; /* a bit for each */
};

struct hca_demand {
	struct list entry; /* of `all` */
	struct spin lock;  /* a leaf */
	struct paging *paging;
	/* Pages that the host could not bring: they count as there, and who uses one gets an
	 * error. */
	struct paging_table unusable;
	struct progress_timer timer;
	void (*due)(void *arg);
	void *arg;
	int pagemap; /* /proc/self/pagemap; -1: not readable */
	struct look looks[LOOKS]; /* by number */
};

static struct list all = { &all, &all };
/* Pages that the program has asked for, also before a port was opened. */
static struct paging_table prefetched;
/* Protects both. Taken before the lock of an element. */
static struct spin all_lock;

/* ---- profiles ---- */

/* The profile that BUSBAR_PAGING names. False: not usable, which is logged. */
static bool read_profile(struct paging_profile *profile)
{
	const char *name = hca_settings.paging, *text = paging_profile_text(name);
	char *own = NULL;
	char why[160];
	size_t bytes;
	int ret = -EINVAL;

	if (!text)
		text = own = text_file_read(name, PROFILE_BYTES_MAX, &bytes, why, sizeof(why));
	if (!text) {
		log_warn("BUSBAR_PAGING='%.80s' not usable: %s; a profile is a file or one of %s",
			 name, why, paging_profile_names);
		return false;
	}
	if (own && memchr(own, '\0', bytes))
		snprintf(why, sizeof(why), "a NUL byte is no text");
	else
		ret = paging_profile_parse(text, profile, why, sizeof(why));
	free(own);
	if (ret)
		log_warn("BUSBAR_PAGING='%.80s' not usable: %s", name, why);
	return !ret;
}

/* ---- life ---- */

static void on_timer(struct progress_timer *t)
{
	struct hca_demand *d = container_of(t, struct hca_demand, timer);

	d->due(d->arg);
}

int hca_demand_open(void (*due)(void *arg), void *arg, struct hca_demand **out)
{
	struct paging_profile profile;
	struct hca_demand *d;

	*out = NULL;
	if (!*hca_settings.paging || !read_profile(&profile))
		return 0;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->paging = paging_open(&profile);
	if (!d->paging) {
		free(d);
		return -ENOMEM;
	}
	d->due = due;
	d->arg = arg;
	d->pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	progress_timer_init(&d->timer, on_timer);
	spin_lock(&all_lock);
	for (size_t i = 0; i < prefetched.room; i++) {
		const struct paging_slot *s = &prefetched.slots[i];

		if (s->value)
			paging_prefetch(d->paging, &(struct paging_range){ (uint32_t)s->a, 1, s->b });
	}
	list_push(&all, &d->entry);
	spin_unlock(&all_lock);
	*out = d;
	return 0;
}

void hca_demand_close(struct hca_demand *d)
{
	if (!d)
		return;
	spin_lock(&all_lock);
	list_remove(&d->entry);
	spin_unlock(&all_lock);
	progress_timer_cancel(&d->timer);
	paging_close(d->paging);
	paging_table_free(&d->unusable);
	if (d->pagemap >= 0)
		close(d->pagemap);
	free(d);
}

const struct paging_profile *hca_demand_profile(const struct hca_demand *d)
{
	return paging_profile_of(d->paging);
}

/* ---- pages of the host ---- */

static void *address_of(uint64_t page)
{
	return (void *)(uintptr_t)(page << PAGE_SHIFT);
}

/* The lock is held. */
static const struct look *look_at(struct hca_demand *d, uint64_t number, uint64_t now_ns)
{
	struct look *l = &d->looks[number % LOOKS];
	uint64_t shown[LOOK_PAGES];
	long got;

	if (l->number == number && now_ns < l->until_ns)
		return l;
	*l = (struct look){ .number = number, .until_ns = now_ns + HCA_DEMAND_LOOK_NS };
	got = syscall(SYS_pread64, d->pagemap, shown, sizeof(shown), number * sizeof(shown));
	for (uint32_t i = 0; (long)((i + 1) * sizeof(*shown)) <= got; i++)
		l->missing |= (uint64_t)!(shown[i] & PAGEMAP_PRESENT) << i;
	return l;
}

/* Forgets pages that the host has taken back. The lock is held. */
static void look_at_host(struct hca_demand *d, const struct paging_range *r, uint64_t now_ns)
{
	for (uint64_t page = r->first; page < r->first + r->pages; page++) {
		const struct paging_range one = { r->region, 1, page };

		if (look_at(d, page / LOOK_PAGES, now_ns)->missing >> page % LOOK_PAGES & 1 &&
		    !paging_table_get(&d->unusable, one.region, one.first))
			paging_invalidate(d->paging, &one);
	}
}

/* The same of the range up to where a page is missing: what is behind counts when those before are there.
 * So a request for much memory that has to wait is cheap, however often it comes. */
static void look_ahead(struct hca_demand *d, uint32_t qpn, enum paging_side side,
		       const struct paging_range *r, uint64_t now_ns)
{
	struct paging_range part = *r;

	for (uint32_t done = 0; done < r->pages; done += part.pages) {
		part.first = r->first + done;
		part.pages = MIN(r->pages - done, (uint32_t)LOOK_PAGES);
		look_at_host(d, &part, now_ns);
		if (!paging_there(d->paging, qpn, side, &part))
			return;
	}
}

/* The host has brought pages. The lock is held. */
static void look_anew(struct hca_demand *d)
{
	memset(d->looks, 0, sizeof(d->looks));
}

/* Has the host bring the pages of a fault. */
static void bring(struct hca_demand *d, const struct paging_range *r)
{
	for (uint32_t i = 0; i < r->pages; i++)
		if (!hca_page_usable(address_of(r->first + i), true) &&
		    !hca_page_usable(address_of(r->first + i), false)) {
			spin_lock(&d->lock);
			paging_table_set(&d->unusable, r->region, r->first + i, 1);
			spin_unlock(&d->lock);
		}
	spin_lock(&d->lock);
	look_anew(d);
	spin_unlock(&d->lock);
}

/* ---- ranges ---- */

static struct paging_range range_of(uint32_t index, uint64_t addr, uint64_t length)
{
	uint64_t first = addr >> PAGE_SHIFT, last = (addr + length - 1) >> PAGE_SHIFT;

	return (struct paging_range){
		.region = index,
		.first = first,
		.pages = length ? (uint32_t)MIN(last - first + 1, (uint64_t)UINT32_MAX) : 0,
	};
}

/* False: no key of a region on demand that has all of the range. */
static bool range_by_key(uint32_t key, uint64_t addr, uint64_t length, struct paging_range *out)
{
	struct hca_key k;

	if (!length || !hca_key_look_own(key, &k) ||
	    !(k.flags & HCA_KEY_ON_DEMAND) || addr < k.iova || length > k.length ||
	    addr - k.iova > k.length - length)
		return false;
	*out = range_of(hca_key_index(key), k.addr + (addr - k.iova), length);
	return true;
}

/* The lock is held. */
static void arm(struct hca_demand *d, uint64_t now_ns)
{
	uint64_t next = paging_next_ns(d->paging);

	if (next == UINT64_MAX)
		return;
	progress_timer_hasten(&d->timer,
			      progress_now_ns() + (next > now_ns ? next - now_ns : 0));
}

bool hca_demand_use(struct hca_demand *d, uint32_t qpn, enum paging_side side, uint32_t key,
		    uint64_t addr, uint64_t length)
{
	struct paging_range range;
	uint64_t now_ns;
	bool there;

	if (!range_by_key(key, addr, length, &range))
		return true;
	now_ns = clock_now_ns();
	spin_lock(&d->lock);
	if (d->pagemap >= 0)
		look_ahead(d, qpn, side, &range, now_ns);
	there = paging_use(d->paging, qpn, side, &range, now_ns);
	if (!there)
		arm(d, now_ns);
	spin_unlock(&d->lock);
	return there;
}

bool hca_demand_use_sges(struct hca_demand *d, uint32_t qpn, enum paging_side side,
			 const struct ibv_sge *sge, unsigned count, uint32_t at, uint32_t length)
{
	bool there = true;

	for (unsigned i = 0; i < count && length; i++) {
		uint32_t part;

		if (at >= sge[i].length) {
			at -= sge[i].length;
			continue;
		}
		part = MIN(length, sge[i].length - at);
		there &= hca_demand_use(d, qpn, side, sge[i].lkey, sge[i].addr + at, part);
		length -= part;
		at = 0;
	}
	return there;
}

bool hca_demand_there(struct hca_demand *d, uint32_t qpn, enum paging_side side,
		      const struct ibv_sge *sge, uint32_t at, uint32_t length)
{
	struct paging_range range;
	bool there;

	if (!range_by_key(sge->lkey, sge->addr + at, length, &range))
		return true;
	spin_lock(&d->lock);
	if (d->pagemap >= 0)
		look_at_host(d, &range, clock_now_ns());
	there = paging_there(d->paging, qpn, side, &range);
	spin_unlock(&d->lock);
	return there;
}

bool hca_demand_first_use(struct hca_demand *d, uint32_t key, uint64_t addr, uint64_t length)
{
	struct paging_range range;
	bool first;

	if (!range_by_key(key, addr, length, &range))
		return false;
	spin_lock(&d->lock);
	first = paging_first_use(d->paging, &range);
	spin_unlock(&d->lock);
	return first;
}

void hca_demand_remind(struct hca_demand *d, uint32_t qpn, enum paging_side side,
		       uint64_t after_ns)
{
	uint64_t now_ns = clock_now_ns();

	spin_lock(&d->lock);
	paging_remind(d->paging, qpn, side, now_ns + after_ns);
	arm(d, now_ns);
	spin_unlock(&d->lock);
}

bool hca_demand_take(struct hca_demand *d, struct paging_event *event)
{
	uint64_t now_ns = clock_now_ns();
	bool taken;

	spin_lock(&d->lock);
	taken = paging_take(d->paging, now_ns, event);
	if (!taken)
		arm(d, now_ns);
	spin_unlock(&d->lock);
	if (taken)
		bring(d, &event->range);
	return taken;
}

void hca_demand_forget_qp(struct hca_demand *d, uint32_t qpn)
{
	spin_lock(&d->lock);
	paging_forget_qp(d->paging, qpn);
	spin_unlock(&d->lock);
}

void hca_demand_watch(struct hca_demand *d, paging_saw *saw, void *arg)
{
	spin_lock(&d->lock);
	paging_watch(d->paging, saw, arg);
	spin_unlock(&d->lock);
}

/* ---- in all ports ---- */

void hca_demand_forked(void)
{
	list_init(&all);
	paging_table_free(&prefetched);
	all_lock = (struct spin){ 0 };
}

void hca_demand_prefetch(uint32_t index, uint64_t addr, uint64_t length)
{
	const struct paging_range range = range_of(index, addr, length);

	if (!*hca_settings.paging)
		return;
	spin_lock(&all_lock);
	for (uint32_t i = 0; i < range.pages; i++)
		paging_table_set(&prefetched, index, range.first + i, 1);
	list_for_each(d, &all, struct hca_demand, entry) {
		spin_lock(&d->lock);
		look_anew(d);
		paging_prefetch(d->paging, &range);
		spin_unlock(&d->lock);
	}
	spin_unlock(&all_lock);
}

void hca_demand_forget(uint32_t index)
{
	if (!*hca_settings.paging)
		return;
	spin_lock(&all_lock);
	paging_table_remove_all(&prefetched, UINT32_MAX, index);
	list_for_each(d, &all, struct hca_demand, entry) {
		spin_lock(&d->lock);
		paging_forget_region(d->paging, index);
		paging_table_remove_all(&d->unusable, UINT32_MAX, index);
		spin_unlock(&d->lock);
	}
	spin_unlock(&all_lock);
}

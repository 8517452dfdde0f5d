/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered application memory in regions that peers can map; see remap.h.
 *
 * The address space is divided into windows of 1 GiB. A window with registered memory
 * has a region of that size, a file that takes memory only for pages in use. A page is
 * moved to the offset in the file that it has in the window. So registrations can share
 * pages, and memory that is contiguous in this process is contiguous for peers. For each
 * page the registrations that need it are counted.
 *
 * /proc/self/maps is read at each registration, because the adapter does not notice when
 * a program unmaps memory. Only ordinary memory is moved: private, anonymous, readable and
 * writable, no stack.
 */
#define LOG_ROOM "hca"
#include "hca/memory/remap.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hca/host/maps.h"
#include "hca/host/settings.h"
#include "hca/memory/region.h"
#include "hca/object/mr.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define PAGE UINT64_C(4096)
#define WINDOW (UINT64_C(1) << 30)
#define WINDOW_PAGES (WINDOW / PAGE)
#define WINDOWS 64

struct window {
	struct hca_region *region; /* NULL: entry not used; else its addr is the window's */
	ino_t inode;
	unsigned users;
	bool pages_left;           /* pages without a registration could not be moved back */
	uint16_t *uses;            /* registrations of each page, WINDOW_PAGES entries */
};

static struct {
	pthread_mutex_t lock;
	struct window windows[WINDOWS];
	struct list plain; /* MRs on memory that was not moved */
	bool said, said_pages_left;
} remap = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.plain = { &remap.plain, &remap.plain },
};

/* The whole pages that a registration needs. */
struct span {
	uint64_t start, end;
};

static struct span span_of(const struct hca_mr *mr)
{
	uint64_t start = (uintptr_t)mr->base;

	if (mr->ibv.length > UINT64_MAX - PAGE - start) /* all of the address space */
		return (struct span){ 0, UINT64_MAX & ~(PAGE - 1) };
	return (struct span){ start & ~(PAGE - 1),
			      (start + mr->ibv.length + PAGE - 1) & ~(PAGE - 1) };
}

/* ---- windows; remap.lock is held ---- */

static struct window *window_find(uint64_t addr)
{
	uint8_t *base = (uint8_t *)(uintptr_t)(addr & ~(WINDOW - 1));

	for (unsigned i = 0; i < WINDOWS; i++)
		if (remap.windows[i].region &&
		    remap.windows[i].region->addr == base)
			return &remap.windows[i];
	return NULL;
}

static struct window *window_get(uint64_t addr)
{
	struct window *w = window_find(addr);
	struct stat st;

	if (w)
		return w;
	for (unsigned i = 0; i < WINDOWS && !w; i++)
		if (!remap.windows[i].region)
			w = &remap.windows[i];
	if (!w)
		return NULL;
	*w = (struct window){ .uses = calloc(WINDOW_PAGES, sizeof(*w->uses)) };
	if (!w->uses || hca_region_create(WINDOW, &w->region))
		goto err_uses;
	if (fstat(w->region->fd, &st))
		goto err_region;
	w->region->addr = (uint8_t *)(uintptr_t)(addr & ~(WINDOW - 1));
	w->inode = st.st_ino;
	return w;

err_region:
	hca_region_destroy(w->region);
err_uses:
	free(w->uses);
	*w = (struct window){ 0 };
	return NULL;
}

static uint64_t offset_in(const struct window *w, uint64_t addr)
{
	return addr - (uintptr_t)w->region->addr;
}

static uint16_t *uses_at(const struct window *w, uint64_t addr)
{
	return &w->uses[offset_in(w, addr) / PAGE];
}

/* ---- the mappings of a span ---- */

#define RUNS_MAX 64

struct survey {
	const struct window *w;
	struct span span;
	uint64_t covered;            /* memory before this address was examined and is usable */
	struct span runs[RUNS_MAX];  /* private memory, to be moved */
	unsigned run_count;
	const char *why_not;
};

static void survey_entry(const struct maps_entry *m, void *arg)
{
	struct survey *s = arg;
	uint64_t start = MAX(m->start, s->span.start);
	uint64_t end = MIN(m->end, s->span.end);
	bool ours = m->shared && m->inode == s->w->inode && m->is_region;

	if (s->why_not)
		return;
	/* Pages of the file at another address: the program called mremap(2). (A mapping
	 * of a whole window is that of a peer, which may be this process itself.) */
	if (ours && m->end - m->start != WINDOW && m->offset != offset_in(s->w, m->start)) {
		s->why_not = "memory that was registered has been moved";
		return;
	}
	if (start >= end)
		return;
	if (start != s->covered) {
		s->why_not = "a part is not mapped";
		return;
	}
	s->covered = end;
	if (ours)
		return;
	if (!m->ordinary) {
		s->why_not = "it is not private anonymous memory";
		return;
	}
	if (s->run_count && s->runs[s->run_count - 1].end == start) {
		s->runs[s->run_count - 1].end = end;
		return;
	}
	if (s->run_count == RUNS_MAX) {
		s->why_not = "it is in too many pieces";
		return;
	}
	s->runs[s->run_count++] = (struct span){ start, end };
}

/* Does memory that is registered without having been moved overlap `run`? Peers may write to it
 * at any time, so it must not be moved. */
static bool registered_plain(const struct span *run)
{
	list_for_each(mr, &remap.plain, struct hca_mr, remap_entry) {
		struct span s = span_of(mr);

		if (s.start < run->end && run->start < s.end)
			return true;
	}
	return false;
}

static const char *survey(struct survey *s)
{
	s->covered = s->span.start;
	if (maps_walk(survey_entry, s))
		return "/proc/self/maps cannot be read";
	if (s->why_not)
		return s->why_not;
	if (s->covered != s->span.end)
		return "a part is not mapped";
	for (unsigned i = 0; i < s->run_count; i++)
		if (registered_plain(&s->runs[i]))
			return "another registration shares its pages";
	for (uint64_t at = s->span.start; at < s->span.end; at += PAGE)
		if (*uses_at(s->w, at) == UINT16_MAX)
			return "there are too many registrations";
	return NULL;
}

/* ---- moving ---- */

/* Moves the pages of a span that no registration needs back to private memory. */
struct move_out {
	struct window *w;
	struct span span;
};

static void note_pages_left(struct window *w, uint64_t at, int error)
{
	w->pages_left = true;
	log_debug("memory at 0x%llx stays shared: %s", (unsigned long long)at,
		  strerror(-error));
	if (error != -EPERM || remap.said_pages_left)
		return;
	remap.said_pages_left = true;
	log_warn("memory that is not registered any more stays in a memory file: other threads run, and userfaultfd is not allowed (said once)");
}

static void move_out_entry(const struct maps_entry *m, void *arg)
{
	const struct move_out *r = arg;
	uint64_t start = MAX(m->start, r->span.start);
	uint64_t end = MIN(m->end, r->span.end);

	if (!m->shared || m->inode != r->w->inode || !m->is_region ||
	    m->offset != offset_in(r->w, m->start))
		return;
	while (start < end) {
		uint64_t stop = start;
		int ret;

		while (stop < end && *uses_at(r->w, stop) == 0)
			stop += PAGE;
		if (stop == start) {
			start += PAGE;
			continue;
		}
		ret = hca_remap_move_out((uint8_t *)(uintptr_t)start,
					 stop - start, r->w->region->fd,
					 offset_in(r->w, start));
		if (ret)
			note_pages_left(r->w, start, ret);
		start = stop;
	}
}

static void move_out(struct window *w, struct span span)
{
	struct move_out r = { w, span };
	int ret = maps_walk(move_out_entry, &r);

	if (ret)
		note_pages_left(w, span.start, ret);
}

/* Frees a window without registrations. If pages of it could not be moved back, tries again; if
 * that fails, the window remains in use. */
static void window_put(struct window *w)
{
	uint64_t base = (uintptr_t)w->region->addr;

	if (w->users > 0)
		return;
	if (w->pages_left) {
		w->pages_left = false;
		move_out(w, (struct span){ base, base + WINDOW });
	}
	if (w->pages_left)
		return;
	hca_region_destroy(w->region);
	free(w->uses);
	*w = (struct window){ 0 };
}

static const char *move_runs(struct survey *s)
{
	for (unsigned i = 0; i < s->run_count; i++) {
		const struct span *run = &s->runs[i];
		int ret = hca_remap_move_in((uint8_t *)(uintptr_t)run->start,
					    run->end - run->start,
					    s->w->region->fd,
					    offset_in(s->w, run->start));

		if (ret == -EPERM)
			return "other threads run, and userfaultfd, which could hold up their writes, is not allowed";
		if (ret == -EBUSY)
			return "this thread uses it itself";
		if (ret)
			return strerror(-ret);
	}
	return NULL;
}

static const char *move_in(struct hca_mr *mr)
{
	struct span span = span_of(mr);
	struct survey s = { .span = span };
	struct window *w;
	const char *why_not;

	if ((span.start ^ (span.end - 1)) & ~(WINDOW - 1))
		return "it crosses a multiple of 1 GiB";
	w = window_get(span.start);
	if (!w)
		return "there are too many regions";
	s.w = w;
	why_not = survey(&s);
	if (!why_not) {
		why_not = move_runs(&s);
		if (why_not)
			move_out(w, span);
	}
	if (why_not) {
		window_put(w);
		return why_not;
	}
	for (uint64_t at = span.start; at < span.end; at += PAGE)
		(*uses_at(w, at))++;
	w->users++;
	mr->region = w->region;
	return NULL;
}

void hca_remap_attach(struct hca_mr *mr)
{
	/* Not memory on demand, which may be unmapped and mapped at any time. */
	bool wanted = mr->ibv.length >= hca_settings.map_memory &&
		      !(mr->access & IBV_ACCESS_ON_DEMAND);
	const char *why_not = "it is not wanted";

	if (hca_settings.map_memory == HCA_MAP_NOTHING || mr->dm ||
	    mr->ibv.length == 0)
		return;
	pthread_mutex_lock(&remap.lock);
	if (wanted)
		why_not = move_in(mr);
	if (why_not) {
		list_push(&remap.plain, &mr->remap_entry);
		mr->remap_plain = true;
		if (wanted && !remap.said) {
			remap.said = true;
			log_warn("registered memory of %zu bytes at %p cannot be mapped by peers: %s (said once)",
				 mr->ibv.length, (void *)mr->base, why_not);
		}
	}
	pthread_mutex_unlock(&remap.lock);
}

void hca_remap_detach(struct hca_mr *mr)
{
	struct span span = span_of(mr);
	struct window *w;

	if (mr->remap_plain) {
		pthread_mutex_lock(&remap.lock);
		list_remove(&mr->remap_entry);
		pthread_mutex_unlock(&remap.lock);
		mr->remap_plain = false;
		return;
	}
	if (!mr->region || mr->dm)
		return;
	pthread_mutex_lock(&remap.lock);
	w = window_find(span.start);
	if (w && w->region == mr->region) { /* false in a forked child */
		for (uint64_t at = span.start; at < span.end; at += PAGE)
			(*uses_at(w, at))--;
		move_out(w, span);
		w->users--;
		window_put(w);
	}
	mr->region = NULL;
	pthread_mutex_unlock(&remap.lock);
}

/* ---- fork ---- */

/* Gives a forked child private pages in place of the shared ones. A page is copied when the child
 * first writes to it; until then the child sees what the parent and its peers write. */
static void make_private(const struct maps_entry *m, void *arg)
{
	for (unsigned i = 0; i < WINDOWS; i++) {
		const struct window *w = &remap.windows[i];

		if (w->region && m->shared && m->is_region &&
		    m->inode == w->inode)
			mmap((void *)(uintptr_t)m->start, m->end - m->start,
			     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			     w->region->fd, (off_t)m->offset);
	}
}

void hca_remap_forked(void)
{
	bool any = false;

	pthread_mutex_init(&remap.lock, NULL);
	for (unsigned i = 0; i < WINDOWS; i++)
		any |= remap.windows[i].region != NULL;
	if (any)
		maps_walk(make_private, NULL);
	memset(remap.windows, 0, sizeof(remap.windows));
	list_init(&remap.plain);
}

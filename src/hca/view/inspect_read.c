/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads segments into views. A view is well formed whatever a segment contains: every index
 * and number is checked, and every text is terminated and printable.
 */
#include "hca/limits.h"
#include "hca/object/public.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "hca/view/inspect_read.h"
#include "util/container_of.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(fd, member, to) \
	read_at(fd, offsetof(struct hca_segment, member), to, sizeof(*(to)))

static bool read_at(int fd, size_t offset, void *to, size_t size)
{
	return pread(fd, to, size, (off_t)offset) == (ssize_t)size;
}

bool inspect_segment_check(int fd, uint8_t uuid[16], char *problem, size_t size)
{
	uint64_t magic, bytes;
	uint32_t version;

	/* Only memory files have seals; reading another file might never end. */
	if (fcntl(fd, F_GET_SEALS) < 0 || !FIELD(fd, magic, &magic) ||
	    magic != HCA_SEGMENT_MAGIC ||
	    !read_at(fd, offsetof(struct hca_segment, uuid), uuid, 16)) {
		snprintf(problem, size, "shows something that is no segment of busbar's");
		return false;
	}
	if (!FIELD(fd, version, &version) || !FIELD(fd, bytes, &bytes) ||
	    version != HCA_SEGMENT_VERSION ||
	    bytes != sizeof(struct hca_segment)) {
		snprintf(problem, size,
			 "runs another busbar (segment version %u, this one reads %u)",
			 version, HCA_SEGMENT_VERSION);
		return false;
	}
	return true;
}

static bool blocks_read(int fd, uint32_t blocks[HCA_BLOCKS_PER_PROCESS])
{
	const size_t size = HCA_BLOCKS_PER_PROCESS * sizeof(*blocks);

	if (!read_at(fd, offsetof(struct hca_segment, blocks), blocks, size))
		return false;
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		if (blocks[i] >= HCA_QPN_BLOCKS)
			blocks[i] = 0;
	return true;
}

/* Terminates the text and replaces characters that are not printable. */
static void make_printable(char *text, size_t size)
{
	text[size - 1] = '\0';
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

void inspect_command_read(uint32_t pid, char *text, size_t size)
{
	char path[64];
	ssize_t n = 0;
	int fd;

	*text = '\0';
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	n = read(fd, text, size - 1);
	close(fd);
	if (n <= 0)
		return;
	while (n > 0 && !text[n - 1])
		n--;
	text[n] = '\0';
	for (ssize_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	make_printable(text, size);
}

static void transports_read(int fd, char names[HCA_TRANSPORTS][16])
{
	if (!read_at(fd, offsetof(struct hca_segment, transports), names,
		     HCA_TRANSPORTS * sizeof(*names)))
		memset(names, 0, HCA_TRANSPORTS * sizeof(*names));
	for (unsigned i = 0; i < HCA_TRANSPORTS; i++)
		make_printable(names[i], sizeof(names[i]));
}

static void join(char *to, size_t size, char names[HCA_TRANSPORTS][16])
{
	size_t at = 0;

	*to = '\0';
	for (unsigned i = 0; i < HCA_TRANSPORTS && at < size; i++)
		if (*names[i])
			at += (size_t)snprintf(to + at, size - at, "%s%s",
					       at ? ", " : "", names[i]);
}

static bool links_read(int fd, struct hca_process_view *p)
{
	struct hca_link_public all[HCA_LINKS];

	if (!read_at(fd, offsetof(struct hca_segment, links), all, sizeof(all)))
		return false;
	p->links = calloc(HCA_LINKS, sizeof(*p->links));
	if (!p->links)
		return false;
	for (unsigned i = 0; i < HCA_LINKS; i++) {
		if (!all[i].pid)
			continue;
		p->links[p->link_count++] = (struct hca_link_view){
			.pid = all[i].pid,
			.pulls = all[i].flags & HCA_LINK_PULLS ? 1 : 0,
			.accesses = all[i].flags & HCA_LINK_ACCESSES ? 1 : 0,
			.procmem = all[i].flags & HCA_LINK_PROCMEM ? 1 : 0,
		};
	}
	return true;
}

/* Reads the entry with index `at` of the segment. False: it is not used. */
static bool qp_read(int fd, const struct hca_qp_public *pub, uint32_t qpn,
		    size_t at, const char names[HCA_TRANSPORTS][16],
		    struct hca_qp_view *q)
{
	uint32_t transport = pub->transport;

	if (pub->qpn != qpn)
		return false;
	*q = (struct hca_qp_view){
		.qpn = qpn,
		.type = pub->type,
		.state = pub->state,
		.device = pub->device,
	};
	if (q->state >= IBV_QPS_RTR) /* before RTR it is of an earlier connection */
		q->peer_qpn = pub->dest_qpn & HCA_PSN_MASK;
	if (transport < HCA_TRANSPORTS)
		memcpy(q->transport, names[transport], sizeof(q->transport));
	return read_at(fd,
		       offsetof(struct hca_segment, qp_counters) +
			       at * sizeof(struct hca_qp_counters),
		       q->counters, sizeof(q->counters));
}

/* Reads the QPs of one block. False: no memory. */
static bool block_read(int fd, unsigned slot, uint32_t block,
		       const char names[HCA_TRANSPORTS][16],
		       struct hca_process_view *p)
{
	static const size_t size =
		HCA_QPN_BLOCK_SIZE * sizeof(struct hca_qp_public);
	struct hca_qp_public *all = aligned_alloc(CACHE_LINE, size);
	struct hca_qp_view *grown;
	size_t first = (size_t)slot * HCA_QPN_BLOCK_SIZE;
	bool ok = false;

	grown = realloc(p->qps, (p->qp_count + HCA_QPN_BLOCK_SIZE) *
					sizeof(*grown));
	if (grown)
		p->qps = grown;
	if (!all || !grown)
		goto out;
	ok = true;
	if (!read_at(fd, offsetof(struct hca_segment, qps) + first * sizeof(*all),
		     all, size))
		goto out;
	for (size_t i = 0; i < HCA_QPN_BLOCK_SIZE; i++)
		if (qp_read(fd, &all[i],
			    block << HCA_QPN_BLOCK_BITS | (uint32_t)i, first + i,
			    names, &p->qps[p->qp_count]))
			p->qp_count++;
out:
	free(all);
	return ok;
}

bool inspect_process_read(int fd, struct hca_process_view *p)
{
	uint32_t blocks[HCA_BLOCKS_PER_PROCESS];
	char names[HCA_TRANSPORTS][16];

	if (!blocks_read(fd, blocks) ||
	    !read_at(fd, offsetof(struct hca_segment, counters), p->counters,
		     sizeof(p->counters)) ||
	    !read_at(fd, offsetof(struct hca_segment, past), p->totals,
		     sizeof(p->totals)) ||
	    !links_read(fd, p))
		return false;
	transports_read(fd, names);
	join(p->transports, sizeof(p->transports), names);
	for (unsigned i = 0; i < HCA_BLOCKS_PER_PROCESS; i++)
		if (blocks[i] && !block_read(fd, i, blocks[i],
					     (const char(*)[16])names, p))
			return false;
	for (size_t q = 0; q < p->qp_count; q++)
		for (unsigned i = 0; i < HCA_QP_COUNTERS; i++)
			p->totals[i] += p->qps[q].counters[i];
	return true;
}

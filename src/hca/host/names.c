/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in the abstract namespace; see names.h. */
#define LOG_ROOM "hca"
#include "hca/host/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "util/abstract.h"
#include "util/container_of.h"
#include "util/log.h"

#define NAMES_FILE "/proc/net/unix"
#define LISTENS 0x10000 /* of the kernel's flags of a socket there */
#define BLOCK_BACKLOG 128
#define PASSES_MAX 8
#define CALLS 10

int hca_name_bind(const char *text)
{
	struct abstract_name name;
	int ret = abstract_name(&name, "%s", text);

	return ret ? ret : abstract_open(&name, SOCK_DGRAM, 0);
}

int hca_name_listen(const char *text)
{
	struct abstract_name name;
	int ret = abstract_name(&name, "%s", text);

	return ret ? ret : abstract_open(&name, SOCK_SEQPACKET, 1);
}

bool hca_peer_cred(int fd, struct ucred *cred)
{
	socklen_t len = sizeof(*cred);

	*cred = (struct ucred){ .uid = (uid_t)-1, .gid = (gid_t)-1 };
	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, cred, &len);
}

int hca_name_holder(const char *text, struct ucred *cred)
{
	struct abstract_name name;
	int ret = abstract_name(&name, "%s", text), fd;

	if (ret)
		return ret;
	fd = abstract_connect(&name);
	if (fd < 0)
		return fd;
	ret = hca_peer_cred(fd, cred) ? 0 : -EACCES;
	close(fd);
	return ret;
}

int hca_block_bind(uint32_t block)
{
	struct abstract_name name;

	abstract_name(&name, HCA_NAME_OF_BLOCKS "%u", block);
	return abstract_open(&name, SOCK_SEQPACKET, BLOCK_BACKLOG);
}

int hca_block_connect(uint32_t block)
{
	struct abstract_name name;

	abstract_name(&name, HCA_NAME_OF_BLOCKS "%u", block);
	return abstract_connect(&name);
}

int hca_block_call(uint32_t block)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int fd = hca_block_connect(block);

	for (int i = 1; i < CALLS && fd == -EAGAIN; i++) {
		nanosleep(&pause, NULL);
		fd = hca_block_connect(block);
	}
	return fd;
}

/* One line of NAMES_FILE: slot, references, protocol, flags, type, state, inode, and the
 * name, whose leading zero byte is shown as '@'. False: not of that prefix. */
static bool line_parse(char *line, const char *prefix, struct hca_name_seen *seen)
{
	size_t len = strlen(prefix);
	unsigned long long flags, inode;
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%*s %*s %*s %llx %*s %*s %llu %n", &flags, &inode, &at) != 2 ||
	    !at || line[at] != '@' || strncmp(line + at + 1, prefix, len) != 0)
		return false;
	*seen = (struct hca_name_seen){ .rest = line + at + 1 + len,
					.inode = inode,
					.listens = flags & LISTENS };
	return true;
}

/* The sockets of that prefix that have been reported. */
struct reported {
	uint64_t *inodes;
	size_t count, room;
};

/* 1: it is new; 0: it was reported before; -ENOMEM. */
static int reported_add(struct reported *r, uint64_t inode)
{
	for (size_t i = 0; i < r->count; i++)
		if (r->inodes[i] == inode)
			return 0;
	if (r->count == r->room) {
		size_t room = MAX(2 * r->room, (size_t)32);
		uint64_t *grown = realloc(r->inodes, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->inodes = grown;
		r->room = room;
	}
	r->inodes[r->count++] = inode;
	return 1;
}

/* Reads the list once and reports what has not been reported. The number of those, or a
 * negative errno. */
static int names_pass(const char *prefix, struct reported *reported,
		      void (*fn)(const struct hca_name_seen *seen, void *arg), void *arg)
{
	FILE *f = fopen(NAMES_FILE, "re");
	struct hca_name_seen seen;
	char *line = NULL;
	size_t room = 0;
	int found = 0, ret = 0;

	if (!f) {
		ret = -errno;
		log_error("%s not readable, so other processes of this host are not found: %s",
			  NAMES_FILE, strerror(-ret));
		return ret;
	}
	while (ret >= 0 && getline(&line, &room, f) > 0) {
		if (!line_parse(line, prefix, &seen))
			continue;
		ret = reported_add(reported, seen.inode);
		if (ret <= 0)
			continue;
		found++;
		fn(&seen, arg);
	}
	free(line);
	fclose(f);
	return ret < 0 ? ret : found;
}

/*
 * The kernel gives the list in pieces of a page and begins each piece at a position in a hash
 * chain. When a socket before that position goes away in between, one that stays is left out;
 * twice in succession, too, on a host where many come and go. So the list is read again until
 * nothing new was in it twice.
 */
int hca_names_each(const char *prefix,
		   void (*fn)(const struct hca_name_seen *seen, void *arg),
		   void *arg)
{
	struct reported reported = { .inodes = NULL };
	unsigned unchanged = 0;
	int ret = 0;

	for (int i = 0; i < PASSES_MAX && ret >= 0 && unchanged < 2; i++) {
		ret = names_pass(prefix, &reported, fn, arg);
		unchanged = ret ? 0 : unchanged + 1;
	}
	free(reported.inodes);
	return ret < 0 ? ret : 0;
}

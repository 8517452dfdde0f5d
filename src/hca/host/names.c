/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in the abstract namespace; see names.h. */
#define LOG_ROOM "hca"
#include "hca/host/names.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/abstract.h"
#include "util/log.h"

#define NAMES_FILE "/proc/net/unix"
#define LISTENS 0x10000 /* of the kernel's flags of a socket there */
#define BLOCK_BACKLOG 128

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

int hca_names_each(const char *prefix,
		   void (*fn)(const struct hca_name_seen *seen, void *arg),
		   void *arg)
{
	FILE *f = fopen(NAMES_FILE, "re");
	struct hca_name_seen seen;
	char *line = NULL;
	size_t room = 0;
	int ret;

	if (!f) {
		ret = -errno;
		log_error("%s not readable, so other processes of this host are not found: %s",
			  NAMES_FILE, strerror(-ret));
		return ret;
	}
	while (getline(&line, &room, f) > 0)
		if (line_parse(line, prefix, &seen))
			fn(&seen, arg);
	free(line);
	fclose(f);
	return 0;
}

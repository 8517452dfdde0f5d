/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files out of an .fmu, which is a zip archive that may come from anywhere: names that lead out of
 * the folder, links and archives that grow without end are refused. libarchive reads the format;
 * nothing of its code that writes to disks is used.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/node/fmu/fmu.h"
#include "util/container_of.h"

#define DESCRIPTION "modelDescription.xml"
#define NAME_LENGTH_MAX 1000
#define NAME_DEPTH_MAX 32
#define BLOCK 65536

const struct fmu_limits fmu_limits = {
	.bytes = UINT64_C(2) << 30,
	.description = 64 << 20,
	.entries = 20000,
};

#if defined(__x86_64__)
const char *const fmu_platforms[2] = { "linux64", "x86_64-linux" };
#elif defined(__i386__)
const char *const fmu_platforms[2] = { "linux32", "x86-linux" };
#elif defined(__aarch64__)
const char *const fmu_platforms[2] = { "aarch64-linux", "aarch64-linux" };
#else
const char *const fmu_platforms[2] = { NULL, NULL };
#endif

struct reader {
	const struct fmu_limits *limits;
	struct fmu_why *why;
	struct archive *archive;
	int fd;
	locale_t locale, former; /* names are UTF-8, whatever the locale of the process */
	unsigned entries;
	uint64_t bytes;
};

/* ---- reading ---- */

static int open_file(const char *path, struct fmu_why *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return fmu_why(why, -errno, "%s", strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return fmu_why(why, -EINVAL, "is no file");
	}
	return fd;
}

static void close_reader(struct reader *r)
{
	archive_read_free(r->archive);
	close(r->fd);
	if (!r->locale)
		return;
	uselocale(r->former);
	freelocale(r->locale);
}

static int open_reader(struct reader *r, const char *path, const struct fmu_limits *limits,
		       struct fmu_why *why)
{
	*r = (struct reader){ .limits = limits, .why = why };
	r->fd = open_file(path, why);
	if (r->fd < 0)
		return r->fd;
	r->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	if (r->locale)
		r->former = uselocale(r->locale);
	r->archive = archive_read_new();
	/* Only the reader that uses the directory at the end of the archive: it recognises links. */
	if (r->archive && archive_read_support_format_zip_seekable(r->archive) == ARCHIVE_OK &&
	    archive_read_open_fd(r->archive, r->fd, BLOCK) == ARCHIVE_OK)
		return 0;
	fmu_why(why, 0, "is no zip archive");
	close_reader(r);
	return -EINVAL;
}

static const char *name_of(struct archive_entry *e)
{
	const char *name = archive_entry_pathname_utf8(e);

	return name ? name : archive_entry_pathname(e);
}

/* Does every part of the name lie below the folder before it? */
static bool is_safe(const char *name)
{
	size_t depth = 0;

	if (!*name || strlen(name) > NAME_LENGTH_MAX)
		return false;
	for (const char *at = name; *at;) {
		size_t length = strcspn(at, "/");

		if (!length || (length <= 2 && !strncmp(at, "..", length)))
			return false;
		if (length > NAME_MAX || ++depth > NAME_DEPTH_MAX)
			return false;
		at += length;
		at += *at == '/';
	}
	for (const char *at = name; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '\\')
			return false;
	return true;
}

static int judge_entry(struct reader *r, struct archive_entry *e)
{
	const char *name = name_of(e);
	mode_t type = archive_entry_filetype(e);

	if (!name)
		return fmu_why(r->why, -EINVAL, "the archive has a file whose name cannot be read");
	if (!is_safe(name))
		return fmu_why(r->why, -EINVAL,
			       "the archive has a file whose name may not be: '%.200s'", name);
	if (archive_entry_symlink(e) || archive_entry_hardlink(e) ||
	    (type != AE_IFREG && type != AE_IFDIR))
		return fmu_why(r->why, -EINVAL,
			       "'%.200s' in the archive is neither file nor folder", name);
	if (++r->entries > r->limits->entries)
		return fmu_why(r->why, -EFBIG, "the archive has more than %u files",
			       r->limits->entries);
	return 0;
}

/* The next entry, if its name may be. 1, 0 at the end, or a negative errno. */
static int next_entry(struct reader *r, struct archive_entry **e)
{
	int ret = archive_read_next_header(r->archive, e);

	if (ret == ARCHIVE_EOF)
		return 0;
	if (ret != ARCHIVE_OK && ret != ARCHIVE_WARN)
		return fmu_why(r->why, -EINVAL, "the archive is damaged: %s",
			       archive_error_string(r->archive) ?: "no directory");
	return judge_entry(r, *e) ?: 1;
}

/* The next bytes of an entry; 0 at its end, or a negative errno. */
static ssize_t read_block(struct reader *r, const char *name, void *block, size_t size)
{
	ssize_t got = archive_read_data(r->archive, block, size);

	if (got < 0)
		return fmu_why(r->why, -EINVAL, "'%.200s' in the archive is damaged: %s", name,
			       archive_error_string(r->archive) ?: "no data");
	r->bytes += (uint64_t)got;
	if (r->bytes > r->limits->bytes)
		return fmu_why(r->why, -EFBIG, "the archive unpacks to more than %ju bytes",
			       (uintmax_t)r->limits->bytes);
	return got;
}

/* ---- the description alone ---- */

static int take_description(struct reader *r, char **text, size_t *length)
{
	size_t room = 0, used = 0;
	char *all = NULL;

	for (;;) {
		ssize_t got;

		if (room - used < BLOCK) {
			char *more = realloc(all, room = 2 * room + BLOCK);

			if (!more) {
				free(all);
				return fmu_why(r->why, -ENOMEM, "no memory");
			}
			all = more;
		}
		got = read_block(r, DESCRIPTION, all + used, BLOCK);
		if (got > 0 && used + (size_t)got > r->limits->description)
			got = fmu_why(r->why, -EFBIG, DESCRIPTION " is longer than %ju bytes",
				      (uintmax_t)r->limits->description);
		if (got < 0) {
			free(all);
			return (int)got;
		}
		if (!got)
			break;
		used += (size_t)got;
	}
	*text = all;
	*length = used;
	return 0;
}

int fmu_archive_describe(const char *path, const struct fmu_limits *limits, char **text,
			 size_t *length, struct fmu_why *why)
{
	struct archive_entry *e;
	struct reader r;
	int ret = open_reader(&r, path, limits, why);

	if (ret)
		return ret;
	while ((ret = next_entry(&r, &e)) == 1)
		if (!strcmp(name_of(e), DESCRIPTION) && archive_entry_filetype(e) == AE_IFREG)
			break;
	if (ret == 1)
		ret = take_description(&r, text, length);
	else if (!ret)
		ret = fmu_why(why, -EINVAL, "has no " DESCRIPTION ", so it is no FMU");
	close_reader(&r);
	return ret;
}

/* ---- unpacking ---- */

static bool is_below(const char *name, const char *folder)
{
	size_t length = strlen(folder);

	return !strncmp(name, folder, length) && name[length] == '/';
}

static bool is_wanted(const char *name)
{
	char folder[40];

	if (!strcmp(name, DESCRIPTION) || is_below(name, "resources"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(fmu_platforms); i++) {
		if (!fmu_platforms[i])
			continue;
		snprintf(folder, sizeof(folder), "binaries/%s", fmu_platforms[i]);
		if (is_below(name, folder))
			return true;
	}
	return false;
}

/* The folders above `name`, and `name` itself if it ends with '/'. */
static int make_folders(struct reader *r, int root, const char *name)
{
	char part[NAME_LENGTH_MAX + 1];

	for (const char *at = strchr(name, '/'); at; at = strchr(at + 1, '/')) {
		memcpy(part, name, (size_t)(at - name));
		part[at - name] = '\0';
		if (mkdirat(root, part, 0700) && errno != EEXIST)
			return fmu_why(r->why, -errno, "cannot make the folder '%.200s': %s",
				       part, strerror(errno));
	}
	return 0;
}

static int write_all(int fd, const char *bytes, size_t count)
{
	while (count) {
		ssize_t n = write(fd, bytes, count);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		count -= (size_t)n;
	}
	return 0;
}

static int copy_file(struct reader *r, int fd, const char *name)
{
	char block[16384];
	ssize_t got;

	while ((got = read_block(r, name, block, sizeof(block))) > 0) {
		int ret = write_all(fd, block, (size_t)got);

		if (ret)
			return fmu_why(r->why, ret, "cannot write '%.200s': %s", name,
				       strerror(-ret));
	}
	return (int)got;
}

static int unpack_entry(struct reader *r, int root, struct archive_entry *e)
{
	const char *name = name_of(e);
	mode_t mode = archive_entry_perm(e) & S_IXUSR ? 0700 : 0600;
	int ret = make_folders(r, root, name), fd;

	if (ret || name[strlen(name) - 1] == '/' || archive_entry_filetype(e) == AE_IFDIR)
		return ret;
	/* The folder is new and has no links, so that O_EXCL finds names that come twice. */
	fd = openat(root, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return fmu_why(r->why, -errno, "cannot write '%.200s': %s", name,
			       errno == EEXIST ? "the archive has it twice" : strerror(errno));
	ret = copy_file(r, fd, name);
	if (close(fd) && !ret)
		ret = fmu_why(r->why, -errno, "cannot write '%.200s': %s", name, strerror(errno));
	return ret;
}

static int look_at_all(const char *path, const struct fmu_limits *limits, struct fmu_why *why)
{
	struct archive_entry *e;
	struct reader r;
	int ret = open_reader(&r, path, limits, why);

	if (ret)
		return ret;
	while ((ret = next_entry(&r, &e)) == 1)
		;
	close_reader(&r);
	return ret;
}

static int unpack_to(const char *path, const char *folder, const struct fmu_limits *limits,
		     struct fmu_why *why)
{
	struct archive_entry *e;
	struct reader r;
	int ret = open_reader(&r, path, limits, why), root;

	if (ret)
		return ret;
	root = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0)
		ret = fmu_why(why, -errno, "cannot open the folder '%s': %s", folder,
			      strerror(errno));
	while (!ret && (ret = next_entry(&r, &e)) == 1)
		ret = is_wanted(name_of(e)) ? unpack_entry(&r, root, e) : 0;
	if (root >= 0)
		close(root);
	close_reader(&r);
	return ret;
}

int fmu_archive_unpack(const char *path, const char *parent, const char *name,
		       const struct fmu_limits *limits, char *folder, size_t size,
		       struct fmu_why *why)
{
	char *root = realpath(parent, NULL);
	int ret = look_at_all(path, limits, why);

	if (!ret && !root)
		ret = fmu_why(why, -errno, "cannot unpack it to '%s': %s", parent, strerror(errno));
	if (!ret && snprintf(folder, size, "%s/%s-XXXXXX", root, name) >= (int)size)
		ret = fmu_why(why, -ENAMETOOLONG, "the folder to unpack to has too long a name");
	if (!ret && !mkdtemp(folder))
		ret = fmu_why(why, -errno, "cannot make a folder below '%s' to unpack it to: %s",
			      root, strerror(errno));
	free(root);
	if (ret)
		return ret;
	ret = unpack_to(path, folder, limits, why);
	if (ret)
		fmu_folder_remove(folder);
	return ret;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	remove(path);
	return 0;
}

void fmu_folder_remove(const char *folder)
{
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

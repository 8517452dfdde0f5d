/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Archives of the node-type fmu, with directories and names that were changed at random. Whatever is
 * unpacked lies below the folder that was made for it, is a file or a folder, and takes no more than
 * it may; an archive that is refused says why and leaves nothing.
 *
 * usage: fuzz_fmu_archive [RUNS [SEED]]
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/node/fmu/fmu.h"

#define MUTATE_BYTES "../\\\0PK\x01\x02\x03\x04\x05\x06\xff\x7f\x08 a"
#include "drive.h"

static const struct fmu_limits limits = { .bytes = 20000, .description = 5000, .entries = 20 };
static char top[] = "/tmp/busbar-fuzz-fmu-XXXXXX";
static char parent[64], file[64];
static uint64_t bytes_found;

static void must(bool good)
{
	if (!good)
		abort();
}

static int look_at(const char *path, const struct stat *st, int type, struct FTW *at)
{
	must(type == FTW_F || type == FTW_D);
	must(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode));
	must(!(st->st_mode & 077));
	bytes_found += S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
	return 0;
}

static unsigned count(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	must(dir != NULL);
	for (struct dirent *d; (d = readdir(dir));)
		n += strcmp(d->d_name, ".") && strcmp(d->d_name, "..");
	closedir(dir);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), ret;
	struct fmu_why why = { "" };
	char folder[4096], *text;
	size_t length;

	must(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	close(fd);
	ret = fmu_archive_describe(file, &limits, &text, &length, &why);
	must(ret ? ret < 0 && *why.text : length <= limits.description);
	if (!ret)
		free(text);
	why.text[0] = '\0';
	ret = fmu_archive_unpack(file, parent, "m", &limits, folder, sizeof(folder), &why);
	must(ret <= 0 && (!ret || *why.text));
	must(count(parent) == !ret && count(top) == 2);
	if (ret)
		return 0;
	bytes_found = 0;
	must(!nftw(folder, look_at, 16, FTW_PHYS));
	must(bytes_found <= limits.bytes);
	fmu_folder_remove(folder);
	must(!count(parent));
	return 0;
}

static void put(struct archive *a, const char *name, mode_t type, const char *content)
{
	struct archive_entry *e = archive_entry_new();

	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, type);
	archive_entry_set_perm(e, 0755);
	if (type == AE_IFLNK)
		archive_entry_set_symlink(e, content);
	else
		archive_entry_set_size(e, (la_int64_t)strlen(content));
	must(archive_write_header(a, e) == ARCHIVE_OK);
	if (type == AE_IFREG)
		must(archive_write_data(a, content, strlen(content)) == (la_ssize_t)strlen(content));
	archive_entry_free(e);
}

static size_t make(uint8_t *bytes, size_t capacity)
{
	static const char *const names[] = { "resources/a/../../x", "/etc/x", "resources/..", "..",
					     "resources/a/b", "resources/a" };
	struct archive *a = archive_write_new();
	size_t size;

	must(archive_write_set_format_zip(a) == ARCHIVE_OK);
	if (random_below(2))
		archive_write_set_options(a, "zip:compression=store");
	must(archive_write_open_memory(a, bytes, capacity, &size) == ARCHIVE_OK);
	put(a, "modelDescription.xml", AE_IFREG, "<fmiModelDescription/>");
	put(a, "resources/", AE_IFDIR, "");
	put(a, "resources/a", AE_IFREG, "0123456789");
	if (random_below(4) == 0)
		put(a, names[random_below(sizeof(names) / sizeof(names[0]))], AE_IFREG, "x");
	if (random_below(8) == 0)
		put(a, "resources/l", AE_IFLNK, "/etc");
	must(archive_write_free(a) == ARCHIVE_OK);
	return mutate_times(bytes, size, capacity, random_below(6));
}

int main(int argc, char **argv)
{
	int ret;

	must(mkdtemp(top) != NULL);
	snprintf(parent, sizeof(parent), "%s/parent", top);
	snprintf(file, sizeof(file), "%s/a.fmu", top);
	must(!mkdir(parent, 0700));
	ret = drive(argc, argv, 1500, 8000, make);
	fmu_folder_remove(top);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of COMTRADE records; see comtrade.h. */
#define LOG_ROOM "gateway/file"
#include "gateway/node/file/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/format/comtrade_file.h"
#include "util/log.h"

/* A configuration beyond this is none (65536 channels take less). */
#define HEAD_MAX (64u << 20)
#define PIECE (64u << 10)

bool record_is_comtrade(const struct format *f)
{
	return f && f->type == &format_comtrade;
}

/* Finds `path` in its folder whatever the case of its letters. */
static void find_any_case(char path[PATH_MAX])
{
	char *slash = strrchr(path, '/'), folder[PATH_MAX];
	char *name = slash ? slash + 1 : path;
	struct dirent *e;
	DIR *d;

	if (!access(path, F_OK))
		return;
	snprintf(folder, sizeof(folder), "%.*s",
		 slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
	d = opendir(folder);
	while (d && (e = readdir(d)))
		if (!strcasecmp(e->d_name, name)) {
			/* Same length: only letters differ. */
			memcpy(name, e->d_name, strlen(name));
			break;
		}
	if (d)
		closedir(d);
}

bool record_name(struct record *r, const char *uri, bool to_read)
{
	size_t len = strlen(uri);
	const char *ext = len > 4 ? uri + len - 4 : "";
	bool upper = len > 4 && ext[1] == 'C';

	if (len >= PATH_MAX)
		return false;
	strcpy(r->cfg, uri);
	strcpy(r->dat, uri);
	r->single = !strcasecmp(ext, ".cff");
	if (!strcasecmp(ext, ".cfg"))
		strcpy(r->dat + len - 3, upper ? "DAT" : "dat");
	else if (!strcasecmp(ext, ".dat"))
		strcpy(r->cfg + len - 3, ext[1] == 'D' ? "CFG" : "cfg");
	else if (!r->single)
		return false;
	if (to_read) {
		find_any_case(r->cfg);
		find_any_case(r->dat);
	}
	return true;
}

/* Of a .cff what stands before its data is enough. */
static bool is_enough(const struct record *r, const char *buf, size_t len)
{
	struct comtrade_error err;
	struct comtrade_cff parts;

	return r->single && comtrade_cff_find(buf, len, &parts, &err) != 0;
}

/* The configuration's bytes; the caller frees *out. 0 or a positive errno. */
static int load_head(const struct record *r, char **out, size_t *len)
{
	size_t size = PIECE;
	struct stat st;
	FILE *in = stat(r->cfg, &st) || S_ISREG(st.st_mode) ?
			   fopen(r->cfg, "re") : (errno = EINVAL, NULL);
	char *buf = in ? malloc(size) : NULL, *larger;
	int err = buf ? 0 : errno;

	*len = 0;
	while (!err) {
		*len += fread(buf + *len, 1, size - *len, in);
		if (ferror(in))
			err = errno ? errno : EIO;
		else if (*len == size && size >= HEAD_MAX)
			err = EFBIG;
		if (err || *len < size || is_enough(r, buf, *len))
			break;
		larger = realloc(buf, 2 * size);
		if (!larger) {
			err = ENOMEM;
			break;
		}
		buf = larger;
		size *= 2;
	}
	if (in)
		fclose(in);
	if (err)
		free(buf);
	else
		*out = buf;
	return err;
}

/* Lets a format understand the head. 0 or a negative errno, *err filled. */
static int parse_head(const struct record *r, struct comtrade_cfg **cfg,
		      struct format *f, const char *buf, size_t len,
		      struct comtrade_error *err)
{
	struct comtrade_cff parts = { .cfg_end = len };
	int ret;

	if (r->single) {
		ret = comtrade_cff_find(buf, len, &parts, err);
		if (ret == 0) {
			snprintf(err->text, sizeof(err->text),
				 "the file has no data ('--- file type: DAT ...')");
			err->line = 0;
		}
		if (ret != 1)
			return ret ? ret : -EBADMSG;
	}
	buf += parts.cfg_start;
	len = parts.cfg_end - parts.cfg_start;
	ret = cfg ? comtrade_cfg_parse(cfg, buf, len, 0, err) :
		    comtrade_format_use_cfg(f, buf, len, err);
	if (ret && err->line)
		err->line += parts.cfg_line;
	return ret;
}

int record_config(const struct record *r, struct comtrade_cfg **out, struct comtrade_error *err)
{
	char *buf;
	size_t len;
	int ret = -load_head(r, &buf, &len);

	*err = (struct comtrade_error){ 0 };
	if (ret)
		return ret;
	ret = parse_head(r, out, NULL, buf, len, err);
	free(buf);
	return ret;
}

struct signal_list *record_signals(const struct record *r)
{
	struct comtrade_error err;
	struct signal_list *l;
	struct comtrade_cfg *c;

	if (record_config(r, &c, &err))
		return NULL;
	l = comtrade_signals(c);
	comtrade_cfg_free(c);
	return l;
}

int record_open(struct record *r, struct format *f)
{
	struct comtrade_error err = { 0 };
	char *buf;
	size_t len;
	int ret = load_head(r, &buf, &len);

	if (ret) {
		log_error("cannot read '%s': %s", r->cfg, strerror(ret));
		return -ret;
	}
	comtrade_format_set_layout(f, r->single ? COMTRADE_SINGLE : COMTRADE_PAIR);
	comtrade_format_set_name(f, r->cfg, r->dat);
	ret = parse_head(r, NULL, f, buf, len, &err);
	free(buf);
	if (ret == -EBADMSG && err.line)
		log_error("%s:%u: %s", r->cfg, err.line, err.text);
	else if (ret)
		log_error("%s: %s", r->cfg,
			  ret == -EBADMSG ? err.text : strerror(-ret));
	return ret;
}

int record_check_output(const struct record *r, bool append)
{
	struct stat st;

	if (!append || stat(r->dat, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		return 0;
	log_error("'%s' holds a record already, and none can be continued: set `append = false` to lose it, or put placeholders such as %%Y%%m%%d-%%H%%M%%S into `uri`",
		  r->dat);
	return -EEXIST;
}

/* All of it; 0 or a positive errno. */
static int write_all(int fd, const char *buf, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, buf, len, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		buf += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A reader always finds a whole file under the name. */
static int replace_file(const char *path, const char *buf, size_t len)
{
	char other[PATH_MAX + 8];
	int fd, err;

	snprintf(other, sizeof(other), "%s.new", path);
	fd = open(other, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	err = write_all(fd, buf, len, 0);
	if (close(fd) && !err)
		err = errno;
	if (!err && rename(other, path))
		err = errno;
	if (err)
		unlink(other);
	return err;
}

int record_settle(void *arg, int fd)
{
	struct record *r = arg;
	size_t need = comtrade_format_head(r->format, r->signals, NULL, 0);
	struct stat st;
	char *buf;
	int err;

	if (!need)
		return 0; /* nobody knows of any channel */
	if (r->single && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		return 0; /* a pipe stays as it began */
	buf = malloc(need);
	if (!buf)
		return ENOMEM;
	comtrade_format_head(r->format, r->signals, buf, need);
	err = r->single ? write_all(fd, buf, need, 0) :
			  replace_file(r->cfg, buf, need);
	if (err)
		log_error("cannot write the head of '%s': %s", r->cfg,
			  strerror(err));
	free(buf);
	return err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing files of the kernel below a root folder; see tree.h. What the kernel makes of a
 * write is done here for copies of the tree: it moves the brackets of a choice and puts a
 * flag into the list or takes it out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/tune/tree.h"

static int write_text(const char *full, bool create, const char *text)
{
	int fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC | (create ? O_CREAT : 0), 0644);
	size_t length = strlen(text);
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return -errno;
	do
		n = write(fd, text, length);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		err = -errno;
	else if ((size_t)n != length)
		err = -EIO;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

/* The text of all words with `word` in brackets: what the kernel makes of it. */
static char *choice_text(const char *old, const char *word)
{
	char *made = malloc(2 * strlen(old) + 3), *to = made;
	size_t length = strlen(word);

	while (made && *old) {
		size_t space = strspn(old, " \t\n[]"), n;

		for (size_t i = 0; i < space; i++)
			if (old[i] != '[' && old[i] != ']')
				*to++ = old[i];
		old += space;
		n = strcspn(old, " \t\n[]");
		to += sprintf(to, n == length && n && !memcmp(old, word, n) ? "[%.*s]" : "%.*s",
			      (int)n, old);
		old += n;
	}
	if (made)
		*to = '\0';
	return made;
}

/* The list with the word of "+word" or without that of "-word". */
static char *flag_text(const char *old, const char *change)
{
	char *made = malloc(strlen(old) + strlen(change) + 4), *to = made;
	const char *word = change + 1;

	while (made && *old) {
		size_t n;

		old += strspn(old, " \t\n");
		n = strcspn(old, " \t\n");
		if (n && (n != strlen(word) || memcmp(old, word, n)))
			to += sprintf(to, "%s%.*s", to > made ? " " : "", (int)n, old);
		old += n;
	}
	if (!made)
		return NULL;
	if (*change == '+')
		to += sprintf(to, "%s%s", to > made ? " " : "", word);
	if (to > made)
		*to++ = '\n';
	*to = '\0';
	return made;
}

/* In a copy: the text that the kernel would show after the write. */
static int write_model(const struct tune_tree *t, const char *path, const char *full,
		       enum tune_kind kind, const char *value)
{
	char *old = NULL, *made;
	int err = tune_tree_read(t, path, &old);

	if (err)
		return err;
	made = kind == TUNE_CHOICE ? choice_text(old, value) : flag_text(old, value);
	err = !made ? -ENOMEM :
	      kind == TUNE_CHOICE && !tune_has_word(old, value) ? -EINVAL :
	      write_text(full, false, made);
	free(made);
	free(old);
	return err;
}

int tune_tree_write(const struct tune_tree *t, const char *path, enum tune_kind kind,
		    const char *value)
{
	char *full = tune_tree_path(t, path), word[64];
	bool live = tune_tree_live(t);
	int err;

	if (!full)
		return -ENOMEM;
	if (kind == TUNE_CHOICE)
		tune_chosen(value, word, sizeof(word));
	if (kind == TUNE_DIRECTORY)
		err = mkdir(full, 0755) ? -errno : 0;
	else if (!live && (kind == TUNE_CHOICE || kind == TUNE_FLAG))
		err = write_model(t, path, full, kind, kind == TUNE_CHOICE ? word : value);
	else
		err = write_text(full, !live && kind == TUNE_NEW,
				 kind == TUNE_CHOICE ? word : value);
	free(full);
	return err;
}

int tune_tree_remove(const struct tune_tree *t, const char *path, enum tune_kind kind)
{
	char *full = tune_tree_path(t, path);
	int err = 0;

	if (!full)
		return -ENOMEM;
	if (kind == TUNE_DIRECTORY)
		err = rmdir(full) ? -errno : 0;
	else if (!tune_tree_live(t))
		err = unlink(full) ? -errno : 0;
	free(full);
	return err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the private folder of `busbar exec`; see exec_dir.h. */
#include "cli/exec_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gateway/plugin/plugin.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/spawn.h"
#include "util/user.h"

/* Folders in which real adapters have entries as well. */
static const char *const shared[] = {
	"/sys/class/infiniband",
	"/sys/class/infiniband_verbs",
	"/dev/infiniband",
};

bool exec_dir_inherited(void)
{
	const char *dir = getenv(EXEC_DIR_ENV);
	struct stat st;

	if (!dir || stat(dir, &st) || !S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return false;
	/* Others have the number of a user that the namespace does not map, but cannot use a
	 * folder of ours. */
	return user_is_known(st.st_uid) ||
	       (!(st.st_mode & 077) && !euidaccess(dir, R_OK | W_OK | X_OK));
}

int exec_dir_make_root(char *path, size_t size, int *lock_fd)
{
	const char *const places[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"),
				       "/tmp" };
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (!places[i] || places[i][0] != '/')
			continue;
		if ((size_t)snprintf(path, size, "%s/busbar-exec-XXXXXX", places[i]) >= size)
			continue;
		if (!mkdtemp(path)) {
			err = -errno;
			continue;
		}
		*lock_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (*lock_fd >= 0 && !flock(*lock_fd, LOCK_EX | LOCK_NB))
			return 0;
		err = -errno;
		exec_dir_remove(path);
		break;
	}
	return err;
}

static int make_root(struct exec_dir *d)
{
	/* The limit of libbusbar-paths.so in the program. */
	int err = exec_dir_make_root(d->path, 200, &d->lock_fd);

	if (err)
		log_warn("no folder for the entries of soft0 can be made, so programs that look for it below /sys do not find it: %s",
			 strerror(-err));
	return err;
}

/* Makes links to the entries that real adapters have in the folder. */
static void link_others(const struct exec_dir *d, const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		char from[PATH_MAX], to[PATH_MAX];

		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(from, sizeof(from), "%s%s/%s", d->path, folder, e->d_name);
		snprintf(to, sizeof(to), "%s/%s", folder, e->d_name);
		if (symlink(to, from) && errno != EEXIST)
			log_debug("%s: %m", from);
	}
	if (dir)
		closedir(dir);
}

/* Writes the entries, from what the verbs say about busbar's devices. In a child process, so
 * that the adapter that this opens ends with it. */
static int write_entries(const struct exec_dir *d)
{
	int (*tree)(const char *root);
	int ret;

	/* The system's library is not needed for them. */
	setenv("BUSBAR_SYSTEM_LIBIBVERBS", "off", 1);
	/* No calibration of the processor's counter, which takes longer than the rest. */
	setenv("BUSBAR_TSC", "0", 1);
	unsetenv(EXEC_DIR_ENV);
	tree = (int (*)(const char *))plugin_symbol("command_exec",
						    "cli_exec_tree");
	ret = tree ? tree(d->path) : -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(shared) && !ret; i++)
		link_others(d, shared[i]);
	return ret;
}

/* In a child: starts the keeper, which is then no child of the program, and writes the
 * entries. Both are this program: nothing else is started. */
_Noreturn static void prepare(const struct exec_dir *d, pid_t owner, int owner_fd)
{
	pid_t keeper = fork();

	if (keeper == 0)
		exec_keeper_run(d, owner, owner_fd);
	if (keeper < 0) {
		log_warn("fork: %m");
		_exit(2);
	}
	_exit(d->with_entries && write_entries(d) ? 1 : 0);
}

int exec_dir_make(struct exec_dir *d)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	int err = make_root(d), status, owner_fd;
	struct sigaction before;
	pid_t child;

	if (err)
		return err;
	owner_fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	/* If the caller ignores SIGCHLD, waitpid() would fail. */
	sigaction(SIGCHLD, &plain, &before);
	child = fork();
	if (child == 0)
		prepare(d, getppid(), owner_fd);
	if (child < 0)
		err = -errno;
	else if ((status = spawn_wait(child)))
		err = WIFEXITED(status) && WEXITSTATUS(status) == 1 ? -EIO : -EAGAIN;
	sigaction(SIGCHLD, &before, NULL);
	if (owner_fd >= 0)
		close(owner_fd);
	close(d->lock_fd);
	if (err == -EIO || !err) {
		d->with_entries = d->with_entries && !err;
		return 0; /* the keeper has been started */
	}
	exec_dir_remove(d->path);
	return err;
}

void exec_dir_cancel(const struct exec_dir *d)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/opened", d->path);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

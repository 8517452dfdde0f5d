/* SPDX-License-Identifier: BSD-2-Clause */
/* Making the private folder of `busbar exec`, and its keeper; see exec_dir.h. */
#include "cli/exec_dir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gateway/plugin/plugin.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/spawn.h"
#include "util/user.h"

/* How long after finding no user the keeper looks again: during execve() a process has
 * no environment for an instant. Also the interval of polling without pidfds. */
#define LOOK_AGAIN_MS 100
/* A folder that is older and not locked has lost its keeper. */
#define SWEEP_S 60
#define ENVIRONMENT_MAX (256 * 1024)

static int remove_one(const char *path, const struct stat *st, int type,
		      struct FTW *ftw)
{
	remove(path);
	return 0;
}

void exec_dir_remove(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Waits until the process ends; fd: its pidfd, or -1. */
static void wait_for(pid_t pid, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (fd >= 0) {
		while (poll(&p, 1, -1) < 0 && errno == EINTR)
			;
		return;
	}
	/* Kernels before 5.3 have no pidfds. */
	while (!kill(pid, 0))
		poll(NULL, 0, LOOK_AGAIN_MS);
}

/* Was `setting` in the environment with which the process was started? */
static bool started_with(int proc, const char *pid, const char *setting)
{
	char buf[ENVIRONMENT_MAX];
	char name[NAME_MAX + 16];
	size_t len = 0;
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "%s/environ", pid);
	fd = openat(proc, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (len < sizeof(buf) && (n = read(fd, buf + len, sizeof(buf) - len)) > 0)
		len += (size_t)n;
	close(fd);
	/* Including the terminating zero byte. */
	return memmem(buf, len, setting, strlen(setting) + 1);
}

/* A process of this user that was started with the folder's name; 0: there is none. A user that
 * the namespace does not map has the number of others, too, whose environment the kernel hides. */
static pid_t find_user(const char *path)
{
	DIR *dir = opendir("/proc");
	char setting[PATH_MAX];
	const struct dirent *e;
	pid_t found = 0;

	snprintf(setting, sizeof(setting), EXEC_DIR_ENV "=%s", path);
	while (dir && !found && (e = readdir(dir))) {
		struct stat st;

		if (!isdigit((unsigned char)e->d_name[0]) ||
		    atoi(e->d_name) == getpid() ||
		    fstatat(dirfd(dir), e->d_name, &st, 0) ||
		    st.st_uid != geteuid())
			continue;
		if (started_with(dirfd(dir), e->d_name, setting))
			found = atoi(e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Does the file `name` in the folder have a line with the number `pid`; 0: any line? */
static bool noted(const struct exec_dir *d, const char *name, pid_t pid)
{
	char path[PATH_MAX], line[32];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", d->path, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	found = pid == 0;
	while (!found && fgets(line, sizeof(line), f))
		found = atoi(line) == pid;
	fclose(f);
	return found;
}

/*
 * Warns that no process opened a device. Not if the program itself listed the devices:
 * then it probably shows the list (ibv_devices, ibstat).
 */
static void say(const struct exec_dir *d, pid_t owner)
{
	if (noted(d, "opened", 0) || noted(d, "listed", owner))
		return;
	if (noted(d, "listed", 0))
		log_warn("exec: '%s' did not open an RDMA device: what it started looked at the list of devices and took none; see busbar-mpi(7) for MPI",
			 d->program);
	else
		log_warn("exec: '%s' did not open an RDMA device: neither it nor what it started loaded busbar's libibverbs.so.1 and looked for one",
			 d->program);
}

/* The descriptors that the keeper has, in this order. */
enum { OWNER_FD = STDERR_FILENO + 1, LOCK_FD, OTHER_FDS };

/* Closes all inherited descriptors but standard error, the owner's pidfd and the lock. */
static void detach(int owner_fd, int lock_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int s = 1; s < NSIG; s++)
		if (s != SIGKILL && s != SIGSTOP && s != SIGCHLD)
			signal(s, SIG_IGN);
	prctl(PR_SET_NAME, "busbar-keeper");
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	/* First to higher numbers, so that dup2() below overwrites neither. */
	owner_fd = owner_fd < 0 ? -1 : fcntl(owner_fd, F_DUPFD, OTHER_FDS);
	lock_fd = fcntl(lock_fd, F_DUPFD, OTHER_FDS);
	if (owner_fd < 0 || dup2(owner_fd, OWNER_FD) < 0)
		close(OWNER_FD);
	dup2(lock_fd, LOCK_FD);
	close_range(OTHER_FDS, ~0U, 0);
	if (chdir("/"))
		log_debug("/: %m");
}

/* Removes folders of killed keepers: older ones that are not locked. */
static void sweep(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	size_t prefix = strlen(name) - EXEC_DIR_RANDOM;
	char other[PATH_MAX];
	const struct dirent *e;
	DIR *dir;

	snprintf(other, sizeof(other), "%.*s", (int)(name - path), path);
	dir = opendir(other);
	while (dir && (e = readdir(dir))) {
		struct stat st;
		int fd;

		if (strlen(e->d_name) != strlen(name) ||
		    strncmp(e->d_name, name, prefix) != 0)
			continue;
		snprintf(other, sizeof(other), "%.*s%s", (int)(name - path), path,
			 e->d_name);
		fd = open(other, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		/* A folder that was just made may not be locked yet. */
		if (fd >= 0 && !fstat(fd, &st) && user_is_ours(st.st_uid) &&
		    time(NULL) - st.st_mtime > SWEEP_S && !flock(fd, LOCK_EX | LOCK_NB) &&
		    !find_user(other))
			exec_dir_remove(other);
		if (fd >= 0)
			close(fd);
	}
	if (dir)
		closedir(dir);
}

/* Waits for all processes and removes the folder. `owner`: the process that becomes the program;
 * `owner_fd`: its pidfd, or -1. */
_Noreturn static void keep(const struct exec_dir *d, pid_t owner, int owner_fd)
{
	pid_t user;

	detach(owner_fd, d->lock_fd);
	sweep(d->path);
	wait_for(owner, owner_fd < 0 ? -1 : OWNER_FD);
	user = find_user(d->path);
	if (!user && !d->quiet)
		say(d, owner);
	close(STDERR_FILENO);
	/* Until no user is found twice in a row. */
	for (int nobody = 0; nobody < 2; user = find_user(d->path)) {
		if (user) {
			int fd = (int)syscall(SYS_pidfd_open, user, 0);

			wait_for(user, fd);
			if (fd >= 0)
				close(fd);
			nobody = 0;
		} else if (++nobody < 2) {
			poll(NULL, 0, LOOK_AGAIN_MS);
		} else {
			break;
		}
	}
	exec_dir_remove(d->path);
	_exit(0);
}

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
		keep(d, owner, owner_fd);
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

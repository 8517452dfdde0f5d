/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar exec -- PROGRAM ARGS`: any verbs program, unmodified, with busbar's
 * libibverbs.so.1 and librdmacm.so.1 in front of the system's.
 *
 * It only sets the loader's search path and becomes the program. Where the
 * loader would ignore that (static, set-user-id, DT_RPATH), it says so.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/elf_facts.h"
#include "util/container_of.h"
#include "util/log.h"

/* As shells have it. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

#define PRIVATE_MAX 32

static void print_help(FILE *out)
{
	fputs("usage: busbar exec [--preload] [--rsockets] [--] PROGRAM [ARGUMENTS]\n"
	      "\n"
	      "Runs PROGRAM with busbar's libibverbs.so.1 and librdmacm.so.1.\n"
	      "\n"
	      "  -p, --preload  set LD_PRELOAD as well, for programs built with an RPATH\n"
	      "  -r, --rsockets TCP connections of PROGRAM go over RDMA where the other\n"
	      "                 side does the same (librspreload.so)\n"
	      "  -h, --help     this text\n"
	      "\n"
	      "Exit status: the program's; 126 not executable, 127 not found.\n",
	      out);
}

/*
 * The file that execvp() would start, into `path`. 0, -ENOENT, or -EACCES when
 * only files without permission were found.
 */
static int find_program(const char *name, char path[PATH_MAX])
{
	const char *dirs = getenv("PATH");
	int err = -ENOENT;
	struct stat st;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		if (stat(path, &st))
			return errno == EACCES ? -EACCES : -ENOENT;
		return S_ISREG(st.st_mode) && !access(path, X_OK) ? 0 : -EACCES;
	}
	if (!dirs)
		dirs = "/bin:/usr/bin";
	while (*name) {
		int len = (int)strcspn(dirs, ":");

		snprintf(path, PATH_MAX, "%.*s/%s", len ? len : 1,
			 len ? dirs : ".", name);
		if (!stat(path, &st) && S_ISREG(st.st_mode)) {
			if (!access(path, X_OK))
				return 0;
			err = -EACCES;
		}
		if (!dirs[len])
			break;
		dirs += len + 1;
	}
	return err;
}

static void warn_if_out_of_reach(const char *path, bool preload)
{
	struct elf_facts facts;

	if (elf_facts_read(path, &facts))
		return; /* unreadable but executable: nothing to say */
	if (facts.foreign)
		log_warn("%s is for another kind of machine, it cannot use busbar's libraries",
			 path);
	if (facts.elf && !facts.linked)
		log_warn("%s is statically linked, it will not use busbar's libraries",
			 path);
	if (facts.secure)
		log_warn("%s is set-user-id, set-group-id or has capabilities: the loader may ignore LD_LIBRARY_PATH",
			 path);
	if (facts.rpath && !preload)
		log_warn("%s has an RPATH, which beats LD_LIBRARY_PATH; if it does not find soft0 use --preload",
			 path);
}

/*
 * A system libibverbs whose private interface ours does not know makes programs
 * that need provider libraries (perftest, libfabric) die in the loader with a
 * message that does not say why; so say it before.
 */
static void warn_if_private_unknown(const char *drop_in)
{
	static const char *const system_dirs[] = {
#if defined(__x86_64__)
		"/usr/lib/x86_64-linux-gnu",
#elif defined(__aarch64__)
		"/usr/lib/aarch64-linux-gnu",
#endif
		"/usr/lib64", "/usr/lib",
	};
	unsigned ours[PRIVATE_MAX], theirs[PRIVATE_MAX];
	char path[PATH_MAX + 32];
	unsigned known;

	snprintf(path, sizeof(path), "%s/libibverbs.so.1", drop_in);
	known = elf_private_versions(path, ours, PRIVATE_MAX);
	for (size_t d = 0; d < ARRAY_SIZE(system_dirs); d++) {
		unsigned count;

		snprintf(path, sizeof(path), "%s/libibverbs.so.1", system_dirs[d]);
		count = elf_private_versions(path, theirs, PRIVATE_MAX);
		for (unsigned i = 0; i < count; i++) {
			bool found = false;

			for (unsigned j = 0; j < known; j++)
				found |= ours[j] == theirs[i];
			if (!found)
				log_warn("%s has the private interface IBVERBS_PRIVATE_%u, which this busbar does not know: programs linked to provider libraries may fail to load",
					 path, theirs[i]);
		}
		if (count)
			return;
	}
}

/* Puts `first` in front of the list in variable `name`, once. */
static int prepend(const char *name, const char *first)
{
	const char *old = getenv(name);
	size_t len = strlen(first);
	char *value;
	int err;

	if (!old || !*old)
		return setenv(name, first, 1) ? -errno : 0;
	if (!strncmp(old, first, len) && (old[len] == ':' || !old[len]))
		return 0;
	if (asprintf(&value, "%s:%s", first, old) < 0)
		return -ENOMEM;
	err = setenv(name, value, 1) ? -errno : 0;
	free(value);
	return err;
}

static int set_environment(bool preload, bool rsockets)
{
	char dir[PATH_MAX], libs[2 * PATH_MAX + 64];
	int err = cli_drop_in_dir(dir, sizeof(dir));

	if (err) {
		log_error("the drop-in libibverbs.so.1 was not found in 'lib' beside the executable nor in the folder it is installed to; build or install busbar completely");
		return err;
	}
	if (strchr(dir, ':') || ((preload || rsockets) && strchr(dir, ' '))) {
		log_error("the folder '%s' has a character that the loader takes as a separator, install busbar elsewhere",
			  dir);
		return -EINVAL;
	}
	warn_if_private_unknown(dir);
	err = prepend("LD_LIBRARY_PATH", dir);
	if (!err && preload) {
		snprintf(libs, sizeof(libs),
			 "%s/libibverbs.so.1:%s/librdmacm.so.1", dir, dir);
		err = prepend("LD_PRELOAD", libs);
	}
	if (!err && rsockets) {
		snprintf(libs, sizeof(libs), "%s/librspreload.so", dir);
		err = prepend("LD_PRELOAD", libs);
	}
	if (err)
		log_error("setting the environment: %s", strerror(-err));
	return err;
}

int cli_exec(int argc, char **argv)
{
	static const struct option options[] = {
		{ "preload", no_argument, NULL, 'p' },
		{ "rsockets", no_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	char path[PATH_MAX];
	bool preload = false, rsockets = false;
	int opt, err;

	/* '+': options behind PROGRAM are the program's. */
	while ((opt = getopt_long(argc, argv, "+prh", options, NULL)) != -1) {
		if (opt == 'h') {
			print_help(stdout);
			return CLI_OK;
		}
		if (opt != 'p' && opt != 'r')
			return CLI_USAGE;
		preload |= opt == 'p';
		rsockets |= opt == 'r';
	}
	if (optind == argc) {
		print_help(stderr);
		return CLI_USAGE;
	}
	err = find_program(argv[optind], path);
	if (err == -EACCES) {
		log_error("exec: '%s' is not executable", path);
		return EXIT_NOT_EXECUTABLE;
	}
	if (err) {
		log_error("exec: program '%s' not found%s", argv[optind],
			  strchr(argv[optind], '/') ? "" : " in PATH");
		return EXIT_NOT_FOUND;
	}
	warn_if_out_of_reach(path, preload);
	if (set_environment(preload, rsockets))
		return CLI_FAILED;
	execv(path, argv + optind);
	err = errno;
	/* A script without #! line, which execvp() would hand to the shell. */
	if (err == ENOEXEC)
		execvp(argv[optind], argv + optind);
	log_error("exec: '%s': %s", path, strerror(err));
	return EXIT_NOT_EXECUTABLE;
}

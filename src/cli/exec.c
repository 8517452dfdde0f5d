/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar exec -- PROGRAM ARGS`: runs an unmodified verbs program with busbar's
 * libibverbs.so.1 and librdmacm.so.1 instead of the system's, and with entries of soft0
 * below /sys and /dev (exec_dir.h).
 *
 * It sets the environment and then executes the program in its own place. If the loader
 * would ignore the environment (static, set-user-id, DT_RPATH), it warns.
 */
#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/elf_facts.h"
#include "cli/exec_dir.h"
#include "cli/exec_environment.h"
#include "cli/exec_verdict.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/options.h"
#include "util/spawn.h"

/* The same as in shells. */
enum { EXIT_NOT_EXECUTABLE = 126, EXIT_NOT_FOUND = 127 };

#define PRIVATE_MAX 32

struct exec_options {
	bool preload, rsockets;
	bool bare;  /* only the libraries, no entries and no settings */
	bool quiet; /* no message at the end */
	const char *shield_parts; /* NULL: no shield; "": all */
	struct exec_trace trace;
	struct exec_verdict verdict;
	const char *capture; /* NULL: none */
	const char *fabric, *port; /* NULL: those of BUSBAR_FABRIC, if it is set */
};

static void warn_if_out_of_reach(const char *path, bool preload)
{
	struct elf_facts facts;

	if (elf_facts_read(path, &facts))
		return; /* executable but not readable: nothing is known */
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
		log_warn("%s has an RPATH, which precedes LD_LIBRARY_PATH; if it does not find soft0 use --preload",
			 path);
}

/*
 * Warns if the system's libibverbs has a private interface that ours does not know.
 * Programs that need provider libraries (perftest, libfabric) then fail in the loader,
 * with a message that does not say why.
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

/* Puts `first` in front of the list in the variable, unless it stands there. */
static int prepend(const char *name, const char *first)
{
	const char *old = getenv(name);
	size_t len = strlen(first);

	if (!old || !*old)
		return exec_set(name, "%s", first);
	if (!strncmp(old, first, len) && (old[len] == ':' || !old[len]))
		return 0;
	return exec_set(name, "%s:%s", first, old);
}

/* Appends `last` to the list in the variable, unless it stands there. */
static int append(const char *name, const char *last)
{
	const char *old = getenv(name);

	if (!old || !*old)
		return exec_set(name, "%s", last);
	return strstr(old, last) ? 0 : exec_set(name, "%s:%s", old, last);
}

/* Preloads a library of the folder before all others. 0 or a negative errno, logged. */
static int preload(const char *dir, const char *name)
{
	char path[PATH_MAX + 64];
	int err;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (access(path, R_OK)) {
		log_error("%s was not found; build or install busbar completely", path);
		return -ENOENT;
	}
	err = prepend("LD_PRELOAD", path);
	if (err)
		log_error("setting LD_PRELOAD: %s", strerror(-err));
	return err;
}

/* "prefetch,rnr": 0, or -EINVAL, logged. */
static int check_parts(const char *at)
{
	static const char *const parts[] = { "prefetch", "touch", "rnr", "probe" };

	for (size_t length; *at; at += length + (at[length] == ',')) {
		bool known = false;

		length = strcspn(at, ",");
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			known |= strlen(parts[i]) == length && !strncmp(at, parts[i], length);
		if (!known) {
			log_error("exec: --odp-shield has the parts prefetch, touch, rnr and probe, not '%.*s'",
				  (int)length, at);
			return -EINVAL;
		}
	}
	return 0;
}

static int set_shield(const char *dir, const struct exec_options *o)
{
	const char *parts = o->shield_parts;

	if (!parts)
		return 0;
	if (check_parts(parts) || setenv("BUSBAR_ODP_SHIELD", parts, 1))
		return -EINVAL;
	return preload(dir, "libbusbar-odp-shield.so");
}

/* BUSBAR_FABRIC for the program, and for this process, which makes the entries of its device. 0 or
 * -EINVAL, logged. */
static int set_fabric(const struct exec_options *o)
{
	if (!o->fabric && !o->port)
		return 0;
	if (!o->fabric || !o->port) {
		log_error("exec: --fabric NAME and --port HOST belong together");
		return -EINVAL;
	}
	return exec_set("BUSBAR_FABRIC", "%s/%s", o->fabric, o->port);
}

static int set_environment(const char *dir, const struct exec_options *o)
{
	char libs[2 * PATH_MAX + 64];
	int err = prepend("LD_LIBRARY_PATH", dir);

	if (!err && o->preload) {
		snprintf(libs, sizeof(libs),
			 "%s/libibverbs.so.1:%s/librdmacm.so.1", dir, dir);
		err = prepend("LD_PRELOAD", libs);
	}
	if (!err && o->rsockets) {
		snprintf(libs, sizeof(libs), "%s/librspreload.so", dir);
		err = prepend("LD_PRELOAD", libs);
		/* libuv would add sockets to its epoll instance by io_uring. */
		if (!err && setenv("UV_USE_IO_URING", "0", 0))
			err = -errno;
	}
	/* Prepended last, so that it comes first. */
	if (!err && (set_shield(dir, o) ||
		     (o->verdict.on && preload(dir, "libbusbar-verdict.so")) ||
		     (o->trace.on && (exec_trace_set(&o->trace) ||
				      preload(dir, "libbusbar-trace.so")))))
		return -ENOENT;
	if (!err && !o->bare)
		err = exec_others_set();
	if (err)
		log_error("setting the environment: %s", strerror(-err));
	return err;
}

/* Makes the private folder and preloads the library that redirects paths to it. The
 * program also runs without them, so failures are only warnings. */
static void set_entries(const char *lib_dir, struct exec_dir *d, bool wanted)
{
	char lib[PATH_MAX + 32];

	if (exec_dir_inherited())
		return;
	snprintf(lib, sizeof(lib), "%s/libbusbar-paths.so", lib_dir);
	d->with_entries = wanted && !strchr(lib, ' ') && !access(lib, R_OK);
	if (exec_dir_make(d)) {
		d->path[0] = '\0';
		return;
	}
	/* Appended: programs with an address sanitizer need it to be loaded first. */
	if (setenv(EXEC_DIR_ENV, d->path, 1) ||
	    (d->with_entries &&
	     (append("LD_PRELOAD", lib) ||
	      append("ASAN_OPTIONS", "verify_asan_link_order=0"))))
		log_warn("setting the environment: %m");
}

/* The folder of the drop-in libraries. Fails if the loader's variables cannot have it. */
static int find_libraries(char dir[PATH_MAX], const struct exec_options *o)
{
	int err = cli_drop_in_dir(dir, PATH_MAX);

	if (err) {
		log_error("the drop-in libibverbs.so.1 was not found in 'lib' beside the executable nor in the folder it is installed to; build or install busbar completely");
		return err;
	}
	if (strchr(dir, ':') ||
	    ((o->preload || o->rsockets || o->trace.on || o->shield_parts || o->verdict.on) && strchr(dir, ' '))) {
		log_error("the folder '%s' has a character that the loader takes as a separator, install busbar elsewhere",
			  dir);
		return -EINVAL;
	}
	warn_if_private_unknown(dir);
	return 0;
}

/* Executes the program in place of this process; returns the exit status on failure. */
static int become(const char *path, char **argv, const struct exec_dir *d)
{
	int err;

	execv(path, argv);
	err = errno;
	/* A script without a #! line: execvp() starts a shell for it. */
	if (err == ENOEXEC)
		execvp(argv[0], argv);
	log_error("exec: '%s': %s", path, strerror(err));
	if (d->path[0])
		exec_dir_cancel(d);
	return EXIT_NOT_EXECUTABLE;
}

/* Of both --trace and --trace-data the file that was named last counts. */
static int take_trace(const struct option_given *g)
{
	struct exec_trace *t = &((struct exec_options *)g->to)->trace;

	t->on = true;
	t->data |= !strcmp(g->name, "--trace-data");
	t->file = g->value ? g->value : t->file;
	return OPTIONS_GO_ON;
}

static const struct option_entry table[] = {
	{ "-p, --preload: set LD_PRELOAD as well, for programs built with an RPATH",
	  OPTION_FLAG(struct exec_options, preload) },
	{ "-r, --rsockets: TCP connections of PROGRAM go over RDMA where the other side does the same "
			    "(librspreload.so)", OPTION_FLAG(struct exec_options, rsockets) },
	{ "-b, --bare: the libraries alone: no entries of soft0 below /sys and /dev, no settings for MPI and UCX",
	  OPTION_FLAG(struct exec_options, bare) },
	{ "-q, --quiet: do not say at the end that no device was opened", OPTION_FLAG(struct exec_options, quiet) },
	{ "-t, --trace[=FILE]: write each verbs and connection call to FILE or standard error, and why it failed; "
				"posting and polling is summed up", OPTION_CALL(take_trace, NULL) },
	{ "-T, --trace-data[=FILE]: the same, with each call of posting and polling",
	  OPTION_CALL(take_trace, NULL) },
	{ "-c, --capture FILE[,size=BYTES][,files=NUMBER][,snap=BYTES]: "
	  "write each packet to FILE, a file or a pipe, for Wireshark; %p is the process id. A file of that size is "
	  "the last one, or of several the latest are kept; of a packet snap bytes are",
	  OPTION_TEXT(struct exec_options, capture) },
	{ "-s, --odp-shield[=PARTS]: work around stalls of on-demand paging, with any adapter: by all of "
				      "prefetch,touch,rnr,probe or by these PARTS",
	  OPTION_TEXT(struct exec_options, shield_parts) },
	{ "-V, --verdict[=[json:]FILE]: say at the end how PROGRAM handled its first error, with any adapter: in "
					 "FILE or on standard error, for people or as JSON",
	  OPTION_TAKE(struct exec_options, verdict.on, exec_verdict_take) },
	{ "-F, --fabric NAME: soft0 is the InfiniBand port of a host in the fabric NAME, which `busbar fabric run` "
			       "simulates", OPTION_TEXT(struct exec_options, fabric) },
	{ "-P, --port HOST: the host in this fabric", OPTION_TEXT(struct exec_options, port) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar exec",
	.synopsis = "[-p] [-r] [-b] [-q] [-t[FILE]] [-c FILE] [-s[PARTS]]\n"
		    " [-V[FILE]] [-F NAME -P HOST] [--] PROGRAM [ARGUMENTS]",
	.about = "Runs PROGRAM with busbar's libibverbs.so.1 and librdmacm.so.1.\n",
	.table = table,
	.operands_min = 1,
	.any_operands = true,
	.in_order = true, /* options behind PROGRAM belong to the program */
	.end = "Exit status: the program's; 126 not executable, 127 not found.\n",
};

int cli_exec(int argc, char **argv)
{
	struct exec_options o = { 0 };
	char path[PATH_MAX], libs[PATH_MAX];
	struct exec_dir d = { 0 };
	const char *devices;
	char *capture;
	int err, status = options_parse(&options, argc, argv, &o, NULL);

	if (status >= 0)
		return status;
	if (set_fabric(&o))
		return CLI_USAGE;
	/* The user wants the system's devices only: no entries of soft0. */
	devices = getenv("BUSBAR_DEVICES");
	o.bare |= devices && !strcmp(devices, "system");
	if (o.rsockets && devices && !strcmp(devices, "iwarp")) {
		log_error("exec: --rsockets is not for iWARP alone: an rsocket listens beside a socket of TCP, and iWARP would need the same port; BUSBAR_DEVICES=all has soft0 for it");
		return CLI_USAGE;
	}
	argv += optind;
	err = spawn_find(argv[0], path);
	if (err == -EACCES) {
		log_error("exec: '%s' is not executable", path);
		return EXIT_NOT_EXECUTABLE;
	}
	if (err) {
		log_error("exec: program '%s' not found%s", argv[0],
			  strchr(argv[0], '/') ? "" : " in PATH");
		return EXIT_NOT_FOUND;
	}
	warn_if_out_of_reach(path, o.preload);
	if (find_libraries(libs, &o) || (o.verdict.on && exec_verdict_start(&o.verdict)) ||
	    set_environment(libs, &o))
		return CLI_FAILED;
	d.program = argv[0];
	d.quiet = o.quiet;
	/* What looks at the adapter for the entries captures nothing. */
	capture = getenv("BUSBAR_CAPTURE");
	capture = capture ? strdup(capture) : NULL;
	unsetenv("BUSBAR_CAPTURE");
	set_entries(libs, &d, !o.bare);
	if (o.capture ? exec_capture_set(o.capture) :
			capture && setenv("BUSBAR_CAPTURE", capture, 1)) {
		if (d.path[0])
			exec_dir_cancel(&d);
		return CLI_USAGE;
	}
	return become(path, argv, &d);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzzer of settings from the environment: whatever a variable says, it is taken
 * and in range, or one line names the variable, what would be right and what is
 * used instead, which is the default.
 *
 *     fuzz_settings [SECONDS [SEED [RUN]]]
 *
 * Also run once for each variable that the built libraries read, in a process of
 * its own (`fuzz_settings --child`), with what they then say.
 */
#include <ctype.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api.h"
#include "hca/host/settings.h"
#include "util/log.h"

enum { TEXT_MAX = 3000 };

static char line[2048];
static int line_count;

static bool sink(enum log_level level, const char *text)
{
	snprintf(line, sizeof(line), "%s", text);
	line_count++;
	return true;
}

/* ---- values ---- */

static void any_text(const struct setting *e, char *text)
{
	static const char *const words[] = {
		"", "0", "1", "2", "-1", "+1", " 1", "1 ", "yes", "NO", "on",
		"oFF", "true", "false", "any", "same", "both", "soft", "auto",
		"16k", "16kk", "1g", "1073741825", "0x10", "0x", "1e3", "1.5",
		"18446744073709551615", "18446744073709551616", "99999999999g",
		"k", "%s%n", "'", "\n", "a\nb", "\x1b[31m", "\xff\xfe",
	};
	size_t n = draw(20);

	switch (draw(5)) {
	case 0:
		snprintf(text, TEXT_MAX, "%s", e->fallback);
		break;
	case 1:
		n = draw(TEXT_MAX - 1);
		/* fall through */
	case 2:
		for (size_t i = 0; i < n; i++)
			text[i] = (char)(1 + draw(255));
		text[n] = '\0';
		break;
	default:
		snprintf(text, TEXT_MAX, "%s",
			 words[draw(sizeof(words) / sizeof(words[0]))]);
		break;
	}
	if (one_in(4) && text[0])
		text[draw((uint32_t)strlen(text))] = (char)(1 + draw(255));
}

/* ---- what must hold ---- */

static bool says_what_would_be_right(const struct setting *e)
{
	char number_text[32];

	switch (e->type) {
	case SETTING_BOOL:
		return strstr(line, "0 or 1");
	case SETTING_ENUM:
		for (int i = 0; e->names[i]; i++)
			if (!strstr(line, e->names[i]))
				return false;
		return true;
	default:
		snprintf(number_text, sizeof(number_text), "to %llu",
			 (unsigned long long)e->max);
		return strstr(line, number_text);
	}
}

static bool in_range(const struct setting *e, const void *field)
{
	int names = 0;

	switch (e->type) {
	case SETTING_BOOL:
		return *(const uint8_t *)field <= 1;
	case SETTING_ENUM:
		while (e->names[names])
			names++;
		return *(const int *)field >= 0 && *(const int *)field < names;
	case SETTING_STRING:
		return *(const char *const *)field;
	default:
		return *(const uint64_t *)field >= e->min &&
		       *(const uint64_t *)field <= e->max;
	}
}

static size_t size_of(const struct setting *e)
{
	return e->type == SETTING_BOOL ? sizeof(bool) :
	       e->type == SETTING_ENUM ? sizeof(int) :
					 sizeof(uint64_t);
}

static void one_run(void)
{
	const struct setting *e = &hca_setting_table[
		draw((uint32_t)hca_setting_count)];
	struct hca_settings got, usual;
	char text[TEXT_MAX], tail[64];
	int bad;

	CALL(e->env);
	any_text(e, text);
	unsetenv(e->env);
	line_count = 0;
	memset(&got, 0xff, sizeof(got));
	must(settings_load(hca_setting_table, hca_setting_count, &usual) == 0);
	must(line_count == 0);
	setenv(e->env, text, 1);
	bad = settings_load(hca_setting_table, hca_setting_count, &got);
	must(in_range(e, (char *)&got + e->offset));
	must(bad == line_count && bad <= 1);
	if (bad) {
		must(!memcmp((char *)&got + e->offset,
			     (char *)&usual + e->offset, size_of(e)));
		must(strstr(line, e->env) && says_what_would_be_right(e));
		snprintf(tail, sizeof(tail), "using %s", e->fallback);
		must(strlen(line) > strlen(tail) &&
		     !strcmp(line + strlen(line) - strlen(tail), tail));
		for (const char *c = line; *c; c++)
			must(!iscntrl((unsigned char)*c));
	}
	unsetenv(e->env);
}

/* ---- the built libraries ---- */

static int child(void)
{
	struct rdma_event_channel *ch;
	struct ibv_device **list;

	list = ibv_get_device_list(NULL);
	ch = rdma_create_event_channel();
	if (!list || !ch)
		return 1;
	rdma_destroy_event_channel(ch);
	ibv_free_device_list(list);
	return 0;
}

/* What a process with the variable says, as one text. */
static void say(const char *self, const char *name, const char *value,
		char *out, size_t size)
{
	size_t len = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	must(!pipe(fds));
	pid = fork();
	if (pid == 0) {
		setenv("BUSBAR_DEVICES", "soft", 1);
		setenv(name, value, 1);
		dup2(fds[1], STDERR_FILENO);
		execl(self, self, "--child", (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while ((n = read(fds[0], out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(fds[0]);
	must(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void libraries_say_it_once(const char *self)
{
	static const struct {
		const char *name, *bad, *fallback;
	} cases[] = {
		{ "BUSBAR_CM_TIMEOUT_MS", "soon", "using 68000" },
		{ "BUSBAR_CM_TIMEOUT_MS", "", "using 68000" },
		{ "BUSBAR_CM_TIMEOUT_MS", "9", "using 68000" },
		{ "BUSBAR_LOG", "loud", "using warn" },
		{ "BUSBAR_LOG", "", "using warn" },
		{ "BUSBAR_TSC", "maybe", "using 1" },
		{ "BUSBAR_PEERS", "all", "using user" },
		{ "BUSBAR_SHM_PEERS", "all", "using user" },
		{ "BUSBAR_MEMORY", "none", "using ptrace" },
		{ "BUSBAR_SHM_EAGER", "-1", "using 1g" },
		{ "BUSBAR_TRANSPORTS", "shm,pigeon", "no transport 'pigeon'; using shm" },
		{ "BUSBAR_SHM_ACCESS", "sideways", "using auto" },
		{ "BUSBAR_DEVICES", "none", "using both" },
	};
	char text[4096];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *end;

		CALL(cases[i].name);
		say(self, cases[i].name, cases[i].bad, text, sizeof(text));
		end = strchr(text, '\n');
		if (!end || end[1] || !strstr(text, cases[i].name) ||
		    !strstr(text, cases[i].fallback))
			printf("%s='%s' gave: %s\n", cases[i].name,
			       cases[i].bad, text);
		fflush(stdout);
		must(end && !end[1]);
		must(strstr(text, cases[i].name) &&
		     strstr(text, cases[i].fallback));
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--child"))
		return child();
	libraries_say_it_once(argv[0]);
	log_set_sink(sink);
	return api_main(argc, argv, 1, 1, 0, one_run);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, common options, settings and signals of the tools; see tool.h. */
#define LOG_ROOM tool_room
#include "cli/tool.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/build.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

const char *tool_room = "tool";

static atomic_bool stopping;
static void (*_Atomic stop_callback)(void);
static int stop_fd = -1;

void tool_begin(char **argv)
{
	static char name[64];

	if (strncmp(argv[0], "villas-", 7)) {
		snprintf(name, sizeof(name), "busbar %s", argv[0]);
		argv[0] = name;
	}
	tool_room = argv[0] + 7; /* "busbar " and "villas-" have 7 characters */
	log_init(LOG_INFO);
}

static bool swallow(enum log_level level, const char *line)
{
	return true;
}

int tool_take_level(const struct option_given *g)
{
	int level = log_level_parse(g->value);

	if (!strcmp(g->value, "critical"))
		level = LOG_ERROR;
	if (!strcmp(g->value, "off")) {
		log_set_sink(swallow);
		level = LOG_ERROR;
	}
	if (level < 0)
		return options_refuse(g, "expected trace, debug, info, warning, error, critical or off");
	log_set_level((enum log_level)level);
	return OPTIONS_GO_ON;
}

int tool_print_version(const struct option_given *g)
{
	printf("busbar %s\n", BUILD_VERSION);
	return OPTIONS_END;
}

int tool_take_text(const struct option_given *g)
{
	json_t **list = option_member(g);

	return json_array_append_new(*list, json_string(g->value)) ? options_refuse(g, "not valid UTF-8") :
								     OPTIONS_GO_ON;
}

int tool_take_types(const struct option_given *g)
{
	return tool_types(g->program, g->value, option_member(g)) ? OPTIONS_GO_ON : OPTIONS_WRONG;
}

bool tool_types(const char *program, const char *text, struct signal_list **out)
{
	json_t *cfg = json_pack("{ss}", "-t", text);
	char *json = cfg ? json_dumps(cfg, 0) : NULL;
	struct config *c;
	struct signal_list *l = NULL;

	json_decref(cfg);
	if (json && !config_load_text(program, json, strlen(json), &c)) {
		if (signal_list_parse(&l, c, config_root(c), "-t"))
			l = NULL;
		config_destroy(c);
	}
	free(json);
	if (!l)
		return false;
	signal_list_put(*out);
	*out = l;
	return true;
}

int tool_print_json(char **argv, const json_t *object)
{
	if (!json_dumpf(object, stdout, JSON_INDENT(2)) &&
	    putchar('\n') != EOF && !fflush(stdout))
		return CLI_OK;
	fprintf(stderr, "%s: cannot write to standard output: %s\n", argv[0],
		strerror(errno));
	return CLI_FAILED;
}

/* Not within 250 ms: timeout(1) signals the process and then its group, which is one
 * request. */
bool tool_asked_again(void)
{
	static _Atomic uint64_t first_ns;
	uint64_t now = clock_monotonic_ns_slow(), first = 0;

	return !atomic_compare_exchange_strong(&first_ns, &first, now) &&
	       now - first > UINT64_C(250000000);
}

void tool_stop(void)
{
	int saved_errno = errno;
	uint64_t one = 1;
	void (*callback)(void) = atomic_load(&stop_callback);

	atomic_store(&stopping, true);
	if (write(stop_fd, &one, sizeof(one)) < 0) {
		/* EAGAIN: it is readable already. */
	}
	if (callback)
		callback();
	errno = saved_errno;
}

static void on_signal(int number)
{
	/* A second request ends the process at once. */
	if (tool_asked_again()) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	tool_stop();
}

int tool_catch_signals(void)
{
	struct sigaction act = { .sa_handler = on_signal };

	stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_fd < 0) {
		log_error("eventfd: %s", strerror(errno));
		return -errno;
	}
	sigemptyset(&act.sa_mask);
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	return 0;
}

void tool_on_stop(void (*on_stop)(void))
{
	atomic_store(&stop_callback, on_stop);
}

bool tool_stopping(void)
{
	return atomic_load_explicit(&stopping, memory_order_relaxed);
}

int tool_stop_fd(void)
{
	return stop_fd;
}

static struct memory_block *lazy_alloc(struct memory_type *t, size_t size)
{
	struct memory_block *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->addr = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (b->addr == MAP_FAILED) {
		free(b);
		return NULL;
	}
	b->size_bytes = size;
	b->type = t;
	return b;
}

static void lazy_free(struct memory_type *t, struct memory_block *b)
{
	munmap(b->addr, b->size_bytes);
	free(b);
}

int tool_pool_init(struct pool *pool, unsigned count, unsigned values)
{
	int ret = pool_init(pool, count, values, &tool_memory);

	if (ret)
		log_error("no memory for samples");
	return ret;
}

struct memory_type tool_memory = {
	.name = "lazy",
	.alignment = 4096,
	.alloc = lazy_alloc,
	.free = lazy_free,
};

/* JSON if the text is JSON, else the text as a string; NULL: invalid UTF-8. */
static json_t *value_of(const char *text, size_t len)
{
	json_t *v = json_loadb(text, len, JSON_DECODE_ANY, NULL);

	return v ? v : json_stringn(text, len);
}

/* "a,b" as a list. */
static json_t *list_of(const char *text)
{
	json_t *list = json_array();

	for (;; text++) {
		size_t n = strcspn(text, ",");

		if (json_array_append_new(list, value_of(text, n))) {
			json_decref(list);
			return NULL;
		}
		text += n;
		if (!*text)
			return list;
	}
}

static json_t *parse_value(const char *text, bool lists)
{
	json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

	if (v)
		return v;
	return lists && strchr(text, ',') ? list_of(text) : json_string(text);
}

/* A list of the old values and the new one. */
static json_t *joined(json_t *old, json_t *value)
{
	json_t *list = json_is_array(old) ? json_copy(old) : json_array();

	if (!json_is_array(old))
		json_array_append(list, old);
	if (json_is_array(value))
		json_array_extend(list, value);
	else
		json_array_append(list, value);
	json_decref(value);
	return list;
}

static int put(json_t *object, const char *key, json_t *value, bool lists,
	       json_t *keep)
{
	json_t *old = json_object_get(object, key);

	if (old && keep)
		json_array_append(keep, old);
	if (old && lists)
		value = joined(old, value);
	return json_object_set_new(object, key, value);
}

int tool_set(const char *program, json_t *object, const char *assignment, bool lists, json_t *keep)
{
	char *key = strdup(assignment), *equals = key ? strchr(key, '=') : NULL;
	char *part = key, *dot;
	json_t *value;
	int ret = -EINVAL;

	if (!equals || equals == key) {
		fprintf(stderr, "%s: -o %s: expected KEY=VALUE\n", program,
			assignment);
		goto out;
	}
	*equals = '\0';
	for (; (dot = strchr(part, '.')); part = dot + 1) {
		json_t *inner;

		*dot = '\0';
		inner = json_object_get(object, part);
		if (!inner) {
			inner = json_object();
			json_object_set_new(object, part, inner);
		}
		if (!json_is_object(inner)) {
			fprintf(stderr, "%s: -o %s: '%s' is no group of keys\n",
				program, assignment, part);
			goto out;
		}
		object = inner;
	}
	value = parse_value(equals + 1, lists);
	if (!value || put(object, part, value, lists, keep)) {
		fprintf(stderr, "%s: -o %s: the value is not valid UTF-8\n",
			program, assignment);
		goto out;
	}
	ret = 0;
out:
	free(key);
	return ret;
}

int tool_take_setting(const struct option_given *g)
{
	return tool_set(g->program, *(json_t **)option_member(g), g->value, false, NULL) ? OPTIONS_WRONG :
											   OPTIONS_GO_ON;
}

int tool_take_list_setting(const struct option_given *g)
{
	return tool_set(g->program, *(json_t **)option_member(g), g->value, true, NULL) ? OPTIONS_WRONG :
											  OPTIONS_GO_ON;
}

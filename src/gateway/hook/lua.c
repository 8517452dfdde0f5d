/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `lua`: functions of a script that look at, change and drop samples, and
 * expressions that make new signals out of the old ones.
 *
 * A script that fails on a sample loses that sample: the error is logged with
 * the script's name and line, and the gateway goes on. A call that runs for
 * longer than about a second is ended with such an error, which each of its
 * further instructions raises anew, so that no pcall() keeps it. One that goes on all
 * the same is left where it is, and its state is never used again. Script and
 * expressions are compiled when the configuration is read, so that what cannot
 * work is found then.
 *
 * Lua's memory comes from a block of its own (lua_state.h), so that there is no
 * malloc() and no page fault while samples flow, unless a script keeps more than
 * a few megabytes.
 */
#define LOG_ROOM "gateway/lua"
#include "gateway/hook/lua_state.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/base/ending.h"
#include "gateway/hook/part/select.h"
#include "gateway/sample/signals.h"
#include "util/bounded_write.h"
#include "util/log.h"
#include "util/nearest.h"

/* Errors that are logged one by one. */
#define ERRORS_SHOWN 5
/* A call may take BUDGET times this many instructions, in all of its coroutines. */
#define INSTRUCTIONS 10000
#define BUDGET 10000
/* So many errors in a row, one for each instruction, and it is still there. */
#define STUBBORN 10000
/* For a reader of what the script prints. */
#define PATIENCE_MS 1000

enum function { PREPARE, START, STOP, RESTART, PROCESS, PERIODIC, FUNCTIONS };
static const char *const function_names[] = { "prepare", "start", "stop",
					      "restart", "process",
					      "periodic" };

struct lua {
	const char *script;
	json_t *signals;
	bool use_names;

	struct hook *hook;
	struct hook_lua_arena arena;
	lua_State *L;
	int chunk;                  /* the compiled script; references ... */
	int functions[FUNCTIONS];
	int *expressions;
	struct signal_list *made;   /* what the expressions make; or NULL */
	bool loaded;                /* the script has run, prepare() too */
	bool has_lock, locks;       /* only when periodic() is there */
	pthread_mutex_t lock;
	int budget;
	jmp_buf out;                /* of a call that no error ends */
	bool abandoned;             /* it was left so: L is of no use any more */
	uint64_t errors;
	uint64_t unread;            /* lines of print() since one was read */
	/* Arguments and result of a protected call. */
	struct sample *sample;
	enum hook_verdict verdict;
};

extern const struct hook_type hook_lua;

static const struct config_key lua_keys[] = {
	{ "script", CONFIG_STRING, offsetof(struct lua, script),
	  .help = "File with the script" },
	{ "use_names", CONFIG_BOOL, offsetof(struct lua, use_names), "true",
	  .help = "Values stand under the names of the signals, else under their indices" },
	{ "signals", CONFIG_JSON, offsetof(struct lua, signals),
	  .help = "Signals that come out, each with an expression" },
};

static void watch(lua_State *L, lua_Debug *ar);

static struct lua *of(lua_State *L)
{
	return *(struct lua **)lua_getextraspace(L);
}

lua_State *hook_lua_state_of(const struct hook *h)
{
	return ((const struct lua *)h->private_data)->L;
}

/* INSTRUCTIONS more, or what costs as much. */
static void spend(lua_State *L)
{
	struct lua *l = of(L);
	bool late = ending_is_past(ENDING_HOOKS_MS);

	if (l->budget-- > 0 && !late)
		return;
	l->budget = MIN(l->budget, 0);
	if (l->budget < -STUBBORN)
		longjmp(l->out, 1);
	/* Where the error is caught, the next instruction raises it again. The main
	 * state may have started this coroutine, or others. */
	lua_sethook(L, watch, LUA_MASKCOUNT, 1);
	if (L != l->L)
		lua_sethook(l->L, watch, LUA_MASKCOUNT, 1);
	if (late)
		luaL_error(L, "ended with the gateway");
	luaL_error(L, "ended after %d million instructions",
		   BUDGET / (1000000 / INSTRUCTIONS));
}

static void watch(lua_State *L, lua_Debug *ar)
{
	spend(L);
}

/* A coroutine counts its instructions from 0 on: who makes many, each of which ends
 * before it is asked, pays for it. Calls the original. */
static int make_coroutine(lua_State *L)
{
	spend(L);
	lua_pushvalue(L, lua_upvalueindex(1));
	lua_insert(L, 1);
	lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
	return lua_gettop(L);
}

static void charge_for(lua_State *L, const char *function)
{
	lua_getfield(L, -1, function);
	lua_pushcclosure(L, make_coroutine, 1);
	lua_setfield(L, -2, function);
}

/* ---- what scripts call ---- */

/*
 * Lua's own waits for whoever reads standard output, and while a script runs
 * nobody else can stop it.
 */
static int print_line(lua_State *L)
{
	struct lua *l = of(L);
	int count = lua_gettop(L);
	luaL_Buffer b;
	const char *text;
	size_t len;

	luaL_buffinit(L, &b);
	for (int i = 1; i <= count; i++) {
		if (i > 1)
			luaL_addchar(&b, '\t');
		luaL_tolstring(L, i, NULL);
		luaL_addvalue(&b);
	}
	luaL_addchar(&b, '\n');
	luaL_pushresult(&b);
	text = lua_tolstring(L, -1, &len);
	if (bounded_write(STDOUT_FILENO, text, len,
			  l->unread ? 0 : PATIENCE_MS) == len)
		l->unread = 0;
	else if (l->unread++ == 0)
		log_warn("%s: hook lua: nobody reads standard output, what the script prints is left out",
			 l->hook->owner);
	return 0;
}

static int say(lua_State *L, enum log_level level, int argument)
{
	LOG_AT(level, "%s: %s", of(L)->hook->owner,
	       luaL_tolstring(L, argument, NULL));
	return 0;
}

static int say_info(lua_State *L)
{
	return say(L, LOG_INFO, 1);
}

static int say_warn(lua_State *L)
{
	return say(L, LOG_WARN, 1);
}

static int say_error(lua_State *L)
{
	return say(L, LOG_ERROR, 1);
}

/* `debug` stays Lua's library and can be called. */
static int say_debug(lua_State *L)
{
	return say(L, LOG_DEBUG, 2);
}

/* There it does nothing: a script that waits for requests would wait for ever. */
static int refuse_api_handler(lua_State *L)
{
	return luaL_error(L, "register_api_handler: requests of the API are not handed to scripts; take the call out");
}

static int open_state(lua_State *L)
{
	luaL_openlibs(L);
	lua_register(L, "print", print_line);
	lua_register(L, "info", say_info);
	lua_register(L, "warn", say_warn);
	lua_register(L, "error", say_error);
	lua_register(L, "register_api_handler", refuse_api_handler);
	lua_getglobal(L, "coroutine");
	charge_for(L, "create");
	charge_for(L, "wrap");
	lua_pop(L, 1);
	lua_getglobal(L, "debug");
	/* It would take away what ends a script that does not end. */
	lua_pushnil(L);
	lua_setfield(L, -2, "sethook");
	lua_newtable(L);
	lua_pushcfunction(L, say_debug);
	lua_setfield(L, -2, "__call");
	lua_setmetatable(L, -2);
	return 0;
}

/* ---- protected calls ---- */

static const char *message(lua_State *L)
{
	return lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) :
						"an error that is no text";
}

/* Calls a C function that may raise Lua errors. 0, or -EIO with the message on
 * top of the stack. */
static int protect(struct lua *l, lua_CFunction function)
{
	l->budget = BUDGET;
	if (_setjmp(l->out)) {
		l->abandoned = true;
		return -ECANCELED;
	}
	lua_pushcfunction(l->L, function);
	return lua_pcall(l->L, 0, 0, 0) == LUA_OK ? 0 : -EIO;
}

/* Counting again, after an error that every instruction raised. */
static void calm(struct lua *l)
{
	if (l->budget < 0)
		lua_sethook(l->L, watch, LUA_MASKCOUNT, INSTRUCTIONS);
}

/* The same at run time: reports the error. */
static int run(struct lua *l, lua_CFunction function)
{
	int ret;

	if (l->locks)
		pthread_mutex_lock(&l->lock);
	if (l->abandoned) {
		ret = -ECANCELED;
	} else if ((ret = protect(l, function)) == -ECANCELED) {
		log_error("%s: hook lua: the script catches the errors that are to end it, and is left; it gets no more samples until the configuration is read with another one",
			  l->hook->owner);
	} else if (ret) {
		calm(l);
		if (l->errors++ < ERRORS_SHOWN)
			log_error("%s: hook lua: %s%s", l->hook->owner,
				  message(l->L),
				  l->errors == ERRORS_SHOWN ?
					  " (further errors are not shown)" :
					  "");
		lua_pop(l->L, 1);
	}
	if (l->locks)
		pthread_mutex_unlock(&l->lock);
	return ret;
}

static int call_plain(lua_State *L, enum function f)
{
	lua_rawgeti(L, LUA_REGISTRYINDEX, of(L)->functions[f]);
	lua_call(L, 0, 0);
	return 0;
}

static int call_start(lua_State *L)
{
	return call_plain(L, START);
}

static int call_stop(lua_State *L)
{
	return call_plain(L, STOP);
}

static int call_restart(lua_State *L)
{
	return call_plain(L, RESTART);
}

static int call_periodic(lua_State *L)
{
	return call_plain(L, PERIODIC);
}

static int call_prepare(lua_State *L)
{
	struct lua *l = of(L);

	lua_rawgeti(L, LUA_REGISTRYINDEX, l->functions[PREPARE]);
	hook_lua_push_json(L, l->hook->cfg);
	lua_call(L, 1, 0);
	return 0;
}

/* Numbers as VILLASnode counts its verdicts. */
static enum hook_verdict get_verdict(lua_State *L)
{
	lua_Integer n;

	if (lua_isnil(L, -1))
		return HOOK_OK;
	n = lua_isinteger(L, -1) ? lua_tointeger(L, -1) :
				   (lua_Integer)luaL_checknumber(L, -1);
	switch (n) {
	case 0:
		return HOOK_OK;
	case 1:
		return HOOK_ERROR;
	case 2:
		return HOOK_SKIP;
	case 3:
		return HOOK_STOP;
	}
	luaL_error(L, "process() returned %d, expected 0 (go on), 1 (error), 2 (drop the sample) or 3 (skip the other hooks)",
		   (int)n);
	return HOOK_ERROR;
}

static int process_function(lua_State *L)
{
	struct lua *l = of(L);

	hook_lua_push_sample(L, l->hook, l->sample, l->use_names);
	lua_rawgeti(L, LUA_REGISTRYINDEX, l->functions[PROCESS]);
	lua_pushvalue(L, -2);
	lua_call(L, 1, 1);
	l->verdict = get_verdict(L);
	lua_pop(L, 1);
	if (l->verdict == HOOK_OK || l->verdict == HOOK_STOP)
		hook_lua_get_sample(L, l->hook, l->sample, l->use_names);
	return 0;
}

/* An expression that gives nil leaves what came in that place, where something did. */
static void keep_value(const struct lua *l, struct sample *s, unsigned i)
{
	const struct signal *sig = &l->made->signals[i];

	if (i < s->length)
		hook_value_convert(&s->data[i], hook_value_type(l->hook, s, i),
				   sig->type);
	else
		s->data[i] = sig->init;
}

static int evaluate(lua_State *L)
{
	struct lua *l = of(L);
	struct sample *s = l->sample;

	if (s->capacity < l->made->count)
		luaL_error(L, "the sample has no room for %d values",
			   (int)l->made->count);
	hook_lua_push_sample(L, l->hook, s, l->use_names);
	lua_setglobal(L, "smp");
	for (unsigned i = 0; i < l->made->count; i++) {
		const struct signal *sig = &l->made->signals[i];

		lua_rawgeti(L, LUA_REGISTRYINDEX, l->expressions[i]);
		lua_call(L, 0, 1);
		if (lua_isnil(L, -1))
			keep_value(l, s, i);
		else
			hook_lua_get_value(L, sig->type, sig->name, &s->data[i]);
		lua_pop(L, 1);
	}
	s->length = l->made->count;
	s->flags |= SAMPLE_HAS_DATA;
	return 0;
}

/* ---- configuration ---- */

static int fail_compile(struct lua *l, struct config *c, const json_t *at,
			const char *key)
{
	config_fail(c, at, key, "%s", message(l->L));
	lua_pop(l->L, 1);
	return -EINVAL;
}

static int compile_expression(struct lua *l, struct config *c, json_t *cfg,
			      const char *name, int *reference)
{
	static const struct config_key keys[] = {
		{ "expression", CONFIG_STRING, 0, .required = true,
		  .help = "Lua expression; the sample is smp" },
	};
	/* Read by signal_list_parse(). */
	static const struct config_key others[] = {
		{ .name = "name" }, { .name = "unit" }, { .name = "type" },
		{ .name = "init" }, { .name = "enabled" },
	};
	const char *text;
	char chunk_name[100];

	if (config_unpack(c, cfg, keys, ARRAY_SIZE(keys), &text, others,
			  ARRAY_SIZE(others)))
		return -EINVAL;
	snprintf(chunk_name, sizeof(chunk_name), "=expression of '%.60s'", name);
	/* Under protection it would be the same: nothing here raises errors
	 * but for want of memory. */
	lua_pushfstring(l->L, "return %s", text);
	if (luaL_loadbuffer(l->L, lua_tostring(l->L, -1),
			    lua_rawlen(l->L, -1), chunk_name) != LUA_OK) {
		lua_remove(l->L, -2);
		return fail_compile(l, c, cfg, "expression");
	}
	*reference = luaL_ref(l->L, LUA_REGISTRYINDEX);
	lua_pop(l->L, 1);
	return 0;
}

static int parse_expressions(struct lua *l, struct hook *h, struct config *c)
{
	int ret;

	if (!json_is_array(l->signals) || !json_array_size(l->signals)) {
		config_fail(c, h->cfg, "signals",
			    "expected a list of groups such as { name = \"sum\"; expression = \"smp.data.a + smp.data.b\" }");
		return -EINVAL;
	}
	ret = signal_list_parse(&l->made, c, h->cfg, "signals");
	if (ret)
		return ret;
	if (l->made->count != json_array_size(l->signals)) {
		config_fail(c, h->cfg, "signals",
			    "each signal has an expression of its own, `count` is not possible");
		return -EINVAL;
	}
	l->expressions = calloc(l->made->count, sizeof(*l->expressions));
	if (!l->expressions)
		return -ENOMEM;
	for (unsigned i = 0; i < l->made->count; i++)
		if (compile_expression(l, c, json_array_get(l->signals, i),
				       l->made->signals[i].name,
				       &l->expressions[i]))
			ret = -EINVAL;
	return ret;
}

/* Keys that are not ours are the script's, which gets them in prepare(). What
 * looks like one of ours is a mistake. */
static int check_others(struct lua *l, struct hook *h, struct config *c)
{
	static const char *const common[] = { "type", "enabled", "priority" };
	const char *key;
	json_t *v;
	int ret = 0;

	if (!json_is_object(h->cfg))
		return 0;
	json_object_foreach(h->cfg, key, v) {
		struct nearest near = NEAREST(key);
		char hint[100];
		bool ours = false;

		for (size_t i = 0; i < ARRAY_SIZE(lua_keys); i++) {
			ours |= !strcmp(key, lua_keys[i].name);
			nearest_try(&near, lua_keys[i].name);
		}
		for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
			ours |= !strcmp(key, common[i]);
			nearest_try(&near, common[i]);
		}
		nearest_hint(&near, hint, sizeof(hint));
		if (ours || (l->script && !*hint))
			continue;
		ret = config_unknown_key(c, h->cfg, key, hint) ?: ret;
	}
	return ret;
}

static int open_lua(struct lua *l)
{
	int ret = hook_lua_arena_init(&l->arena);

	if (ret)
		return ret;
	if (pthread_mutex_init(&l->lock, NULL))
		return -ENOMEM;
	l->has_lock = true;
	l->L = lua_newstate(hook_lua_arena_alloc, &l->arena);
	if (!l->L)
		return -ENOMEM;
	*(struct lua **)lua_getextraspace(l->L) = l;
	lua_sethook(l->L, watch, LUA_MASKCOUNT, INSTRUCTIONS);
	l->chunk = LUA_NOREF;
	for (int i = 0; i < FUNCTIONS; i++)
		l->functions[i] = LUA_NOREF;
	return 0;
}

static int lua_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct lua *l = h->private_data;
	struct stat st;
	int ret;

	l->hook = h;
	if (check_others(l, h, c))
		return -EINVAL;
	if (!l->script && !l->signals) {
		config_fail(c, h->cfg, NULL,
			    "does nothing; give a script, or signals with expressions");
		return -EINVAL;
	}
	ret = open_lua(l);
	if (ret)
		return ret;
	if (protect(l, open_state))
		return fail_compile(l, c, h->cfg, NULL);
	if (l->script) {
		/* A FIFO would hold up whoever reads the configuration. */
		if (!stat(l->script, &st) && !S_ISREG(st.st_mode)) {
			config_fail(c, h->cfg, "script", "%s is no file",
				    l->script);
			return -EINVAL;
		}
		if (luaL_loadfile(l->L, l->script) != LUA_OK)
			return fail_compile(l, c, h->cfg, "script");
		l->chunk = luaL_ref(l->L, LUA_REGISTRYINDEX);
	}
	return l->signals ? parse_expressions(l, h, c) : 0;
}

static void lua_destroy(struct hook *h)
{
	struct lua *l = h->private_data;

	l->budget = BUDGET;
	/* What it got by malloc() is lost with it, once. */
	if (l->L && !l->abandoned)
		lua_close(l->L);
	hook_lua_arena_destroy(&l->arena);
	if (l->has_lock)
		pthread_mutex_destroy(&l->lock);
	signal_list_put(l->made);
	free(l->expressions);
}

static int lua_signals(struct hook *h, struct signal_list *in,
		       struct signal_list **out)
{
	struct lua *l = h->private_data;

	if (l->made)
		*out = signal_list_get(l->made);
	else if (in)
		*out = signal_list_get(in);
	return 0;
}

/* ---- life ---- */

static int load(lua_State *L)
{
	struct lua *l = of(L);

	lua_rawgeti(L, LUA_REGISTRYINDEX, l->chunk);
	lua_call(L, 0, 0);
	for (int i = 0; i < FUNCTIONS; i++) {
		lua_getglobal(L, function_names[i]);
		if (lua_isfunction(L, -1))
			l->functions[i] = luaL_ref(L, LUA_REGISTRYINDEX);
		else
			lua_pop(L, 1);
	}
	return 0;
}

static bool has(const struct lua *l, enum function f)
{
	return l->functions[f] != LUA_NOREF;
}

static int lua_start(struct hook *h)
{
	struct lua *l = h->private_data;
	int ret = 0;

	l->errors = 0;
	if (!l->loaded) {
		if (l->chunk != LUA_NOREF)
			ret = run(l, load);
		if (!ret && has(l, PREPARE))
			ret = run(l, call_prepare);
		if (ret)
			return ret;
		l->loaded = true;
		l->locks = has(l, PERIODIC);
		if (l->script && !has(l, PROCESS) && !l->made)
			log_warn("%s: hook lua: %s has no function process()",
				 h->owner, l->script);
	}
	return has(l, START) ? run(l, call_start) : 0;
}

static int lua_stop(struct hook *h)
{
	struct lua *l = h->private_data;

	if (has(l, STOP))
		run(l, call_stop);
	if (l->arena.beyond)
		log_debug("%s: hook lua: %llu allocations beyond its %zu bytes",
			  h->owner, (unsigned long long)l->arena.beyond,
			  HOOK_LUA_ARENA_SIZE);
	return 0;
}

static void lua_restart(struct hook *h)
{
	struct lua *l = h->private_data;

	if (has(l, RESTART))
		run(l, call_restart);
}

static void lua_periodic(struct hook *h)
{
	struct lua *l = h->private_data;

	if (l->locks)
		run(l, call_periodic);
}

static enum hook_verdict lua_process(struct hook *h, struct sample **smp)
{
	struct lua *l = h->private_data;

	l->sample = *smp;
	l->verdict = HOOK_OK;
	if (has(l, PROCESS) && run(l, process_function))
		return HOOK_ERROR;
	if (l->verdict != HOOK_OK && l->verdict != HOOK_STOP)
		return l->verdict;
	if (l->made && run(l, evaluate))
		return HOOK_ERROR;
	return l->verdict;
}

const struct hook_type hook_lua = {
	.name = "lua",
	.description = "runs functions and expressions written in Lua",
	.places = HOOK_NODE_READ | HOOK_NODE_WRITE | HOOK_PATH,
	.priority = 1,
	.size = sizeof(struct lua),
	.keys = lua_keys,
	.key_count = ARRAY_SIZE(lua_keys),
	.open_keys = true,
	.parse = lua_parse,
	.start = lua_start,
	.stop = lua_stop,
	.destroy = lua_destroy,
	.signals = lua_signals,
	.restart = lua_restart,
	.process = lua_process,
	.periodic = lua_periodic,
};

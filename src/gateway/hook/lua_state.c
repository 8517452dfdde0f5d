/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and values of Lua; see lua_state.h. */
#include "gateway/hook/lua_state.h"

#include <errno.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/hook/part/select.h"

/* Classes: 16, 32 ... 512 bytes, then 1 KiB ... 2 MiB. */
#define STEP 16
#define STEPS 32
#define NO_CLASS HOOK_LUA_CLASSES

static unsigned class_of(size_t size)
{
	unsigned c = STEPS;

	if (size <= STEPS * STEP)
		return (unsigned)((size + STEP - 1) / STEP) - 1;
	for (size_t room = 2 * STEPS * STEP; c < NO_CLASS; room *= 2, c++)
		if (size <= room)
			return c;
	return NO_CLASS;
}

static size_t class_size(unsigned c)
{
	return c < STEPS ? (c + 1) * (size_t)STEP :
			   (size_t)STEPS * STEP << (c - STEPS + 1);
}

int hook_lua_arena_init(struct hook_lua_arena *a)
{
	memset(a, 0, sizeof(*a));
	a->block = malloc(HOOK_LUA_ARENA_SIZE);
	if (!a->block)
		return -ENOMEM;
	/* The pages are there before the first sample is. */
	for (size_t i = 0; i < HOOK_LUA_ARENA_SIZE; i += 4096)
		((volatile char *)a->block)[i] = 0;
	return 0;
}

void hook_lua_arena_destroy(struct hook_lua_arena *a)
{
	free(a->block);
	a->block = NULL;
}

static bool is_ours(const struct hook_lua_arena *a, const void *piece)
{
	const char *p = piece;

	return p >= a->block && p < a->block + HOOK_LUA_ARENA_SIZE;
}

static void *take(struct hook_lua_arena *a, size_t size)
{
	unsigned c = class_of(size);
	void *piece;

	if (c < NO_CLASS && a->free[c]) {
		piece = a->free[c];
		memcpy(&a->free[c], piece, sizeof(void *));
		return piece;
	}
	if (c < NO_CLASS && a->used + class_size(c) <= HOOK_LUA_ARENA_SIZE) {
		piece = a->block + a->used;
		a->used += class_size(c);
		return piece;
	}
	a->beyond++;
	return malloc(size);
}

static void give(struct hook_lua_arena *a, void *piece, size_t size)
{
	unsigned c = class_of(size);

	if (!is_ours(a, piece)) {
		free(piece);
		return;
	}
	memcpy(piece, &a->free[c], sizeof(void *));
	a->free[c] = piece;
}

void *hook_lua_arena_alloc(void *arena, void *piece, size_t old_size,
			   size_t size)
{
	struct hook_lua_arena *a = arena;
	void *other;

	if (!piece)
		return size ? take(a, size) : NULL;
	if (!size) {
		give(a, piece, old_size);
		return NULL;
	}
	if (is_ours(a, piece) && class_of(size) == class_of(old_size))
		return piece;
	other = take(a, size);
	if (!other)
		/* Lua takes for granted that shrinking works. */
		return size <= old_size ? piece : NULL;
	memcpy(other, piece, MIN(old_size, size));
	give(a, piece, old_size);
	return other;
}

void hook_lua_push_json(lua_State *L, const json_t *v)
{
	const char *key;
	json_t *e;
	size_t i;

	luaL_checkstack(L, 3, "the configuration is nested too deeply");
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		lua_newtable(L);
		json_object_foreach((json_t *)v, key, e) {
			hook_lua_push_json(L, e);
			lua_setfield(L, -2, key);
		}
		break;
	case JSON_ARRAY:
		/* From 0 on, as scripts for VILLASnode know it. */
		lua_newtable(L);
		json_array_foreach(v, i, e) {
			hook_lua_push_json(L, e);
			lua_rawseti(L, -2, (lua_Integer)i);
		}
		break;
	case JSON_STRING:
		lua_pushstring(L, json_string_value(v));
		break;
	case JSON_INTEGER:
		lua_pushinteger(L, json_integer_value(v));
		break;
	case JSON_REAL:
		lua_pushnumber(L, json_real_value(v));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		lua_pushboolean(L, json_is_true(v));
		break;
	case JSON_NULL:
		lua_pushnil(L);
		break;
	}
}

static void push_time(lua_State *L, const char *key, struct timespec t)
{
	lua_createtable(L, 1, 1);
	lua_pushinteger(L, t.tv_sec);
	lua_rawseti(L, -2, 0);
	lua_pushinteger(L, t.tv_nsec);
	lua_rawseti(L, -2, 1);
	lua_setfield(L, -2, key);
}

static void push_value(lua_State *L, enum signal_type type,
		       const union signal_data *v)
{
	switch (type) {
	case SIGNAL_FLOAT:
		lua_pushnumber(L, v->f);
		break;
	case SIGNAL_INTEGER:
		lua_pushinteger(L, v->i);
		break;
	case SIGNAL_BOOLEAN:
		lua_pushboolean(L, v->i != 0);
		break;
	case SIGNAL_COMPLEX:
		lua_createtable(L, 0, 2);
		lua_pushnumber(L, (lua_Number)v->z.re);
		lua_setfield(L, -2, "real");
		lua_pushnumber(L, (lua_Number)v->z.im);
		lua_setfield(L, -2, "imag");
		break;
	}
}

/* Pushes the key of value `i` in the table of values. */
static void push_key(lua_State *L, const struct hook *h,
		     const struct sample *s, unsigned i, bool use_names)
{
	const struct signal_list *l = h->in_signals ?: s->signals;

	if (!use_names)
		lua_pushinteger(L, i);
	else if (l && i < l->count)
		lua_pushstring(L, l->signals[i].name);
	else
		lua_pushfstring(L, "signal%d", (int)i);
}

/* The bits of VILLASnode, for scripts that look at them. */
static const struct {
	uint32_t ours;
	lua_Integer theirs;
} flags[] = {
	{ SAMPLE_HAS_ORIGIN, 1 },
	{ SAMPLE_HAS_RECEIVED, 2 },
	{ SAMPLE_HAS_SEQUENCE, 8 },
	{ SAMPLE_HAS_DATA, 16 },
	{ SAMPLE_NEW_SIMULATION, 1 << 16 },
	{ SAMPLE_NEW_FRAME, 1 << 17 },
};

void hook_lua_push_sample(lua_State *L, const struct hook *h,
			  const struct sample *s, bool use_names)
{
	lua_Integer bits = 0;

	lua_createtable(L, 0, 5);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (s->flags & flags[i].ours)
			bits |= flags[i].theirs;
	lua_pushinteger(L, bits);
	lua_setfield(L, -2, "flags");
	if (s->flags & SAMPLE_HAS_SEQUENCE) {
		lua_pushinteger(L, (lua_Integer)s->sequence);
		lua_setfield(L, -2, "sequence");
	}
	if (s->flags & SAMPLE_HAS_ORIGIN)
		push_time(L, "ts_origin", s->origin);
	if (s->flags & SAMPLE_HAS_RECEIVED)
		push_time(L, "ts_received", s->received);
	lua_createtable(L, use_names ? 0 : (int)s->length,
			use_names ? (int)s->length : 1);
	for (unsigned i = 0; i < s->length; i++) {
		push_key(L, h, s, i, use_names);
		push_value(L, hook_value_type(h, s, i), &s->data[i]);
		lua_rawset(L, -3);
	}
	lua_setfield(L, -2, "data");
}

static int64_t get_integer(lua_State *L, const char *what)
{
	int is_number;
	lua_Number n;

	if (lua_isinteger(L, -1))
		return lua_tointeger(L, -1);
	n = lua_tonumberx(L, -1, &is_number);
	if (!is_number)
		luaL_error(L, "%s is a %s, expected a number", what,
			   luaL_typename(L, -1));
	return signal_type_to_integer(n);
}

static bool get_time(lua_State *L, const char *key, struct timespec *t)
{
	lua_getfield(L, -1, key);
	if (lua_isnil(L, -1)) {
		lua_pop(L, 1);
		return false;
	}
	if (!lua_istable(L, -1))
		luaL_error(L, "%s is a %s, expected a table of seconds and nanoseconds",
			   key, luaL_typename(L, -1));
	lua_rawgeti(L, -1, 0);
	t->tv_sec = get_integer(L, key);
	lua_rawgeti(L, -2, 1);
	t->tv_nsec = get_integer(L, key);
	if (t->tv_nsec < 0 || t->tv_nsec > 999999999)
		luaL_error(L, "%s has %d nanoseconds", key, (int)t->tv_nsec);
	lua_pop(L, 3);
	return true;
}

/* A number or boolean in any of the plain types. */
static void get_plain(lua_State *L, enum signal_type type, const char *name,
		      union signal_data *v)
{
	bool truth = lua_isboolean(L, -1);

	if (!truth && lua_type(L, -1) != LUA_TNUMBER)
		luaL_error(L, "signal '%s' is a %s, expected a number", name,
			   luaL_typename(L, -1));
	switch (type) {
	case SIGNAL_INTEGER:
		v->i = truth ? lua_toboolean(L, -1) : get_integer(L, name);
		break;
	case SIGNAL_BOOLEAN:
		v->i = truth ? lua_toboolean(L, -1) :
			       lua_tonumber(L, -1) != 0;
		break;
	case SIGNAL_FLOAT:
		v->f = truth ? lua_toboolean(L, -1) : lua_tonumber(L, -1);
		break;
	case SIGNAL_COMPLEX:
		v->z.re = (float)(truth ? lua_toboolean(L, -1) :
					  lua_tonumber(L, -1));
		v->z.im = 0;
		break;
	}
}

void hook_lua_get_value(lua_State *L, enum signal_type type, const char *name,
			union signal_data *v)
{
	union signal_data re, im;

	if (!lua_istable(L, -1)) {
		get_plain(L, type, name, v);
		return;
	}
	lua_getfield(L, -1, "real");
	get_plain(L, SIGNAL_FLOAT, name, &re);
	lua_getfield(L, -2, "imag");
	get_plain(L, SIGNAL_FLOAT, name, &im);
	lua_pop(L, 1);
	if (type == SIGNAL_COMPLEX) {
		v->z.re = (float)re.f;
		v->z.im = (float)im.f;
	} else {
		get_plain(L, type, name, v);
	}
	lua_pop(L, 1);
}

/* Values that the script has taken out become what `init` of their signals says. */
static void get_data(lua_State *L, const struct hook *h, struct sample *s,
		     bool use_names)
{
	const struct signal_list *l = h->in_signals ?: s->signals;
	unsigned count = MAX(l ? l->count : 0, s->length), length = s->length;

	if (!lua_istable(L, -1))
		luaL_error(L, "data is a %s, expected a table",
			   luaL_typename(L, -1));
	count = MIN(count, s->capacity);
	for (unsigned i = 0; i < count; i++) {
		char number[24];
		const char *name = number;

		if (l && i < l->count)
			name = l->signals[i].name;
		else
			snprintf(number, sizeof(number), "signal%u", i);
		push_key(L, h, s, i, use_names);
		lua_gettable(L, -2);
		if (lua_isnil(L, -1)) {
			s->data[i].bits = 0;
			if (l && i < l->count)
				s->data[i] = l->signals[i].init;
		} else {
			hook_lua_get_value(L, hook_value_type(h, s, i), name,
					   &s->data[i]);
			length = MAX(length, i + 1);
		}
		lua_pop(L, 1);
	}
	s->length = length;
}

void hook_lua_get_sample(lua_State *L, const struct hook *h, struct sample *s,
			 bool use_names)
{
	uint32_t kept = s->flags & (SAMPLE_NEW_FRAME | SAMPLE_NEW_SIMULATION);

	lua_getfield(L, -1, "sequence");
	if (!lua_isnil(L, -1)) {
		s->sequence = (uint64_t)get_integer(L, "sequence");
		kept |= SAMPLE_HAS_SEQUENCE;
	}
	lua_pop(L, 1);
	if (get_time(L, "ts_origin", &s->origin))
		kept |= SAMPLE_HAS_ORIGIN;
	if (get_time(L, "ts_received", &s->received))
		kept |= SAMPLE_HAS_RECEIVED;
	lua_getfield(L, -1, "data");
	if (lua_isnil(L, -1))
		s->length = 0;
	else
		get_data(L, h, s, use_names);
	lua_pop(L, 1);
	if (s->length)
		kept |= SAMPLE_HAS_DATA;
	s->flags = kept;
}

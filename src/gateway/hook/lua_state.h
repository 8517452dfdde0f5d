/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the hook `lua` builds on: memory for Lua without malloc, and samples and
 * configuration as Lua values.
 */
#ifndef GATEWAY_HOOK_LUA_STATE_H
#define GATEWAY_HOOK_LUA_STATE_H

#include <jansson.h>
#include <lua.h>

#include "gateway/plugin/hook.h"

#define HOOK_LUA_ARENA_SIZE ((size_t)4 << 20)
#define HOOK_LUA_CLASSES 44

/*
 * A block that is touched before any sample comes, cut into pieces of a few
 * sizes that are used again and again. What does not fit comes from malloc().
 */
struct hook_lua_arena {
	char *block;
	size_t used;
	void *free[HOOK_LUA_CLASSES]; /* lists, linked through the pieces */
	uint64_t beyond;              /* pieces that came from malloc() */
};

int hook_lua_arena_init(struct hook_lua_arena *a);
void hook_lua_arena_destroy(struct hook_lua_arena *a);
/* lua_Alloc; `arena` is a struct hook_lua_arena. */
void *hook_lua_arena_alloc(void *arena, void *piece, size_t old_size,
			   size_t size);

/* For tests: the Lua state of a hook `lua`. */
lua_State *hook_lua_state_of(const struct hook *h);

/* All of these raise Lua errors: to be called protected. */
void hook_lua_push_json(lua_State *L, const json_t *v);
/* { flags, sequence, ts_origin, ts_received, data } */
void hook_lua_push_sample(lua_State *L, const struct hook *h,
			  const struct sample *s, bool use_names);
/* Back from the table on top of the stack, which stays there. */
void hook_lua_get_sample(lua_State *L, const struct hook *h, struct sample *s,
			 bool use_names);
/* The value on top of the stack as a value of `type`; `name` for messages. */
void hook_lua_get_value(lua_State *L, enum signal_type type, const char *name,
			union signal_data *v);

#endif

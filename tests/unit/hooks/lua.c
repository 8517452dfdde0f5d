/* SPDX-License-Identifier: BSD-2-Clause */
/* Hook lua: functions, expressions, errors of scripts, memory. */
#include <string.h>
#include <unistd.h>

#include "gateway/hook/lua_state.h"
#include "harness.h"
#include "util/clock.h"

#define R HOOK_NODE_READ
#define AB "signals = ( { name = \"a\" }, { name = \"b\"; type = \"integer\" } ); "

static char path[64];

static void write_script(const char *script)
{
	FILE *f;
	int fd;

	snprintf(path, sizeof(path), "/tmp/busbar-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	f = fdopen(fd, "w");
	fputs(script, f);
	fclose(f);
}

/* A hook with this script and further keys. */
static void start(struct harness *t, const char *signals, const char *keys,
		  const char *script)
{
	char text[2000];

	write_script(script);
	snprintf(text, sizeof(text),
		 "%shooks = ( { type = \"lua\"; script = \"%s\"; %s } );",
		 signals, path, keys);
	harness_start(t, R, text);
	unlink(path);
}

static struct sample *ab(struct harness *t, uint64_t sequence, double a,
			 int64_t b)
{
	struct sample *s = harness_sample(t, sequence, 1000000000);

	put_real(s, a);
	put_integer(s, b);
	return harness_run(t, s);
}

static void process_changes_values_by_name(void **state)
{
	struct harness t;
	struct sample *s;

	start(&t, AB, "",
	      "function process(smp)\n"
	      "  smp.data.a = smp.data.a * 2 + smp.data.b\n"
	      "  smp.data.b = math.maxinteger\n"
	      "  return 0\n"
	      "end\n");
	s = ab(&t, 3, 0.25, 10);
	assert_true(s->data[0].f == 10.5);
	assert_true(s->data[1].i == INT64_MAX);
	assert_int_equal(s->length, 2);
	assert_int_equal(s->sequence, 3);
	assert_int_equal(s->origin.tv_sec, 1);
	assert_int_equal(s->received.tv_nsec, 5000);
	assert_int_equal(s->flags, SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
					   SAMPLE_HAS_RECEIVED |
					   SAMPLE_HAS_DATA);
	harness_end(&t);
}

static void process_changes_values_by_index(void **state)
{
	struct harness t;
	struct sample *s;

	/* From 0 on. */
	start(&t, AB, "use_names = false;",
	      "function process(smp) smp.data[0], smp.data[1] = smp.data[1], smp.data[0] end\n");
	s = ab(&t, 3, 7.75, 10);
	assert_true(s->data[0].f == 10 && s->data[1].i == 7);
	harness_end(&t);
}

static void process_sees_and_changes_head_and_flags(void **state)
{
	struct harness t;
	struct sample *s;

	start(&t, AB, "",
	      "function process(smp)\n"
	      "  if smp.flags ~= 1 + 2 + 8 + 16 + 131072 then error('flags ' .. smp.flags) end\n"
	      "  smp.sequence = smp.sequence + 100\n"
	      "  smp.ts_origin[0] = smp.ts_origin[0] + 5\n"
	      "  smp.ts_origin[1] = 123456789\n"
	      "  smp.ts_received = nil\n"
	      "end\n");
	s = harness_sample(&t, 3, 1000000000);
	s->flags |= SAMPLE_NEW_FRAME;
	put_real(s, 1);
	s = harness_run(&t, s);
	assert_int_equal(s->sequence, 103);
	assert_int_equal(s->origin.tv_sec, 6);
	assert_int_equal(s->origin.tv_nsec, 123456789);
	assert_int_equal(s->flags, SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
					   SAMPLE_HAS_DATA | SAMPLE_NEW_FRAME);
	assert_int_equal(s->length, 1);
	assert_null(strstr(fake_log(), "flags "));
	harness_end(&t);
}

static void process_says_what_becomes_of_the_sample(void **state)
{
	struct harness t;
	char text[2000];

	write_script("function process(smp) return smp.sequence end\n");
	snprintf(text, sizeof(text),
		 AB "hooks = ( { type = \"lua\"; script = \"%s\" }, { type = \"shift_seq\"; offset = 1000 } );",
		 path);
	harness_start(&t, R, text);
	unlink(path);
	assert_int_equal(ab(&t, 0, 0, 0)->sequence, 1000);
	assert_null(ab(&t, 1, 0, 0));
	assert_null(ab(&t, 2, 0, 0));
	assert_int_equal(ab(&t, 3, 0, 0)->sequence, 3); /* past the others */
	assert_null(ab(&t, 4, 0, 0));
	assert_non_null(strstr(fake_log(), "process() returned 4, expected 0 (go on)"));
	harness_end(&t);
	assert_non_null(strstr(fake_log(), "could not process 2 samples"));
}

static void values_of_all_types_come_and_go(void **state)
{
	struct harness t;
	struct sample *s;

	start(&t, "signals = ( { name = \"on\"; type = \"boolean\" }, { name = \"z\"; type = \"complex\" }, { name = \"x\" }, { name = \"n\"; type = \"integer\" } ); ", "",
	      "function process(smp)\n"
	      "  local d = smp.data\n"
	      "  assert(d.on == true and d.z.real == 1.5 and d.z.imag == -2)\n"
	      "  d.on = not d.on\n"
	      "  d.z = { real = d.z.imag, imag = d.z.real }\n"
	      "  d.x = true\n"
	      "  d.n = 2.75\n"
	      "end\n");
	s = harness_sample(&t, 0, 0);
	put_integer(s, 1);
	put_complex(s, 1.5f, -2);
	put_real(s, 0);
	put_integer(s, 0);
	s = harness_run(&t, s);
	assert_non_null(s);
	assert_int_equal(s->data[0].i, 0);
	assert_true(s->data[1].z.re == -2 && s->data[1].z.im == 1.5f);
	assert_true(s->data[2].f == 1);
	assert_int_equal(s->data[3].i, 2);
	harness_end(&t);
}

static void values_that_are_taken_out_become_initial_ones(void **state)
{
	struct harness t;
	struct sample *s;

	start(&t, "signals = ( { name = \"x\" }, { name = \"y\" }, { name = \"z\"; init = 4.5 }, { name = \"more\" } ); ", "",
	      "function process(smp) smp.data.x = nil; smp.data.z = nil end\n");
	s = harness_sample(&t, 0, 0);
	put_real(s, 1);
	put_real(s, 2);
	put_real(s, 3);
	s = harness_run(&t, s);
	assert_int_equal(s->length, 3);
	assert_true(s->data[0].f == 0 && s->data[1].f == 2 && s->data[2].f == 4.5);
	harness_end(&t);
}

static void expressions_make_new_signals(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, AB "hooks = ( { type = \"lua\"; signals = ("
			 " { name = \"sum\"; unit = \"A\"; expression = \"smp.data.a + smp.data.b\" },"
			 " { name = \"root\"; expression = \"math.sqrt(smp.data.a)\" },"
			 " { name = \"seq\"; type = \"integer\"; expression = \"smp.sequence\" },"
			 " { name = \"big\"; type = \"boolean\"; expression = \"smp.data.b > 5\" } ) },"
			 " { type = \"scale\"; signal = \"root\"; scale = 10 } );");
	assert_int_equal(t.out->count, 4);
	assert_string_equal(t.out->signals[0].name, "sum");
	assert_string_equal(t.out->signals[0].unit, "A");
	assert_int_equal(t.out->signals[2].type, SIGNAL_INTEGER);
	s = ab(&t, 77, 16, 7);
	assert_int_equal(s->length, 4);
	assert_ptr_equal(s->signals, t.out);
	assert_true(s->data[0].f == 23 && s->data[1].f == 40);
	assert_int_equal(s->data[2].i, 77);
	assert_int_equal(s->data[3].i, 1);
	harness_end(&t);
}

static void expressions_see_what_process_has_done(void **state)
{
	struct harness t;

	start(&t, AB, "signals = ( { name = \"c\"; expression = \"smp.data.a + offset\" } );",
	      "offset = 0.5\nfunction process(smp) smp.data.a = smp.data.a * 2 end\n");
	assert_true(ab(&t, 0, 4, 0)->data[0].f == 8.5);
	harness_end(&t);
}

static void functions_are_called_in_their_order(void **state)
{
	struct harness t;
	struct sample *s;

	start(&t, AB, "gain = 2.5; list = ( 7, 8 );",
	      "calls = 'main'\n"
	      "function prepare(cfg) calls = calls .. ' prepare:' .. cfg.gain .. ':' .. cfg.list[0] .. ':' .. cfg.type end\n"
	      "function start() calls = calls .. ' start' end\n"
	      "function restart() calls = calls .. ' restart' end\n"
	      "function periodic() calls = calls .. ' periodic' end\n"
	      "function process(smp) calls = calls .. ' process' .. smp.sequence end\n"
	      "function stop() info(calls) end\n");
	ab(&t, 4, 0, 0);
	s = harness_sample(&t, 0, 0);
	s->flags |= SAMPLE_NEW_SIMULATION;
	harness_run(&t, s);
	hook_list_periodic(t.hooks);
	harness_end(&t);
	assert_non_null(strstr(fake_log(), "n: main prepare:2.5:7:lua start process4 restart process0 periodic"));
}

static void prepare_comes_once_and_start_each_time(void **state)
{
	struct harness t;

	start(&t, AB, "", "n = 0\nfunction prepare() n = n + 1 end\n"
			  "function start() n = n + 10 end\nfunction process(smp) smp.data.a = n end\n");
	hook_list_stop(t.hooks);
	assert_int_equal(hook_list_start(t.hooks), 0);
	assert_true(ab(&t, 0, 0, 0)->data[0].f == 21);
	harness_end(&t);
}

static void scripts_write_to_the_log(void **state)
{
	struct harness t;

	start(&t, AB, "",
	      "info('one') warn('two') error('three') debug('four') info(5)\n"
	      "assert(debug.traceback)\n"
	      "function process(smp) end\n");
	assert_non_null(strstr(fake_log(), "info  gateway/lua: n: one"));
	assert_non_null(strstr(fake_log(), "n: two"));
	assert_non_null(strstr(fake_log(), "error gateway/lua: n: three"));
	assert_non_null(strstr(fake_log(), "n: 5"));
	harness_end(&t);
}

static void an_error_loses_the_sample_and_nothing_else(void **state)
{
	struct harness t;
	const char *at;
	unsigned shown = 0;

	start(&t, AB, "",
	      "function process(smp)\n"
	      "  if smp.sequence % 2 == 1 then\n"
	      "    local x = smp.data.nothing + 1\n"
	      "  end\n"
	      "end\n");
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(ab(&t, i, 0, 0) != NULL, i % 2 == 0);
	/* Script, line, and what was wrong, but not for ever. */
	assert_non_null(strstr(fake_log(), ":3: attempt to perform arithmetic on a nil value (field 'nothing')"));
	assert_non_null(strstr(fake_log(), path));
	for (at = fake_log(); (at = strstr(at, "attempt to")); at++)
		shown++;
	assert_int_equal(shown, 5);
	assert_non_null(strstr(fake_log(), "further errors are not shown"));
	harness_end(&t);
	assert_non_null(strstr(fake_log(), "hook lua could not process 10 samples"));
}

static void errors_of_all_kinds_are_told(void **state)
{
	static const struct {
		const char *body, *expected;
	} cases[] = {
		{ "smp.data.a = 'x'", "signal 'a' is a string, expected a number" },
		{ "smp.data = 3", "data is a number, expected a table" },
		{ "smp.sequence = {}", "sequence is a table, expected a number" },
		{ "smp.ts_origin = 5", "ts_origin is a number, expected a table" },
		{ "smp.ts_origin[1] = 1000000000", "ts_origin has 1000000000 nanoseconds" },
		{ "smp.data.b = {}", "signal 'b' is a nil, expected a number" },
		{ "setmetatable(smp, {__index = function() assert(false, 'bad index') end}) smp.data = nil", "bad index" },
		{ "return 'text'", "number expected, got string" },
		{ "local t = {} t[nil] = 1", "index is nil" },
		{ "assert(false, {})", "an error that is no text" },
		{ "process(smp)", "stack overflow" },
		{ "while true do end", "ended after 100 million instructions" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct harness t;
		char script[300];

		snprintf(script, sizeof(script),
			 "function process(smp)\n%s\nend\n", cases[i].body);
		start(&t, AB, "", script);
		assert_null(ab(&t, 0, 1, 2));
		if (!strstr(fake_log(), cases[i].expected))
			print_error("%s\n%s", cases[i].body, fake_log());
		assert_non_null(strstr(fake_log(), cases[i].expected));
		harness_end(&t);
	}
}

/* Each would go on for ever if the error came but once in a while. */
static void no_script_keeps_the_error_that_ends_it(void **state)
{
	static const struct {
		const char *before, *body, *expected;
	} cases[] = {
		{ "", "while true do pcall(function() end) end",
		  "ended after 100 million instructions" },
		/* None of them lives until it is asked. */
		{ "local function short() for i = 1, 2000 do end end",
		  "while true do coroutine.resume(coroutine.create(function() while true do coroutine.wrap(short)() end end)) end",
		  "ended after 100 million instructions" },
		{ "assert(debug.sethook == nil)", "while true do end",
		  "ended after 100 million instructions" },
		/* Not one instruction is outside of pcall(). */
		{ "getmetatable('').__call = function() while true do end end s = ('x'):rep(30000)",
		  "s:gsub('.', pcall)", "the script catches the errors" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct harness t;
		char script[400];

		snprintf(script, sizeof(script),
			 "%s\nfunction process(smp)\nif smp.sequence == 0 then\n%s\nend end\n",
			 cases[i].before, cases[i].body);
		start(&t, AB, "", script);
		assert_null(ab(&t, 0, 1, 2));
		assert_non_null(strstr(fake_log(), cases[i].expected));
		/* The next sample is processed, but by a script that was left. */
		assert_int_equal(ab(&t, 1, 1, 2) != NULL, i + 1 < ARRAY_SIZE(cases));
		harness_end(&t);
	}
}

static void an_expression_that_fails_loses_the_sample(void **state)
{
	struct harness t;

	harness_start(&t, R, AB "hooks = ( { type = \"lua\"; signals = ( { name = \"c\"; expression = \"smp.data.x * 2\" } ) } );");
	assert_null(ab(&t, 0, 1, 2));
	assert_non_null(strstr(fake_log(), "expression of 'c':1: attempt to perform arithmetic on a nil value"));
	harness_end(&t);
	harness_start(&t, R, AB "hooks = ( { type = \"lua\"; signals = ( { name = \"c\"; expression = \"'text'\" } ) } );");
	assert_null(ab(&t, 0, 1, 2));
	assert_non_null(strstr(fake_log(), "signal 'c' is a string, expected a number"));
	harness_end(&t);
}

static void an_expression_that_gives_nil_leaves_what_came(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, AB "hooks = ( { type = \"lua\"; signals = ( { name = \"c\"; expression = \"nil\" },"
		      " { name = \"d\"; expression = \"smp.data.nothing\" },"
		      " { name = \"e\"; expression = \"nil\"; init = 8 } ) } );");
	s = ab(&t, 0, 1.5, 2);
	assert_non_null(s);
	assert_int_equal(s->length, 3);
	assert_true(s->data[0].f == 1.5);
	assert_true(s->data[1].f == 2); /* an integer came, a real goes */
	assert_true(s->data[2].f == 8);
	harness_end(&t);
}

static void refused(const char *script, const char *expected)
{
	char text[400];

	write_script(script);
	snprintf(text, sizeof(text),
		 "hooks = ( { type = \"lua\"; script = \"%s\" } );", path);
	expect_refused(R, text, expected);
	unlink(path);
}

static void scripts_that_cannot_work_are_refused(void **state)
{
	refused("function process(smp)\n  return +\nend\n", ":2: unexpected symbol near '+'");
	refused("register_api_handler('/x', print)\n", "requests of the API are not handed to scripts; take the call out");
	refused("local x = nothing.field\n", ":1: attempt to index a nil value (global 'nothing')");
	refused("function prepare() assert(false, 'no licence') end", "no licence");
	refused("function start()\n\nassert(false, 'not today') end", "not today");
	expect_refused(R, "hooks = ( { type = \"lua\"; scrip = \"x\"; signals = ( ) } );", "hooks[0].scrip: unknown key, did you mean 'script'?");
	expect_refused(R, "hooks = ( { type = \"lua\"; gain = 1; signals = ( ) } );", "hooks[0].gain: unknown key");
	expect_refused(R, "hooks = ( \"lua\" );", "does nothing; give a script");
	expect_refused(R, "hooks = ( { type = \"lua\"; script = \"/nowhere/x.lua\" } );", "test.conf:1: hooks[0].script: cannot open /nowhere/x.lua");
	expect_refused(R, "hooks = ( { type = \"lua\"; signals = \"3f\" } );", "expected a list of groups such as");
	expect_refused(R, "hooks = ( { type = \"lua\"; signals = ( ) } );", "expected a list of groups such as");
	expect_refused(R, "hooks = ( { type = \"lua\"; signals = ( { name = \"x\" } ) } );", "hooks[0].signals[0].expression: missing, but required");
	expect_refused(R, "hooks = ( { type = \"lua\"; signals = ( { name = \"x\"; expression = \"1 +\" } ) } );", "hooks[0].signals[0].expression: expression of 'x':1: unexpected symbol");
	expect_refused(R, "hooks = ( { type = \"lua\"; signals = ( { name = \"x\"; expresion = \"1\" } ) } );", "did you mean 'expression'?");
	expect_refused(R, "hooks = ( { type = \"lua\"; signals = ( { name = \"x\"; count = 2; expression = \"1\" } ) } );", "`count` is not possible");
}

static void a_script_without_process_is_told(void **state)
{
	struct harness t;

	start(&t, AB, "", "function proces(smp) end\n");
	assert_non_null(ab(&t, 0, 0, 0));
	assert_non_null(strstr(fake_log(), "has no function process()"));
	harness_end(&t);
}

static void no_sample_costs_memory_from_outside(void **state)
{
	struct hook_lua_arena *arena;
	struct harness t;
	lua_State *L = NULL;
	void *ud;

	start(&t, AB, "",
	      "function process(smp)\n"
	      "  local t = {}\n"
	      "  for i = 1, 20 do t[i] = 'text ' .. i .. smp.sequence end\n"
	      "  smp.data.a = #table.concat(t)\n"
	      "end\n");
	for (uint64_t i = 0; i < 5000; i++)
		assert_non_null(ab(&t, i, 0, 0));
	/* The arena is what Lua was given as its allocator's argument. */
	list_for_each(h, &t.hooks->hooks, struct hook, entry)
		L = hook_lua_state_of(h);
	assert_ptr_equal(lua_getallocf(L, &ud), hook_lua_arena_alloc);
	arena = ud;
	assert_int_equal(arena->beyond, 0);
	assert_true(arena->used < HOOK_LUA_ARENA_SIZE);
	harness_end(&t);
}

static void the_arena_keeps_pieces_apart_and_uses_them_again(void **state)
{
	struct hook_lua_arena a;
	unsigned char *pieces[64] = { 0 };
	size_t sizes[64] = { 0 };
	uint64_t random = 88172645463325252u;

	assert_int_equal(hook_lua_arena_init(&a), 0);
	for (unsigned turn = 0; turn < 200000; turn++) {
		unsigned i, fill;
		size_t size;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		i = random % 64;
		fill = i + 1;
		size = (random >> 8) % 4 ? (random >> 16) % 700 :
					   (random >> 16) % 40000;
		for (size_t k = 0; k < sizes[i]; k += 1 + sizes[i] / 8)
			assert_int_equal(pieces[i][k], fill);
		pieces[i] = hook_lua_arena_alloc(&a, pieces[i], sizes[i], size);
		assert_int_equal(pieces[i] != NULL, size != 0);
		for (size_t k = 0; k < MIN(size, sizes[i]);
		     k += 1 + sizes[i] / 8)
			assert_int_equal(pieces[i][k], fill);
		sizes[i] = size;
		if (size)
			memset(pieces[i], (int)fill, size);
	}
	for (unsigned i = 0; i < 64; i++)
		hook_lua_arena_alloc(&a, pieces[i], sizes[i], 0);
	/* What is too large or too much comes from elsewhere, and goes back. */
	pieces[0] = hook_lua_arena_alloc(&a, NULL, 0, 2 * HOOK_LUA_ARENA_SIZE);
	assert_non_null(pieces[0]);
	assert_true(a.beyond >= 1);
	pieces[0][2 * HOOK_LUA_ARENA_SIZE - 1] = 1;
	assert_null(hook_lua_arena_alloc(&a, pieces[0], 2 * HOOK_LUA_ARENA_SIZE, 0));
	hook_lua_arena_destroy(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(process_changes_values_by_name),
		cmocka_unit_test(process_changes_values_by_index),
		cmocka_unit_test(process_sees_and_changes_head_and_flags),
		cmocka_unit_test(process_says_what_becomes_of_the_sample),
		cmocka_unit_test(values_of_all_types_come_and_go),
		cmocka_unit_test(values_that_are_taken_out_become_initial_ones),
		cmocka_unit_test(expressions_make_new_signals),
		cmocka_unit_test(expressions_see_what_process_has_done),
		cmocka_unit_test(functions_are_called_in_their_order),
		cmocka_unit_test(prepare_comes_once_and_start_each_time),
		cmocka_unit_test(scripts_write_to_the_log),
		cmocka_unit_test(an_error_loses_the_sample_and_nothing_else),
		cmocka_unit_test(errors_of_all_kinds_are_told),
		cmocka_unit_test(no_script_keeps_the_error_that_ends_it),
		cmocka_unit_test(an_expression_that_fails_loses_the_sample),
		cmocka_unit_test(an_expression_that_gives_nil_leaves_what_came),
		cmocka_unit_test(scripts_that_cannot_work_are_refused),
		cmocka_unit_test(a_script_without_process_is_told),
		cmocka_unit_test(no_sample_costs_memory_from_outside),
		cmocka_unit_test(the_arena_keeps_pieces_apart_and_uses_them_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

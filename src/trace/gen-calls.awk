# Reads calls.list. With -v make=calls writes the wrappers (C), with make=show the
# declarations that they use (C header), with make=map the version script of the library.
# what they use (C header), with make=map the version script of the library.
#
# Each wrapper writes the arguments, calls the original function, and writes the result
# and, after a failure, the reason. The exported names have no versions, so they match
# every version that a program asks for.
function fail(what) {
	printf "%s:%d: %s\n", FILENAME, FNR, what > "/dev/stderr"
	failed = 1
	exit 1
}
# The exported name: two functions are inline in verbs.h and call another name.
function symbol(name) {
	return name ~ /^ibv_query_gid_(ex|table)$/ ? "_" name : name
}
function emit(line) { body = body line "\n" }

function wrapper(    i, n, part, params, values, types, ret, kind, out, place, real, func_,
		 member, source, first, firsttype) {
	params = values = types = ""
	for (i = 1; i <= args; i++) {
		params = params (i > 1 ? ", " : "") ctype[argtype[i]] \
			(ctype[argtype[i]] ~ /\*$/ ? "" : " ") argname[i]
		values = values (i > 1 ? ", " : "") argname[i]
		types = types (i > 1 ? ", " : "") ctype[argtype[i]]
	}
	n = split(answer, part, ":")
	kind = part[1]
	ret = kind == "void" ? "void" : n == 2 ? ctype[part[2]] : \
	      $1 == "ibv_query_gid_table" ? "ssize_t" : "int"
	if (ret == "") fail("unknown type in " answer)
	if (kind !~ /^(null|errno|minus1|negative|number|void)$/) fail("unknown answer " answer)
	first = argname[1]; firsttype = argtype[1]
	split($2, place, ":")
	member = place[2]
	body = ""
	if (member == "") {
		func_ = symbol($1)
		emit("EXPORT " ret (ret ~ /\*$/ ? "" : " ") func_ "(" (params == "" ? "void" : params) ");")
		emit("EXPORT " ret (ret ~ /\*$/ ? "" : " ") func_ "(" (params == "" ? "void" : params) ")")
	} else {
		func_ = "op_" member
		emit("static " ret (ret ~ /\*$/ ? "" : " ") func_ "(" params ")")
	}
	emit("{")
	emit("\t" ret " (*real)(" (types == "" ? "void" : types) ");")
	if (ret != "void")
		emit("\t" ret " ret = " (kind == "null" || n == 2 ? "NULL" : \
		     kind == "errno" ? "EOPNOTSUPP" : kind == "minus1" ? "-1" : \
		     kind == "negative" ? "-EOPNOTSUPP" : "0") ";")
	emit("\tstruct call call;")
	if (ends != "") emit("\tuint64_t serial;")
	emit("")
	if (member == "") {
		emit("\treal = __extension__(__typeof__(real))real_find(\"" func_ "\", \"" \
		     (substr($2, 1, 1) == "v" ? "IBVERBS_" : "RDMACM_") substr($2, 2) "\");")
	} else {
		source = firsttype == "context" ? first : first " ? " first "->context : NULL"
		if (place[1] == "ops")
			emit("\treal = saved_ops(" source ")->ops." member ";")
		else
			emit("\treal = saved_ops(" source ")->verbs." member ";")
	}
	emit("\tcall_begin(&call, \"" $1 "\");")
	for (i = 1; i <= args; i++)
		if (!argout[i]) {
			emit("\targument(&call.text);")
			emit("\tshow_" argtype[i] "(&call.text, " argname[i] ");")
			# Only the attributes in the mask are shown.
			if (argtype[i] == "qp_attr" && $1 == "ibv_modify_qp")
				sub(/show_qp_attr\(&call.text, attr\);\n$/, \
				    "show_qp_change(\\&call.text, qp, attr, attr_mask);\n", body)
		}
	if (ends != "") emit("\tserial = object_ending(" first ");")
	emit("\tcall_go(&call);")
	emit("\tif (real)")
	emit("\t\t" (ret == "void" ? "" : "ret = ") "real(" values ");")
	emit("\telse")
	emit("\t\terrno = EOPNOTSUPP;")
	emit("\tcall_done(&call, " (\
		kind == "null" ? "ret ? 0 : errno" : kind == "errno" ? "ret" : \
		kind == "minus1" ? "ret == -1 ? errno : 0" : \
		kind == "negative" ? "ret < 0 ? (ret == -1 && errno ? errno : -(int)ret) : 0" : "0") ");")
	if (makes != "") {
		emit("\tif (ret)")
		emit("\t\tobject_add(OBJECT_" toupper(makes) ", ret);")
	}
	if (ends != "") {
		emit("\tif (!call.error)")
		emit("\t\tobject_remove(" first ", serial);")
		emit("\telse")
		emit("\t\tobject_stays(" first ", serial);")
	}
	if (notes) {
		emit("\tif (!call.error)")
		emit("\t\tnote_" suffix($1) "(" (ret == "void" || ret == "int" ? "" : "ret, ") values ");")
		decls = decls "void note_" suffix($1) "(" \
			(ret == "void" || ret == "int" ? "" : ret ", ") types ");\n"
	}
	if (kind == "void")
		emit("\tresult_void(&call);")
	else if (n == 2) {
		emit("\tif (ret) {")
		emit("\t\tresult_is(&call);")
		emit("\t\tshow_" part[2] "(&call.text, ret);")
		emit("\t} else {")
		emit("\t\tresult_null(&call);")
		emit("\t}")
	} else
		emit("\tresult_number(&call, (long)ret);")
	out = 0
	for (i = 1; i <= args; i++)
		out += argout[i]
	if (out) {
		emit("\tif (!call.error) {")
		for (i = 1; i <= args; i++)
			if (argout[i]) {
				emit("\t\toutput(&call.text);")
				emit("\t\tshow_" argtype[i] "(&call.text, " argname[i] ");")
			}
		emit("\t}")
	}
	if (explains) {
		emit("\tif (call.error)")
		emit("\t\twhy_" suffix($1) "(call_reason(&call), call.error, " values ");")
		decls = decls "void why_" suffix($1) "(struct text *, int, " types ");\n"
	}
	emit("\tcall_end(&call);")
	if (ret != "void") emit("\treturn ret;")
	emit("}")
	if (make == "calls") print body
	if (member != "") {
		if (place[1] == "ops")
			patches = patches "\tif (context->ops." member ")\n\t\tcontext->ops." member " = op_" member ";\n"
		else
			patches_ex = patches_ex "\tif (HAS(verbs, " member ")" \
				(place[1] == "op" ? " && verbs->" member : "") \
				")\n\t\tverbs->" member " = op_" member ";\n"
	} else
		globals = globals "\t\t" func_ ";\n"
}
# query_port exists twice, with different structures.
function suffix(name) {
	return name == "ibv_query_port" && $2 !~ /:/ ? name "_old" : name
}
{ sub(/#.*/, "") }
NF == 0 { next }
$1 == "type" {
	name = $2
	sub(/^type +[a-z0-9_]+ +/, "")
	sub(/ +$/, "")
	ctype[name] = $0
	decls = decls "void show_" name "(struct text *, " $0 ");\n"
	next
}
{
	answer = $3
	args = 0; makes = ends = ""; notes = explains = 0
	for (f = 4; f <= NF; f++) {
		if ($f == "!") explains = 1
		else if ($f == "&") notes = 1
		else if ($f ~ /^[+]/) makes = substr($f, 2)
		else if ($f ~ /^-/) ends = substr($f, 2)
		else {
			split($f, pair, ":")
			args++
			argout[args] = sub(/^>/, "", pair[1])
			if (!(pair[1] in ctype)) fail("unknown type " pair[1])
			argtype[args] = pair[1]; argname[args] = pair[2]
		}
	}
	if (make == "calls" && !begun++) {
		print "/* SPDX-License-Identifier: BSD-2-Clause */\n" \
		      "/* Made by gen-calls.awk from calls.list. */\n" \
		      "#define TRACE_WRAPPERS\n#include \"trace/calls.h\"\n"
	}
	wrapper()
}
END {
	if (failed) exit 1
	if (make == "calls") {
		print "void calls_patch_ops(struct ibv_context *context)\n{\n" patches "}\n"
		print "#define HAS(v, member) \\\n" \
		      "\t((v)->sz >= sizeof(*(v)) - offsetof(struct verbs_context, member))\n"
		print "void calls_patch_verbs(struct verbs_context *verbs)\n{\n" patches_ex "}"
	} else if (make == "show")
		print "/* SPDX-License-Identifier: BSD-2-Clause */\n" \
		      "/* Made by gen-calls.awk from calls.list. */\n" decls
	else
		print "{\n\tglobal:\n" globals "\tlocal: *;\n};"
}

#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every configuration key has an effect: the field that a table of keys fills is read
somewhere else, and a key without a field is looked up by its name.

usage: keys.py SOURCE. That values change what happens is for the tests of each
plug-in; this finds keys that are accepted and forgotten.
"""
import glob
import os
import re
import sys
import tempfile

ENTRY = re.compile(r'\{\s*"([\w.-]+)",\s*CONFIG_[A-Z]+\s*([,}])')
FIELD = re.compile(r'\b([A-Z_]+)\((?:type, )?([a-z_][\w.]*)\)|\boffsetof\(([^,()]+),\s*([\w.]+)\)')

# Tables whose fields are read in another folder.
READERS = {"http_settings.c": "http"}
# A member of private data whose fields the files of that name read: "part/socket_ends.c".
MEMBERS = {"ends": os.path.join("part", "socket_")}


def end_of(text, start):
    """Behind the bracket that closes the one at `start`."""
    depth, i, quoted = 0, start, False
    while i < len(text):
        c = text[i]
        if quoted:
            i += c == "\\"
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "{(":
            depth += 1
        elif c in "})":
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return len(text)


def clean(text):
    """Without comments, which name fields too; "ws://" is none."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"(?<!:)//[^\n]*", "", text)


def entries(text):
    """(start, end, key, what stands for its field) of each entry of a table."""
    for m in ENTRY.finditer(text):
        end = end_of(text, m.start())
        rest = text[m.end():end - 1] if m.group(2) == "," else ""
        # The third value; named ones (.help = ...) may follow.
        third = rest.strip().replace("\\\n", " ")
        cut = 0
        depth = 0
        while cut < len(third) and not (third[cut] == "," and depth == 0):
            depth += (third[cut] == "(") - (third[cut] == ")")
            cut += 1
        third = third[:cut].strip().lstrip("\\").strip()
        yield m.start(), end, m.group(1), "" if third.startswith(".") else third


def is_read(field, texts):
    last = field.split(".")[-1]
    # Also as the argument of a macro that puts the field's name together.
    use = re.compile(r"(?:->|\.)%s\b(?!\s*=[^=])|\b[A-Z_]+\([^()\n]*\b%s\b" % (last, last))
    return any(use.search(t) for t in texts)


def check(root):
    files = {f: clean(open(f).read())
             for f in glob.glob(os.path.join(root, "**", "*.[ch]"), recursive=True)}
    bare, found, faults = {}, [], []
    for name, text in files.items():
        spans = list(entries(text))
        fields = [(s, e, k, t) for s, e, k, t in spans]
        found += [(name, k, t) for _, _, k, t in fields]
        # What is left may read the field: no entries, no offsets.
        for s, e, _, _ in reversed(spans):
            text = text[:s] + text[e:]
        bare[name] = re.sub(r"\b(?:offsetof|OFFSET|AT|KEY|IN|OUT|TOP|FIELD|SETTING)\([^()]*\)", "", text)
    for name, key, third in found:
        folder = os.path.dirname(name)
        # What stands in part/ and in headers is read by those who include it.
        near = [t for f, t in bare.items()
                if os.path.dirname(f) == folder or name.endswith(".h")
                or "part" in folder.split(os.sep)
                or os.path.basename(os.path.dirname(f)) == READERS.get(os.path.basename(name))]
        m = FIELD.search(third)
        member = (m.group(2) or m.group(4)).split(".")[0] if m else None
        if member in MEMBERS:
            near += [t for f, t in bare.items() if MEMBERS[member] in f]
        by_name = re.compile(r'"%s"' % re.escape(key))
        if any(by_name.search(t) for t in near):
            continue
        if m:
            field = m.group(2) or m.group(4)
            if not is_read(field, near):
                faults.append("%s: key '%s' fills %s, which nobody reads" % (name, key, field))
        elif third in ("", "0"):
            # Or what several node-types share looks it up or fills a field with it.
            shared = [f for f in files
                      if {"part", "sample"} & set(os.path.dirname(f).split(os.sep))]
            if not any(by_name.search(bare[f]) for f in shared) and not any(
                    k == key and t not in ("", "0") and n in shared for n, k, t in found):
                faults.append("%s: key '%s' has no field and is not looked up by name" % (name, key))
        elif not re.fullmatch(r"\(?[a-z_]+\)?", third):
            faults.append("%s: key '%s' has a field that is not understood: %s" % (name, key, third))
    return found, faults


def can_fail():
    """A table with a forgotten key in each form is found to have them."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "x.c"), "w") as f:
            f.write("""#define OFFSET(field) offsetof(struct x, field)
static const struct config_key keys[] = {
	{ "used", CONFIG_INT, OFFSET(used), "1", .min = 0, .help = "used" },
	{ "set", CONFIG_INT, OFFSET(set), .help = "written only" },
	{ "forgotten", CONFIG_BOOL, OFFSET(in.forgotten), .help = "x" },
	{ "nameless", CONFIG_JSON, .help = "y" },
	{ "named", CONFIG_JSON, .help = "z" },
};
/* x->forgotten, "nameless" */
int f(struct x *x) { x->set = 3; return x->used + get("named"); }
""")
        return [re.search(r"'(\w+)'", f).group(1) for f in check(folder)[1]]


root = os.path.join(sys.argv[1], "src", "gateway")
found, faults = check(root)
for fault in faults:
    print("FAILED:", fault)
if can_fail() != ["set", "forgotten", "nameless"]:
    print("FAILED: forgotten keys are not found:", can_fail())
    faults.append("self")
if len(found) < 250:
    print("FAILED: only %d keys found" % len(found))
    faults.append("few")
print("%d keys looked at" % len(found))
sys.exit(1 if faults else 0)

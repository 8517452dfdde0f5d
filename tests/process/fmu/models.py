#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""FMUs of the test: the binary of model.c with a description of either version, zipped; and archives
and descriptions that are wrong in one way each."""
import os
import platform
import stat
import sys
import warnings
import zipfile

# Archives with a name twice are made on purpose.
warnings.filterwarnings("ignore", "Duplicate name")
MACHINES = {"x86_64": ("linux64", "x86_64-linux"), "i686": ("linux32", "x86-linux"),
            "aarch64": ("aarch64-linux", "aarch64-linux")}
PLATFORM = dict(zip((2, 3), MACHINES.get(platform.machine(), ("linux64", "x86_64-linux"))))
TOKEN = "{busbar-test-lag}"
# name, reference, type of FMI 3.0, causality, variability
LAG = [("time", 0, "Float64", "independent", "continuous"), ("u", 1, "Float64", "input", "continuous"),
       ("x", 2, "Float64", "output", "continuous"), ("gain", 3, "Float64", "parameter", "tunable"),
       ("lag.T", 4, "Float64", "parameter", "fixed"), ("fault", 5, "Int32", "parameter", "fixed"),
       ("fault_at", 6, "Float64", "parameter", "fixed"), ("name", 7, "String", "parameter", "fixed"),
       ("name_length", 8, "Int32", "local", "discrete"), ("own", 9, "Int32", "local", "discrete"),
       ("resource", 10, "Int32", "local", "discrete"), ("steps", 11, "Int32", "local", "discrete"),
       ("never", 12, "Float64", "local", "constant")]
TYPES3 = ["Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64", "Boolean", "Float32"]
TYPES2 = ["Int32", "Boolean"]
OLD = {"Float64": "Real", "Int32": "Integer", "Boolean": "Boolean", "String": "String"}


def variables(version):
    types = TYPES2 if version == 2 else TYPES3
    return LAG + [("in_" + t, 100 + 2 * i, t, "input", "discrete") for i, t in enumerate(types)] + \
        [("out_" + t, 200 + 2 * i, t, "output", "discrete") for i, t in enumerate(types)]


def one(version, name, reference, kind, causality, variability):
    common = 'name="%s" valueReference="%d" causality="%s" variability="%s"' % (
        name, reference, causality, variability)
    if version == 2:
        return "<ScalarVariable %s><%s/></ScalarVariable>" % (common, OLD[kind])
    return "<%s %s/>" % (kind, common)


def description(version, head="", model="", simulation='modelIdentifier="lag"', more="", step='stepSize="0.1"',
                token=None, numbers=None):
    """The text; arguments replace or add parts."""
    about = model or 'fmiVersion="%d.0" modelName="lag" %s="%s"' % (
        version, "guid" if version == 2 else "instantiationToken", token or TOKEN)
    listed = "".join("\n" + one(version, *v) for v in (numbers or variables(version)))
    if version == 3:
        listed += '\n<Float64 name="line" valueReference="900" causality="output"><Dimension start="3"/></Float64>'
        listed += '\n<Binary name="blob" valueReference="901" causality="output"/>'
    return '<?xml version="1.0" encoding="UTF-8"?>\n%s<fmiModelDescription %s>' \
        '\n<CoSimulation %s canHandleVariableCommunicationStepSize="true"/>' \
        '\n<DefaultExperiment startTime="0" %s/>\n<ModelVariables>%s%s</ModelVariables>\n</fmiModelDescription>\n' % (
            head, about, simulation, step, listed, more)


def entry(archive, name, data, mode=stat.S_IFREG | 0o644, how=zipfile.ZIP_DEFLATED):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.create_system = 3
    info.compress_type = how
    archive.writestr(info, data)


def make(path, version, binary, text=None, more=(), identifier="lag", resource="7"):
    """An FMU. `more`: further entries, arguments of entry()."""
    with zipfile.ZipFile(path, "w") as z:
        if text != "":
            entry(z, "modelDescription.xml", text or description(version))
        if binary:
            with open(binary, "rb") as f:
                entry(z, "binaries/%s/%s.so" % (PLATFORM[version], identifier), f.read())
        entry(z, "binaries/win64/%s.dll" % identifier, b"MZ")
        entry(z, "documentation/index.html", "<html/>")
        if resource:
            entry(z, "resources/number.txt", resource)
            entry(z, "resources/deep/\u00e4rger.txt", "x")
        for m in more:
            entry(z, *m)
    return path


def bent(path, change):
    """Changes the bytes of a file."""
    with open(path, "rb") as f:
        data = bytearray(f.read())
    change(data)
    with open(path, "wb") as f:
        f.write(data)
    return path


def wrong_archives(folder, binary):
    """(name, what is said about it, path) of archives that must be refused."""
    def of(name, *more, **options):
        return make(os.path.join(folder, name + ".fmu"), 2, binary, more=more, **options)

    def cut(data):
        del data[len(data) // 2:]

    def flip(data):
        at = data.index(b"modelDescription.xml") + 60
        data[at] ^= 0x5a

    link = stat.S_IFLNK | 0o777
    empty = os.path.join(folder, "empty.fmu")
    open(empty, "w").close()
    text = os.path.join(folder, "text.fmu")
    with open(text, "w") as f:
        f.write("this is no archive\n" * 100)
    os.mkdir(os.path.join(folder, "folder.fmu"))
    os.mkfifo(os.path.join(folder, "fifo.fmu"))
    # The first entry is the description, whatever it says; the start looks at all of them.
    early = [
        ("no description", "has no modelDescription.xml", of("none", text="")),
        ("an empty file", "is no zip archive|no modelDescription|damaged", empty),
        ("no archive", "is no zip archive|no modelDescription|damaged", text),
        ("a folder", "is no file", os.path.join(folder, "folder.fmu")),
        ("a FIFO", "is no file", os.path.join(folder, "fifo.fmu")),
        ("half of it", "is no zip archive|damaged|no modelDescription", bent(of("half"), cut)),
        ("damaged data", "damaged|modelDescription.xml", bent(of("flipped"), flip)),
    ]
    late = [
        ("a way up", "whose name may not be: '../", of("up", ("../busbar-fmu-escaped", "x"))),
        ("a way up within", "whose name may not be", of("within", ("resources/../../x", "x"))),
        ("an absolute name", "whose name may not be", of("absolute", ("/tmp/busbar-fmu-escaped", "x"))),
        ("a backslash", "whose name may not be", of("back", ("resources\\..\\..\\x", "x"))),
        ("an empty part", "whose name may not be", of("slashes", ("resources//x", "x"))),
        ("a dot", "whose name may not be", of("dot", ("resources/./x", "x"))),
        ("a control character", "whose name may not be", of("control", ("resources/a\x1bb", "x"))),
        ("a deep folder", "whose name may not be", of("deep", ("d/" * 40 + "x", "x"))),
        ("a long name", "whose name may not be", of("long", ("resources/" + "x" * 300, "x"))),
        ("a symbolic link", "is neither file nor folder", of("link", ("resources/l", "/etc", link))),
        ("a link, then a file in it", "is neither file nor folder",
         of("into", ("resources/l", "..", link), ("resources/l/x", "x"))),
        ("a device", "is neither file nor folder",
         of("device", ("resources/d", "", stat.S_IFCHR | 0o666))),
        ("a name twice", "the archive has it twice", of("twice", ("resources/number.txt", "8"))),
        ("a file as a folder", "cannot (make|write)", of("both", ("resources/number.txt/x", "8"))),
        ("no binary", "has no binary for this machine", make(os.path.join(folder, "bare.fmu"), 2, None)),
        ("a binary that is none", "cannot be loaded",
         make(os.path.join(folder, "script.fmu"), 2, text)),
        ("another binary's name", "has no binary for this machine", of("other", identifier="other")),
        ("another guid", "cannot be instantiated", of("guid", text=description(2, token="{other}"))),
        ("another version", "is of FMI 2.0, modelDescription.xml of FMI 3|no function fmi3",
         make(os.path.join(folder, "version.fmu"), 3, binary)),
        ("many files", "more than 20000 files",
         of("many", *(("documentation/%d" % i, "", stat.S_IFREG | 0o644, zipfile.ZIP_STORED)
                      for i in range(20001)))),
    ]
    return early, late


def wrong_descriptions():
    """(what is said about it, text)"""
    entity = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>\n'
    outside = '<!DOCTYPE x SYSTEM "file:///etc/passwd">\n'
    variable = '<ScalarVariable name="%s" valueReference="%s" %s><Real/></ScalarVariable>'
    return [
        ("document type", description(2, head=entity)),
        ("document type", description(3, head=outside)),
        ("no element found|syntax", "\n"),
        ("not well-formed|mismatched", description(2)[:-30] + "</x></fmiModelDescription>"),
        ("no element found|unclosed", description(3)[:-40]),
        ("the first element is html", "<html/>"),
        ("fmiVersion is 1.0", description(2, model='fmiVersion="1.0" modelName="m" guid="g"')),
        ("fmiVersion is 3.0-beta", description(3, model='fmiVersion="3.0-beta" modelName="m" guid="g"')),
        ("fmiVersion is missing", description(2, model='modelName="m" guid="g"')),
        ("guid is missing", description(2, model='fmiVersion="2.0" modelName="m"')),
        ("instantiationToken is missing", description(3, model='fmiVersion="3.0" modelName="m" guid="g"')),
        ("modelName is missing", description(3, model='fmiVersion="3.0" instantiationToken="g"')),
        ("is no identifier of C", description(2, simulation='modelIdentifier="../lag"')),
        ("is no identifier of C", description(2, simulation='modelIdentifier=""')),
        ("is no identifier of C", description(3, simulation="")),
        ("has no co-simulation", description(2).replace("CoSimulation", "ModelExchange")),
        ("a second CoSimulation", description(2).replace(
            "<DefaultExperiment", '<CoSimulation modelIdentifier="b"/><DefaultExperiment')),
        ("two variables called 'u'", description(2, more=variable % ("u", 99, ""))),
        ("valueReference cannot be -1", description(2, more=variable % ("v", -1, ""))),
        ("valueReference cannot be 4294967296", description(2, more=variable % ("v", 1 << 32, ""))),
        ("valueReference is missing", description(3, more='<Float64 name="v"/>')),
        ("name of a variable is missing", description(3, more='<Float64 valueReference="9"/>')),
        ("name of a variable is too long", description(2, more=variable % ("v" * 5000, 9, ""))),
        ("has a control character", description(2, more=variable % ("v&#10;error", 9, ""))),
        ("no causality 'inupt'", description(2, more=variable % ("v", 9, 'causality="inupt"'))),
        ("stepSize 'much' is no number", description(2, step='stepSize="much"')),
        ("stepSize 'inf' is no number", description(2, step='stepSize="inf"')),
        ("lie in each other", description(2, more="<a>" * 100 + "</a>" * 100)),
        ("duplicate attribute", description(2, more='<a b="1" b="2"/>')),
        ("not well-formed", description(2, more='\x01')),
    ]


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("2", "3"):
        sys.exit("usage: models.py 2|3 BINARY FILE: makes an FMU of the test's model")
    make(sys.argv[3], int(sys.argv[1]), sys.argv[2])

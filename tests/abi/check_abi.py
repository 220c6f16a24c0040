#!/usr/bin/env python3
"""Compares the shared library's binary interface with abi-lp64.txt: soname, symbols, structs, enumerators, macros.

Lines that vanish or change break programs that were compiled before: they need another soname. Lines that only come to
it do not, nor do structs that begin with their size and grow; check_abi.py --update writes them down. Structs and enumerators are those of ptwm.h; their sizes and offsets
are what the compiler says, so the list is for machines whose long and pointers have 64 bits.
"""

import argparse
import difflib
import pathlib
import re
import shlex
import subprocess
import tempfile

EXPECTED = pathlib.Path(__file__).with_name("abi-lp64.txt")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structs(header):
    """Each struct that is defined, with its members' names."""
    for name, body in re.findall(r"^struct (ptwm_\w+) \{\n(.*?)^\};", header, re.S | re.M):
        members = []
        for declaration in filter(None, (" ".join(d.split()) for d in body.split(";"))):
            pointer = re.match(r".*?\(\*(\w+)\)", declaration)
            members.append(pointer[1] if pointer else re.search(r"(\w+)(\[\d+\])?$", declaration)[1])
        yield name, members


def enumerators(header):
    for body in re.findall(r"^enum ptwm_\w+ \{\n(.*?)^\};", header, re.S | re.M):
        yield from re.findall(r"^\s*(PTWM_\w+) =", body, re.M)


def program(header):
    """C that prints sizes, offsets and values."""
    lines = ["#include <ptwm.h>", "#include <stdio.h>", "int main(void) {"]
    for name, members in structs(header):
        lines.append(f'printf("struct {name}: %zu bytes\\n", sizeof(struct {name}));')
        for member in members:
            size = f"sizeof ((struct {name} *)0)->{member}"
            lines.append(f'printf("struct {name}.{member}: %zu at %zu\\n", {size}, offsetof(struct {name}, {member}));')
    names = [*enumerators(header), *re.findall(r"^#define (PTWM_(?:WRITE|DECODE)_[A-Z_]+) \d", header, re.M)]
    lines += [f'printf("{name} = %lld\\n", (long long){name});' for name in names]
    return "\n".join([*lines, "return 0; }"])


def describe(compiler, header_path, library):
    header = without_comments(header_path.read_text())
    with tempfile.TemporaryDirectory() as directory:
        source, executable = pathlib.Path(directory, "abi.c"), pathlib.Path(directory, "abi")
        source.write_text(program(header))
        run(*compiler, "-I", str(header_path.parent), str(source), "-o", str(executable))
        layout = run(str(executable))
    symbols = re.findall(r" [A-Z] (\w+)(?:@\S*)?$", run("nm", "-D", "--defined-only", str(library)), re.M)
    soname = re.search(r"\(SONAME\).*\[(.*)\]", run("readelf", "-d", str(library)))
    lines = [f"soname {soname[1]}", *(f"symbol {name}" for name in sorted(symbols)), *layout.splitlines()]
    return "".join(line + "\n" for line in lines)


def breaks(expected, found):
    """Lines of `expected` that programs rely on and that `found` no longer has. A struct that says its size may grow."""
    sizes = dict(re.findall(r"^struct (\w+): (\d+) bytes$", found, re.M))
    for line in sorted(set(expected.splitlines()) - set(found.splitlines())):
        size = re.fullmatch(r"struct (\w+): (\d+) bytes", line)
        says_its_size = size and f"struct {size[1]}.struct_nbytes: 8 at 0\n" in found
        if not (says_its_size and int(sizes[size[1]]) >= int(size[2])):
            yield line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", default="cc", help="the command, with its arguments")
    parser.add_argument("--update", action="store_true", help="write the list")
    parser.add_argument("header", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    arguments = parser.parse_args()

    found = describe(shlex.split(arguments.compiler), arguments.header, arguments.library)
    if arguments.update:
        EXPECTED.write_text(found)
    expected = EXPECTED.read_text()
    if found != expected:
        print(
            *difflib.unified_diff(expected.splitlines(), found.splitlines(), EXPECTED.name, "found", lineterm=""),
            sep="\n",
        )
        broken = list(breaks(expected, found))
        print("this needs another soname" if broken else "compatible additions: check_abi.py --update writes them down")
        raise SystemExit(1)
    print(f"{len(found.splitlines())} lines as expected")


if __name__ == "__main__":
    main()

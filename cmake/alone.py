#!/usr/bin/env python3
"""Compiles every source alone: python3 cmake/alone.py BUILD CLANG

The build compiles sources in groups, which hides an include that one of them lacks and another one has. Here each is
compiled by itself, as far as the compiler's intermediate code, with the flags that the configured tree BUILD has for it.

What each object would define and use is written to BUILD/symbols/SOURCE, for cmake/cycles.py: a line a symbol, "D" for
what it defines and others may use, "U" for what it uses of others. Helpers of one name in two sources of a group are
refused: a call could come to mean the other's. A source whose text and headers are those of an earlier run is not
compiled again.
"""

import collections
import dataclasses
import os
import re
import subprocess
import sys

import lint_commands

# Of other libraries: seconds in each source that reaches them.
LARGE = ("nlohmann/json.hpp", "CLI/CLI.hpp", "httplib.h", "benchmark/benchmark.h")
# Lines of LLVM's code: functions that are defined and declared, and variables.
FUNCTION = re.compile(r'^(define|declare) ([^@\n]*)@("[^"]+"|[\w.$]+)\(', re.MULTILINE)
VARIABLE = re.compile(r'^@("[^"]+"|[\w.$]+) = ((?:\w+(?:\([\w-]+\))? )*?)(global|constant|alias) ', re.MULTILINE)
SHARED = re.compile(r"\b(?:linkonce|linkonce_odr|weak|weak_odr|available_externally|appending|private)\b")


def symbols_of(code):
    """(defined, used, helpers): what others may use, what is of others, and what is the source's own."""
    defined, used, helpers = set(), set(), set()
    for kind, attributes, name in FUNCTION.findall(code):
        if name.startswith("llvm."):
            continue
        if kind == "declare":
            used.add(name)
        elif "internal" in attributes.split():
            helpers.update(helper_name(name))
        elif not SHARED.search(attributes):
            defined.add(name)
    for name, attributes, _ in VARIABLE.findall(code):
        words = attributes.split()
        if "external" in words or "extern_weak" in words:
            used.add(name)
        elif "internal" not in words and not SHARED.search(attributes):
            defined.add(name)
    return defined, used, helpers


def helper_name(mangled):
    """The name of a function of an unnamed namespace, or of a static one; of what is a member of a type nothing."""
    names, at = [], 3
    while mangled.startswith("_ZN") and (length := re.match(r"L?(\d+)", mangled[at:])):
        at += length.end()
        names.append(mangled[at:at + int(length[1])])
        at += int(length[1])
    # "E" ends the name, "I" begins a template's arguments. A type's members have its name between.
    if mangled[at:at + 1] in ("E", "I") and len(names) > 1:
        if names[-2] == "_GLOBAL__N_1" or f"L{len(names[-1])}{names[-1]}" in mangled:
            yield "::".join(name for name in names if name != "_GLOBAL__N_1")


class Compiler:
    def __init__(self, build, clang):
        self.build = build
        self.clang = clang
        self.cache = lint_commands.cache_folder(build)
        self.script = lint_commands.read_text(__file__)
        self.precompiled = {}

    def headers_before(self, source):
        """What may be precompiled: what GCC's command includes first, and large headers that the source reaches."""
        reached = set()
        for path in lint_commands.files_of(source.sources, source.flags):
            reached.update(lint_commands.direct(path)[1])
        first = [f'"{source.precompiled}"'] if source.precompiled else []
        return first + [f"<{header}>" for header in LARGE if header in reached]

    def precompile(self, sources):
        """Once for each list of headers and set of flags."""
        kinds = {(*self.headers_before(s), *s.flags): s for s in sources if self.headers_before(s)}
        lint_commands.run_all(self.precompile_one, list(enumerate(kinds.items())))

    def precompile_one(self, numbered):
        number, (kind, source) = numbered
        header = os.path.abspath(os.path.join(self.build, "alone", f"{number}.h"))
        lint_commands.write_whole(header, "".join(f"#include {name}\n" for name in self.headers_before(source)))
        subprocess.run([self.clang, *source.flags, "-w", "-O0", "-fpch-instantiate-templates", "-x", "c++-header", header,
                        "-o", header + ".pch"], check=True, cwd=source.directory)
        self.precompiled[kind] = header + ".pch"

    def kept(self, source):
        """The file of the cache with the source's symbols."""
        return os.path.join(self.cache, lint_commands.key(self.clang, source, self.script) + ".symbols")

    def symbols(self, source):
        """The text of the source's symbols, or what is wrong with it: (text, None) or (None, message)."""
        [path] = source.sources
        kept = self.kept(source)
        if os.path.exists(kept):
            return lint_commands.read_text(kept), None
        command = [self.clang, *source.flags, "-w", "-O0", "-S", "-emit-llvm", "-o", "-", os.path.abspath(path)]
        precompiled = self.precompiled.get((*self.headers_before(source), *source.flags))
        if precompiled:
            command[1:1] = ["-include-pch", precompiled]
        done = subprocess.run(command, cwd=source.directory, capture_output=True, text=True)
        if done.returncode:
            return None, f"{path} does not compile alone:\n{done.stderr}"
        defined, used, helpers = symbols_of(done.stdout)
        text = "".join(f"{kind} {name}\n" for kind, names in (("D", defined), ("U", used), ("H", helpers))
                       for name in sorted(names))
        lint_commands.write_whole(kept, text)
        return text, None


def main():
    build, clang = sys.argv[1:]
    units = lint_commands.read(build)
    sources = lint_commands.longest_first(dataclasses.replace(u, sources=[s]) for u in units for s in u.sources)
    compiler = Compiler(build, clang)
    compiler.precompile([source for source in sources if not os.path.exists(compiler.kept(source))])
    faults = 0
    twice = collections.defaultdict(set)  # a source that two targets compile is one place
    for source, (text, fault) in zip(sources, lint_commands.run_all(compiler.symbols, sources)):
        if fault:
            print(fault)
            faults += 1
            continue
        lint_commands.write_whole(os.path.join(build, "symbols", source.sources[0]), text)
        for line in text.splitlines():
            if line.startswith("H "):
                twice[source.name, line[2:]].add(source.sources[0])
    for (_, name), places in sorted(twice.items()):
        if len(places) > 1:
            print(f"{name} is a helper of {' and of '.join(sorted(places))}, which are compiled together")
            faults += 1
    print(f"alone: {len(sources)} sources compiled, {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

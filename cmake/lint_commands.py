"""What the lint scripts share: the compile commands of a configured tree, what sources include, and a cache by content.

    units = lint_commands.read("build/lint")

The tree is configured with CALDERA_UNITY: a command compiles a unit, one source or a group that CMake has put together.
"""

import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess

# Tests' macros expand to code that is not ours, and their headers take most of the time; the build's files are made.
LEFT_OUT = ("tests", "build")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
SYSTEM = re.compile(r"^[ \t]*#[ \t]*include[ \t]+<([^>]+)>", re.MULTILINE)


@dataclasses.dataclass
class Unit:
    name: str           # the source, or the folder of the group's sources and the group
    sources: list       # paths from the repository's root
    flags: list         # of its command, without the source, the object and what only GCC knows
    directory: str      # where the command runs
    precompiled: str    # the header that the command includes first, or ""


def read(build):
    """The units of the library, the programs, the benchmarks and the examples, in the order of their names."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as text:
        commands = json.load(text)
    root = os.getcwd() + os.sep
    units = []
    for command in commands:
        file = command["file"]
        group = re.search(r"/Unity/unity_(\w+)_cxx\.cxx$", file)
        sources = INCLUDE.findall(read_text(file)) if group else [file]
        sources = [s[len(root):] for s in sources if s.startswith(root)]
        sources = [s for s in sources if s.split(os.sep)[0] not in LEFT_OUT]
        if not sources:
            continue
        flags, precompiled = flags_of(shlex.split(command["command"])[1:], file)
        name = os.path.join(os.path.dirname(sources[0]), group[1]) if group else sources[0]
        units.append(Unit(name, sources, flags, command["directory"], precompiled))
    return sorted(units, key=lambda unit: unit.name)


def flags_of(arguments, file):
    flags, precompiled = [], ""
    rest = iter(arguments)
    for argument in rest:
        if argument == "-o":
            next(rest)
        elif argument == "-include":
            precompiled = next(rest)
        elif argument == "-g" or argument == "-c" or argument == file or argument.startswith("-W"):
            continue
        else:
            flags.append(argument)
    return flags, precompiled


def read_text(path):
    with open(path, encoding="utf-8") as text:
        return text.read()


@functools.lru_cache(maxsize=None)
def direct(path):
    """The names in the file's #include "..." lines and in those with <...>, and the digest of its text."""
    text = read_text(path)
    return INCLUDE.findall(text), SYSTEM.findall(text), hashlib.sha256(text.encode()).hexdigest()


def files_of(sources, flags):
    """The sources and all that they include of the repository and of what the build makes, whatever the conditions."""
    folders = ["."] + [flag[2:] for flag in flags if flag.startswith("-I")]
    found, left = set(), list(sources)
    while left:
        path = os.path.normpath(left.pop())
        if path in found:
            continue
        found.add(path)
        for name in direct(path)[0]:
            for folder in [os.path.dirname(path)] + folders:
                candidate = os.path.join(folder, name)
                if os.path.isfile(candidate):
                    left.append(os.path.relpath(candidate))
                    break
    return sorted(found)


@functools.lru_cache(maxsize=None)
def version(tool):
    return subprocess.run([tool, "--version"], check=True, capture_output=True, text=True).stdout


def key(tool, unit, *more):
    """What a run depends on: the tool, the flags and the text of all files; wherever the clone lies."""
    parts = [version(tool), " ".join(unit.flags)]
    parts += [f"{path} {direct(path)[2]}" for path in files_of(unit.sources, unit.flags)]
    if unit.precompiled:
        parts.append(read_text(unit.precompiled))
    parts += more
    text = "\n".join(parts).replace(os.getcwd(), "")
    return hashlib.sha256(text.encode()).hexdigest()


def cache_folder(build):
    """The user's, so that a fresh clone checks what has changed; the tree's own where that cannot be written."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME") or build, ".cache")
    folder = os.environ.get("CALDERA_TIDY_CACHE") or os.path.join(home, "caldera", "tidy")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        folder = os.path.join(build, "passed")
        os.makedirs(folder, exist_ok=True)
    return os.path.abspath(folder)


def write_whole(path, text):
    """Two runs may write one file: what is read is always all of it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as out:
        out.write(text)
    os.replace(part, path)


def longest_first(units):
    """By the size of what a unit compiles of its own: a long one that begins last would run alone."""
    return sorted(units, key=lambda unit: -sum(os.path.getsize(source) for source in unit.sources))


def run_all(work, units):
    """work(unit) for each, on as many cores as there are; the results, in the order of the units."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(work, units))

#!/usr/bin/env python3
"""Checks what of the tree is public: python3 cmake/public.py

The public headers are those that <caldera/...> forward to (caldera_umbrella_header in CMakeLists.txt) and what they
include; `cmake --install` installs them and no others. Checks that

  - none of them is private: in a folder of PRIVATE, or with "Private to ROOM" in its first comment;
  - none of them includes a header of another library, but for LIBRARIES, which find_package(Caldera) finds;
  - cli/ includes, besides its own headers, public ones alone, or those of ALLOWED;
  - a header that says "Private to ROOM/" is included in that room alone, and in tests.

Prints each include that breaks a rule, and for a private header the way to it from an umbrella. Exits 1 if there is one.
"""

import collections
import os
import re
import subprocess
import sys

# Folders whose headers nobody outside may need: how plans are made, and how devices run them.
PRIVATE = ("engine/compile/", "engine/plan/", "engine/device/cpu/", "engine/device/vulkan/", "engine/device/null/",
           "engine/check/reference/", "engine/check/stepwise/", "engine/runtime/capture/", "lm/formats/folders/",
           "lm/formats/gguf/", "lm/formats/quantize/", "lm/generate/cache/", "lm/serve/engine/", "lm/serve/service/")
LIBRARIES = ("nlohmann/json.hpp", "nlohmann/json_fwd.hpp")
# Headers that cli/ may include though they are not installed, and why.
ALLOWED = {
    "benches/": "the benchmarks are part of the program `caldera bench` and of no library",
}
UMBRELLA = re.compile(r"^\s*caldera_umbrella_header\((\S+) (\S+)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
OF_ROOMS = re.compile(r"Private\s+to\s+((?:\w+/)+)(?: and ((?:\w+/)+))?")


def tracked_files():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    return sorted(f for f in set(listed) if f.endswith((".h", ".cpp")) and os.path.isfile(f))


def read(file):
    with open(file, encoding="utf-8") as text:
        return text.read()


def rooms_of(text):
    """The rooms that the comment at the beginning of a header keeps it to."""
    comment = []
    for line in text.splitlines():
        if not line.startswith("//"):
            break
        comment.append(line[2:].strip())
    found = OF_ROOMS.search(" ".join(comment))
    return tuple(room for room in found.groups() if room) if found else ()


def main():
    files = tracked_files()
    texts = {file: read(file) for file in files}
    rooms = {file: rooms_of(text) for file, text in texts.items() if file.endswith(".h")}
    own = {file: [name for _, name in INCLUDE.findall(text) if name in texts] for file, text in texts.items()}
    problems = []

    umbrellas = UMBRELLA.findall(read("CMakeLists.txt"))
    came_from = {}
    left = collections.deque()
    for name, header in umbrellas:
        came_from.setdefault(header, f"<caldera/{name}>")
        left.append(header)
    while left:
        header = left.popleft()
        for included in own[header]:
            if included not in came_from:
                came_from[included] = header
                left.append(included)

    def way_to(header):
        way = [header]
        while way[-1] in came_from:
            way.append(came_from[way[-1]])
        return " <- ".join(way)

    for header in sorted(came_from):
        if rooms[header]:
            problems.append(f"{way_to(header)}: is public, but says that it is private to {' and '.join(rooms[header])}")
        elif header.startswith(PRIVATE):
            problems.append(f"{way_to(header)}: is public, but its folder is private")
        for kind, name in INCLUDE.findall(texts[header]):
            if kind == "<" and re.search(r"[/.]", name) and name not in LIBRARIES:
                problems.append(f"{way_to(header)}: is public and includes <{name}>, which users need not have")

    unused = set(ALLOWED)
    for file in files:
        for included in own[file]:
            kept_to = rooms.get(included)
            if kept_to and not file.startswith((*kept_to, "tests/")):
                problems.append(f'{file}: includes "{included}", which is private to {" and ".join(kept_to)}')
            if file.startswith("cli/") and not included.startswith("cli/") and included not in came_from:
                allowed = next((a for a in ALLOWED if included.startswith(a)), None)
                unused.discard(allowed)
                if not allowed:
                    problems.append(f'{file}: includes "{included}", which is not installed: what the program needs, '
                                    "the library gives to all")
    problems += [f"cmake/public.py: ALLOWED has {header}, which cli/ does not include" for header in sorted(unused)]

    for problem in problems:
        print(problem)
    print(f"public: {len(problems)} problems among {len(came_from)} installed headers of {len(umbrellas)} umbrellas, "
          f"and {sum(1 for room in rooms.values() if room)} that are private to a room")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

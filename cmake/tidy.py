#!/usr/bin/env python3
"""Runs clang-tidy: python3 cmake/tidy.py BUILD CLANG_TIDY [--whole]

Most of what clang-tidy costs is headers, so it reads the groups of sources that the configured tree BUILD compiles
together, as one file each. It reports what it finds in them as it does for one source. With --whole it reads every
source by itself. A file whose text, headers and settings are those of a run that has passed is not read again.
"""

import dataclasses
import json
import os
import re
import subprocess
import sys

import lint_commands

SETTINGS = ".clang-tidy"
COUNTS = re.compile(r"^\d+ warnings?.* generated\.$|^Suppressed |^Use -header-filter|^$", re.MULTILINE)


def settings_of(source):
    """The files of settings that hold for the source, from its folder to the root's."""
    folder, found = os.path.dirname(source), []
    while True:
        path = os.path.join(folder, SETTINGS)
        if os.path.exists(path):
            found.append(path)
        if not folder:
            return found
        folder = os.path.dirname(folder)


class Tidy:
    def __init__(self, build, tool, units):
        self.tool = tool
        # Where findings count: in headers, and in sources as well, since those of a group are included.
        roots = sorted({source.split(os.sep)[0] for unit in units for source in unit.sources})
        self.reported = "/(" + "|".join(roots) + r")/.*\.(h|cpp)$"
        # Inside of the repository, whose settings hold here too; those of folders are copied.
        self.folder = os.path.join(build, "tidy")
        self.cache = lint_commands.cache_folder(build)
        self.script = lint_commands.read_text(__file__)

    def write(self, units):
        """The files that are read, with their commands."""
        commands = []
        for unit in units:
            if len(unit.sources) > 1:
                self.write_group(unit)
            first = ["-include", unit.precompiled] if unit.precompiled else []
            commands.append({"directory": unit.directory, "file": os.path.abspath(self.file_of(unit)),
                             "arguments": ["c++", *unit.flags, *first, "-c", os.path.abspath(self.file_of(unit))]})
        lint_commands.write_whole(os.path.join(self.folder, "compile_commands.json"), json.dumps(commands, indent=1))

    def write_group(self, unit):
        for path in settings_of(unit.sources[0])[:-1]:
            lint_commands.write_whole(os.path.join(self.folder, path), lint_commands.read_text(path))
        lines = [f'#include "{os.path.abspath(s)}"  // NOLINT(bugprone-suspicious-include)\n' for s in unit.sources]
        lint_commands.write_whole(self.file_of(unit), "".join(lines))

    def file_of(self, unit):
        """The source itself where it is one: what holds for headers does not hold for it."""
        [first, *more] = unit.sources
        return os.path.join(self.folder, unit.name + ".cpp") if more else first

    def passes(self, unit):
        settings = [lint_commands.read_text(path) for path in settings_of(unit.sources[0])]
        key = lint_commands.key(self.tool, unit, self.script, self.reported, *settings)
        passed = os.path.join(self.cache, key)
        if os.path.exists(passed):
            return True
        done = subprocess.run([self.tool, "--quiet", "-p", self.folder, f"--header-filter={self.reported}",
                               self.file_of(unit)], capture_output=True, text=True)
        if done.returncode == 0:
            lint_commands.write_whole(passed, "")
            return True
        # Errors of the tool itself go to the second, among counts that nobody needs.
        print((done.stdout + COUNTS.sub("", done.stderr)).strip(), flush=True)
        return False


def main():
    build, tool, *more = sys.argv[1:]
    units = []
    for unit in lint_commands.read(build):
        # A file has one set of settings.
        kinds = [[source] for source in unit.sources] if more == ["--whole"] else by_settings(unit.sources)
        for number, sources in enumerate(kinds):
            name = unit.name if number == 0 else f"{unit.name}_{number}"
            units.append(dataclasses.replace(unit, name=sources[0] if len(sources) == 1 else name, sources=sources))
    tidy = Tidy(build, tool, units)
    tidy.write(units)
    failed = lint_commands.run_all(tidy.passes, lint_commands.longest_first(units)).count(False)
    print(f"tidy: {sum(len(unit.sources) for unit in units)} sources in {len(units)} files, {failed} with findings")
    return 1 if failed else 0


def by_settings(sources):
    kinds = {}
    for source in sources:
        kinds.setdefault(tuple(settings_of(source)), []).append(source)
    return list(kinds.values())


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Prints docs/guide/command-line.md from what the program says of itself: python3 cmake/command_line.py build/release/bin/caldera

With --check it compares that with the page instead, and exits with 1, saying the first line that differs, where it is not
current.
"""

import re
import subprocess
import sys

PAGE = "docs/guide/command-line.md"
HEAD = """# The command line

Every command and flag, as `--help` says them. Made by `python3 cmake/command_line.py build/release/bin/caldera > docs/guide/command-line.md`; a
test holds it current.

Every command takes:

| flag | |
|---|---|
"""
OPTION = re.compile(r"^ {2,4}(-\S.*?|[a-z]+ [A-Z].*?)(?: {2,}(.*))?$")
COMMON = ("--help", "--device", "--json", "--threads")


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], check=True, capture_output=True, text=True).stdout


def cell(text):
    """Text in a table; < and * are no marks there."""
    return re.sub(r"([|*<])", r"\\\1", text.strip())


def options_of(text):
    """Pairs of heading and flags of a help text: [(heading, [(name, told)])]."""
    groups, flags, waiting = [], None, None
    heading = ""
    for line in text.splitlines():
        group = re.match(r"^\[Option Group: (.*)\]$", line)
        named = re.match(r"^(Positionals|Options.*):$", line.strip())
        if group:
            heading = "one of"
            continue
        if named and not line.startswith("   "):
            title = named.group(1)
            flags = []
            if line.startswith("  "):
                title = heading
            groups.append((title, flags))
            continue
        if flags is None:
            continue
        option = OPTION.match(line)
        if option and not line.startswith(" " * 6):
            waiting = list(option.groups(""))
            # A name that fills its column has one blank before its text.
            if not waiting[1] and (crowded := re.match(r"^(-\S+ \S+=\S+) ((?!Excludes:|REQUIRED)[A-Z].*)$", waiting[0])):
                waiting = list(crowded.groups())
            flags.append(waiting)
        elif waiting and line.startswith(" " * 20):
            waiting[1] = (waiting[1] + " " + line.strip()).strip()
    return groups


def row(name, told):
    """A flag's line: its name and value, then what it does, its values and its default."""
    name = name.replace("-h,--help", "--help")
    excludes = re.search(r" Excludes: (.*)$", name)
    name = re.sub(r" Excludes: .*$", "", name)
    required = " REQUIRED" in name
    repeated = name.endswith(" ...")
    name = name.replace(" REQUIRED", "")
    name = re.sub(r"( \.\.\.)+$", "", name)
    values = re.search(r":\{([^}]*)\}", name)
    name = re.sub(r":\{[^}]*\}", "", name)
    name, _, default = name.partition("=") if "=" in name and not re.search(r"=[]A-Z]", name) else (name, "", "")
    notes = []
    if required:
        notes.append("required")
    if repeated and "repeatable" not in told:
        notes.append("repeatable")
    if values:
        notes.append(" or ".join(f"`{value}`" for value in values.group(1).split(",")))
    if default:
        notes.append(f"default: {cell(default)}" if " " in default else f"default: `{default}`")
    if excludes:
        notes.append("not with " + ", ".join(f"`{other}`" for other in re.split(r"[ ,]+", excludes.group(1))))
    return f"| `{name}` | {cell(told)}{' (' + '; '.join(notes) + ')' if notes else ''} |\n"


def page(program):
    text = help_of(program)
    commands = re.findall(r"^  ([a-z][a-z-]*) {2,}(.*)$", text[text.index("Subcommands:"):], re.M)
    out = HEAD
    first = dict(flag for _, flags in options_of(help_of(program, commands[0][0])) for flag in flags)
    for name, told in first.items():
        if any(common in name for common in COMMON):
            out += row(name, told)
    for command, summary in commands:
        out += f"\n## caldera {command}\n\n{summary}.\n"
        for heading, flags in options_of(help_of(program, command)):
            own = [flag for flag in flags if not any(re.search(common + r"\b", flag[0]) for common in COMMON)]
            if not own:
                continue
            if heading == "one of":
                out += "\nExactly one of these:\n"
            elif heading not in ("Options", "Positionals"):
                out += f"\n{heading}:\n"
            out += "\n| flag | |\n|---|---|\n" + "".join(row(*flag) for flag in own)
    return out


def main():
    check = "--check" in sys.argv
    [program] = [argument for argument in sys.argv[1:] if argument != "--check"]
    made = page(program)
    if not check:
        sys.stdout.write(made)
        return 0
    with open(PAGE, encoding="utf-8") as file:
        found = file.read()
    if found == made:
        return 0
    for number, (old, new) in enumerate(zip(found.splitlines() + [""], made.splitlines() + [""]), 1):
        if old != new:
            print(f"{PAGE}:{number}: is not what --help says:\n  page: {old}\n  help: {new}\nMake it again: see its head.")
            break
    return 1


if __name__ == "__main__":
    sys.exit(main())

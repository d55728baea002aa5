#!/usr/bin/env python3
"""Finds what documents name and the tree does not have: python3 cmake/documents.py [FILE...]

Reads README.md, MIGRATION.md, CONTRIBUTING.md and docs/, or the files given. Of each it checks

  links      a relative link leads to a file, and its #anchor to a heading of that file
  paths      a path between backticks is a file or folder, or the end of one's path: `open/quirks.cpp`. `*` and {a,b} are
             as in a shell, and a word of capitals (NAME.cpp) stands for any name. In a table whose head says
             "folder of `lm/serve/`" the first column's paths lie there
  flags      a --flag is declared in cli/, or read by a script or another program of the tree
  commands   `caldera COMMAND` and `./run COMMAND` are commands
  switches   CALDERA_NAME is read by code or set by CMake; and each that the library or the program reads is in the
             table of switches (SWITCHES)
  tests      `Suite.Test` is a test of GoogleTest
  symbols    the identifiers between backticks occur in the code (comments do not count), and so do functions that
             an example in C++ calls

Prints file, line and name, and exits 1 if there is one. What belongs to others (PyTorch, Vulkan, GGUF) is in
cmake/foreign_words.txt, a line a word, with `*` as in a shell.
"""

import collections
import fnmatch
import functools
import itertools
import os
import re
import subprocess
import sys

SWITCHES = "docs/guide/debugging.md"
DOCUMENTS = ("README.md", "MIGRATION.md", "CONTRIBUTING.md", "docs/")
CODE = (".h", ".cpp", ".glsl", ".comp", ".py", ".sh", ".cmake", ".txt", ".in", ".html", ".js", ".json")
SCRIPTS = ("run", ".ci/run")
SPAN = re.compile(r"(`+)(.+?)\1", re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")
SWITCH = re.compile(r"\bCALDERA_[A-Z0-9_]*[A-Z0-9]\b")
COMMAND = re.compile(r"(?:^|[\s/])(caldera|\./run) (?:--no-vulkan )?([a-z][a-z-]*)")
PATH = re.compile(r"^[\w.*{},<>-]*(?:/[\w.*{},<>-]*)+$|^[\w*{},-]+\.(?:h|cpp|glsl|comp|py|sh|md|cmake|txt)$")
ROOM_OF = re.compile(r"^\| *(?:folder|file|room)s? of `([\w/]+/)` *\|")
TEST = re.compile(r"^([A-Z]\w+)\.([A-Z]\w+)$")
SUITE_OF = re.compile(r"\b(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
CAPITALS = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2,}(?![A-Za-z0-9])")


def tracked_files():
    listed = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard"],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    return sorted(f for f in set(listed) if f and os.path.isfile(f))


@functools.lru_cache(maxsize=None)
def read(file):
    with open(file, encoding="utf-8", errors="replace") as text:
        return text.read()


def without_comments(file):
    """The file's code. Only whole-line comments go: a URL in a string has slashes too."""
    if file.endswith((".h", ".cpp", ".glsl", ".comp")):
        return re.sub(r"(?m)^\s*//.*$|\s// .*$", "", read(file))
    return read(file)


class Tree:
    """What the tree has: paths, flags, commands, switches, tests, identifiers."""

    def __init__(self):
        files = tracked_files()
        code = [f for f in files if (f.endswith(CODE) or f in SCRIPTS) and not f.startswith("docs/")
                and f != "cmake/foreign_words.txt" and f != "cmake/documents.py"]
        folders = {f.rsplit("/", n)[0] for f in files for n in range(1, f.count("/") + 1)}
        self.ends = set()  # every end of a path that begins behind a slash
        for path in itertools.chain(files, folders):
            parts = path.split("/")
            self.ends.update("/".join(parts[i:]) for i in range(len(parts)))
        self.names = collections.defaultdict(list)
        for end in self.ends:
            self.names[end.count("/")].append(end)
        self.read_switches = {}  # with the file that reads each
        self.flags, self.switches, self.words, self.tests, self.texts = set(), set(), set(), set(), []
        for file in code:
            text = without_comments(file)
            self.words.update(IDENTIFIER.findall(text))
            self.flags.update(FLAG.findall(text))
            if file.startswith("training/objectives/"):  # an option of an objective is a flag
                self.flags.update("--" + name.replace("_", "-")
                                  for name in re.findall(r'\.name = "(\w+)",\s*\.help', text))
            self.switches.update(SWITCH.findall(text))
            if file.startswith(("engine/", "ops/", "eager/", "lm/", "training/", "cli/", "benches/")):
                for name in re.findall(r'"(CALDERA_[A-Z_]+)"', text):
                    self.read_switches[name] = file
            if file.startswith("tests/"):
                self.tests.update(SUITE_OF.findall(text))
                self.words.update("test_" + part for part in file.split("/")[1:-1])
            if file.startswith(("cli/", "lm/", "training/")):
                self.texts.append(text)
        for preset in re.findall(r'"name": "(\w+)"', read("CMakePresets.json")):
            self.words.add(preset)
        table = re.search(r"#define CALDERA_COMMANDS\(C\)((?:.*\\\n)*.*)", read("cli/main.cpp"))[1]
        self.commands = {"caldera": {name.replace("_", "-") for name in re.findall(r"C\((\w+)\)", table)},
                         "./run": set(re.findall(r"(?m)^  ([a-z]+) ", read("run").split("END")[1]))}
        self.foreign = [line.strip() for line in read("cmake/foreign_words.txt").splitlines()
                        if line.strip() and not line.startswith("#")]
        self.foreign_words = {word for word in self.foreign if "*" not in word}
        self.foreign_patterns = re.compile("|".join(fnmatch.translate(w) for w in self.foreign if "*" in w) or "(?!)")

    def is_foreign(self, word):
        return word in self.foreign_words or bool(self.foreign_patterns.match(word))

    def has_path(self, path):
        path = path.removeprefix("./").strip("/")
        if not path or path in self.ends:
            return True
        pattern = CAPITALS.sub("*", re.sub(r"<[^>]*>", "*", path))
        if path.startswith("build/"):  # made by the build: its last part is a target
            name = path.rsplit("/", 1)[-1]
            return path.count("/") < 2 or name in self.words or name.startswith("test_")
        return any(fnmatch.filter(self.names[one.count("/")], one) for one in expanded(pattern)) and all(
            fnmatch.filter(self.names[one.count("/")], one) for one in expanded(pattern))


def expanded(pattern):
    """The patterns that a shell makes of {a,b}."""
    found = re.search(r"\{([^{}]*)\}", pattern)
    if not found:
        return [pattern]
    return [p for part in found[1].split(",")
            for p in expanded(pattern[:found.start()] + part + pattern[found.end():])]


def anchors_of(file):
    found = set()
    for heading in re.findall(r"(?m)^#+ (.*)$", read(file)):
        text = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(text)
    return found


class Page:
    def __init__(self, file, tree):
        self.file, self.tree, self.faults, self.line = file, tree, [], 0

    def fault(self, what, name):
        fault = f"{self.file}:{self.line}: {what} {name}"
        if fault not in self.faults:
            self.faults.append(fault)

    def check(self):
        fence, block, base = None, [], ""
        for number, line in enumerate(read(self.file).splitlines() + [""], 1):
            if line.lstrip().startswith("```"):
                if fence is None:
                    self.check_text(block, number - len(block))
                    fence, block = line.strip().strip("`"), []
                else:
                    self.check_block(fence, block, number - len(block))
                    fence, block = None, []
            elif fence is not None or (line.strip() and not line.startswith("|")):
                block.append(line)
            else:  # a paragraph ends; a row of a table is one by itself
                self.check_text(block, number - len(block))
                block = []
                base = self.check_row(line, number, base) if line else ""
        return self.faults

    def check_text(self, lines, begin):
        text = "\n".join(lines)
        for self.line, line in enumerate(lines, begin):
            self.check_links(line)
            for switch in SWITCH.findall(line):
                self.check_switch(switch)
        for span in SPAN.finditer(text):
            self.line = begin + text.count("\n", 0, span.start())
            self.check_span(" ".join(span[2].split()))

    def check_row(self, row, number, base):
        """Checks a row of a table. Where its head says `| file of `FOLDER/` |`, paths in its first column lie there."""
        if head := ROOM_OF.match(row):
            base = head[1]
        first = row.split("|")[1]
        self.line = number
        for _, span in SPAN.findall(first if base else ""):
            if PATH.match(span) and span != base and not self.tree.has_path(base + span):
                self.fault("no path", base + span)
        self.check_text([row], number)
        return base

    def check_switch(self, name):
        if name not in self.tree.switches and not self.tree.is_foreign(name):
            self.fault("no switch", name)

    def check_links(self, line):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if "://" in target or target.startswith("mailto:"):
                continue
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(self.file), path)) if path else self.file
            if not os.path.exists(file):
                self.fault("broken link to", target)
            elif anchor and file.endswith(".md") and anchor not in anchors_of(file):
                self.fault("no heading for the link", target)

    def check_block(self, language, block, begin):
        text = "\n".join(block)
        for self.line, line in enumerate(block, begin):
            if language in ("sh", "cmake", ""):
                self.check_shell(line.split(" # ")[0])
            if language == "cpp":
                code = re.sub(r'"[^"]*"|//.*$', "", line)
                for name in re.findall(r"\b([A-Za-z_]\w{2,})\(", code):
                    defined = re.search(rf"\b(?:auto|const|double|int|LazyTensor|Tensor) (?:\w+ )*{name}\b", text)
                    if not defined:
                        self.check_word(name)

    def check_shell(self, text):
        for flag in FLAG.findall(text):
            if flag not in self.tree.flags and not self.tree.is_foreign(flag):
                self.fault("no flag", flag)
        for program, command in COMMAND.findall(text):
            if command not in self.tree.commands[program]:
                self.fault("no command", f"{program} {command}")
        for switch in SWITCH.findall(text):
            self.check_switch(switch)

    def check_span(self, span):
        tree = self.tree
        if tree.is_foreign(span) or "://" in span:
            return
        self.check_shell(span)
        if FLAG.search(span) or COMMAND.search(span) or SWITCH.search(span):
            # A command with arguments: its paths only, where they are the tree's.
            for word in span.split():
                if re.match(r"^(?:docs|cmake|tests|benches|examples|engine|lm|cli|ops|training)/", word):
                    self.check_path(word)
            return
        if named := TEST.match(span):
            if named.groups() not in tree.tests and not all(n in tree.words for n in named.groups()):
                self.fault("no test", span)
            return
        if re.match(r"^/[\w-]", span):  # a path of the server, a command of the chat
            for word in span.split():
                fixed = re.sub(r"\b[A-Z]+\b.*", "", word).rstrip("/") if word.startswith("/") else None
                if fixed and not any(fixed in text for text in tree.texts):
                    self.fault("no path", word)
            return
        span = re.sub(r":[0-9,-]+$", "", span)
        if PATH.match(span):
            self.check_path(span)
            return
        for word in IDENTIFIER.findall(re.sub(r'"[^"]*"|\'[^\']*\'', "", span)):
            self.check_word(word)

    def check_path(self, path):
        if not self.tree.has_path(path.rstrip(".,;:")) and not self.tree.is_foreign(path):
            # Two words beside each other (f16/bf16), or an operator: not a path, if the tree knows the words.
            parts = [p for p in path.split("/") if p]
            if "." in path or not all(p.isdigit() or p in self.tree.words or self.tree.is_foreign(p) for p in parts):
                self.fault("no path", path)

    def check_word(self, word):
        if len(word) < 3 or word.isupper() or word in self.tree.words or self.tree.is_foreign(word):
            return
        if CAPITALS.search(word) and fnmatch.filter(self.tree.words, CAPITALS.sub("?*", word)):  # NAME stands for any
            return
        self.fault("no symbol", word)


def main():
    tree = Tree()
    pages = sys.argv[1:] or [f for f in tracked_files() if f.endswith(".md") and f.startswith(DOCUMENTS)]
    faults = [fault for page in pages for fault in Page(page, tree).check()]
    if not sys.argv[1:]:
        listed = set(SWITCH.findall(read(SWITCHES)))
        faults += [f"{file}: {name} is not in the table of {SWITCHES}"
                   for name, file in sorted(tree.read_switches.items()) if name not in listed]
    print("\n".join(faults + [f"documents: {len(pages)} pages, {len(faults)} names that the tree does not have"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes into python_cases.json what Python's Jinja2 renders for the templates in it.

    tests/lm/chat/python_cases.py

needs Jinja2 3.1. To add a case, add a line ["template"] to the file and run this. The environment is set up as
apply_chat_template of Hugging Face's transformers sets it up. A case is [template, text], [template, text, spans]
where the template has generation blocks, or [template, null] where Python raises an error. All have the variables at
the head of the file.
"""

import copy
import datetime
import json
import pathlib

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

FILE = pathlib.Path(__file__).with_suffix(".json")


class Generation(Extension):
    """{% generation %}: notes where in the text its contents come to lie."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        environment.extend(spans=[], parts=[])

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("note"), [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def note(self, _, caller):
        text = caller()
        begin = len("".join(self.environment.parts))
        self.environment.spans.append([begin, begin + len(text)])
        return text


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = lambda form: datetime.datetime(2026, 11, 22, 12, 0, 0).strftime(form)
    return made


def render(env, source, given):
    env.spans.clear()
    env.parts.clear()
    variables = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False}
    variables.update(copy.deepcopy(given))
    try:
        for part in env.from_string(source).generate(**variables):
            env.parts.append(part)
        text = "".join(env.parts)
    except Exception:
        return [source, None]
    return [source, text, list(env.spans)] if "generation" in source else [source, text]


def main():
    data = json.loads(FILE.read_text())
    env = environment()
    lines = ",\n".join(json.dumps(render(env, case[0], data["variables"])) for case in data["cases"])
    FILE.write_text('{"variables": %s,\n"cases": [\n%s\n]}\n' % (json.dumps(data["variables"]), lines))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes values.json: what PyTorch gives for the calls of docs/guide/operation-edges.md.

    build/release/tests/caldera_edges --calls | python3 tests/golden/edges/generate.py

needs Debian's python3-torch and python3-numpy. Counterparts are those of tests/golden/generate.py; a call that PyTorch
refuses is "refused", one without a counterpart is left out.
"""

import json
import math
import pathlib
import sys
import warnings

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import generate as golden  # noqa: E402, beside this folder
import torch  # noqa: E402


def value_of(text):
    return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.get(text, text)


def json_of(value):
    value = float(value)
    return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf") if math.isinf(value) else value


def called(call):
    function = golden.OPERATIONS.get(call["op"])
    if function is None:
        return None
    values = [x["values"] for x in call["operands"]]
    if call["op"] in ("floor_divide", "remainder", "fmod") and values == [[-2**31], [-1]] and call["dtype"] == "int32":
        return None  # where PyTorch's division stops the program
    operands = [torch.tensor([value_of(v) for v in x["values"]], dtype=golden.TYPES[call["dtype"]]).reshape(x["shape"])
                for x in call["operands"]]
    try:
        results = function(operands, call["arguments"])
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        return None if "not implemented for" in str(error) else "refused"
    if results is None:
        return None
    results = results if isinstance(results, (tuple, list)) else [results]
    return [json_of(v) for t in results for v in t.double().reshape(-1).tolist()]


def main():
    warnings.simplefilter("ignore")
    out = {}
    for line in sys.stdin:
        call = json.loads(line)
        found = called(call)
        if found is not None:
            out[call["key"]] = found
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in out.items())
    pathlib.Path(__file__).with_name("values.json").write_text("{\n" + text + "\n}\n")
    print(f"{len(out)} calls")


if __name__ == "__main__":
    main()

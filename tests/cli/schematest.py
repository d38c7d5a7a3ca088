"""What a command printed with --json, held against docs/schema."""

import json
from pathlib import Path

try:
    import jsonschema
except ImportError:
    jsonschema = None

from snaptest import Skip

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "schema"


def load():
    """Every schema, by the name of its command."""
    if not jsonschema:
        raise Skip("the Python package jsonschema is not installed")
    files = sorted(FOLDER.glob("*.json"))
    return {f.name.removeprefix("snap.").removesuffix(".1.json"): json.loads(f.read_bytes())
            for f in files}


def validators():
    return {name: jsonschema.Draft202012Validator(s) for name, s in load().items()}


def what_is_wrong(validator, got):
    return [f"{e.json_path}: {e.message}" for e in validator.iter_errors(got)]


def fits(*all_got):
    """Each object is as the schema that it names says; where nothing can tell, that is printed."""
    if not jsonschema:
        print("not held against docs/schema: the Python package jsonschema is not installed")
        return
    known = validators()
    for got in all_got:
        name = got["schema"].removeprefix("snap.").removesuffix("/1")
        wrong = what_is_wrong(known[name], got)
        assert not wrong, "\n".join([*wrong, json.dumps(got)[:2000]])

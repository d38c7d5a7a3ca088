#!/usr/bin/env python3
"""embed-schemas.py OUT SCHEMA... - docs/schema as a C file (cli/mcp/schemas.h).

Clients that compile a schema stop at a dialect or an id they have met before, so neither is kept.
What a command says beside its result ("notes") is part of what a tool answers, and so is a failure:
some clients hold it against the schema, too.
"""

import json
import sys
from pathlib import Path

NOTES = {"type": "array", "items": {"type": "string"},
         "description": "What the command said beside its result."}


def load(file):
    schema = json.loads(Path(file).read_text())
    command = schema.pop("$id").removeprefix("snap.").removesuffix("/1")
    schema.pop("$schema")
    schema["properties"]["notes"] = NOTES
    return command, schema


def main(out, *files):
    schemas = dict(map(load, files))
    failure = schemas.pop("error")
    rows = []
    for command, schema in sorted(schemas.items()):
        either = {"type": "object", "anyOf": [schema, failure]}
        text = json.dumps(either, separators=(",", ":"), ensure_ascii=True)
        rows.append(f"\t{{ {json.dumps(command)},\n\t  {json.dumps(text)} }},\n")
    Path(out).write_text(f"""#include "cli/mcp/schemas.h"

#include <stddef.h>
#include <string.h>

static const struct {{
	const char *command, *text;
}} schemas[] = {{
{''.join(rows)}}};

const char *schema_text(const char *command)
{{
	for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++)
		if (strcmp(schemas[i].command, command) == 0)
			return schemas[i].text;
	return NULL;
}}
""")


if __name__ == "__main__":
    main(*sys.argv[1:])

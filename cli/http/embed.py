"""embed.py OUTPUT FILE HEADER NAME: the bytes of FILE as the array NAME that HEADER declares."""

import sys
from pathlib import Path

output, file, header, name = sys.argv[1:]
data = Path(file).read_bytes()
lines = [", ".join(str(b) for b in data[i:i + 20]) for i in range(0, len(data), 20)]
Path(output).write_text(f'#include "{header}"\n\nconst unsigned char {name}[] = {{\n'
                        + "".join(f"{line},\n" for line in lines)
                        + f"}};\nconst size_t {name}_len = sizeof({name});\n")

"""embed-page.py OUTPUT FILE: the bytes of FILE as a C array."""

import sys
from pathlib import Path

data = Path(sys.argv[2]).read_bytes()
lines = [", ".join(str(b) for b in data[i:i + 20]) for i in range(0, len(data), 20)]
Path(sys.argv[1]).write_text('#include "cli/ui/page.h"\n\nconst unsigned char ui_page[] = {\n'
                             + "".join(f"{line},\n" for line in lines)
                             + "};\nconst size_t ui_page_len = sizeof(ui_page);\n")

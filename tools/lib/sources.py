"""Which C files belong to the project."""

import subprocess
from pathlib import Path


def c_files(root: Path):
    """Paths, from `root`, of every .c and .h that is or could be committed."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                             capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):  # a tree without its history
        out = [p.relative_to(root).as_posix() for p in root.rglob("*.[ch]")]
        out = [p for p in out if not p.startswith((".", "build"))]
    return sorted(p for p in out if p.endswith((".c", ".h")) and (root / p).is_file())

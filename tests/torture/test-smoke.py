"""Half a minute of tools/torture, always the same one, as a test."""

import os
import subprocess
import sys
from pathlib import Path

TORTURE = Path(__file__).resolve().parents[2] / "tools" / "torture"
SANITIZERS = {"address,undefined": "asan", "address": "asan", "thread": "tsan"}
MINUTES, SEED, WORKERS = "0.25", "1", "2"


def main():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC))
    except OSError as e:
        print(f"1..0 # SKIP /dev/fuse cannot be opened: {e.strerror}")
        return 0
    print("1..1", flush=True)
    sanitizer = SANITIZERS.get(os.environ["SNAP_SANITIZED"], "none")
    done = subprocess.run([sys.executable, "-B", TORTURE, "--minutes", MINUTES, "--seed", SEED,
                           "--workers", WORKERS, "--sanitizer", sanitizer,
                           "--build", os.environ["SNAP_BUILD"]],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    print("# " + done.stdout.rstrip().replace("\n", "\n# "))
    print(f"{'not ok' if done.returncode else 'ok'} 1 - half_a_minute_of_torture_is_clean")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

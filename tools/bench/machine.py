"""What the figures depend on, without saying whose machine it is."""

import os
import platform
import re
import subprocess
from pathlib import Path


def first_line_with(text, *starts):
    for line in text.splitlines():
        if line.startswith(starts):
            return line.split(":", 1)[1].strip()
    return ""


def output_of(*argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"}).stdout
    except FileNotFoundError:
        return ""


def cpu():
    found = first_line_with(output_of("lscpu"), "Model name")
    if found in ("", "-"):
        found = first_line_with(Path("/proc/cpuinfo").read_text(), "model name", "CPU part")
    return found or platform.machine()


def memory():
    return int(first_line_with(Path("/proc/meminfo").read_text(), "MemTotal").split()[0]) * 1024


def describe(path):
    """The machine, and the filesystem of that directory."""
    return {"cpu": cpu(), "arch": platform.machine(), "cores": os.cpu_count(),
            "memory_bytes": memory(), "kernel": re.match(r"[\d.]*", platform.release()).group(),
            "filesystem": output_of("findmnt", "-n", "-o", "FSTYPE", "-T", str(path)).strip(),
            "load_before": round(os.getloadavg()[0], 2)}


def sentence(data):
    return (f"{data['cpu']}, {data['cores']} cores, {data['arch']}, "
            f"{data['memory_bytes'] / 2**30:.0f} GiB, Linux {data['kernel']}, "
            f"{data['filesystem']}; load {data['load_before']:g} before")

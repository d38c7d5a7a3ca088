"""What the tests of remotes share: the depot as a program, and the registry between."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE)]

import servers  # noqa: E402  (found through the line above)
import snaptest  # noqa: E402
from snaptest import Skip  # noqa: E402

CLIENT = os.environ["SNAP_DEPOT_CLIENT"]
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
digest = servers.digest


def needs(*tools):
    why = servers.missing("docker-registry", *tools)
    if why:
        raise Skip(why)


class Depot:
    """One repository, through the client."""

    def __init__(self, world, port, repository="team/snaps", host="127.0.0.1"):
        self.world, self.url = world, f"oci://{host}:{port}/{repository}"
        self.env = dict(world.env)
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "DOCKER_CONFIG"):
            self.env.pop(name, None)

    def start(self, *words, **env):
        return subprocess.Popen([CLIENT, self.url, *map(str, words)], env={**self.env, **env},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, **env):
        p = self.start(*words, **env)
        out, err = p.communicate(timeout=120)
        assert p.returncode in (0, 1), f"{words}: {p.returncode} {err.decode()}"
        return p.returncode, out, err.decode()

    def ok(self, *words, **env):
        status, out, err = self.run(*words, **env)
        assert status == 0, f"{words}: {err}"
        return out

    def fails(self, code, *words, says=(), **env):
        status, _, err = self.run(*words, **env)
        assert status == 1, f"{words} worked"
        line = err.strip().split("\n")[-1]
        assert line.startswith(code + ":"), f"{words}: {line}, not {code}"
        for text in [says] if isinstance(says, str) else says:
            assert text in line, f"{words}: {line!r} lacks {text!r}"
        return line

    def put(self, data, **env):
        path = self.world.top / "blob"
        path.write_bytes(data)
        told = self.ok("put", path, **env).decode().strip()
        assert told == digest(data)
        return told

    def get(self, data, **env):
        """Fetch it anew; True if the bytes are right."""
        path = self.world.top / "out"
        path.unlink(missing_ok=True)
        self.ok("get", digest(data), len(data), path, **env)
        return path.read_bytes() == data


def noise(size, seed=1):
    """Bytes that are the same in every run."""
    out = bytearray()
    block = hashlib.sha256(str(seed).encode()).digest()
    while len(out) < size:
        block = hashlib.sha512(block).digest()
        out += block * 64 if size > 1 << 20 else block
    return bytes(out[:size])


def make_manifest(depot, data=b"a layer", note="x"):
    """A manifest that a registry takes, with its blobs put."""
    config = json.dumps({"note": note}).encode()
    for blob in (config, data):
        depot.put(blob)
    return json.dumps({
        "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": "application/vnd.snapcow.snapshot.v1+json", "digest": digest(config),
                   "size": len(config)},
        "layers": [{"mediaType": "application/vnd.snapcow.pack.v1+zstd", "digest": digest(data),
                    "size": len(data)}]}).encode()

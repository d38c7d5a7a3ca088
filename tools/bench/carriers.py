"""Programs that bring a tree to another place: send() to what lies between, fetch() from it into a directory.

A second send() or fetch() brings what changed since the first, as far as the program can; wipe() makes
it begin anew. None of them is timed here.
"""

import shutil

from arena import run
from servers import Sshd, missing

TAR, RSYNC, RESTIC, CASYNC, DESYNC = "tar, zstd -1", "rsync, ssh", "restic", "casync", "desync"

# tar and zstd run while curl sends, as they would to a file; the digest is made on the way. A first
# request opens the upload, a second one is the body, and a third one names its digest.
UPLOAD = """
set -o pipefail
location() { sed -n 's/^[Ll]ocation: *//p' "$1" | tr -d '\\r'; }
mkfifo "$top/bytes"
sha256sum <"$top/bytes" >"$top/digest" &
curl --noproxy '*' -fsS -D "$top/head" -o "$top/body" -X POST -H 'Content-Length: 0' "$url/blobs/uploads/"
tar -C "$tree" -cf - . | zstd -q -1 | tee "$top/bytes" |
	curl --noproxy '*' -fsS -D "$top/head2" -o "$top/body" -X PATCH -H Expect: \
		-H 'Content-Type: application/octet-stream' -T - "$(location "$top/head")"
wait $!
at=$(location "$top/head2")
digest=$(cut -d ' ' -f 1 "$top/digest")
case $at in *\\?*) at="$at&" ;; *) at="$at?" ;; esac
curl --noproxy '*' -fsS -o "$top/body" -X PUT -H 'Content-Length: 0' "${at}digest=sha256:$digest"
"""

DOWNLOAD = """
set -o pipefail
curl --noproxy '*' -fsS "$url/blobs/sha256:$(cut -d ' ' -f 1 "$top/digest")" | zstd -q -dc | tar -C "$target" -xf -
"""


class Carrier:
    """`needs` are the programs; `top` is a directory of its own."""

    name, needs = None, ()

    def __init__(self, top):
        self.top = top
        self.wipe()

    @classmethod
    def missing(cls):
        """Why it cannot take part, or None."""
        return missing(*cls.needs)

    def wipe(self):
        shutil.rmtree(self.top, ignore_errors=True)
        self.top.mkdir(parents=True)

    def size(self):
        """Bytes of what lies between, or None if nothing does."""
        return None

    def bytes_in(self, *names):
        return sum(f.stat().st_size for name in names for f in (self.top / name).rglob("*") if f.is_file())


class Tar(Carrier):
    """A stream that is a blob in a registry."""

    name, needs = TAR, ("docker-registry", "bash", "tar", "zstd", "curl")

    def __init__(self, top, registry):
        self.registry, self.url = registry, registry.http("bench/tar")
        super().__init__(top)

    def wipe(self):
        super().wipe()
        self.registry.wipe()

    def script(self, text, **words):
        run("bash", "-ec", text, env={"top": str(self.top), "url": self.url, **words})

    def send(self, tree):
        self.script(UPLOAD, tree=str(tree))

    def fetch(self, target):
        target.mkdir()
        self.script(DOWNLOAD, target=str(target))

    def size(self):
        return self.registry.size()


class Rsync(Carrier):
    """A directory behind sshd."""

    name, needs = RSYNC, ("rsync", *Sshd.needs)

    def __init__(self, top, sshd):
        self.words, self.there = ["rsync", "-a", "-e", sshd.shell()], f"{sshd.host}:{top}/there/"
        super().__init__(top)

    def send(self, tree):
        run(*self.words, f"{tree}/", self.there)

    def fetch(self, target):
        run(*self.words, self.there, f"{target}/")


class Restic(Carrier):
    """A repository in a directory, with the compression that is nearest to ours."""

    name, needs = RESTIC, ("restic",)

    def wipe(self):
        super().wipe()
        self.run("init")

    def run(self, *words, cwd=None):
        run("restic", "-q", "--compression", "auto", *words, cwd=cwd,
            env={"RESTIC_REPOSITORY": str(self.top / "repository"), "RESTIC_PASSWORD": "bench",
                 "RESTIC_CACHE_DIR": str(self.top / "cache")})

    def send(self, tree):
        self.run("backup", ".", cwd=tree)

    def fetch(self, target):
        self.run("restore", "latest", "--target", str(target))

    def size(self):
        return self.bytes_in("repository")


class Casync(Carrier):
    """Chunks and their list in a directory; a cache tells which files it knows."""

    name, needs = CASYNC, ("casync",)

    def run(self, act, *words):
        run("casync", act, "--with=unix", f"--store={self.top}/store", *words)

    def send(self, tree):
        self.run("make", f"--cache={self.top}/cache", self.top / "tree.caidx", tree)

    def fetch(self, target):
        target.mkdir(exist_ok=True)
        self.run("extract", self.top / "tree.caidx", target)

    def size(self):
        return self.bytes_in("store") + (self.top / "tree.caidx").stat().st_size

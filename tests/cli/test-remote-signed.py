"""push --sign, fetch --require-signature: whose word a fetch takes for what a name means."""

import hashlib
import json
import shutil
import subprocess

from snaptest import Skip, World, main, test


class Scene:
    """A depot, the keys of two people, and a second store that fetches."""

    def __init__(self, w):
        if not shutil.which("ssh-keygen"):
            raise Skip("ssh-keygen is missing")
        self.w, self.depot, self.there = w, w.top / "depot", w.top / "work" / "there"
        self.there.mkdir()
        self.url, self.allowed = f"dir:{self.depot}", w.top / "allowed"
        for who in ("anna", "eve"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", w.top / who], check=True)
        self.allow("anna")
        w.ok("init")
        w.ok("remote", "add", "origin", self.url)

    def public(self, who):
        return (self.w.top / f"{who}.pub").read_text()

    def allow(self, who, options='namespaces="snapcow"'):
        self.allowed.write_text(f"{who}@example.org {options} {self.public(who)}")

    def push(self, text, *options, name="main", who="anna"):
        (self.w.project / "README.md").write_text(text)
        return self.w.ok("--json", "push", "--sign", self.w.top / who, *options, f"origin:{name}").json("snap.push/1")

    def fetch(self, *options, name="main", trust=True, **more):
        words = ["--require-signature", "--allowed-signers", self.allowed] if trust else []
        env = {"SNAPCOW_STORE": str(self.w.top / "store-there"), **more.pop("env", {})}
        return self.w.snap("--json", "fetch", *words, *options, f"origin:{name}", cwd=self.there, env=env, **more)

    def fetched(self, *options, **more):
        return self.fetch(*options, **more).ends(0).json("snap.fetch/1")

    def refused(self, sentence, *options, **more):
        error = self.fetch(*options, **more).fails_json(7, "E_REFUSED")
        assert sentence in json.dumps(error), error

    def index(self, change):
        path = self.depot / "index.json"
        index = json.loads(path.read_text())
        change({m["annotations"]["org.opencontainers.image.ref.name"]: m for m in index["manifests"]})
        path.write_text(json.dumps(index))

    def blob(self, digest):
        return self.depot / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def forge(self, change, name="main"):
        """Change the manifest of a name, and all that names it."""
        def put(entries):
            manifest = json.loads(self.blob(entries[name]["digest"]).read_text())
            change(manifest)
            data = json.dumps(manifest).encode()
            digest = "sha256:" + hashlib.sha256(data).hexdigest()
            self.blob(digest).write_bytes(data)
            entries[name].update(digest=digest, size=len(data))
        self.index(put)

    def end(self):
        self.w.snap("-q", "stop", "--force", cwd=self.there, env={"SNAPCOW_STORE": str(self.w.top / "store-there")})


def stored(s):
    env = {"SNAPCOW_STORE": str(s.w.top / "store-there")}
    done = s.w.snap("-q", "log", cwd=s.there, env=env)
    return done.out.split() if done.status == 0 else []


@test
def a_signed_snapshot_comes_and_names_its_signer(w: World):
    s = Scene(w)
    pushed = s.push("one\n")
    assert pushed["signed_as"] == "depot:main", pushed
    got = s.fetched()
    assert got["signer"] == "anna@example.org" and got["root"] == pushed["root"], got
    # Signing what is there already is a push; without --sign there is nothing to do, and it stays signed.
    assert w.ok("--json", "push", "origin:main").json("snap.push/1")["same"]
    assert s.fetched()["signer"] == "anna@example.org"
    assert s.fetched(trust=False)["signer"] is None
    # A file of signers in the configuration asks for signatures by itself.
    (w.home / ".config" / "snapcow" / "config.yaml").write_text(f"remote:\n  origin:\n    signers: {s.allowed}\n")
    assert s.fetched(trust=False)["signer"] == "anna@example.org"
    (w.project / "README.md").write_text("unsigned\n")
    w.ok("push", "origin:main")
    s.refused("it is not signed", trust=False)
    # Also by its address.
    done = w.snap("fetch", f"{s.url}:main", cwd=s.there, env={"SNAPCOW_STORE": str(w.top / "store-there")})
    done.fails(7, "it is not signed")
    s.end()


@test
def what_nobody_trusted_signed_is_refused_before_anything_is_stored(w: World):
    s = Scene(w)
    w.ok("push", "origin:main")
    s.refused("it is not signed")
    s.push("two\n", who="eve")
    s.refused("does not list the key that signed it")
    s.push("three\n")
    # The list says when, and for what, a key counts.
    s.allow("anna", 'valid-before="20200101"')
    s.refused("not valid now")
    s.allow("anna", 'namespaces="git"')
    s.refused("not permitted for use in signature namespace")
    s.allow("anna")
    config = w.home / ".config" / "snapcow" / "config.yaml"
    config.write_text(f"remote: {{origin: {{revoked: {w.top}/anna.pub}}}}\n")
    s.refused("was revoked")
    config.write_text("remote: {origin: {signers: relative}}\n")
    s.fetch().fails_json(2, "E_USAGE")
    config.unlink()
    s.fetch(trust=False, *["--require-signature"]).fails_json(2, "E_USAGE")
    missing = s.fetch("--allowed-signers", w.top / "nowhere")
    assert missing.status == 4 and b"nowhere" in missing.out, missing
    assert stored(s) == [], stored(s)
    assert s.fetched()["signer"] == "anna@example.org"
    s.end()


@test
def a_signature_fits_one_manifest_under_one_name(w: World):
    s = Scene(w)
    s.push("first\n")
    first = {}
    s.index(lambda names: first.update(names["main"]))
    s.push("other\n", name="test")
    # Another name's manifest, also if it claims to be this one's.
    s.index(lambda names: names["main"].update({k: names["test"][k] for k in ("digest", "size")}))
    s.refused("it was signed as 'depot:test', another name")
    s.forge(lambda m: m["annotations"].update({"vnd.snapcow.signed-as.v1": "depot:main"}))
    s.refused("does not fit what it holds, or this name")
    s.index(lambda names: names["main"].update({k: first[k] for k in ("digest", "size")}))
    # Anything else that is in it.
    other = json.loads(s.blob(other_digest(s)).read_text())
    for change in (lambda m: m.update(layers=m["layers"][2:]), lambda m: m.update(config=other["config"]),
                   lambda m: m.update(layers=other["layers"])):
        s.forge(change)
        s.refused("does not fit what it holds, or this name")
        s.index(lambda names: names["main"].update({k: first[k] for k in ("digest", "size")}))
    s.forge(lambda m: m["annotations"].update({"vnd.snapcow.signature.v1": "nonsense"}))
    s.refused("")
    s.index(lambda names: names["main"].update({k: first[k] for k in ("digest", "size")}))
    assert stored(s) == []
    assert s.fetched()["signer"] == "anna@example.org"
    s.end()


def other_digest(s):
    found = {}
    s.index(lambda names: found.update(names["test"]))
    return found["digest"]


@test
def a_store_that_saw_a_later_one_refuses_an_older_one(w: World):
    s = Scene(w)
    s.push("first\n")
    first = {}
    s.index(lambda names: first.update(names["main"]))
    s.push("second\n")
    s.fetched()
    s.index(lambda names: names["main"].update({k: first[k] for k in ("digest", "size")}))
    s.refused("this store has seen a later one under that name")
    # A store that never saw the name cannot know: docs/design/remote.md says so.
    fresh = {"SNAPCOW_STORE": str(w.top / "store-fresh")}
    assert s.fetched(env=fresh)["signer"] == "anna@example.org"
    w.snap("-q", "stop", "--force", cwd=s.there, env=fresh)
    s.end()


@test
def a_copy_by_skopeo_stays_signed(w: World):
    s = Scene(w)
    if not shutil.which("skopeo"):
        raise Skip("skopeo is missing")
    s.push("one\n")
    subprocess.run(["skopeo", "copy", "-q", "--insecure-policy", f"oci:{s.depot}:main", f"oci:{w.top}/copy:nightly"],
                   check=True, capture_output=True)
    w.ok("remote", "rm", "origin")
    w.ok("remote", "add", "origin", f"dir:{w.top}/copy")
    s.refused("it was signed as 'depot:main', another name", name="nightly")
    assert s.fetched("--signed-as", "depot:main", name="nightly")["signer"] == "anna@example.org"
    s.end()


@test
def a_push_that_cannot_be_signed_moves_nothing(w: World):
    s = Scene(w)
    w.snap("push", "--sign", w.top / "nobody", "origin:main").fails(4, "nobody")
    assert not s.depot.exists()
    s.fetch("--signed-as", "nonsense").fails_json(2, "E_USAGE")
    (w.top / "broken").write_text("no key\n")
    w.snap("push", "--sign", w.top / "broken", "origin:main").fails(1, "signing with")
    (w.top / "bin").mkdir()
    w.snap("push", "--sign", w.top / "anna", "origin:main", env={"PATH": str(w.top / "bin")}).fails(13, "ssh-keygen")
    assert not (s.depot / "index.json").exists()
    s.end()


main()

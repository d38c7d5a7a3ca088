"""push --encrypt-to, fetch --identity: only those it was encrypted for can read what a remote has."""

import hashlib
import json
import random
import shutil
import subprocess

from snaptest import Skip, World, main, test

MAGIC = b"age-encryption.org/v1\n"


class Scene:
    """A depot, the keys of two people, and a second store that fetches."""

    def __init__(self, w):
        for program in ("age", "age-keygen"):
            if not shutil.which(program):
                raise Skip(f"{program} is missing")
        self.w, self.depot, self.there = w, w.top / "depot", w.top / "work" / "there"
        self.there.mkdir()
        self.key = {}
        for who in ("anna", "ben"):
            subprocess.run(["age-keygen", "-o", w.top / who], check=True, capture_output=True)
            self.key[who] = subprocess.run(["age-keygen", "-y", w.top / who], check=True, capture_output=True,
                                           text=True).stdout.strip()
        dice = random.Random(5)
        for i in range(40):
            (w.project / f"file{i}").write_bytes(dice.randbytes(3000))
        w.ok("init")
        w.ok("remote", "add", "origin", f"dir:{self.depot}")

    def push(self, *options, to=("anna",), **more):
        words = [word for who in to for word in ("--encrypt-to", self.key[who])]
        return self.w.snap("--json", "push", *words, *options, "origin:main", **more)

    def pushed(self, *options, **more):
        return self.push(*options, **more).ends(0).json("snap.push/1")

    def fetch(self, *options, who="anna", env=None):
        words = ["--identity", self.w.top / who] if who else []
        return self.w.snap("--json", "fetch", *words, *options, "origin:main", cwd=self.there,
                           env={"SNAPCOW_STORE": str(self.w.top / "store-there"), **(env or {})})

    def fetched(self, *options, **more):
        return self.fetch(*options, **more).ends(0).json("snap.fetch/1")

    def refused(self, status, code, sentence, *options, **more):
        error = self.fetch(*options, **more).fails_json(status, code)
        assert sentence in error["message"], error

    def blob(self, digest):
        return self.depot / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def entry(self):
        index = json.loads((self.depot / "index.json").read_text())
        return index, index["manifests"][0]

    def manifest(self):
        return json.loads(self.blob(self.entry()[1]["digest"]).read_text())

    def put(self, data):
        digest = "sha256:" + hashlib.sha256(data).hexdigest()
        self.blob(digest).write_bytes(data)
        return {"digest": digest, "size": len(data)}

    def forge(self, change):
        """Change the manifest, and all that names it."""
        index, entry = self.entry()
        manifest = self.manifest()
        change(manifest)
        entry.update(self.put(json.dumps(manifest).encode()))
        (self.depot / "index.json").write_text(json.dumps(index))

    def snapshots(self):
        done = self.w.snap("-q", "log", cwd=self.there, env={"SNAPCOW_STORE": str(self.w.top / "store-there")})
        return done.out.split() if done.status == 0 else []

    def end(self):
        self.w.snap("-q", "stop", "--force", cwd=self.there, env={"SNAPCOW_STORE": str(self.w.top / "store-there")})


def decrypt(s, data, who="anna"):
    return subprocess.run(["age", "-d", "-i", s.w.top / who], input=data, capture_output=True, check=True).stdout


@test
def what_lies_there_is_sealed_and_comes_back_whole(w: World):
    s = Scene(w)
    (w.project / "hush").write_text("hush-hush " * 10)
    pushed = s.pushed("-m", "a telling message")
    assert pushed["encrypted"], pushed
    manifest = s.manifest()
    for part in (manifest["config"], *manifest["layers"]):
        data = s.blob(part["digest"]).read_bytes()
        assert data.startswith(MAGIC) and part["mediaType"].endswith("+age"), part
    open_text = json.dumps(manifest) + (s.depot / "index.json").read_text()
    assert pushed["root"] not in open_text and "telling" not in open_text
    # Any age can read it.
    told = json.loads(decrypt(s, s.blob(manifest["config"]["digest"]).read_bytes()))
    assert told["root"] == pushed["root"] and told["message"] == "a telling message", told
    s.refused(1, "E_PERMISSION", "--identity", who=None)
    s.refused(7, "E_REFUSED", "not encrypted for the key", who="ben")
    assert s.snapshots() == []
    got = s.fetched()
    assert got["root"] == pushed["root"] and not any((w.top / "store-there" / "remote" / "incoming").glob("*.*"))
    log = w.ok("--json", "remote", "log", "origin").json("snap.remote/1")["snapshots"]
    assert log[0]["message"] == "(encrypted)", log
    s.end()


@test
def a_second_push_sends_only_what_changed_and_needs_no_key(w: World):
    s = Scene(w)
    first = s.pushed()
    s.fetched()
    (w.project / "file3").write_text("changed\n")
    second = s.pushed()
    assert second["bytes_sent"] < first["bytes_sent"] / 5 and second["packs"] == first["packs"] + 2, (first, second)
    got = s.fetched()
    assert got["root"] == second["root"] and got["packs_received"] == 2, got
    assert s.pushed()["same"]
    # Without its notes this store cannot read what is there: with a key it can, else all goes again.
    shutil.rmtree(w.store / "remote" / "cache")
    (w.project / "file4").write_text("changed, too\n")
    error = s.push().fails_json(1, "E_PERMISSION")
    assert "--identity" in error["message"] and "--whole" in error["message"], error
    third = s.pushed("--identity", w.top / "anna")
    assert third["packs"] == second["packs"] + 2, third
    shutil.rmtree(w.store / "remote" / "cache")
    whole = s.pushed("--whole")
    assert whole["packs"] == 2 and s.fetched()["root"] == whole["root"] == third["root"]
    s.end()


@test
def a_new_name_for_the_same_readers_sends_only_what_it_adds(w: World):
    s = Scene(w)
    first = s.pushed()

    def other(name, *options, to=("anna",)):
        words = [word for who in to for word in ("--encrypt-to", s.key[who])]
        return w.snap("--json", "push", *words, *options, f"origin:{name}").ends(0).json("snap.push/1")

    assert other("same")["packs_sent"] == 0
    (w.project / "file3").write_text("changed\n")
    more = other("more")
    assert more["bytes_sent"] < first["bytes_sent"] / 5 and more["packs"] == first["packs"] + 2, (first, more)
    got = w.snap("--json", "fetch", "--identity", w.top / "anna", "origin:more", cwd=s.there,
                 env={"SNAPCOW_STORE": str(w.top / "store-there")}).ends(0).json("snap.fetch/1")
    assert got["root"] == more["root"], (got, more)
    # What this store cannot read any more it does not build on.
    shutil.rmtree(w.store / "remote" / "cache")
    assert other("blind")["packs_sent"] == 2
    # Others could not read those packs, and nobody builds on what is sealed in the clear.
    assert other("both", to=("anna", "ben"))["packs_sent"] == 2
    clear = w.snap("--json", "push", "origin:clear").ends(0).json("snap.push/1")
    assert clear["packs_sent"] == 2 and not clear["encrypted"], clear
    s.end()


@test
def other_readers_get_all_of_it_anew(w: World):
    s = Scene(w)
    first = s.pushed()
    both = s.pushed(to=("ben", "anna"))
    assert not both["same"] and both["packs_sent"] == 2 and both["root"] == first["root"], both
    assert s.fetched(who="ben")["root"] == first["root"]
    assert s.pushed(to=("anna", "ben", "anna"))["same"]
    # Nobody sends it in the clear by mistake.
    w.snap("push", "origin:main").fails(2, "is encrypted: say for whom")
    names = w.home / ".config" / "snapcow"
    (names / "readers").write_text(f"# the team\n{s.key['anna']}\n\n{s.key['ben']}\n")
    (names / "config.yaml").write_text(
        f"remote: {{origin: {{recipients: ~/.config/snapcow/readers, identity: {w.top}/ben}}}}\n")
    assert s.pushed(to=())["same"]
    (w.project / "file1").write_text("changed\n")
    pushed = s.pushed(to=())
    assert pushed["encrypted"] and s.fetched(who=None)["root"] == pushed["root"]
    s.end()


@test
def sealed_packs_that_are_not_what_they_were_are_refused_and_nothing_is_stored(w: World):
    s = Scene(w)
    (w.project / "big").write_bytes(random.Random(1).randbytes(200_000))
    s.pushed()
    good = w.top / "good"
    shutil.copytree(s.depot, good)
    pack = max(s.manifest()["layers"], key=lambda part: part["size"])
    data = s.blob(pack["digest"]).read_bytes()
    # The payload is a header line and 16 bytes, then pieces of 64 KiB and 16 bytes.
    start = data.index(b"\n--- ") + 5
    start = data.index(b"\n", start) + 1 + 16
    piece = 65536 + 16
    assert len(data) > start + 2 * piece
    stranger = subprocess.run(["age", "-r", s.key["anna"]], input=b"other bytes", capture_output=True, check=True).stdout
    for what, wrong in (("changed", data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]),
                        ("cut short", data[:start + 2 * piece]),
                        ("put together anew", data[:start] + data[start + piece:start + 2 * piece] +
                         data[start:start + piece] + data[start + 2 * piece:]),
                        ("no age file", b"nonsense" * 100)):
        s.forge(lambda m, wrong=wrong: [part.update(s.put(wrong)) for part in m["layers"] if part == pack])
        s.refused(12, "E_DAMAGED", "decrypting")
        assert s.snapshots() == [], what
        shutil.rmtree(s.depot)
        shutil.copytree(good, s.depot)
    # Somebody who knows the key that it is for can encrypt, too; but not another pack for this index.
    s.forge(lambda m: [part.update(s.put(stranger)) for part in m["layers"] if part == pack])
    s.refused(12, "E_DAMAGED", "not the one that its index is of")
    shutil.rmtree(s.depot)
    shutil.copytree(good, s.depot)
    for at in (0, 1):  # another pack, another index
        s.forge(lambda m, at=at: m["layers"].__setitem__(at, {**m["layers"][at + 2],
                                                              "mediaType": m["layers"][at]["mediaType"]}) or
                m["layers"].__delitem__(slice(2, 4)))
        s.refused(12, "E_DAMAGED", "")
        shutil.rmtree(s.depot)
        shutil.copytree(good, s.depot)
    assert s.snapshots() == []
    s.fetched()
    s.end()


def gc(s, *options, here=False, **more):
    """In the store that pushed, or in the other one, which has neither pushed nor fetched."""
    env = {} if here else {"SNAPCOW_STORE": str(s.w.top / "store-there")}
    return s.w.snap("--json", "remote", "gc", f"dir:{s.depot}", "--grace", "0", *options, env=env, **more)


def push_thrice(s):
    """The manifests, oldest first; each has packs of its own."""
    found = []
    for i in range(3):
        (s.w.project / "changes").write_bytes(random.Random(i).randbytes(20000))
        found.append(s.pushed("--whole", "--force")["manifest"])
    return found


def packs(s, manifest):
    return {layer["digest"].removeprefix("sha256:") for layer in json.loads(s.blob(manifest).read_text())["layers"]}


def lying(s):
    return {p.name for p in (s.depot / "blobs" / "sha256").iterdir()}


@test
def gc_reads_sealed_snapshots_with_a_key_and_removes_nothing_that_it_cannot_judge(w: World):
    s = Scene(w)
    manifests = push_thrice(s)
    needs, before = [packs(s, m) for m in manifests], lying(s)
    for options in ([], ["--keep-last", "2"], ["--keep-last", "1", "--older-than", "1ms"], ["--older-than", "1ms"],
                    ["--keep-last", "1", "--keep-tag", "m*"]):
        error = gc(s, *options).fails_json(1, "E_PERMISSION")
        assert "is encrypted" in error["message"] and "--identity" in error["message"], error
        assert lying(s) == before, options
    error = gc(s, "--keep-last", "2", "--identity", str(w.top / "ben")).fails_json(7, "E_REFUSED")
    assert "nothing is removed" in error["message"], error
    assert lying(s) == before
    # Without a rule all stays; by a rule, what it says.
    told = gc(s, "--identity", str(w.top / "anna")).json("snap.remote/1", "removed", "kept")
    assert told["removed"] == [] and told["kept"] == 3 and lying(s) == before, told
    told = gc(s, "--keep-last", "2", "--identity", str(w.top / "anna")).json("snap.remote/1", "removed")
    assert [one["manifest"] for one in told["removed"]] == manifests[:1], told
    assert needs[1] | needs[2] <= lying(s) and not (needs[0] - needs[1] - needs[2]) & lying(s)
    # The store that pushed has noted what it sealed.
    assert gc(s, "--keep-last", "2", here=True).json("snap.remote/1", "kept")["kept"] == 2
    s.fetched()
    s.end()


@test
def gc_keeps_what_sealed_names_mean_without_a_key_if_nothing_older_stays(w: World):
    s = Scene(w)
    manifests = push_thrice(s)
    needs = [packs(s, m) for m in manifests]
    before = lying(s)
    assert gc(s, "--keep-last", "1", "--dry-run", "--identity", str(w.top / "ben")).ends(0) and lying(s) == before
    told = gc(s, "--keep-last", "1").json("snap.remote/1", "removed", "blobs")
    assert told["removed"] == [] and told["blobs"] > 0, told
    old = needs[0] | needs[1] | {m.removeprefix("sha256:") for m in manifests[:2]}
    assert needs[2] <= lying(s) and not (old - needs[2]) & lying(s)
    s.fetched()
    s.end()


@test
def a_push_that_cannot_be_sealed_sends_nothing(w: World):
    s = Scene(w)
    for wrong in ("anna", "age1nonsense", str(w.project / "file1")):
        done = w.snap("push", "--encrypt-to", wrong, "origin:main")
        assert done.status == 2, done
    w.snap("push", "--encrypt-to", "/nowhere", "origin:main").fails(4, "nowhere")
    (w.top / "bin").mkdir()
    s.push(env={"PATH": str(w.top / "bin")}).fails_json(13, "E_MISSING")
    assert not s.depot.exists() or not list(s.depot.rglob("*/sha256/*"))
    s.pushed()
    s.refused(13, "E_MISSING", "age", env={"PATH": str(w.top / "bin")})
    s.refused(4, "E_NOT_FOUND", "nobody", who="nobody")
    s.end()


main()

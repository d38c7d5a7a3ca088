#!/usr/bin/env python3
"""Credentials as docker keeps them: files, programs, Basic, tokens; and that no secret shows anywhere."""

import base64
import json
import os
import subprocess
import sys

from remotetest import Depot, digest, needs, noise
from servers import Fake, Proxy, Registry, Server, Tokens, missing
from snaptest import Skip, main, test

DATA = noise(5000)
SECRET = "s3cret:with:colons"


def basic_auth(w, user="ann", secret=SECRET):
    needs("htpasswd")
    file = w.top / "htpasswd"
    subprocess.run(["htpasswd", "-Bbc", "-C", "4", str(file), user, secret], check=True, capture_output=True)
    return f'auth: {{htpasswd: {{realm: snaps, path: "{file}"}}}}'


def configure(w, content):
    (w.home / ".docker").mkdir(exist_ok=True)
    (w.home / ".docker" / "config.json").write_text(json.dumps(content))


def entry(user="ann", secret=SECRET):
    return {"auth": base64.b64encode(f"{user}:{secret}".encode()).decode()}


def program(w, name, text):
    path = w.top / "bin" / f"docker-credential-{name}"
    path.parent.mkdir(exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return {"PATH": f"{path.parent}:{os.environ['PATH']}"}


@test
def basic_credentials_come_from_dockers_file(w):
    with Registry(w.top / "registry", basic_auth(w)) as r, Proxy(r.port) as p:
        d = Depot(w, p.port)
        d.fails("EACCES", "tags", says=["wants credentials", f"docker login 127.0.0.1:{p.port}"])
        for key in (f"127.0.0.1:{p.port}", f"http://127.0.0.1:{p.port}/v1/"):
            configure(w, {"auths": {key: entry()}})
            d.put(DATA)
            assert d.get(DATA)
        (w.home / ".docker").rename(w.top / "elsewhere")
        d.fails("EACCES", "tags")
        d.ok("tags", DOCKER_CONFIG=str(w.top / "elsewhere"))
        # One refusal, then every request carries it.
        p.seen.clear()
        assert d.get(DATA, DOCKER_CONFIG=str(w.top / "elsewhere"))
        assert len(p.seen) == 2, p.seen


@test
def credentials_that_are_refused_are_said_to_be(w):
    with Registry(w.top / "registry", basic_auth(w)) as r, Proxy(r.port) as p:
        configure(w, {"auths": {f"127.0.0.1:{p.port}": entry(secret="wrong-one")}})
        line = Depot(w, p.port).fails("EACCES", "tags", says=["refuses the credentials of 'ann'", "docker login"])
        assert "wrong-one" not in line
        assert len(p.seen) == 2


@test
def credentials_of_another_host_are_not_sent(w):
    with Registry(w.top / "registry", basic_auth(w)) as r, Proxy(r.port) as p:
        configure(w, {"auths": {f"127.0.0.1:{p.port + 1}": entry(), "127.0.0.1": entry()}})
        Depot(w, p.port).fails("EACCES", "tags", says="wants credentials")
        assert all("Authorization" not in q[2] for q in p.seen)


@test
def a_credential_program_is_asked_without_a_shell_and_its_secret_shows_nowhere(w):
    with Registry(w.top / "registry", basic_auth(w)) as r:
        d = Depot(w, r.port)
        log = w.top / "log"
        env = program(w, "vault", f'''
echo "$0 $*" >> {log}
cat >> {log}
printf '{{"ServerURL":"x","Username":"ann","Secret":"{SECRET}"}}'
''')
        for config in ({"credsStore": "vault"}, {"credHelpers": {f"127.0.0.1:{r.port}": "vault"}}):
            configure(w, config)
            status, _, err = d.run("tags", **env)
            assert status == 0, err
        assert log.read_text().count("docker-credential-vault get\n") == 2
        assert log.read_text().endswith(f"127.0.0.1:{r.port}")
        configure(w, {"credsStore": "vault", "credHelpers": {"127.0.0.1:1": "nothing"}})
        d.ok("tags", **env)


@test
def a_credential_program_that_fails_is_named(w):
    with Registry(w.top / "registry", basic_auth(w)) as r:
        d = Depot(w, r.port)
        configure(w, {"credsStore": "vault"})
        d.fails("ENOENT", "tags", says="'docker-credential-vault', which is not installed")
        env = program(w, "vault", "echo 'credentials not found in native keychain'; exit 1")
        d.fails("EACCES", "tags", says="wants credentials", **env)
        env = program(w, "vault", f"echo '{SECRET}'; exit 3")
        line = d.fails("EACCES", "tags", says="'docker-credential-vault' failed with status 3", **env)
        assert SECRET not in line
        env = program(w, "vault", f"echo '{SECRET}'")
        assert SECRET not in d.fails("EPROTO", "tags", says="not JSON", **env)
        env = program(w, "vault", "yes | head -c 1000000; sleep 100")
        d.fails("EFBIG", "tags", says="docker-credential-vault", **env)
        for name in ("../../tmp/x", "a b", "$(id)", "x;id", ""):
            configure(w, {"credsStore": name})
            d.fails("EACCES" if not name else "EINVAL", "tags")


@test
def a_file_that_is_no_configuration_is_named_without_its_content(w):
    with Registry(w.top / "registry", basic_auth(w)) as r:
        d = Depot(w, r.port)
        (w.home / ".docker").mkdir()
        for text in ("{" + SECRET, '{"auths":{"127.0.0.1:%d":{"auth":"%s"}}}' % (r.port, SECRET)):
            (w.home / ".docker" / "config.json").write_text(text)
            line = d.fails("EINVAL", "tags", says=".docker/config.json")
            assert SECRET not in line


@test
def a_token_is_fetched_for_what_is_done(w):
    needs("openssl")
    with Tokens(w.top, {"ann": SECRET}) as t, Registry(w.top / "registry", t.auth) as r:
        d = Depot(w, r.port)
        # Anybody may read; nobody is asked who he is.
        assert d.ok("tags") == b""
        assert t.given == [(None, ["repository:team/snaps:pull"])]
        (w.top / "blob").write_bytes(DATA)
        d.fails("EACCES", "put", w.top / "blob")
        configure(w, {"auths": {f"127.0.0.1:{r.port}": entry()}})
        t.given.clear()
        d.put(DATA)
        assert t.given == [("ann", ["repository:team/snaps:pull,push"])] or \
            t.given == [("ann", ["repository:team/snaps:push,pull"])], t.given
        assert d.get(DATA)
        other = Depot(w, r.port, "team/other")
        assert other.ok("mount", digest(DATA), "team/snaps") == b"1\n"
        configure(w, {"auths": {f"127.0.0.1:{r.port}": entry(secret="wrong-one")}})
        assert "wrong-one" not in d.fails("EACCES", "tags", says="refuses the credentials of 'ann'")


@test
def a_token_that_was_bought_by_docker_login_buys_others(w):
    needs("openssl")
    with Tokens(w.top, {}, refresh="r3fresh") as t, Registry(w.top / "registry", t.auth) as r:
        d = Depot(w, r.port)
        configure(w, {"auths": {f"127.0.0.1:{r.port}": {"identitytoken": "r3fresh"}}})
        d.put(DATA)
        assert t.given[0][0] == "refresh" and t.asked("POST", "/token")
        env = program(w, "vault", """printf '{"Username":"<token>","Secret":"r3fresh"}'""")
        configure(w, {"credsStore": "vault"})
        d.ok("tags", **env)
        configure(w, {"auths": {f"127.0.0.1:{r.port}": {"identitytoken": "stale-one"}}})
        assert "stale-one" not in d.fails("EACCES", "tags", says="gives no token")


@test
def a_token_that_ran_out_is_replaced(w):
    valid = []

    def answer(request, body):
        if request.path.startswith("/token"):
            valid[:] = [f"t{len(f.asked('GET', '/token'))}"]
            request.say(200, {"access_token": valid[0]})
        elif request.headers.get("Authorization") != f"Bearer {valid[0] if valid else ''}":
            request.say(401, WWW_Authenticate=f'Bearer realm="http://127.0.0.1:{f.port}/token",service="s"')
        else:
            valid.clear()  # each is good for one page
            pages = len(f.asked("GET", "/tags"))
            more = {"Link": f'</v2/x/tags/list?last={pages}>; rel="next"'} if pages < 6 else {}
            request.say(200, {"tags": [f"p{pages}"]}, **more)

    with Fake(answer) as f:
        assert Depot(w, f.port, "x").ok("tags").split() == [b"p2", b"p4", b"p6"]
        assert len(f.asked("GET", "/token")) == 3


@test
def a_registry_that_is_never_content_is_given_up(w):
    def answer(request, body):
        if request.path.startswith("/token"):
            request.say(200, {"token": "x"})
        else:
            request.say(401, {"errors": [{"code": "UNAUTHORIZED", "message": "more"}]},
                        WWW_Authenticate=f'Bearer realm="http://127.0.0.1:{f.port}/token"')

    with Fake(answer) as f:
        Depot(w, f.port, "x").fails("EACCES", "tags", says="UNAUTHORIZED: more")
        assert len(f.seen) <= 6


@test
def a_challenge_that_is_a_trap_gets_nothing(w):
    for challenge, says in (
            ('Bearer realm="http://192.0.2.1/token"', "no https"),
            ('Bearer realm="file:///etc/passwd"', "no token server"),
            ('Bearer realm="http://u:p@127.0.0.1/"', "no token server"),
            ('Digest realm="x"', "other than Basic and Bearer"),
            ('Bearer realm="unterminated', "other than Basic and Bearer"),
            ("", "other than Basic and Bearer")):
        with Fake(lambda q, _, c=challenge: q.say(401, WWW_Authenticate=c)) as f:
            configure(w, {"auths": {f"127.0.0.1:{f.port}": entry()}})
            Depot(w, f.port, "x").fails("EPROTO" if "no token" in says else "EACCES", "tags", says=says)
            assert all("Authorization" not in q[2] for q in f.seen)


@test
def a_token_cannot_add_lines_to_a_request(w):
    for token in ("x\r\nEvil: yes", "a b", "", 7, None, "x" * 20000):
        def answer(request, body, token=token):
            if request.path.startswith("/token"):
                request.say(200, {"token": token})
            else:
                request.say(401, WWW_Authenticate=f'Bearer realm="http://127.0.0.1:{f.port}/token"')

        with Fake(answer) as f:
            Depot(w, f.port, "x").fails("EPROTO", "tags", says="without a token")


if __name__ == "__main__":
    sys.exit(main())

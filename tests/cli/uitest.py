"""A server of `snap ui` for tests, asked as the page asks it."""

import http.client
import json
import subprocess

from snaptest import SNAP


class Server:
    """The program on a port of its own; `told` is what it printed."""

    def __init__(self, w, *options, **more):
        self.process = subprocess.Popen([SNAP, "ui", "--json", *options], cwd=w.project,
                                        env={**w.env, **more.pop("env", {})}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.told = json.loads(line)
        self.url, self.token = self.told["url"], self.told["token"]
        self.port = None if self.told["socket"] else int(self.url.split(":")[2].split("/")[0])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self, seconds=30):
        self.process.terminate()
        status = self.process.wait(seconds)
        said = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert status == 0, (status, said)
        assert b"Sanitizer" not in said, said

    def open(self, path, method="POST", body=b"{}", **headers):
        """An HTTP response that is not read yet, and its connection; a header that is None is not sent."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {"Content-Type": "application/json", "Authorization": f"Bearer {self.token}",
                 **{k.replace("_", "-"): v for k, v in headers.items()}}
        link.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            if value is not None:
                link.putheader(name, value)
        link.putheader("Content-Length", str(len(body)))
        link.endheaders(body)
        return link.getresponse(), link

    def status(self, path, **more):
        response, link = self.open(path, **more)
        response.read()
        link.close()
        return response.status

    def ask(self, question, want=200, **values):
        """What a question of the page is answered with."""
        response, link = self.open(f"/api/{question}", body=json.dumps(values).encode())
        got = json.loads(response.read())
        link.close()
        assert response.status == want, (question, response.status, got)
        return got

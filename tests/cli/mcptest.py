"""A client of `snap mcp` for tests, in either era of the protocol."""

import itertools
import json
import os
import select
import subprocess

from snaptest import SNAP

VERSION = "2026-07-28"


class Client:
    """Speaks to a server over its standard streams; every answer is one line."""

    def __init__(self, w, *options, era=VERSION, can_ask=False, cwd=None):
        self.ids, self.era = itertools.count(1), era
        self.capable = {"elicitation": {}} if can_ask else {}
        self.failures, self.asked, self.says_yes, self.held = [], [], True, b""
        self.process = subprocess.Popen([SNAP, "mcp", *options], cwd=cwd or w.project, env=w.env,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if era != VERSION:
            self.opened = self.ask("initialize", protocolVersion=era, capabilities=self.capable,
                                   clientInfo={"name": "test", "version": "1"})["result"]
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def raw(self, line):
        os.write(self.process.stdin.fileno(), line)

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def read(self, seconds=300):
        while b"\n" not in self.held:
            assert select.select([self.process.stdout], [], [], seconds)[0], "no answer"
            piece = os.read(self.process.stdout.fileno(), 1 << 20)
            assert piece, f"the server ended: {self.held!r}"
            self.held += piece
        line, _, self.held = self.held.partition(b"\n")
        return json.loads(line)

    def start(self, method, **params):
        """Send a request without waiting for what comes; its id."""
        number = next(self.ids)
        if self.era == VERSION:
            params["_meta"] = {"io.modelcontextprotocol/protocolVersion": VERSION,
                               "io.modelcontextprotocol/clientCapabilities": self.capable,
                               **params.get("_meta", {})}
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def ask(self, method, **params):
        number = self.start(method, **params)
        while True:
            got = self.read()
            assert got["jsonrpc"] == "2.0", got
            if got.get("method") == "elicitation/create":
                self.answer(got)
                continue
            assert got.get("id") == number, got
            return got

    def answer(self, question):
        """The person's answer to a question of the handshake's era."""
        self.asked.append(question["params"]["message"])
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": self.decision()})

    def decision(self):
        if not self.says_yes:
            return {"action": "decline"}
        return {"action": "accept", "content": {"approve": True}}

    def call(self, tool, /, **arguments):
        """The result of a tool, after the person has been asked if need be."""
        result = self.ask("tools/call", name=tool, arguments=arguments)["result"]
        if result.get("resultType") != "input_required":
            return result
        question = result["inputRequests"]["approve"]
        assert question["method"] == "elicitation/create", question
        self.asked.append(question["params"]["message"])
        return self.ask("tools/call", name=tool, arguments=arguments,
                        inputResponses={"approve": self.decision()})["result"]

    def ok(self, tool, /, **arguments):
        """What the tool answered, which is not a failure, and says the same as text."""
        result = self.call(tool, **arguments)
        assert result["isError"] is False, result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"], result
        return result["structuredContent"]

    def fails(self, tool, /, *words, **arguments):
        """The failure as a model sees it: a result with a sentence."""
        result = self.call(tool, **arguments)
        assert result["isError"] is True, result
        error = result["structuredContent"]["error"]
        self.failures.append((tool, result["structuredContent"]))
        for word in words:
            assert word in error["message"], error
        return error

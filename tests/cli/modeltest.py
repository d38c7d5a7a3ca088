"""A model on the loopback that says what a script has, to clients of Anthropic's and OpenAI's interfaces."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Model:
    """`script` is a list of (tool, arguments); then it says "done".  A tool of OpenAI's may be "namespace/name"."""

    def __init__(self, script):
        self.script, self.results, self.lock, self.strays = script, [], threading.Lock(), []
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):  # pylint: disable=invalid-name
                self.say(200, "application/json", b'{"data": [], "models": []}')

            def do_HEAD(self):  # pylint: disable=invalid-name
                self.say(200, "application/json", b"")

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                model.answer(self, json.loads(body or b"{}"))

            def say(self, status, kind, body):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, http, asked):
        path = http.path.split("?")[0]
        if path.endswith("/count_tokens"):
            return http.say(200, "application/json", b'{"input_tokens": 1}')
        if path.endswith("/messages"):
            return self.answer_anthropic(http, asked)
        if path.endswith("/responses"):
            return self.answer_openai(http, asked)
        self.strays.append(http.path)
        return http.say(200, "application/json", b"{}")

    def next_step(self, results):
        """What to call after these results; None: the story is over."""
        with self.lock:
            self.results = results
        if len(results) >= len(self.script):
            return None
        return self.script[len(results)]

    # --- Anthropic's messages -------------------------------------------------------------------

    def answer_anthropic(self, http, asked):
        results = []
        for message in asked.get("messages", []):
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block.get("type") == "tool_result":
                    got = block.get("content")
                    results.append(got if isinstance(got, str) else "".join(b.get("text", "") for b in got or []))
        # A client asks for titles and summaries, too: such a question brings no tools.
        step = self.next_step(results) if asked.get("tools") else None
        start = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model", "m"), "content": [],
                 "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
        if step:
            block = {"type": "tool_use", "id": f"toolu_{len(results)}", "name": step[0], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(step[1])}
        else:
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}
        reason = "tool_use" if step else "end_turn"
        if not asked.get("stream"):
            whole = {**block, **({"input": step[1]} if step else {"text": "done"})}
            return http.say(200, "application/json", json.dumps({**start, "content": [whole], "stop_reason": reason}).encode())
        events = [{"type": "message_start", "message": start},
                  {"type": "content_block_start", "index": 0, "content_block": block},
                  {"type": "content_block_delta", "index": 0, "delta": delta},
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": {"output_tokens": 1}},
                  {"type": "message_stop"}]
        return self.stream(http, events)

    # --- OpenAI's responses ---------------------------------------------------------------------

    def answer_openai(self, http, asked):
        results = [i["output"] if isinstance(i["output"], str) else json.dumps(i["output"])
                   for i in asked.get("input", []) if i.get("type") in ("function_call_output", "custom_tool_call_output")]
        step = self.next_step(results) if asked.get("tools") else None
        if step:
            *space, name = step[0].split("/")
            item = {"type": "function_call", "id": f"fc_{len(results)}", "call_id": f"call_{len(results)}", "name": name,
                    "arguments": json.dumps(step[1]), **({"namespace": space[0]} if space else {})}
        else:
            item = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        return self.stream(http, [{"type": "response.created", "response": {"id": "resp_1"}},
                                  {"type": "response.output_item.done", "output_index": 0, "item": item},
                                  {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}])

    @staticmethod
    def stream(http, events):
        text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        http.say(200, "text/event-stream", text.encode())

// What the page asks the server, and what the server tells by itself.

const KEY = "snap-token";

// The token comes behind '#', which no browser sends; then it leaves the address bar.
function takeToken() {
  const found = /^#([0-9A-Za-z_-]{16,128})$/.exec(location.hash);

  if (found) {
    sessionStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

const token = takeToken();

export class Failure extends Error {
  constructor(message, answer) {
    super(message);
    this.answer = answer; // all that the command said
  }
}

async function post(name, values, signal) {
  return fetch(`/api/${name}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    body: JSON.stringify(values ?? {}),
    signal,
  });
}

// The object that the command prints with --json; a failure is thrown with its sentence.
export async function ask(name, values, signal) {
  const response = await post(name, values, signal);
  const answer = await response.json();

  if (answer.error)
    throw new Failure(answer.error.message, answer);
  return answer;
}

// Call `tell` for each event, and again after the server was away; returns what ends it.
export function follow(tell, tellState) {
  const end = new AbortController();
  let wait = 500;

  async function once() {
    const response = await post("events", {}, end.signal);

    if (!response.ok)
      throw new Failure((await response.json()).error.message);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    tellState("live");
    wait = 500;
    for (;;) {
      const { value, done } = await reader.read();
      if (done)
        return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines)
        if (line !== "")
          tell(JSON.parse(line));
    }
  }

  (async () => {
    while (!end.signal.aborted) {
      try {
        await once();
        tellState("away");
      } catch (e) {
        if (end.signal.aborted)
          return;
        tellState(e instanceof Failure ? e.message : "away");
      }
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 10000);
    }
  })();
  return () => end.abort();
}

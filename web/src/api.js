// What the page asks the server, and what the server tells by itself.

const KEY = "snap-token";

// The token comes behind '#', which no browser sends; then it leaves the address bar.
function takeToken() {
  const found = /^#t=(.+)$/.exec(location.hash);

  if (found) {
    sessionStorage.setItem(KEY, found[1]);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) ?? "";
}

let token = takeToken();

// The server has gone.  Whatever listens there now must not get the token.
function forgetToken() {
  sessionStorage.removeItem(KEY);
  token = "";
}

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

// Call `tell` for each event while the page is seen: browsers open few connections to one server.
export function follow(tell, tellState) {
  let end = null, over = false;

  async function read(signal) {
    const response = await post("events", {}, signal);

    if (!response.ok)
      throw new Failure((await response.json()).error.message);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    tellState("live");
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
  async function start() {
    const mine = end = new AbortController();
    let why = "the server has ended: start 'snap ui' again";

    try {
      await read(mine.signal);
    } catch (e) {
      if (mine.signal.aborted)
        return;
      if (e instanceof Failure)
        why = e.message;
    }
    over = true;
    forgetToken();
    tellState(why);
  }
  function look() {
    end?.abort();
    end = null;
    if (!document.hidden && !over)
      start();
  }
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    over = true;
    document.removeEventListener("visibilitychange", look);
    end?.abort();
  };
}

// story.mjs SNAPCOW PROJECT CLIENT - one story through a real client: prints a JSON object a step.
//
// CLIENT is v1 (the SDK that knows the handshake alone), or legacy, auto or pin: the SDK that knows
// both eras, told which to use.
const [program, project, kind] = process.argv.slice(2);
const command = { command: program, args: ["mcp"], env: process.env, cwd: project };
const say = (step, facts) => console.log(JSON.stringify({ step, ...facts }));
const yes = async (request) => {
  say("asked", { message: request.params.message });
  return { action: "accept", content: { approve: true } };
};

async function connect() {
  const info = { name: "story", version: "1" };
  const options = { capabilities: { elicitation: kind === "v1" ? {} : { form: {} } } };
  if (kind === "v1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
    const client = new Client(info, options);
    client.setRequestHandler(ElicitRequestSchema, yes);
    await client.connect(new StdioClientTransport(command));
    return client;
  }
  const { Client } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  options.versionNegotiation = { mode: kind === "pin" ? { pin: "2026-07-28" } : kind };
  const client = new Client(info, options);
  client.setRequestHandler("elicitation/create", yes);
  await client.connect(new StdioClientTransport(command));
  return client;
}

const client = await connect();
const { tools } = await client.listTools();
say("tools", { names: tools.map((t) => t.name),
               version: client.getNegotiatedProtocolVersion?.() ?? null });
const name = `story-${kind}`;
for (const [tool, args] of [
  ["snap_clone", { name }],
  ["snap_edit", { clone: name, path: "README.md", old: "first", new: kind }],
  ["snap_read", { clone: name, path: "README.md" }],
  ["snap_diff", { from: name }],
  ["snap_edit", { clone: name, path: "README.md", old: "no such text", new: "" }],
  ["snap_promote", { clone: name, dry_run: true }],
  ["snap_promote", { clone: name }],
  ["snap_undo", {}],
  ["snap_destroy", { clone: name }],
]) {
  const result = await client.callTool({ name: tool, arguments: args });
  say(tool, { failed: result.isError ?? false, got: result.structuredContent });
}
await client.close();

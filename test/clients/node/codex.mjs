// Codex, without a terminal: one task that takes a tool of an MCP server, through Responses.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { assert, base } from "./common.mjs";

const here = import.meta.dirname;
const home = await mkdtemp(join(tmpdir(), "codex-"));
try {
  await writeFile(join(home, "config.toml"), `
model = "gpt-test"
model_provider = "sidecar"
approval_policy = "never"

[model_providers.sidecar]
name = "the sidecar"
base_url = ${JSON.stringify(base)}
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[mcp_servers.docs]
command = ${JSON.stringify(process.execPath)}
args = [${JSON.stringify(join(here, "mcp-server.mjs"))}]
default_tools_approval_mode = "approve"
`);
  const need = process.env.CODEX_TOOL ?? "mcp__docs.page_07";
  const run = promisify(execFile)(join(here, "node_modules/.bin/codex"),
    ["exec", "--skip-git-repo-check", "--json", "--sandbox", "danger-full-access", `Read the handbook. [[need:${need}]]`],
    { cwd: home, env: { ...process.env, CODEX_HOME: home, OPENAI_API_KEY: "sk-test" }, timeout: 60000, maxBuffer: 1 << 26 });
  run.child.stdin.end();
  const { stdout } = await run;
  if (process.env.CODEX_VERBOSE) console.log(stdout);
  assert.match(stdout, /done: .*the text of page_07/);
  console.log("ok");
} finally {
  await rm(home, { recursive: true, force: true });
}

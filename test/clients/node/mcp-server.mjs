// A small MCP server on standard input and output with thirty tools, for Codex.
import readline from "node:readline";

const tools = Array.from({ length: 30 }, (_, i) => ({
  name: `page_${String(i).padStart(2, "0")}`,
  description: `reads page ${i} of the handbook`,
  inputSchema: { type: "object", properties: { line: { type: "integer" } } },
  annotations: { readOnlyHint: true },
}));

const answer = (id, result) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  switch (method) {
    case "initialize":
      return answer(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "docs", version: "1" } });
    case "tools/list":
      return answer(id, { tools });
    case "tools/call":
      return answer(id, { content: [{ type: "text", text: `the text of ${params.name}` }] });
    default:
      return answer(id, {});
  }
});

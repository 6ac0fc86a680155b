// The agents SDK: a run with sixty tools on each API, streamed and whole.
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";
import { z } from "zod";
import { assert, base, names } from "./common.mjs";

setTracingDisabled(true);
for (const useResponses of [false, true]) {
  for (const stream of [false, true]) {
    const called = [];
    const agent = new Agent({
      name: "tester",
      instructions: "Be brief.",
      model: "gpt-test",
      tools: names.map((name) => tool({
        name,
        description: "does something",
        parameters: z.object({}),
        execute: () => {
          called.push(name);
          return `result of ${name}`;
        },
      })),
    });
    const runner = new Runner({ modelProvider: new OpenAIProvider({ apiKey: "sk-test", baseURL: base, useResponses }) });
    const result = await runner.run(agent, "Go on. [[need:tool_07,tool_42]]", { stream });
    if (stream) await result.completed;
    assert.match(result.finalOutput, /^done:/);
    assert.deepEqual(called.toSorted(), ["tool_07", "tool_42"]);
  }
}
console.log("ok");

// The official SDK for Node: Chat Completions and Responses, streamed and whole, two questions each.
import OpenAI from "openai";
import { assert, base, names, parameters } from "./common.mjs";

const atProxy = new OpenAI({ baseURL: base, apiKey: "sk-test", maxRetries: 0 });
const questions = [["tool_07", "tool_42"], ["tool_07", "tool_13"]];

async function chat(stream, client = atProxy) {
  const tools = names.map((name) => ({ type: "function", function: { name, description: "does something", parameters } }));
  const messages = [];
  for (const need of questions) {
    messages.push({ role: "user", content: `Go on. [[need:${need}]]` });
    const called = [];
    for (let round = 0; round < 6; round++) {
      const request = { model: "gpt-test", messages, tools };
      const completion = stream
        ? await client.chat.completions.stream({ ...request, stream: true }).finalChatCompletion()
        : await client.chat.completions.create(request);
      const message = completion.choices[0].message;
      messages.push(message);
      if (!message.tool_calls?.length) {
        assert.equal(message.content, `done: ${called.map((name) => `result of ${name}`).join(" ")}`);
        break;
      }
      for (const call of message.tool_calls) {
        called.push(call.function.name);
        messages.push({ role: "tool", tool_call_id: call.id, content: `result of ${call.function.name}` });
      }
    }
    assert.deepEqual(called.toSorted(), need.toSorted());
  }
}

async function responses(stream, mode, client = atProxy, words = "") {
  const tools = names.map((name) => ({ type: "function", name, description: "does something", parameters, strict: false }));
  const history = [];
  let previous;
  for (const need of questions) {
    let fresh = [{ role: "user", content: `Go on. ${words} [[need:${need}]]` }];
    const called = [];
    for (let round = 0; round < 6; round++) {
      history.push(...fresh);
      const request = { model: "gpt-test", tools };
      if (mode === "chained") Object.assign(request, { input: fresh, previous_response_id: previous });
      else Object.assign(request, { input: history });
      if (mode === "unstored") Object.assign(request, { store: false, include: ["reasoning.encrypted_content"] });
      const response = stream
        ? await client.responses.stream(request).finalResponse()
        : await client.responses.create(request);
      previous = response.id;
      history.push(...response.output);
      fresh = [];
      for (const item of response.output) {
        if (item.type !== "function_call") continue;
        called.push(item.name);
        fresh.push({ type: "function_call_output", call_id: item.call_id, output: `result of ${item.name}` });
      }
      if (fresh.length === 0) {
        assert.match(response.output_text, /done:/);
        break;
      }
    }
    assert.deepEqual(called.toSorted(), need.toSorted());
  }
}

for (const stream of [false, true]) {
  await chat(stream);
  for (const mode of ["chained", "replayed", "unstored"]) await responses(stream, mode);
}
// The stream helper wants one id in all events, also when the model speaks before it searches.
const oneID = new OpenAI({ baseURL: `${process.env.PROXY_ONE_ID_URL}/v1`, apiKey: "sk-test", maxRetries: 0 });
for (const mode of ["chained", "replayed", "unstored"]) await responses(true, mode, oneID, "[[speak]]");
console.log("ok");

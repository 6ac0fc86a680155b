// An agent in fifty lines, without dependencies: it offers many tools and runs whichever the model calls.
const base = process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:8787/v1";
const model = process.env.MODEL ?? "gpt-5-mini";

const cities = ["Oslo", "Lima", "Pune"];
const tools = {
  get_weather: {
    description: "Current weather of a city.",
    parameters: { type: "object", properties: { city: { type: "string", enum: cities } }, required: ["city"] },
    run: ({ city }) => ({ city, celsius: 7 + cities.indexOf(city) * 9 }),
  },
};
for (const service of ["mail", "calendar", "drive", "tickets", "invoices"]) {
  for (const action of ["create", "get", "list", "update", "delete", "search"]) {
    tools[`${service}_${action}`] = {
      description: `${action} in ${service}`,
      parameters: { type: "object", properties: { id: { type: "string" }, text: { type: "string" } } },
      run: () => ({ ok: true }),
    };
  }
}

const messages = [{ role: "user", content: process.argv[2] ?? "What is the weather in Oslo?" }];
for (let round = 0; round < 10; round++) {
  const response = await fetch(`${base}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY ?? ""}` },
    body: JSON.stringify({
      model,
      messages,
      tools: Object.entries(tools).map(([name, { description, parameters }]) => ({
        type: "function",
        function: { name, description, parameters },
      })),
    }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${response.status}: ${answer.error?.message}`);
  const message = answer.choices[0].message;
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    const result = tools[call.function.name].run(JSON.parse(call.function.arguments || "{}"));
    console.log(`ran ${call.function.name} ${call.function.arguments}`);
    messages.push({ role: "tool", tool_call_id: call.id, content: JSON.stringify(result) });
  }
}

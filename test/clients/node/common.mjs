import assert from "node:assert/strict";

export const base = `${process.env.PROXY_URL}/v1`;

// names of sixty tools without end, as agents have them
export const names = Array.from({ length: 60 }, (_, i) => `tool_${String(i).padStart(2, "0")}`);
export const parameters = { type: "object", properties: { id: { type: "string" } }, additionalProperties: false };

export { assert };

"use strict";

const byID = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

// make builds an element; text is always set as text, never as HTML.
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

function cards(totals) {
  const share = totals.tools_tokens_client_estimated
    ? Math.round((100 * totals.net_saved_tokens_estimated) / totals.tools_tokens_client_estimated) : 0;
  const list = [
    [short.format(totals.net_saved_tokens_estimated), `tokens saved, net (${share} % of the tools)`, "estimated"],
    [short.format(totals.tools_tokens_client_estimated), "tokens of tools that clients sent", "estimated"],
    [short.format(totals.tools_tokens_upstream_estimated), "tokens of tools and directory that the upstream got", "estimated"],
    [short.format(totals.input_tokens_measured), `input tokens, ${short.format(totals.cached_input_tokens_measured)} of them cached`, "measured"],
    [short.format(totals.output_tokens_measured), "output tokens", "measured"],
    [number.format(totals.requests), `requests: ${totals.projected} projected, ${totals.passed} passed, ${totals.failed} failed`, "measured"],
    [number.format(totals.searches), `searches, ${totals.empty_searches} found nothing; ${totals.hidden_rounds} hidden rounds`, "measured"],
    [number.format(totals.rejected_calls), "calls of tools that were not loaded", "measured"],
  ];
  byID("cards").replaceChildren(...list.map(([value, label, kind]) =>
    make("div", { class: "card" }, make("b", {}, value), make("span", { class: "kind" }, kind), make("span", {}, label))));
}

function chart(periods) {
  const svg = byID("chart");
  const draw = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text) element.textContent = text;
    return element;
  };
  const top = Math.max(1, ...periods.map((p) => Math.abs(p.net_saved_estimated)));
  const width = 700 / Math.max(24, periods.length);
  const zero = periods.some((p) => p.net_saved_estimated < 0) ? 90 : 140;
  const parts = [draw("line", { x1: 10, x2: 710, y1: zero, y2: zero }), draw("text", { x: 12, y: 14 }, short.format(top))];
  periods.forEach((p, i) => {
    const height = (Math.abs(p.net_saved_estimated) / top) * (zero - 24);
    const loss = p.net_saved_estimated < 0;
    const bar = draw("rect", {
      x: 10 + i * width, y: loss ? zero : zero - height, width: Math.max(1, width - 2), height, class: loss ? "loss" : "",
    });
    bar.append(draw("title", {}, `${new Date(p.start).toLocaleTimeString()}: ${number.format(p.net_saved_estimated)} tokens, ${p.requests} requests`));
    parts.push(bar);
  });
  svg.replaceChildren(...parts);
}

function used(tools) {
  byID("used-rows").replaceChildren(...(tools.length ? tools : [{ name: "none yet", calls: "" }]).map((tool) =>
    make("tr", {}, make("td", {}, make("code", {}, tool.name)), make("td", { class: "number" }, String(tool.calls)),
      make("td", { class: "soft" }, tool.always_loaded_recommended ? "one ask in five or more uses it" : ""))));
  const always = tools.filter((tool) => tool.always_loaded_recommended).map((tool) => tool.name);
  byID("hint").hidden = always.length === 0;
  byID("hint").replaceChildren("Worth putting in ", make("code", {}, "tool_search_always_loaded"), `: ${always.join(", ")}`);
}

function round(r) {
  const searches = (r.searches ?? []).map((s) =>
    make("span", { class: s.outcome === "loaded" ? "good" : s.outcome === "empty" || s.outcome === "malformed" ? "bad" : "soft" },
      ` search: ${s.loaded?.length ? s.loaded.join(", ") : s.outcome}`));
  return make("span", { class: r.hidden ? "round hidden" : "round" },
    `${number.format(r.ms)} ms · ${short.format(r.tools_bytes)}B tools`,
    r.input_tokens ? ` · ${number.format(r.input_tokens)} → ${number.format(r.output_tokens)} tokens` : "",
    ...searches, r.called?.length ? ` · calls ${r.called.join(", ")}` : "");
}

function asks(list) {
  const onlyEmpty = byID("only-empty").checked;
  const empty = (ask) => (ask.rounds ?? []).some((r) => (r.searches ?? []).some((s) => s.outcome === "empty"));
  byID("ask-list").replaceChildren(...list.slice().reverse().filter((ask) => !onlyEmpty || empty(ask)).map((ask) =>
    make("li", {},
      make("span", {}, `${new Date(ask.time).toLocaleTimeString()} · ${ask.model || "?"} · ${ask.dialect} · `),
      make("span", { class: ask.outcome === "projected" ? "good" : ask.outcome === "passed" ? "soft" : "bad" },
        ask.outcome + (ask.reason ? ` (${ask.reason})` : "")),
      make("span", { class: "soft" }, ` · ${ask.tools} tools, ${ask.deferred} deferred${ask.session ? ` · ${ask.session}` : ""}`),
      ask.rounds?.length ? make("div", { class: "rounds" }, ...ask.rounds.map(round)) : null)));
}

function audit(totals) {
  const calls = totals.audit_calls;
  const all = calls.always_loaded + calls.first_5 + calls.later + calls.not_found;
  byID("audit-section").hidden = all === 0 && totals.audit_could_save_tokens_estimated === 0;
  byID("audit-text").textContent =
    `Projection could have saved ${number.format(totals.audit_could_save_tokens_estimated)} tokens of tools in first rounds (estimated). ` +
    `Of ${all} tool calls, ${calls.always_loaded} were of always-loaded tools; a search would have found ${calls.first_5} among its first five, ` +
    `${calls.later} later, ${calls.not_found} not at all.`;
}

let last = null;

function show(status) {
  last = status;
  byID("about").textContent = `${status.version} · up since ${new Date(status.started).toLocaleString()} · refreshed ${new Date(status.now).toLocaleTimeString()}`;
  cards(status.totals);
  chart(status.periods ?? []);
  audit(status.totals);
  used(status.used_deferred_tools ?? []);
  asks(status.asks ?? []);
  byID("configuration-text").textContent = status.configuration;
}

async function refresh() {
  try {
    const response = await fetch("status.json");
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.json());
  } catch (failure) {
    byID("about").textContent = `The proxy does not answer: ${failure.message}`;
  }
}

byID("only-empty").addEventListener("change", () => last && asks(last.asks ?? []));
refresh();
setInterval(refresh, 5000);

// The request of the page Try: what the fields say, the body that is sent, and the same for curl and Python.
"use strict";

const tryForm = document.getElementById("try-form");
const talk = [];
const chatPath = "/v1/chat/completions";
const textPath = "/v1/completions";

function field(name) {
  return tryForm.elements[name];
}

function parsed(name, isRight, wanted) {
  const box = field(name);
  box.setCustomValidity("");
  if (box.value.trim() === "") return undefined;
  try {
    const value = JSON.parse(box.value);
    if (isRight(value)) return value;
  } catch {
    // Told below: what is no JSON is as wrong as the wrong JSON.
  }
  box.closest("details").open = true;
  box.setCustomValidity(`This must be ${wanted}.`);
  return undefined;
}

function settingsNow() {
  const settings = { system: field("system").value, format: field("format").value };
  for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
    const text = field(name).value.trim();
    if (text !== "") settings[name] = Number(text);
  }
  settings.tools = parsed("tools", Array.isArray, "a list of tools: [{...}]");
  settings.schema = parsed("schema", (value) => value !== null && typeof value === "object" && !Array.isArray(value), "a JSON Schema, which is an object: {...}");
  if (settings.format === "json_schema" && settings.schema === undefined && field("schema").validity.valid) {
    field("schema").closest("details").open = true;
    field("schema").setCustomValidity("Give the JSON Schema that the answer has to follow.");
  }
  return tryForm.reportValidity() ? settings : null;
}

function messagesOf(lane, upTo) {
  const messages = [];
  for (const turn of talk.slice(0, upTo)) {
    const answer = turn.answers[lane] ?? turn.answers[0];
    if (answer === undefined || (answer.trouble !== null && answer.text === "")) continue;
    messages.push({ role: "user", content: turn.user }, { role: "assistant", content: answer.text });
  }
  return messages;
}

function bodyOf(lane, turn, settings) {
  const body = { model: lane.model };
  if (lane.kind === "text") {
    body.prompt = turn.user;
  } else {
    const system = settings.system.trim() === "" ? [] : [{ role: "system", content: settings.system }];
    body.messages = [...system, ...messagesOf(lane.number, talk.indexOf(turn)), { role: "user", content: turn.user }];
  }
  for (const name of ["temperature", "top_p", "max_tokens", "seed"]) {
    if (name in settings) body[name] = settings[name];
  }
  if (lane.kind === "text") return body;
  if (lane.effort !== "") body.reasoning_effort = lane.effort;
  if (settings.format === "json_object") body.response_format = { type: "json_object" };
  if (settings.format === "json_schema") {
    body.response_format = { type: "json_schema", json_schema: { name: "answer", schema: settings.schema } };
  }
  if (settings.tools?.length) body.tools = settings.tools;
  return body;
}

// The same as people send it elsewhere. A key is named by a variable, never printed.
function requestTexts(path, body) {
  const wantsKey = tryForm.dataset.wantsKey === "yes";
  const key = wantsKey ? ' \\\n  -H "Authorization: Bearer $PADDOCK_KEY"' : "";
  const data = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  // Without an apostrophe in it, JSON stands in a raw string of Python as it is.
  const raw = JSON.stringify(body, null, 2).replaceAll("'", "\\u0027");
  const call = path === chatPath ? "chat.completions" : "completions";
  return {
    curl: `curl '${location.origin}${path}' -H 'Content-Type: application/json'${key} -d '${data}'`,
    python:
      `import json\n${wantsKey ? "import os\n" : ""}\nfrom openai import OpenAI\n\n` +
      `client = OpenAI(base_url="${location.origin}/v1", api_key=${wantsKey ? 'os.environ["PADDOCK_KEY"]' : '"none"'})\n` +
      `answer = client.${call}.create(**json.loads(r'''${raw}'''))\nprint(answer)\n`,
  };
}

// The page Try with script: answers as they come, stop, again, edit. Text of models is only ever set as text.
"use strict";

const running = new Set();
// Often enough to read along. Animation frames would stop in a hidden tab, and with them the answer.
const DRAW_MS = 40;
const ends = {
  length: "Ended at its limit of tokens.",
  tool_calls: "Calls a tool. Nothing here runs it, and the next message does not repeat it.",
  content_filter: "Ended by a filter.",
};

function byId(id) {
  return document.getElementById(id);
}

function part(element, name) {
  return element.querySelector(`[data-part="${name}"]`);
}

function say(text) {
  byId("announce").textContent = text;
}

// What stands in the page now: models may be changed in the middle of a conversation.
function lanesNow() {
  return [...document.querySelectorAll("#try-lanes [data-lane]")].map((element, number) => ({
    number,
    model: element.querySelector("input[type=hidden]").value,
    kind: element.dataset.kind,
    note: element.querySelector("[data-note]")?.textContent ?? "",
    effort: element.querySelector("select")?.value ?? "",
  }));
}

// Answers on the page

function newAnswer(lane) {
  return { model: lane.model, text: "", thinking: "", calls: [], trouble: null, note: "", numbers: [], curl: "", python: "" };
}

let places = 0;

function answerElement(answer) {
  const blank = part(byId("turn-template").content, "answer");
  const element = document.importNode(blank, true);
  element.setAttribute("aria-label", `Answer of ${answer.model}`);
  places += 1;
  for (const name of ["curl", "python"]) {
    part(element, name).id = `${name}-live-${places}`;
    const button = element.querySelector(`[data-copy^="${name}"]`);
    button.dataset.copy = `${name}-live-${places}`;
    button.hidden = navigator.clipboard === undefined;
  }
  draw(element, answer);
  return element;
}

// What is new at the end of a text is appended: nothing that was read or selected is drawn again.
function grow(element, text) {
  const node = element.firstChild;
  if (node === null || !text.startsWith(node.data)) element.textContent = text;
  else if (text.length > node.data.length) node.appendData(text.slice(node.data.length));
}

function draw(element, answer) {
  part(element, "model").textContent = answer.model;
  part(element, "note").textContent = answer.note;
  part(element, "thinking").hidden = answer.thinking === "";
  grow(part(element, "thinking-text"), answer.thinking);
  grow(part(element, "text"), answer.text);
  drawList(part(element, "calls"), answer.calls, (item, call) => {
    part(item, "call-name").textContent = call.name;
    grow(part(item, "call-arguments"), call.arguments);
  });
  const trouble = part(element, "trouble");
  trouble.hidden = answer.trouble === null;
  if (answer.trouble !== null) {
    for (const name of ["message", "remedy", "code"]) part(trouble, `trouble-${name}`).textContent = answer.trouble[name];
    const reason = part(trouble, "trouble-reason");
    reason.hidden = answer.trouble.reason === "";
    reason.href = `/reasons/${encodeURIComponent(answer.trouble.reason)}`;
    reason.firstElementChild.textContent = answer.trouble.reason;
    part(trouble, "sign-in").hidden = answer.trouble.code !== "key_missing";
  }
  drawList(part(element, "numbers"), answer.numbers, (item, [name, text]) => {
    item.firstElementChild.textContent = name;
    item.lastElementChild.textContent = text;
  });
  part(element, "request").hidden = answer.curl === "";
  for (const name of ["curl", "python"]) grow(part(element, name), answer[name]);
}

function drawList(list, values, fill) {
  list.hidden = values.length === 0;
  while (list.childElementCount > Math.max(1, values.length)) list.lastElementChild.remove();
  while (list.childElementCount < values.length) list.append(list.firstElementChild.cloneNode(true));
  values.forEach((value, number) => {
    list.children[number].hidden = false;
    fill(list.children[number], value);
  });
}

function turnElement(turn) {
  const element = document.importNode(byId("turn-template").content.firstElementChild, true);
  part(element, "user").textContent = turn.user;
  part(element, "answers").replaceChildren(...turn.answers.map(answerElement));
  return element;
}

function showButtons() {
  const busy = running.size > 0;
  byId("try-send").disabled = busy;
  byId("try-stop").hidden = !busy;
  for (const id of ["try-again", "try-edit", "try-new"]) byId(id).hidden = busy || talk.length === 0;
}

// Keeps the end in sight while it grows, unless the reader has scrolled away from it.
function following(change) {
  const root = document.documentElement;
  const atEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 80;
  change();
  if (atEnd) root.scrollTop = root.scrollHeight;
}

// The stream

function troubleOf(error, retryAfter) {
  const code = error?.code ?? "internal_error";
  const known = byId("try-remedies").querySelector(`[data-code="${CSS.escape(code)}"]`) ?? byId("try-remedies").querySelector('[data-code=""]');
  const wait = retryAfter === null ? "" : ` It may work again in ${retryAfter} s.`;
  return {
    code,
    message: error?.message ?? "No reason was given.",
    remedy: (error?.reason?.remedy || known.lastElementChild.textContent) + wait,
    reason: error?.reason?.code ?? "",
  };
}

function addCall(answer, piece) {
  const call = (answer.calls[piece.index ?? 0] ??= { name: "", arguments: "" });
  call.name ||= piece.function?.name ?? "";
  call.arguments += piece.function?.arguments ?? "";
}

function take(answer, name, data) {
  if (name === "measured") {
    answer.numbers = data.numbers;
    return;
  }
  if (data.error) {
    answer.trouble = troubleOf(data.error, null);
    return;
  }
  const progress = data.prompt_progress;
  if (progress && progress.total) {
    answer.note = `Reads the prompt: ${progress.processed} of ${progress.total} tokens.`;
  }
  for (const choice of data.choices ?? []) {
    const delta = choice.delta ?? { content: choice.text };
    if (delta.content || delta.reasoning_content || delta.tool_calls) answer.note = "";
    answer.text += delta.content ?? "";
    answer.thinking += delta.reasoning_content ?? "";
    (delta.tool_calls ?? []).forEach((piece) => addCall(answer, piece));
    if (choice.finish_reason) answer.note = ends[choice.finish_reason] ?? "";
  }
}

async function readEvents(stream, onEvent) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      let name = "";
      let data = "";
      for (const line of event.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (data !== "" && data !== "[DONE]") onEvent(name, JSON.parse(data));
    }
  }
}

// A session that ended, or a server that started anew, gave the page's token its end: look for a fresh one.
async function renewToken() {
  const answer = await fetch("/try", { headers: { Accept: "text/html" } });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#try-form [name=csrf_token]");
  if (fresh === null) return false;
  document.querySelectorAll("[name=csrf_token]").forEach((input) => { input.value = fresh.value; });
  return true;
}

async function send(path, body, signal) {
  const wanted = { ...body, stream: true, stream_options: { include_usage: true }, return_progress: true };
  const post = () => fetch(`/try${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRF-Token": field("csrf_token").value },
    body: JSON.stringify(wanted),
    signal,
  });
  const answer = await post();
  const retriable = (answer.status === 401 || answer.status === 403) && ["key_missing", "csrf_token_invalid"].includes((await errorOf(answer.clone()))?.code);
  return retriable && (await renewToken()) ? post() : answer;
}

async function errorOf(answer) {
  try {
    return (await answer.json()).error;
  } catch {
    return { code: "internal_error", message: `The server answered with status ${answer.status}.` };
  }
}

async function ask(lane, turn, settings) {
  const answer = (turn.answers[lane.number] = newAnswer(lane));
  const element = answerElement(answer);
  part(turn.element, "answers").append(element);
  if (lane.kind === "none") {
    answer.trouble = troubleOf({ code: "not_supported", message: lane.note }, null);
    draw(element, answer);
    return;
  }
  const path = lane.kind === "text" ? textPath : chatPath;
  const body = bodyOf(lane, turn, settings);
  Object.assign(answer, requestTexts(path, body));
  answer.note = "Waits for the model.";
  const stopper = new AbortController();
  running.add(stopper);
  showButtons();
  let drawn = false;
  const drawSoon = () => {
    if (drawn) return;
    drawn = true;
    setTimeout(() => { drawn = false; following(() => draw(element, answer)); }, DRAW_MS);
  };
  drawSoon();
  const began = performance.now();
  try {
    const reply = await send(path, body, stopper.signal);
    if (!reply.ok) answer.trouble = troubleOf(await errorOf(reply), reply.headers.get("Retry-After"));
    else await readEvents(reply.body, (name, data) => { take(answer, name, data); drawSoon(); });
    if (answer.trouble !== null) answer.note = "";
    say(answer.trouble === null ? `${answer.model} has answered.` : `${answer.model}: ${answer.trouble.message}`);
  } catch (error) {
    answer.note = "";
    if (stopper.signal.aborted) {
      answer.note = "Stopped.";
      answer.numbers = [["Total", `${((performance.now() - began) / 1000).toFixed(1)} s`]];
      say(`${answer.model} was stopped.`);
    } else {
      answer.trouble = troubleOf({ code: "connection_failed", message: "The connection to the server broke." }, null);
    }
  } finally {
    running.delete(stopper);
    following(() => draw(element, answer));
    keep();
    showButtons();
  }
}

function begin(text, settings) {
  const turn = { user: text, answers: [] };
  turn.element = turnElement(turn);
  talk.push(turn);
  following(() => byId("turns").append(turn.element));
  lanesNow().forEach((lane) => ask(lane, turn, settings));
  turn.element.scrollIntoView({ block: "nearest" });
}

// The tab keeps the conversation while its reader looks at other pages. Only the session that had it sees it again.

const KEPT = "paddock-try";

function sessionMark() {
  return field("csrf_token").value.slice(0, 8);
}

function keep() {
  const turns = talk.map(({ user, answers }) => ({ user, answers }));
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ mark: sessionMark(), turns }));
  } catch {
    // A conversation that is too long to be kept goes on all the same.
    sessionStorage.removeItem(KEPT);
  }
}

function kept() {
  const found = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  return found !== null && found.mark === sessionMark() ? found.turns : [];
}

// Buttons and keys

function dropLast() {
  const turn = talk.pop();
  turn.element.remove();
  keep();
  return turn.user;
}

function act(verb) {
  const message = byId("try-message");
  if (running.size > 0) return;
  if (verb === "edit" && talk.length > 0) {
    message.value = dropLast();
    showButtons();
    message.focus();
    return;
  }
  const settings = settingsNow();
  if (settings === null) return;
  if (verb === "regenerate" && talk.length > 0) {
    begin(dropLast(), settings);
  } else if (message.value.trim() !== "") {
    begin(message.value, settings);
    message.value = "";
  }
  message.focus();
}

function stop() {
  running.forEach((stopper) => stopper.abort());
}

function startTry() {
  tryForm.addEventListener("submit", (event) => {
    event.preventDefault();
    act(event.submitter?.value ?? "send");
  });
  byId("try-stop").addEventListener("click", stop);
  byId("try-new").addEventListener("click", (event) => {
    event.preventDefault();
    talk.length = 0;
    byId("turns").replaceChildren();
    keep();
    showButtons();
    byId("try-message").focus();
  });
  byId("try-message").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    act("send");
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") stop(); });
  for (const name of ["tools", "schema"]) field(name).addEventListener("input", () => field(name).setCustomValidity(""));
  field("format").addEventListener("change", () => field("schema").setCustomValidity(""));
  // The form of a browser without script bounds the answer, as it shows nothing meanwhile.
  field("max_tokens").removeAttribute("max");
  field("max_tokens").placeholder = "as set";
  byId("try-shortcuts").hidden = false;
  // A conversation that began without script goes on with it.
  const begun = byId("try-talk").value;
  for (const turn of begun === "" ? kept() : JSON.parse(begun)) {
    turn.element = turnElement(turn);
    talk.push(turn);
  }
  if (talk.length > 0) byId("turns").replaceChildren(...talk.map((turn) => turn.element));
  showButtons();
}

if (tryForm !== null) startTry();

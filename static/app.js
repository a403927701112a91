// What HTML alone cannot do: say whether the page is live, keep growing lists short, pause in hidden tabs, copy.
"use strict";

const liveTexts = { live: "Live", waiting: "Connecting", lost: "Connection lost, what you see may be old" };

function showLive(state) {
  const box = document.getElementById("live-state");
  if (box === null) return;
  box.hidden = false;
  box.dataset.live = state;
  document.getElementById("live-text").textContent = liveTexts[state];
  document.getElementById("refresh").hidden = state === "live";
}

document.addEventListener("htmx:sseError", () => showLive("lost"));
document.addEventListener("htmx:sendError", () => showLive("lost"));

// A list that grows by itself is cut at its old end, unless its reader has scrolled back to look at it.
function trim(list) {
  const box = list.parentElement;
  const reading = Math.abs(box.scrollTop) > 4 && box.scrollHeight > box.clientHeight;
  const keep = Number(list.dataset.keep) * (reading ? 5 : 1);
  while (list.childElementCount > keep) {
    ("newestFirst" in list.dataset ? list.lastElementChild : list.firstElementChild).remove();
  }
}

document.addEventListener("htmx:sseMessage", () => document.querySelectorAll("[data-keep]").forEach(trim));

// What was chosen in a part that is kept up to date stays chosen until it is sent.
const chosen = new Map();
document.addEventListener("change", (event) => {
  const field = event.target.closest("[hx-swap-oob] select[id]");
  if (field !== null) chosen.set(field.id, field.value);
});
document.addEventListener("submit", () => chosen.clear());
document.addEventListener("htmx:oobAfterSwap", () => {
  for (const [id, value] of chosen) {
    const field = document.getElementById(id);
    const option = field === null ? undefined : [...field.options].find((one) => one.value === value);
    if (option !== undefined) option.selected = true;
  }
});

// Browsers allow six connections to a server: a hidden tab gives its own back and catches up when it is seen.
let source = null;
let paused = null;

function pause() {
  const live = document.getElementById("live");
  if (live === null) return;
  if (source !== null) source.close();
  paused = { parent: live.parentElement, html: live.outerHTML };
  live.remove();
}

function resume() {
  if (paused !== null && paused.parent.isConnected) {
    paused.parent.insertAdjacentHTML("beforeend", paused.html);
    htmx.process(paused.parent.lastElementChild);
  }
  paused = null;
}

document.addEventListener("htmx:sseOpen", (event) => {
  source = event.detail.source;
  showLive("live");
  if (document.hidden) pause();
});
document.addEventListener("visibilitychange", () => (document.hidden ? pause() : resume()));

function showCopyButtons() {
  const able = navigator.clipboard !== undefined;
  document.querySelectorAll("[data-copy]").forEach((button) => { button.hidden = !able; });
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button === null) return;
  await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
});

document.addEventListener("htmx:afterSettle", showCopyButtons);
document.addEventListener("DOMContentLoaded", () => {
  showCopyButtons();
  if (document.getElementById("live") !== null) showLive("waiting");
});

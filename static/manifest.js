// The editor of the manifest: numbers beside the lines, jumps to a finding, a question before leaving an edit.
"use strict";

function manifestText() {
  return document.getElementById("manifest-text");
}

// The same marks as the server draws, for the text as it is now.
function drawGutter() {
  const field = manifestText();
  if (field === null) return;
  const lines = field.value.split("\n").length;
  const tones = new Map();
  document.querySelectorAll("#manifest-check [data-marks]").forEach((row) => {
    const tone = row.classList.contains("tone-bad") ? "bad" : "wait";
    if (tones.get(row.dataset.marks) !== "bad") tones.set(row.dataset.marks, tone);
  });
  const parts = [];
  let plain = [];
  const flush = () => {
    if (plain.length === 0) return;
    const span = document.createElement("span");
    span.textContent = plain.join("\n");
    parts.push(span);
    plain = [];
  };
  for (let line = 1; line <= lines; line += 1) {
    const tone = tones.get(String(line));
    if (tone === undefined) {
      plain.push(line);
    } else {
      flush();
      const mark = document.createElement("span");
      mark.id = `line-${line}`;
      mark.className = `gutter-mark tone-${tone}`;
      mark.textContent = line;
      parts.push(mark);
    }
  }
  flush();
  document.getElementById("gutter").replaceChildren(...parts);
  field.rows = lines;
}

function jumpTo(line, column) {
  const field = manifestText();
  const lines = field.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  const end = start + (lines[line - 1] ?? "").length;
  field.focus({ preventScroll: true });
  field.setSelectionRange(Math.min(start + column - 1, end), end);
  document.getElementById(`line-${line}`)?.scrollIntoView({ block: "center" });
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  if (link === null || manifestText() === null) return;
  event.preventDefault();
  jumpTo(Number(link.dataset.line), Number(link.dataset.column));
});

let typed = false;
document.addEventListener("input", (event) => {
  if (event.target !== manifestText()) return;
  typed = true;
  drawGutter();
});
document.addEventListener("htmx:afterSettle", drawGutter);
// What was said of the text before does not stand above the preview of the text as it is now.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.target?.id === "manifest-preview") document.getElementById("notice").replaceChildren();
});
document.addEventListener("submit", (event) => {
  if (event.target.id === "manifest-form") typed = false;
});
window.addEventListener("beforeunload", (event) => {
  if (typed) event.preventDefault();
});

// The page of a training that runs: epochs arrive as server-sent events.
"use strict";

// Redrawing is bounded whatever the rate of epochs, and waits while the tab is hidden.
const REDRAW_AFTER_MS = 500;

function follow(data) {
  const place = document.getElementById("live");
  const status = el("span", { role: "status" }, "Connecting …");
  const address = (path) => `${path}?token=${encodeURIComponent(data.live.token)}`;
  const stop = el("button", { type: "button", class: "stop", onclick: () => {
    stop.disabled = true;
    fetch(address("stop"), { method: "POST" }).then((answer) => {
      status.textContent = answer.ok ? "Stopping after this epoch …" : "The training does not answer.";
    }).catch(() => { status.textContent = "The training cannot be reached."; });
  } }, "Stop after this epoch");
  place.replaceChildren(status, stop);
  place.hidden = false;
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      if (!document.hidden) renderAgain(data);
    }, REDRAW_AFTER_MS);
  };
  document.addEventListener("visibilitychange", redraw);
  const tell = () => {
    const open = data.runs.filter((run) => run.live && !run.done);
    const at = (run) => `epoch ${run.history.epoch[run.history.epoch.length - 1] ?? 0} of ${run.until}`;
    if (open.length && !stop.disabled) status.textContent = open.length === 1 ? at(open[0]) : open.map((run) => `${run.name}: ${at(run)}`).join("; ");
  };
  const events = new EventSource(address("events"));
  // Everything: at the beginning, and whenever the server says so.
  events.addEventListener("data", (event) => {
    Object.assign(data, JSON.parse(event.data));
    tell();
    redraw();
  });
  // What is to be added to it.
  events.addEventListener("epochs", (event) => {
    for (const { run, history } of JSON.parse(event.data)) append(data.runs[run].history, history);
    tell();
    redraw();
  });
  events.addEventListener("end", (event) => {
    events.close();
    status.textContent = JSON.parse(event.data).text;
    stop.hidden = true;
  });
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) status.textContent = "The training cannot be reached; trying again …";
  };
}

// A split that is evaluated for the first time has nothing before.
function append(history, tail) {
  const before = history.epoch.length;
  const add = (to, from) => {
    for (const [name, values] of Object.entries(from)) {
      if (!Array.isArray(values)) continue;
      const all = (to[name] ||= []);
      while (all.length < before) all.push(null);
      all.push(...values);
    }
  };
  add(history, tail);
  for (const [split, values] of Object.entries(tail.splits)) add((history.splits[split] ||= {}), values);
}

// The same place, and the same thing in focus.
function renderAgain(data) {
  const focusable = () => [...document.querySelectorAll("main button, main select, main summary, main [tabindex]")];
  const focused = focusable().indexOf(document.activeElement);
  const top = window.scrollY;
  render(data);
  window.scrollTo(0, top);
  if (focused >= 0) focusable()[focused]?.focus({ preventScroll: true });
}

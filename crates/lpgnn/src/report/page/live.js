// The page of a training that runs: epochs arrive as server-sent events.
"use strict";

// Redrawing is bounded whatever the rate of epochs, and waits while the tab is hidden.
const REDRAW_AFTER_MS = 500;

function follow(data) {
  const place = document.getElementById("live");
  const status = el("span", { role: "status" }, "Connecting …");
  const stop = el("button", { type: "button", onclick: () => {
    stop.disabled = true;
    status.textContent = "Stopping after this epoch …";
    fetch(`stop?token=${encodeURIComponent(data.live.token)}`, { method: "POST" }).catch(() => { status.textContent = "The training cannot be reached."; });
  } }, "Stop after this epoch");
  place.replaceChildren(status, stop);
  place.hidden = false;
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(() => {
      waiting = false;
      if (document.hidden) return;
      const top = window.scrollY;
      render(data);
      window.scrollTo(0, top);
    }, REDRAW_AFTER_MS);
  };
  document.addEventListener("visibilitychange", redraw);
  const events = new EventSource(`events?token=${encodeURIComponent(data.live.token)}`);
  events.addEventListener("data", (event) => {
    Object.assign(data, JSON.parse(event.data));
    redraw();
  });
  events.addEventListener("epoch", (event) => {
    const { run, columns, splits, text } = JSON.parse(event.data);
    const { history } = data.runs[run];
    // After a reconnection the server sends what was missed; nothing is taken twice.
    if (history.epoch.length && columns.epoch <= history.epoch[history.epoch.length - 1]) return;
    for (const [name, value] of Object.entries(columns)) (history[name] ||= Array(history.epoch.length).fill(null)).push(value);
    for (const [split, values] of Object.entries(splits)) {
      for (const [name, value] of Object.entries(values)) {
        const all = ((history.splits[split] ||= {})[name] ||= []);
        while (all.length < history.epoch.length - 1) all.push(null);
        all.push(value);
      }
    }
    status.textContent = text;
    redraw();
  });
  events.addEventListener("end", (event) => {
    status.textContent = JSON.parse(event.data).text;
    stop.hidden = true;
    events.close();
  });
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) status.textContent = "The training cannot be reached; trying again …";
  };
}

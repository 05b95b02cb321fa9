// Graphs drawn by springs and repulsion, to be moved with the pointer, the wheel or the keys.
"use strict";

// Fruchterman and Reingold from a circle: the same graph always gives the same picture.
function layout(count, edges) {
  const x = new Float64Array(count);
  const y = new Float64Array(count);
  const ideal = 1 / Math.sqrt(Math.max(1, count));
  for (let v = 0; v < count; v += 1) {
    // Not quite a circle, so that no two forces cancel by symmetry.
    x[v] = (0.5 + 0.03 * Math.sin(7 * v)) * Math.cos((2 * Math.PI * v) / count);
    y[v] = (0.5 + 0.03 * Math.cos(5 * v)) * Math.sin((2 * Math.PI * v) / count);
  }
  const rounds = count > 300 ? 60 : 220;
  for (let round = 0; round < rounds; round += 1) {
    const dx = new Float64Array(count);
    const dy = new Float64Array(count);
    for (let u = 0; u < count; u += 1) {
      for (let v = u + 1; v < count; v += 1) {
        const [a, b] = [x[u] - x[v], y[u] - y[v]];
        const force = (ideal * ideal) / Math.max(1e-6, a * a + b * b);
        dx[u] += a * force; dy[u] += b * force;
        dx[v] -= a * force; dy[v] -= b * force;
      }
      dx[u] -= 0.12 * x[u]; dy[u] -= 0.12 * y[u];
    }
    for (let k = 0; k < edges.length; k += 2) {
      const [u, v] = [edges[k], edges[k + 1]];
      const [a, b] = [x[u] - x[v], y[u] - y[v]];
      const force = Math.sqrt(a * a + b * b) / ideal;
      dx[u] -= a * force; dy[u] -= b * force;
      dx[v] += a * force; dy[v] += b * force;
    }
    const most = 0.1 * (1 - round / rounds);
    for (let v = 0; v < count; v += 1) {
      const size = Math.hypot(dx[v], dy[v]) || 1;
      x[v] += (dx[v] / size) * Math.min(most, size);
      y[v] += (dy[v] / size) * Math.min(most, size);
    }
  }
  return [x, y];
}

function drawing({ title, count, edges, values, ringed, centre, text }) {
  const [x, y] = layout(count, edges);
  const ends = [...x, ...y].map(Math.abs).reduce((a, b) => Math.max(a, b), 0.2);
  const scale = 125 / ends;
  const radius = Math.max(2, Math.min(8, 42 / Math.sqrt(count)));
  const shade = shades(values);
  const wrong = new Set(ringed);
  const picture = svg("svg", { viewBox: "-160 -150 320 300", role: "img", tabindex: 0, "aria-label": `${title}. ${text}` });
  for (let k = 0; k < edges.length; k += 2) {
    const [u, v] = [edges[k], edges[k + 1]];
    picture.append(svg("line", { x1: scale * x[u], y1: scale * y[u], x2: scale * x[v], y2: scale * y[v], stroke: "var(--faint)", "stroke-opacity": 0.6 }));
  }
  for (let v = 0; v < count; v += 1) {
    const [cx, cy] = [scale * x[v], scale * y[v]];
    const r = v === centre ? 1.6 * radius : radius;
    if (wrong.has(v)) picture.append(svg("circle", { cx, cy, r: r + 3, fill: "none", stroke: "var(--c1)", "stroke-width": 2 }));
    picture.append(svg("circle", { cx, cy, r, fill: shade(values[v]), stroke: "var(--ink)", "stroke-width": 0.7 }, svg("title", {}, `${number(values[v])}${wrong.has(v) ? ", predicted wrongly" : ""}`)));
  }
  const view = { x: -160, y: -150, width: 320, height: 300 };
  const show = () => picture.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
  const zoom = (factor) => {
    view.x += (view.width * (1 - factor)) / 2;
    view.y += (view.height * (1 - factor)) / 2;
    view.width *= factor;
    view.height *= factor;
    show();
  };
  let from = null;
  picture.addEventListener("pointerdown", (event) => {
    from = [event.clientX, event.clientY, view.x, view.y];
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    if (!from) return;
    const box = picture.getBoundingClientRect();
    view.x = from[2] - ((event.clientX - from[0]) * view.width) / box.width;
    view.y = from[3] - ((event.clientY - from[1]) * view.height) / box.height;
    show();
  });
  picture.addEventListener("pointerup", () => { from = null; });
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && document.activeElement !== picture) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15);
  }, { passive: false });
  picture.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (move) {
      view.x += 0.1 * move[0] * view.width;
      view.y += 0.1 * move[1] * view.height;
      show();
    } else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1 / 1.2 : 1.2);
    else return;
    event.preventDefault();
  });
  const stem = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 60);
  return el("figure", { class: "drawing" },
    el("figcaption", {}, title, el("small", {}, text)),
    picture,
    el("div", { class: "tools" },
      el("button", { type: "button", title: "Zoom in", onclick: () => zoom(1 / 1.2) }, "+"),
      el("button", { type: "button", title: "Zoom out", onclick: () => zoom(1.2) }, "−"),
      el("span", { class: "save" },
        el("button", { type: "button", onclick: () => save(new Blob([standalone(picture)], { type: "image/svg+xml" }), `${stem}.svg`) }, "SVG"),
        el("button", { type: "button", onclick: () => savePng(picture, `${stem}.png`) }, "PNG"))));
}

// Charts as SVG: lines, points and bars, each with a legend that toggles, values under the pointer or the
// arrow keys, the table behind it, and its picture as SVG or PNG. Names from data only ever become text nodes.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 8;
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
// Around text that stands on lines.
const HALO = { stroke: "var(--page)", "stroke-width": 4, "paint-order": "stroke", "stroke-linejoin": "round" };
const SIZE = { width: 560, height: 300, left: 62, right: 14, top: 10, bottom: 40 };

function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== undefined && child !== null));
  return node;
}

function svg(name, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

const colour = (i) => `var(--c${i % COLOURS})`;
const dash = (i) => DASHES[Math.floor(i / COLOURS) % DASHES.length];
const known = (value) => typeof value === "number" && Number.isFinite(value);

function number(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "not a number";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e6) return String(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return String(Number(value.toPrecision(4)));
}

// Whole characters, so that none is cut in two.
function shortened(text, length) {
  const all = [...String(text)];
  return all.length > length ? `${all.slice(0, length - 1).join("")}…` : all.join("");
}

const percent = (value) => (known(value) ? `${(100 * value).toFixed(1)} %` : "–");

// Round steps of 1, 2 or 5 times a power of ten; whole decades on a logarithmic axis.
function ruler(values, { log = false, from, to, pixels }) {
  const shown = values.filter((value) => known(value) && (!log || value > 0)).map((value) => (log ? Math.log10(value) : value));
  let low = shown.length ? shown.reduce((a, b) => Math.min(a, b)) : 0;
  let high = shown.length ? shown.reduce((a, b) => Math.max(a, b)) : 1;
  if (known(from)) low = from;
  if (known(to)) high = to;
  if (high - low < 1e-12 * Math.max(1, Math.abs(high))) [low, high] = log ? [low - 0.5, high + 0.5] : [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05];
  const rough = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = log ? Math.max(1, Math.ceil((high - low) / 6)) : [1, 2, 5, 10].map((factor) => factor * power).find((factor) => factor >= rough);
  const pad = log ? 0.08 * (high - low) : 0.03 * (high - low);
  if (!known(from)) low -= pad;
  if (!known(to)) high += pad;
  const place = (value) => pixels[0] + (((log ? Math.log10(value) : value) - low) / (high - low)) * (pixels[1] - pixels[0]);
  const ticks = [];
  // Within a decade or two there are other round numbers than its ends.
  if (log && high - low < 2) {
    for (let k = Math.floor(low); k <= high; k += 1) ticks.push(...(high - low < 0.7 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : [1, 2, 5]).map((factor) => factor * 10 ** k).filter((tick) => Math.log10(tick) >= low && Math.log10(tick) <= high));
  } else for (let k = Math.ceil(low / step); k * step <= high && ticks.length < 40; k += 1) ticks.push(log ? 10 ** (k * step) : Number((k * step).toPrecision(12)));
  return { place, ticks, shows: (value) => known(value) && (!log || value > 0), pixels };
}

function axes(picture, across, up, labels, format) {
  const { width, height, left, right, bottom } = SIZE;
  for (const value of up.ticks) {
    const y = up.place(value);
    picture.append(svg("line", { x1: left, x2: width - right, y1: y, y2: y, stroke: "var(--line)" }));
    picture.append(svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, format.y(value)));
  }
  for (const value of across.ticks) {
    const x = across.place(value);
    picture.append(svg("line", { x1: x, x2: x, y1: height - bottom, y2: height - bottom + 4, stroke: "var(--faint)" }));
    picture.append(svg("text", { x, y: height - bottom + 17, "text-anchor": "middle" }, format.x(value)));
  }
  picture.append(svg("line", { x1: left, x2: width - right, y1: height - bottom, y2: height - bottom, stroke: "var(--faint)" }));
  picture.append(svg("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, labels.x || ""));
  if (labels.y) picture.append(svg("text", { x: 12, y: (SIZE.top + height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(SIZE.top + height - bottom) / 2})` }, labels.y));
}

// What was chosen in a chart, by its title: a page that is drawn again keeps it.
const CHOSEN = new Map();

function chosen(title) {
  if (!CHOSEN.has(title)) CHOSEN.set(title, { hidden: new Set() });
  return CHOSEN.get(title);
}

// The frame all charts share. `draw(picture, visible)` fills an empty picture; `table()` gives its rows.
function chart({ title, about, names, draw, table, logScale, select }) {
  const picture = svg("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: "img", tabindex: 0, "aria-label": `${title}. ${about || ""}` });
  const readout = el("div", { class: "readout", "aria-live": "polite" });
  const memory = chosen(title);
  const visible = names.map((name) => !memory.hidden.has(name));
  const options = { log: memory.log ?? Boolean(logScale && logScale.on) };
  let probe = null;
  const redraw = () => {
    picture.replaceChildren(svg("title", {}, title));
    probe = draw(picture, visible, options) || null;
  };
  const tools = el("div", { class: "tools" });
  if (names.length > 1) {
    names.forEach((name, i) => {
      const key = el("span", { class: "key", style: `border-top-color: ${colour(i)}${dash(i) ? "; border-top-style: dashed" : ""}` });
      tools.append(el("button", { type: "button", class: "legend", "aria-pressed": String(visible[i]), onclick: (event) => {
        visible[i] = !visible[i];
        if (visible[i]) memory.hidden.delete(name); else memory.hidden.add(name);
        event.currentTarget.setAttribute("aria-pressed", String(visible[i]));
        redraw();
      } }, key, shortened(name, 40)));
    });
  }
  if (select) tools.append(select(redraw));
  if (logScale) {
    tools.append(el("button", { type: "button", class: "toggle", "aria-pressed": String(options.log), title: "Logarithmic axis", onclick: (event) => {
      options.log = !options.log;
      memory.log = options.log;
      event.currentTarget.setAttribute("aria-pressed", String(options.log));
      redraw();
    } }, "log"));
  }
  const stem = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  tools.append(el("span", { class: "save" },
    el("button", { type: "button", title: `Save “${title}” as SVG`, onclick: () => save(new Blob([standalone(picture)], { type: "image/svg+xml" }), `${stem}.svg`) }, "SVG"),
    el("button", { type: "button", title: `Save “${title}” as PNG`, onclick: () => savePng(picture, `${stem}.png`) }, "PNG"),
    el("button", { type: "button", title: `Save the table of “${title}” as CSV`, onclick: () => save(new Blob([csv(table())], { type: "text/csv" }), `${stem}.csv`) }, "CSV")));
  const behind = el("details", { open: memory.open ? "" : null, ontoggle: (event) => {
    memory.open = event.currentTarget.open;
    if (event.currentTarget.open && event.currentTarget.children.length === 1) event.currentTarget.append(el("div", { class: "scroll" }, tableOf(table())));
  } }, el("summary", {}, "Table"));
  let at = -1;
  const show = (index) => {
    if (!probe || probe.count === 0) return;
    at = Math.max(0, Math.min(probe.count - 1, index));
    const { text, x } = probe.at(at);
    readout.textContent = text;
    picture.querySelector(".probe")?.remove();
    if (known(x)) picture.append(svg("line", { class: "probe", x1: x, x2: x, y1: SIZE.top, y2: SIZE.height - SIZE.bottom, stroke: "var(--faint)", "stroke-dasharray": "3 3" }));
  };
  picture.addEventListener("pointermove", (event) => {
    if (!probe) return;
    const box = picture.getBoundingClientRect();
    show(probe.nearest(((event.clientX - box.left) / box.width) * SIZE.width, ((event.clientY - box.top) / box.height) * SIZE.height));
  });
  picture.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (step === undefined || !probe) return;
    event.preventDefault();
    show(step === -Infinity ? 0 : step === Infinity ? probe.count - 1 : at + step);
  });
  redraw();
  const figure = el("figure", {}, el("figcaption", {}, title, about ? el("small", {}, about) : null), tools, picture, readout, behind);
  figure.redraw = redraw;
  return figure;
}

// series: [{ name, x: [...], y: [...], low?: [...], high?: [...], marks?: true, plain?: true }]; mark: { x, label }. Marks
// stand alone; what is plain is there to compare with.
function lineChart({ title, about, x = "epoch", y = "", series, mark, share = false, log = false, mayLog = true }) {
  series = series.filter((line) => line.y.some(known));
  const names = series.map((line) => line.name);
  const format = share ? (value) => `${Number((100 * value).toFixed(1))} %` : number;
  return chart({
    title, about, names,
    logScale: mayLog && !share ? { on: log } : null,
    draw(picture, visible, options) {
      const shown = series.filter((_, i) => visible[i]);
      const across = ruler(shown.flatMap((line) => line.x), { pixels: [SIZE.left, SIZE.width - SIZE.right] });
      const up = ruler(shown.flatMap((line) => [...line.y, ...(line.low || []), ...(line.high || [])]), { log: options.log, pixels: [SIZE.height - SIZE.bottom, SIZE.top] });
      axes(picture, across, up, { x, y }, { x: number, y: format });
      series.forEach((line, i) => {
        if (!visible[i]) return;
        if (line.low) picture.append(band(line, across, up, i));
        const [width, opacity] = line.thick ? [3.5, 1] : line.thin ? [1.2, 0.65] : [line.plain ? 1.2 : 2, 1];
        for (const piece of line.marks ? [] : pieces(line, across, up)) {
          picture.append(svg("polyline", { points: piece.map((point) => point.join(",")).join(" "), fill: "none", stroke: line.plain ? "var(--faint)" : colour(i), "stroke-width": width, "stroke-opacity": opacity, "stroke-dasharray": line.plain ? "4 3" : dash(i) }));
        }
        const points = pieces(line, across, up).flat();
        if (line.marks || (points.length <= 40 && !line.plain && !line.thin)) for (const [px, py] of points) picture.append(svg("circle", { cx: px, cy: py, r: line.marks ? 5 : 2.6, fill: colour(i) }));
      });
      if (mark && known(mark.x)) {
        const px = across.place(mark.x);
        picture.append(svg("line", { x1: px, x2: px, y1: SIZE.top, y2: SIZE.height - SIZE.bottom, stroke: "var(--faint)", "stroke-dasharray": "4 3" }));
        picture.append(svg("text", { x: px + (px > SIZE.width / 2 ? -4 : 4), y: SIZE.top + 10, "text-anchor": px > SIZE.width / 2 ? "end" : "start", ...HALO }, mark.label));
      }
      const places = [...new Set(shown.flatMap((line) => line.x.filter((_, k) => known(line.y[k]))))].sort((a, b) => a - b);
      return {
        count: places.length,
        nearest: (px) => nearestIndex(places.map(across.place), px),
        at: (index) => ({
          x: across.place(places[index]),
          text: [`${x} ${number(places[index])}`, ...shown.flatMap((line) => {
            const k = line.x.indexOf(places[index]);
            return k >= 0 && known(line.y[k]) ? [`${line.name || title}: ${format(line.y[k])}`] : [];
          })].join("   "),
        }),
      };
    },
    table() {
      const places = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
      const rows = places.map((place) => [place, ...series.map((line) => line.y[line.x.indexOf(place)] ?? null)]);
      return { head: [x, ...names.map((name) => name || title)], rows: rows.filter((row) => row.slice(1).some(known)) };
    },
  });
}

// A number that does not change needs no chart.
function constant({ title, about, text }) {
  return el("figure", { class: "constant" }, el("figcaption", {}, title, about ? el("small", {}, about) : null), el("p", {}, text));
}

function pieces(line, across, up) {
  const result = [[]];
  line.x.forEach((x, k) => {
    if (line.y[k] === null || line.y[k] === undefined) return;
    if (up.shows(line.y[k])) result[result.length - 1].push([across.place(x).toFixed(1), up.place(line.y[k]).toFixed(1)]);
    else if (result[result.length - 1].length) result.push([]);
  });
  return result.filter((piece) => piece.length);
}

function band(line, across, up, i) {
  const there = line.x.map((x, k) => [x, line.low[k], line.high[k]]).filter(([, low, high]) => up.shows(low) && up.shows(high));
  const points = [...there.map(([x, , high]) => [across.place(x), up.place(high)]), ...there.reverse().map(([x, low]) => [across.place(x), up.place(low)])];
  return svg("polygon", { points: points.map((point) => point.map((p) => p.toFixed(1)).join(",")).join(" "), fill: colour(i), "fill-opacity": 0.15 });
}

function nearestIndex(places, x) {
  let best = 0;
  places.forEach((place, i) => {
    if (Math.abs(place - x) < Math.abs(places[best] - x)) best = i;
  });
  return best;
}

const SHAPES = [
  (x, y, r) => svg("circle", { cx: x, cy: y, r }),
  (x, y, r) => svg("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r }),
  (x, y, r) => svg("polygon", { points: `${x},${y - 1.3 * r} ${x + 1.2 * r},${y + r} ${x - 1.2 * r},${y + r}` }),
  (x, y, r) => svg("polygon", { points: `${x},${y - 1.4 * r} ${x + 1.4 * r},${y} ${x},${y + 1.4 * r} ${x - 1.4 * r},${y}` }),
];

// views: [{ name, groups: [names], of: [group index per point] } | { name, values: [...] , log }]; points: { x, y, label }
function pointChart({ title, about, x, y, points, views, line, choices, share = false }) {
  const memory = chosen(title);
  let view = views.find((one) => one.name === memory.view) || views[0];
  const names = () => view.groups || [];
  return chart({
    title, about,
    names: views.length === 1 && view.groups ? view.groups : [],
    select: views.length > 1 ? (redraw) => el("label", {}, "colour by ", el("select", { onchange: (event) => {
      view = views[Number(event.currentTarget.value)];
      memory.view = view.name;
      redraw();
    } }, ...views.map((one, i) => el("option", { value: i, selected: one === view ? "" : null }, one.name)))) : null,
    draw(picture, visible) {
      // Beside or above its legend.
      const [beside, above] = views.length < 2 ? [0, 0] : view.groups ? [126, 0] : [0, 16];
      const pixels = { x: [SIZE.left, SIZE.width - SIZE.right - beside], y: [SIZE.height - SIZE.bottom, SIZE.top + above] };
      const across = ruler(points.x, { pixels: pixels.x, ...(choices ? { from: -0.5, to: choices.length - 0.5 } : {}) });
      const up = ruler(points.y, { pixels: pixels.y });
      if (choices) across.ticks = choices.map((_, k) => k);
      axes(picture, across, up, { x, y }, { x: choices ? (k) => shortened(choices[k], Math.max(6, Math.floor(80 / choices.length))) : number, y: share ? percent : number });
      if (line) picture.append(svg("line", { x1: across.place(line[0][0]), y1: up.place(line[0][1]), x2: across.place(line[1][0]), y2: up.place(line[1][1]), stroke: "var(--faint)", "stroke-dasharray": "4 3" }));
      const shade = view.values ? shades(view.values, view.log) : null;
      const shown = [];
      points.x.forEach((px, k) => {
        const group = view.of ? view.of[k] : 0;
        if (!known(px) || !known(points.y[k]) || (visible.length && visible[group] === false)) return;
        const [cx, cy] = [across.place(px), up.place(points.y[k])];
        const shape = SHAPES[Math.floor(group) % SHAPES.length](cx, cy, points.x.length > 800 ? 2 : 3.2);
        shape.setAttribute("fill", shade ? shade(view.values[k]) : colour(group));
        shape.setAttribute("fill-opacity", points.x.length > 800 ? 0.6 : 0.85);
        picture.append(shape);
        shown.push([cx, cy, k]);
      });
      if (views.length > 1) legend(picture, names(), view, shade);
      return {
        count: shown.length,
        nearest(px, py) {
          let best = 0;
          const distance = ([cx, cy]) => (cx - px) ** 2 + (cy - py) ** 2;
          shown.forEach((point, i) => {
            if (distance(point) < distance(shown[best])) best = i;
          });
          return best;
        },
        at: (i) => ({ x: null, text: `${points.label[shown[i][2]]}   ${x} ${number(points.x[shown[i][2]])}   ${y} ${number(points.y[shown[i][2]])}` }),
      };
    },
    table() {
      const groups = views.filter((one) => one.groups);
      const values = views.filter((one) => one.values);
      return {
        head: ["item", x, y, ...groups.map((one) => one.name), ...values.map((one) => one.name)],
        rows: points.x.map((px, k) => [points.label[k], px, points.y[k], ...groups.map((one) => one.groups[one.of[k]]), ...values.map((one) => one.values[k])]),
      };
    },
  });
}

function legend(picture, groups, view, shade) {
  const top = SIZE.top + 6;
  if (shade) {
    const [low, high] = shade.ends;
    for (let i = 0; i < 40; i += 1) picture.append(svg("rect", { x: SIZE.width - 190 + 3 * i, y: top, width: 3, height: 8, fill: ramp(i / 39) }));
    picture.append(svg("text", { x: SIZE.width - 196, y: top + 8, "text-anchor": "end" }, number(low)));
    picture.append(svg("text", { x: SIZE.width - 64, y: top + 8 }, number(high)));
    return;
  }
  const shown = groups.slice(0, 12);
  shown.forEach((name, i) => {
    const mark = SHAPES[i % SHAPES.length](SIZE.width - 130, top + 4 + 15 * i, 4);
    mark.setAttribute("fill", colour(i));
    picture.append(mark, svg("text", { x: SIZE.width - 120, y: top + 8 + 15 * i }, shortened(name, 18)));
  });
}

// From dark blue to yellow, lightness rising all the way (cividis): the same to all eyes.
const CIVIDIS = [[0, 34, 78], [42, 63, 109], [87, 93, 109], [125, 124, 120], [165, 156, 116], [210, 192, 96], [254, 232, 56]];
function ramp(share) {
  const place = Math.max(0, Math.min(1, share)) * (CIVIDIS.length - 1);
  const k = Math.min(CIVIDIS.length - 2, Math.floor(place));
  const mixed = CIVIDIS[k].map((from, i) => Math.round(from + (place - k) * (CIVIDIS[k + 1][i] - from)));
  return `rgb(${mixed.join(",")})`;
}

function shades(values, log) {
  const shown = values.filter((value) => known(value) && (!log || value > 0));
  const low = shown.length ? shown.reduce((a, b) => Math.min(a, b)) : 0;
  const high = shown.length ? shown.reduce((a, b) => Math.max(a, b)) : 1;
  const scale = (value) => (log ? Math.log10(Math.max(value, low || 1e-300)) : value);
  const of = (value, most = 1) => (known(value) && high > low ? ramp((most * (scale(value) - scale(low))) / (scale(high) - scale(low))) : ramp(0));
  of.ends = [low, high];
  return of;
}

// How many values lie in each of some twenty bins; bins of equal ratio where `log`.
function histogram({ title, about, x, values, log = false, labels }) {
  const scale = (value) => (log ? Math.log10(value) : value);
  const shown = values.filter((value) => known(value) && (!log || value > 0));
  const low = shown.length ? shown.reduce((a, b) => Math.min(a, b)) : 0;
  const high = shown.length ? shown.reduce((a, b) => Math.max(a, b)) : 1;
  const whole = shown.every(Number.isInteger) && high - low < 24;
  const bins = whole ? high - low + 1 : high > low ? 20 : 1;
  const width = whole ? 1 : (scale(high) - scale(low)) / bins || 1;
  const counts = Array(bins).fill(0);
  for (const value of shown) counts[Math.min(bins - 1, Math.floor((scale(value) - scale(low)) / width))] += 1;
  const edge = (k) => (log ? 10 ** (scale(low) + k * width) : low + k * width);
  const name = (k) => (whole ? number(edge(k)) : `${number(edge(k))} to ${number(edge(k + 1))}`);
  return chart({
    title, about, names: [],
    draw(picture) {
      const across = ruler([edge(0), edge(bins)], { log, from: scale(edge(0)), to: scale(edge(bins)), pixels: [SIZE.left, SIZE.width - SIZE.right] });
      const up = ruler([0, ...counts], { from: 0, pixels: [SIZE.height - SIZE.bottom, SIZE.top] });
      axes(picture, across, up, { x, y: labels || "" }, { x: number, y: number });
      counts.forEach((count, k) => {
        const [from, to] = [across.place(edge(k)), across.place(edge(k + 1))];
        picture.append(svg("rect", { x: from + 0.5, y: up.place(count), width: Math.max(1, to - from - 1), height: SIZE.height - SIZE.bottom - up.place(count), fill: colour(0) }));
      });
      const centres = counts.map((_, k) => (across.place(edge(k)) + across.place(edge(k + 1))) / 2);
      return { count: bins, nearest: (px) => nearestIndex(centres, px), at: (k) => ({ x: centres[k], text: `${name(k)}: ${counts[k]}` }) };
    },
    table: () => ({ head: [x, "count"], rows: counts.map((count, k) => [name(k), count]) }),
  });
}

// One polyline per trial through an axis per setting; the last axis is its value.
function parallelChart({ title, about, axes: columns, rows, best }) {
  return chart({
    title, about, names: [],
    draw(picture) {
      const { width, height, left, right, top, bottom } = SIZE;
      const place = (i) => left + (columns.length > 1 ? (i * (width - left - right - 30)) / (columns.length - 1) : 0);
      const rulers = columns.map((column) => {
        const pixels = [height - bottom - 8, top + 14];
        if (column.choices) return { place: (value) => (column.choices.length > 1 ? pixels[0] + (column.choices.indexOf(value) / (column.choices.length - 1)) * (pixels[1] - pixels[0]) : pixels[0]), ticks: column.choices, format: String };
        return { ...ruler(rows.map((row) => row.values[column.index]), { log: column.log, pixels }), format: column.share ? percent : number };
      });
      const shade = shades(rows.map((row) => row.value));
      const order = rows.map((_, k) => k).sort((a, b) => (rows[a].value ?? -Infinity) - (rows[b].value ?? -Infinity));
      for (const k of order) {
        const points = columns.map((column, i) => [place(i), rulers[i].place(rows[k].values[column.index])]).filter(([, y]) => known(y));
        picture.append(svg("polyline", { points: points.map((point) => point.map((p) => p.toFixed(1)).join(",")).join(" "), fill: "none", stroke: shade(rows[k].value, 0.85), "stroke-width": rows[k].name === best ? 4 : 1.6, "stroke-opacity": rows[k].name === best ? 1 : 0.75 }, svg("title", {}, `${rows[k].name}: ${percent(rows[k].value)}`)));
      }
      columns.forEach((column, i) => {
        picture.append(svg("line", { x1: place(i), x2: place(i), y1: top + 10, y2: height - bottom - 4, stroke: "var(--faint)" }));
        for (const tick of rulers[i].ticks) picture.append(svg("text", { x: place(i) + 4, y: rulers[i].place(tick) + 4, ...HALO }, shortened(rulers[i].format(tick), 16)));
        picture.append(svg("text", { x: place(i), y: height - bottom + 14 + 13 * (i % 2), "text-anchor": i === 0 ? "start" : i === columns.length - 1 ? "end" : "middle" }, column.name));
      });
      return null;
    },
    table: () => ({ head: ["trial", ...columns.map((column) => column.name)], rows: rows.map((row) => [row.name, ...columns.map((column) => row.values[column.index])]) }),
  });
}

// A long name on one line, cut off for the eye alone.
const label = (text) => ([...String(text)].length > 40 ? el("span", { class: "long", title: shortened(text, 400) }, String(text)) : String(text));

function tableOf({ head, rows, caption }) {
  const cell = (kind, value) => el(kind, typeof value === "number" || value === null ? { class: "n" } : {}, typeof value === "number" ? number(value) : value === null || value === undefined ? "–" : label(value));
  return el("table", {}, caption ? el("caption", {}, caption) : null,
    el("thead", {}, el("tr", {}, ...head.map((title) => el("th", { scope: "col" }, label(title))))),
    el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map((value) => cell("td", value))))));
}

// A cell that a spreadsheet would take for a formula is given an apostrophe.
function csv({ head, rows }) {
  const quoted = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [head, ...rows].map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
}

// The picture with the colours of the page written into it.
function standalone(picture) {
  const copy = picture.cloneNode(true);
  const style = getComputedStyle(document.documentElement);
  copy.setAttribute("xmlns", SVG);
  copy.removeAttribute("tabindex");
  copy.querySelector(".probe")?.remove();
  const box = picture.viewBox.baseVal;
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  copy.prepend(svg("rect", { x: box.x, y: box.y, width: box.width, height: box.height, fill: style.getPropertyValue("--page").trim() }));
  copy.prepend(svg("style", {}, `text { fill: ${style.getPropertyValue("--faint")}; font: 11px system-ui, sans-serif; }`));
  return new XMLSerializer().serializeToString(copy).replace(/var\((--[a-z0-9-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
}

function save(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function savePng(picture, name) {
  const image = new Image();
  const box = picture.viewBox.baseVal;
  image.onload = () => {
    const canvas = el("canvas", { width: 2 * box.width, height: 2 * box.height });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, name), "image/png");
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(picture))}`;
}

// The sections of a report, from the data embedded in the page.
"use strict";

const SPLITS = ["train", "val", "test"];
const GROUPS = [...SPLITS, "in no split"];
const groupOf = (split) => (split === null ? 3 : SPLITS.indexOf(split));

function section(id, title, ...children) {
  const there = children.flat().filter(Boolean);
  if (!there.length) return null;
  return el("section", { id, "aria-labelledby": `${id}-title` }, el("h2", { id: `${id}-title` }, title), ...there);
}

const grid = (...children) => {
  const there = children.flat().filter(Boolean);
  return there.length ? el("div", { class: "grid" }, ...there) : null;
};

function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 1) return `${Math.round(1000 * seconds)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

function alerts(run) {
  return (run.alerts || []).map(({ good, title, text, advice }) =>
    el("div", { class: good ? "alert good" : "alert", role: good ? "note" : "alert" }, el("strong", {}, `${title}. `), text, advice ? el("p", {}, advice) : null));
}

function card(value, name) {
  return el("div", { class: "card" }, el("b", {}, value), el("span", {}, name));
}

function scoreCards(run) {
  const cards = [];
  for (const { split, metrics } of run.final.splits) {
    if (metrics.kind === "classes") cards.push(card(percent(metrics.accuracy), `${split} accuracy (${metrics.count})`));
    else cards.push(card(number(metrics.mean_absolute_error), `${split} mean absolute error`));
  }
  if (known(run.majority)) cards.push(card(percent(run.majority), "majority class"));
  if (known(run.baseline)) cards.push(card(percent(run.baseline), "model without edges"));
  cards.push(card(number(run.best_epoch), `epoch kept, of ${run.epochs}`), card(duration(run.seconds), "training time"), card(number(run.weights), "weights"));
  return el("div", { class: "cards" }, ...cards);
}

// Of a training that runs: where it is.
function liveSummary(run, many) {
  const { history } = run;
  const last = (values) => (values || []).findLast(known);
  const cards = [card(`${last(history.epoch) ?? 0} of ${run.until}`, run.done ? "epochs, done" : "epochs")];
  for (const split of SPLITS) {
    const of = history.splits[split];
    if (known(last(of?.accuracy))) cards.push(card(percent(last(of.accuracy)), `${split} accuracy`));
    else if (known(last(of?.loss))) cards.push(card(number(last(of.loss)), `${split} loss`));
  }
  if (history.epoch.length) cards.push(card(number(last(history.loss)), "loss"), card(number(last(history.residual_mean)), "mean residual"));
  return [
    many ? el("h3", {}, run.name) : null,
    el("div", { class: "cards" }, ...cards),
    many ? null : el("p", { class: "note" }, `${run.name}: ${run.transition}; solver ${run.solver}.`),
    many ? null : folded("All settings", { head: ["setting", "value"], rows: run.settings }),
  ];
}

// A table that is opened on demand, and stays open.
function folded(title, table) {
  const memory = chosen(title);
  return el("details", { open: memory.open ? "" : null, ontoggle: (event) => { memory.open = event.currentTarget.open; } }, el("summary", {}, title), el("div", { class: "scroll" }, tableOf(table)));
}

function summary(run, many) {
  if (run.live) return liveSummary(run, many);
  const rows = [
    ["Data", `${run.data.name} (SHA-256 ${run.data.fingerprint.slice(0, 12)}…)`],
    ["Predicts", run.level === "node" ? "nodes" : "graphs"],
    ["Transition", run.transition], ["Solver", run.solver], ["Seed", run.seed],
    ["Stopped", run.stop],
    ["Software", `lpgnn ${run.versions.library}${run.versions.commit ? `, commit ${run.versions.commit}` : ""}, ${run.versions.target}`],
    ["Machine", `${run.machine.cpu}, ${run.machine.threads} of ${run.machine.cores} cores`],
    ["Date", run.date],
  ];
  return [
    many ? el("h3", {}, run.name) : null,
    scoreCards(run),
    el("table", { class: "facts" }, el("tbody", {}, ...rows.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, String(value)))))),
    el("h3", {}, "Settings that differ from the defaults"),
    run.changed.length ? tableOf({ head: ["setting", "value", "default"], rows: run.changed }) : el("p", {}, "None: everything is at its default for this data."),
    folded("All settings", { head: ["setting", "value"], rows: run.settings }),
    run.rerun ? el("div", {}, el("h3", {}, "Run it again"), el("pre", { tabindex: 0 }, run.rerun)) : null,
  ];
}

// One line per run, or several per run named `run: column`.
function curves(runs, columns, options) {
  const series = [];
  for (const run of runs) {
    for (const [name, path, low, high] of columns) {
      const values = path(run.history);
      if (!values || !values.some(known)) continue;
      series.push({ name: runs.length > 1 ? (columns.length > 1 ? `${run.name}: ${name}` : run.name) : name, x: run.history.epoch, y: values, low: low && low(run.history), high: high && high(run.history) });
    }
  }
  if (!series.length) return null;
  if (series.length === 1) {
    const values = series[0].y.filter(known);
    const format = options.share ? percent : number;
    if (values.every((value) => value === values[0])) return constant({ ...options, text: values.length === 1 ? `${format(values[0])}, measured once, at epoch ${series[0].x[series[0].y.findIndex(known)]}.` : `${format(values[0])} in all ${values.length} epochs in which it was measured.` });
  }
  const mark = runs.length === 1 && known(runs[0].best_epoch) ? { x: runs[0].best_epoch, label: "epoch kept" } : null;
  return lineChart({ series, mark, ...options });
}

function curveSection(runs) {
  const of = (name) => (history) => history[name];
  const split = (name, what) => (history) => history.splits[name]?.[what];
  const each = (what) => SPLITS.map((name) => [name, split(name, what)]);
  const all = [
    curves(runs, [["loss", of("loss")]], { title: "Loss", about: "Of the training data, as the solver saw it.", y: "loss" }),
    curves(runs, each("accuracy"), { title: "Accuracy", about: "On states converged from zero with the weights of the epoch.", share: true }),
    curves(runs, each("loss"), { title: "Loss on converged states", about: "Mean per node or graph.", y: "loss" }),
    curves(runs, [["mean", of("residual_mean")], ["median", of("residual_p50")], ["95 % of nodes below", of("residual_p95")], ["largest", of("residual_max")]], { title: "Residual |x − f(x)|", about: "How far the states of training are from meeting their constraints.", log: true }),
    curves(runs, [["cheating gap", of("cheating_gap")]], { title: "Cheating gap", about: "Training accuracy on the states of training minus that on converged states. Above zero, the read-out reads states that f does not reproduce; on new graphs that share of the accuracy is not there.", share: true }),
    curves(runs, [["mean", of("multiplier_mean")], ["largest", of("largest_multiplier")]], { title: "Multipliers |λ|", about: "Large where a constraint resists the loss.", log: true }),
    curves(runs, [["weights", of("gradient_weights")], ["states", of("gradient_states")], ["multipliers", of("gradient_multipliers")]], { title: "Gradient norms", log: true }),
    curves(runs, [["spectral radius", of("spectral_radius")]], { title: "Spectral radius of ∂f/∂x", about: "Below 1, states converge; near 1, information travels far.", mayLog: false }),
    curves(runs, [["mean |x|", of("state_mean")]], { title: "Size of the states" }),
    curves(runs, [["learning rate", of("lr")]], { title: "Learning rate of the weights", log: true }),
    curves(runs, [["not converged", of("not_converged")]], { title: "Graphs that did not converge", mayLog: false }),
    curves(runs, [["seconds", of("seconds")]], { title: "Seconds per epoch", about: "Evaluation included, where there is one." }),
  ].filter(Boolean);
  const changes = (figure) => !figure.classList.contains("constant");
  return section("curves", "Training", grid(all.filter(changes)), grid(all.filter((figure) => !changes(figure))));
}

function confusion(run, { split, metrics }) {
  const largest = Math.max(1, ...metrics.confusion.flat());
  const head = el("tr", {}, el("th", { scope: "col" }, "true \\ predicted"), ...run.classes.map((one) => el("th", { scope: "col" }, label(one))));
  const rows = metrics.confusion.map((row, i) => el("tr", {}, el("th", { scope: "row" }, label(run.classes[i])), ...row.map((count) => {
    const share = Math.round((85 * count) / largest);
    return el("td", { style: `background: color-mix(in srgb, var(--accent) ${share}%, transparent)${share > 55 ? "; color: var(--page)" : ""}` }, String(count));
  })));
  return el("div", { class: "scroll" }, el("table", { class: "confusion" }, el("caption", {}, `Confusion matrix, ${split}`), el("thead", {}, head), el("tbody", {}, ...rows)));
}

function perClass(run, { split, metrics }) {
  return el("div", { class: "scroll" }, tableOf({
    caption: `Per class, ${split}`, head: ["class", "precision", "recall", "F1", "support"],
    rows: metrics.per_class.map((one, i) => [String(run.classes[i]), one.precision, one.recall, one.f1, one.support]),
  }));
}

const heldOut = (run) => run.final.splits.find((one) => one.split === "test") || run.final.splits.find((one) => one.split === "val") || run.final.splits[0];

function ofSplit(run, name) {
  return run.items.index.map((_, k) => k).filter((k) => run.items.split[k] === name);
}

// True against false positives as the threshold falls; ties move together.
function roc(scores) {
  const sorted = [...scores].sort((a, b) => b[0] - a[0]);
  const positives = sorted.filter(([, truth]) => truth).length;
  const negatives = sorted.length - positives;
  const points = [[0, 0]];
  let [right, wrong] = [0, 0];
  sorted.forEach(([score, truth], k) => {
    if (truth) right += 1; else wrong += 1;
    if (k + 1 === sorted.length || sorted[k + 1][0] !== score) points.push([wrong / Math.max(1, negatives), right / Math.max(1, positives)]);
  });
  return points;
}

function twoClasses(run) {
  const best = heldOut(run);
  if (!run.items || run.classes.length !== 2 || !best) return null;
  const rows = ofSplit(run, best.split).filter((k) => known(run.items.positive?.[k]) && run.items.target[k] !== null);
  if (rows.length < 10) return null;
  const scores = rows.map((k) => [run.items.positive[k], run.items.target[k] === 1]);
  const points = roc(scores);
  const bins = Array.from({ length: 10 }, () => [0, 0, 0]);
  for (const [p, truth] of scores) {
    const bin = bins[Math.min(9, Math.floor(10 * p))];
    bin[0] += 1; bin[1] += p; bin[2] += truth ? 1 : 0;
  }
  const filled = bins.filter(([count]) => count);
  return [
    lineChart({ title: "ROC", about: `Class ${shortened(run.classes[1], 60)} against ${shortened(run.classes[0], 60)}, ${best.split}${known(best.metrics.auc) ? `; area ${best.metrics.auc.toFixed(3)}` : ""}.`, x: "false positive rate", y: "true positive rate", mayLog: false, series: [{ name: "model", x: points.map(([x]) => x), y: points.map(([, y]) => y) }, { name: "chance", x: [0, 1], y: [0, 1], plain: true }] }),
    lineChart({ title: "Calibration", about: `Of those given a probability of class ${shortened(run.classes[1], 60)}, how many are of it, ${best.split}; ten bins.`, x: "predicted probability", y: "share", mayLog: false, series: [{ name: "model", x: filled.map(([count, sum]) => sum / count), y: filled.map(([count, , truth]) => truth / count) }, { name: "perfect", x: [0, 1], y: [0, 1], plain: true }] }),
  ];
}

function regression(run) {
  if (!run.items || run.classes.length || !run.items.values) return null;
  return run.value_names.map((name, j) => {
    const rows = run.items.index.map((_, k) => k).filter((k) => known(run.items.values[j][k]));
    const [truth, guess] = [rows.map((k) => run.items.values[j][k]), rows.map((k) => run.items.predicted_values[j][k])];
    const [low, high] = [Math.min(...truth), Math.max(...truth)];
    return pointChart({ title: `Predicted against true: ${name}`, x: "true", y: "predicted", points: { x: truth, y: guess, label: rows.map((k) => `${run.level} ${run.items.index[k]}`) }, views: [{ name: "split", groups: GROUPS, of: rows.map((k) => groupOf(run.items.split[k])) }], line: [[low, low], [high, high]] });
  });
}

function predictionSection(run) {
  const splits = run.final.splits.filter((one) => one.metrics.kind === "classes");
  const values = run.final.splits.filter((one) => one.metrics.kind !== "classes");
  const small = run.classes.length <= 30;
  return section("predictions", "Predictions",
    grid(splits.filter((one) => small).map((one) => confusion(run, one)), splits.map((one) => perClass(run, one))),
    values.length ? tableOf({ caption: "Errors", head: ["split", ...Object.keys(values[0].metrics).filter((key) => known(values[0].metrics[key]))], rows: values.map((one) => [one.split, ...Object.keys(values[0].metrics).filter((key) => known(values[0].metrics[key])).map((key) => one.metrics[key])]) }) : null,
    grid(twoClasses(run), regression(run)));
}

function constraintSection(run) {
  const graphs = run.final.graphs;
  const one = graphs && graphs.residuals.length > 1;
  return section("constraints", "Convergence on each graph", grid(
    one ? histogram({ title: "Residual per graph", about: `After convergence; the tolerance is ${number(run.tol)}.`, x: "residual", values: graphs.residuals, log: true, labels: "graphs" }) : null,
    one ? histogram({ title: "Iterations per graph", about: "From zero to the fixed point.", x: "iterations", values: graphs.iterations, labels: "graphs" }) : null,
    one && graphs.converged.some((yes) => !yes) ? tableOf({ caption: "Graphs that did not converge", head: ["graph", "residual", "iterations"], rows: graphs.converged.map((yes, k) => [yes, k]).filter(([yes]) => !yes).slice(0, 50).map(([, k]) => [k, graphs.residuals[k], graphs.iterations[k]]) }) : null,
    !one && graphs && graphs.residuals.length ? el("p", {}, `One graph: residual ${number(graphs.residuals[0])} after ${graphs.iterations[0]} iterations; the tolerance is ${number(run.tol)}.`) : null));
}

function stateSection(run) {
  const items = run.items;
  if (!items || !items.pca_x) return null;
  const views = [];
  if (run.classes.length) {
    views.push({ name: "class", groups: run.classes, of: items.target.map((target) => target ?? 0) });
    views.push({ name: "error", groups: ["right", "wrong"], of: items.target.map((target, k) => (target === items.predicted[k] ? 0 : 1)) });
  } else if (items.values) views.push({ name: `true ${run.value_names[0]}`, values: items.values[0] });
  views.push({ name: "split", groups: GROUPS, of: items.split.map(groupOf) });
  if (items.multiplier?.some(known)) views.push({ name: "|λ|", values: items.multiplier, log: true });
  const what = run.level === "node" ? "node" : "graph";
  const sampled = items.of > items.index.length ? ` A sample of ${items.index.length} of ${items.of}.` : "";
  return section("states", "Map of the states", pointChart({ title: "States, first two principal components", about: `One mark per ${what}${what === "graph" ? ", its states averaged" : ""}; ${percent(items.pca_explained)} of the variance.${sampled}`, x: "component 1", y: "component 2", points: { x: items.pca_x, y: items.pca_y, label: items.index.map((i) => `${what} ${i}`) }, views }));
}

function drawingSection(run) {
  if (!run.drawings?.length) return null;
  return section("graphs", "Graphs to look at", el("p", { class: "note" }, `Drag to pan, or use the arrow keys; zoom with + and −. Colour: the sum of a node's state in the last layer.${run.level === "node" ? " A ring marks a node that is predicted wrongly; the node in question is larger." : ""}`),
    grid(run.drawings.map((one) => drawing({ title: `${one.why}: ${one.name}`, text: one.text, count: one.nodes, edges: one.edges, values: one.values, ringed: one.wrong, centre: one.centre }))));
}

function crossvalSection(cv) {
  if (!cv) return null;
  const folds = cv.values.map((_, k) => k + 1);
  const deviation = (std) => (cv.share ? (100 * std).toFixed(1) : number(std));
  const score = cv.share ? percent : number;
  const band = { name: `${score(cv.mean)} ± ${deviation(cv.std)}`, x: [0.5, cv.values.length + 0.5], y: [cv.mean, cv.mean], low: [cv.mean - cv.std, cv.mean - cv.std], high: [cv.mean + cv.std, cv.mean + cv.std] };
  const rows = [["LP-GNN", score(cv.mean), deviation(cv.std)]];
  if (cv.baseline) rows.push(["MLP without edges", score(cv.baseline.mean), deviation(cv.baseline.std)]);
  if (cv.majority) rows.push(["majority class", score(cv.majority.mean), deviation(cv.majority.std)]);
  return section("folds", "Cross-validation",
    el("div", { class: "cards" }, card(`${score(cv.mean)} ± ${deviation(cv.std)}`, `test ${cv.metric}, ${cv.values.length} folds`), card(cv.protocol, "protocol"), cv.epoch ? card(number(cv.epoch), "epoch of the mean curve") : "", card(duration(cv.seconds), "time")),
    el("p", {}, cv.about),
    tableOf({ caption: "Beside what needs no edges", head: ["model", "test", cv.share ? "± std, points" : "± std"], rows }),
    grid(
      lineChart({ title: `Test ${cv.metric} of each fold`, about: `${cv.protocol}: mean ± standard deviation shaded.`, x: "fold", share: cv.share, series: [{ name: "fold", x: folds, y: cv.values, marks: true }, band] }),
      cv.curves?.length ? lineChart({ title: `Test ${cv.metric} against epochs`, about: "Every fold, and their mean.", share: cv.share, series: [{ name: "mean", x: cv.epochs, y: cv.mean_curve, thick: true }, ...cv.curves.map((curve, k) => ({ name: `fold ${k + 1}`, x: cv.epochs, y: curve, thin: true }))], mark: cv.epoch ? { x: cv.epoch, label: "epoch chosen" } : null }) : null),
    cv.alerts.map(({ title, text }) => el("div", { class: "alert" }, el("strong", {}, `${title}. `), text)));
}

function searchSection(search) {
  if (!search) return null;
  const axis = (name, index) => {
    const values = search.trials.map((trial) => trial.values[index]);
    if (values.every(known)) return { name, index, log: values.every((value) => value > 0) && Math.max(...values) / Math.min(...values) > 20 };
    return { name, index, choices: [...new Set(values)] };
  };
  const columns = search.settings.map(axis);
  const rows = search.trials.map((trial) => ({ ...trial, values: [...trial.values, trial.value] }));
  const last = { name: search.metric, index: search.settings.length, share: search.share };
  const spread = columns.filter((column) => new Set(search.trials.map((trial) => trial.values[column.index])).size > 1);
  return section("trials", "Search",
    el("p", {}, search.about),
    el("div", { class: "scroll" }, tableOf({ caption: "Trials, best first", head: ["trial", search.metric, "epochs", ...search.settings], rows: [...search.trials].sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity)).map((trial) => [trial.name, search.share ? percent(trial.value) : trial.value, trial.epochs, ...trial.values]) })),
    grid(
      columns.length ? parallelChart({ title: "Trials as parallel coordinates", about: "One line per trial; the best is thick, lighter is better.", axes: [...columns, last], rows, best: search.best }) : null,
      spread.map((column) => trialChart(search, column))));
}

// The value of every trial against one setting, by how long it was trained.
function trialChart(search, column) {
  const { trials, metric } = search;
  const lengths = [...new Set(trials.map((trial) => trial.epochs))].sort((a, b) => a - b);
  const setting = trials.map((trial) => trial.values[column.index]);
  const place = (value) => (column.choices ? column.choices.indexOf(value) : column.log ? Math.log10(value) : value);
  return pointChart({
    title: `${metric} against ${column.name}`, x: column.log ? `log10 ${column.name}` : column.name, y: metric, share: search.share, choices: column.choices,
    points: { x: setting.map(place), y: trials.map((trial) => trial.value), label: trials.map((trial, k) => `${trial.name}, ${number(setting[k])}`) },
    views: [{ name: "epochs", groups: lengths.map((length) => `${length} epochs`), of: trials.map((trial) => lengths.indexOf(trial.epochs)) }],
  });
}

function differences(runs) {
  if (runs.length < 2 || runs.some((run) => run.live)) return null;
  const keys = [...new Set(runs.flatMap((run) => run.settings.map(([key]) => key)))];
  const value = (run, key) => run.settings.find(([name]) => name === key)?.[1] ?? null;
  const different = keys.filter((key) => new Set(runs.map((run) => value(run, key))).size > 1);
  const score = (run) => {
    const one = heldOut(run);
    return one ? `${one.split} ${one.metrics.kind === "classes" ? percent(one.metrics.accuracy) : number(one.metrics.mean_absolute_error)}` : "–";
  };
  const rows = [["score", ...runs.map(score)], ["epoch kept", ...runs.map((run) => run.best_epoch)], ["training time", ...runs.map((run) => duration(run.seconds))], ...different.map((key) => [key, ...runs.map((run) => value(run, key))])];
  return section("differences", "What differs", el("div", { class: "scroll" }, tableOf({ head: ["", ...runs.map((run) => run.name)], rows })));
}

function render(data) {
  const { runs } = data;
  document.title = `${data.title} – lpgnn report`;
  document.getElementById("title").textContent = data.title;
  document.getElementById("subtitle").textContent = data.subtitle;
  const single = runs.length === 1 ? runs[0] : null;
  const sections = [
    ...runs.flatMap((run) => alerts(run)),
    single ? section("summary", "Summary", ...summary(single, false)) : section("summary", "Runs", ...runs.flatMap((run) => summary(run, true))),
    differences(runs), crossvalSection(data.crossval), searchSection(data.search),
    runs.length ? curveSection(runs) : null,
    ...(single && !single.live ? [predictionSection(single), constraintSection(single), stateSection(single), drawingSection(single)] : []),
  ].filter(Boolean);
  document.getElementById("main").replaceChildren(...sections);
  document.getElementById("contents").replaceChildren(...sections.filter((one) => one.id).map((one) => el("a", { href: `#${one.id}` }, one.querySelector("h2").textContent)));
}

"use strict";
// The panes below the timeline: tables from the data, the source with its hot lines, the memory map.

const table = (heads, rows) => `<table class="data"><thead><tr>${heads.map((head) => `<th${head.startsWith("#") ? ' class="n"' : ""}>${escaped(head.replace("#", ""))}</th>`).join("")}</tr></thead><tbody>${rows.map((row) => `<tr>${row.map((cell, k) => `<td${heads[k].startsWith("#") ? ' class="n"' : ""}>${cell}</td>`).join("")}</tr>`).join("")}</tbody></table>`;
const swatch = (label) => `<i class="swatch" style="background:${colour(label)}"></i>`;
const cause = (label) => `<span style="display:inline-flex;gap:6px;align-items:center">${swatch(label)}${escaped(meaning(label))}</span>`;
const lineLink = (place) => (place ? `<a class="line" data-line="${escaped(place)}" tabindex="0">${escaped(place)}</a>` : "");
const meter = (share) => `<span class="meter" style="width:${Math.max(0, Math.min(1, share)) * 160}px"></span>`;
const size = (bytes) => (bytes >= 1 << 20 ? `${(bytes / (1 << 20)).toFixed(2)} MiB` : bytes >= 1024 ? `${(bytes / 1024).toFixed(1)} KiB` : `${bytes} B`);
const joined = (row) => (row.sub_cause ? `${row.cause}/${row.sub_cause}` : row.cause);

function stacked(causes, memory) {
  const parts = [];
  for (const [name, cycles] of Object.entries(causes)) {
    if (name === "memory") for (const [sub, some] of Object.entries(memory)) parts.push([`memory/${sub}`, some]);
    else parts.push([name, cycles]);
  }
  parts.sort((a, b) => Object.keys(COLOURS).indexOf(a[0]) - Object.keys(COLOURS).indexOf(b[0]));
  const whole = parts.reduce((sum, part) => sum + part[1], 0) || 1;
  return `<span class="bar">${parts.map(([label, cycles]) => `<i style="width:${100 * cycles / whole}%;background:${colour(label)}" title="${escaped(meaning(label))}: ${number(cycles)} cycles, ${percent(cycles, whole)}"></i>`).join("")}</span>`;
}

function ledgerPane(pane) {
  const cores = Object.keys(data.pipes);
  pane.innerHTML = `<p class="note">Where every cycle of every pipe went. Each bar is the whole run; its parts add up exactly. Hover a part for its cycles.</p><label>Core <select id="ledger-core">${cores.map((core) => `<option>${core}</option>`).join("")}</select></label><div id="ledger-table" style="margin:8px 0 18px"></div><h3>Longest waits, all cores together</h3><div id="waits"></div>`;
  const fill = () => {
    const pipes = data.pipes[pane.querySelector("#ledger-core").value] || {};
    pane.querySelector("#ledger-table").innerHTML = table(
      ["Pipe", "Where its time went", "#Busy", "#Waits", "#Idle", "#Instructions", "#Moved"],
      Object.entries(pipes).map(([name, entry]) => [name, stacked(entry.causes, entry.memory), percent(entry.busy, data.cycles), percent(entry.wait, data.cycles), percent(entry.idle, data.cycles), number(entry.instructions), entry.bytes ? size(entry.bytes) : ""]));
  };
  pane.querySelector("#ledger-core").addEventListener("change", fill);
  const slowest = data.cores.reduce((a, b) => (b.end > a.end ? b : a), data.cores[0]);
  if (slowest) pane.querySelector("#ledger-core").value = slowest.name;
  fill();
  const all = data.cycles * data.cores.length || 1;
  const waits = data.stalls.filter((row) => row.line && !["busy", "idle", "launch", "tail"].includes(row.cause)).slice(0, 25);
  pane.querySelector("#waits").innerHTML = table(["Pipe", "Line", "Waits for", "Set by", "Because it", "#Cycles", "#Of all"],
    waits.map((row) => [row.pipe, lineLink(row.line), cause(joined(row)), row.set_pipe ? `${row.set_pipe} at ${lineLink(row.set_line)}` : "", row.late ? (row.late === "handover" ? "flag on its way" : cause(row.late)) : "", number(row.cycles), percent(row.cycles, all)]));
}

function pathPane(pane) {
  const whole = data.cycles || 1;
  pane.innerHTML = `<p class="note">The chain of instructions and waits that makes the run ${number(data.cycles)} cycles long: the black bars below the lanes. Only what stands here can make it shorter.</p>${table(["Core", "Pipe", "Line", "Instruction", "Time spent", "#Cycles", "#Share", ""],
    data.path_rows.slice(0, 60).map((row) => [row.core, row.pipe, lineLink(row.place), escaped(row.name), cause(joined(row)), number(row.cycles), percent(row.cycles, whole), meter(row.cycles / whole)]))}`;
}

function boundsPane(pane) {
  const found = data.summary.roofline, bound = data.summary.bound, written = data.summary.as_written || bound, cycles = data.cycles;
  const most = Math.max(found.kernel_cycles, ...found.roofs.map((roof) => roof.cycles), 1);
  const rows = found.roofs.map((roof, k) => [k ? escaped(roof.name) : `<b>${escaped(roof.name)}</b>`, roof.kind, `${number(roof.work)} ${roof.unit}`, roof.unit === "bytes" ? `${(roof.per_cycle * data.clock_mhz / 1000).toFixed(0)} GB/s` : `${roof.per_cycle} a cycle`, number(roof.cycles), percent(roof.cycles, found.kernel_cycles), `<span class="meter" style="width:${260 * roof.cycles / most}px"></span>`]);
  pane.innerHTML = `<p class="note">What each resource needs for this run's work, if nothing else held it up. The nearest roof is ${escaped(found.nearest || "none")}; the kernel takes ${found.distance ? found.distance.toFixed(2) : "–"} times what that needs (${number(found.kernel_cycles)} cycles without the launch).</p>
    <div class="columns"><div>${table(["Resource", "Kind", "Work", "Rate", "#Needs at least", "#Of the kernel", ""], rows)}</div>
    <div><h3>Lower bounds</h3>${table(["Bound", "#Cycles", "#Time", "Set by"], [
      ["this run", number(cycles), micro(cycles), ""],
      ["as written: work, data, dependences", number(written.lower_bound_cycles), micro(written.lower_bound_cycles), escaped(written.limit)],
      ["this work in any order", number(bound.lower_bound_cycles), micro(bound.lower_bound_cycles), escaped(bound.limit)],
      ["any kernel of the operator", number(found.operator.lower_bound_cycles), micro(found.operator.lower_bound_cycles), escaped(found.operator.limit)]])}
    <h3 style="margin-top:14px">Roofline</h3><div id="roofline"></div></div></div>`;
  rooflinePlot(pane.querySelector("#roofline"), found);
}

// Work (repeats of V, fractals of M) a cycle over work a byte of GM, both logarithmic.
function rooflinePlot(box, found) {
  const [intensity, rate] = found.point;
  if (!intensity || !rate) { box.textContent = "No work per byte of GM to draw."; return; }
  const memory = found.roofs.filter((roof) => roof.kind === "memory");
  const peak = found.peak || 1;
  const xs = [-2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5].map((power) => intensity * 10 ** power);
  const figure = Bokeh.Plotting.figure({ width: 460, height: 250, x_axis_type: "log", y_axis_type: "log", tools: "", toolbar_location: null });
  figure.below[0].axis_label = "work per byte of GM (repeats or fractals)";
  figure.left[0].axis_label = "work per cycle";
  const shades = ["#D55E00", "#E69F00", "#56B4E9"];
  memory.forEach((roof, k) => figure.line({ x: { value: xs }, y: { value: [] }, ...{ x: xs, y: xs.map((x) => Math.min(peak, x * roof.per_cycle)) }, line_width: 2, line_color: shades[k % 3], legend_label: roof.name }));
  figure.line({ x: [xs[0], xs[xs.length - 1]], y: [peak, peak], line_dash: "dashed", line_color: "#0072B2", line_width: 2, legend_label: "all cores used, one a cycle" });
  figure.scatter({ x: [intensity], y: [rate], size: 11, fill_color: "#000000", line_color: "#ffffff", legend_label: "this run" });
  const legend = figure.center.find((one) => one instanceof Bokeh.Legend);
  if (legend) { legend.location = "bottom_right"; legend.label_text_font_size = "10px"; legend.padding = 4; legend.spacing = 0; }
  Bokeh.Plotting.show(figure, box);
}

function whatIfPane(pane) {
  const found = data.what_if;
  if (!found) {
    pane.innerHTML = `<p class="note">Not simulated yet. <code>ascend-sim what-if RUN</code> simulates this run again with one resource ideal at a time (MTE2 twice as fast, free flags, one more buffer, …) and puts the gains here.</p>`;
    return;
  }
  const rows = (list) => list.map((row) => [`<b>${row.ideal.join(" + ")}</b>`, escaped(row.means), percent(row.gain, found.cycles), meter(row.gain / found.cycles), row.critical_path === null ? "" : percent(row.critical_path, found.cycles), number(row.cycles)]);
  const heads = ["Ideal", "Means", "#Gain", "", "#On the critical path", "#Cycles then"];
  pane.innerHTML = `<p class="note">The run simulated again with one resource ideal: the true gain, beside what the critical path has of it.</p>${table(heads, rows(found.ideals))}${found.pairs.length ? `<h3 style="margin-top:16px">Together they gain more than one by one</h3>${table(heads, rows(found.pairs))}` : ""}`;
}

function findingsPane(pane) {
  const harmless = ["INFO", "PERF"];
  const list = [...data.summary.findings].sort((a, b) => harmless.includes(a.kind) - harmless.includes(b.kind));
  const advice = data.summary.advice.map((text) => `<p class="note" style="color:inherit">→ ${escaped(text)}</p>`).join("");
  pane.innerHTML = `${advice}${list.map((one) => `<div class="finding${harmless.includes(one.kind) ? " remark" : ""}"><b>${escaped(one.kind)}</b> ${escaped(one.code)} ${one.file ? lineLink(`${one.file}:${one.line}`) : ""} ${escaped([one.core, one.pipe].filter(Boolean).join("."))}<pre>${escaped(one.message)}</pre></div>`).join("") || "<p class=note>No findings.</p>"}`;
}

function runPane(pane) {
  const summary = data.summary;
  const rows = [["operator or kernel", summary.op], ["chip", summary.chip], ["blocks", summary.block_dim], ["clock", `${data.clock_mhz} MHz`], ["L2 at the launch", summary.l2_start], ["launch", `${number(summary.launch_cycles)} cycles`], ["GM read", size(summary.bytes.gm_read)], ["GM written", size(summary.bytes.gm_write)]];
  for (const [name, value] of Object.entries(summary.options || {})) if (value !== null && typeof value !== "object") rows.push([name, value]);
  for (const [name, value] of Object.entries(summary.memory || {})) rows.push([name.replaceAll("_", " "), size(value)]);
  if (summary.numerics) for (const [name, value] of Object.entries(summary.numerics)) if (typeof value !== "object") rows.push([name.replaceAll("_", " "), value]);
  pane.innerHTML = table(["", ""], rows.map(([name, value]) => [escaped(name), escaped(value)]));
}

// ---- source ------------------------------------------------------------------------------------

const byLine = new Map();

function gatherLines() {
  const of = (line) => { if (!byLine.has(line)) byLine.set(line, { path: 0, busy: 0, wait: 0, bytes: 0, instructions: 0, rows: [] }); return byLine.get(line); };
  for (const row of data.path_rows) if (row.place) of(row.place).path += row.cycles;
  for (const row of data.stalls) {
    if (!row.line) continue;
    const line = of(row.line);
    line.rows.push(row);
    if (row.cause === "busy") { if (row.pipe !== "S") line.busy += row.cycles; } else if (row.pipe !== "S") line.wait += row.cycles;
  }
  for (const row of data.lines) { const line = of(row.line); line.bytes += row.bytes; line.instructions += row.instructions; }
}

function sourcePane(pane) {
  const weight = (file) => [...byLine].filter(([line]) => line.startsWith(`${file}:`)).reduce((sum, [, line]) => sum + line.busy + line.wait, 0);
  const files = Object.keys(data.sources).sort((a, b) => weight(b) - weight(a));
  if (!files.length) { pane.innerHTML = `<p class="note">The text of the kernel's files was not there when the run was saved.</p>`; return; }
  pane.innerHTML = `<p class="note">Cycles on the critical path; busy and waiting cycles of the pipes, all cores together; bytes moved; instructions. Click a line to see why.</p><label>File <select id="source-file">${files.map((file) => `<option>${escaped(file)}</option>`).join("")}</select></label><div class="columns" style="grid-template-columns:minmax(0,1fr) 320px;margin-top:8px"><pre class="source" id="source-text" tabindex="0"></pre><div id="source-why"></div></div>`;
  pane.querySelector("#source-file").addEventListener("change", (event) => fillSource(event.target.value));
  const hottest = [...byLine].filter(([line]) => line.startsWith(`${files[0]}:`)).sort((a, b) => b[1].path - a[1].path)[0];
  fillSource(files[0]);
  if (hottest) goToLine(hottest[0]);
}

function fillSource(file) {
  const heat = Math.max(1, ...[...byLine.values()].map((line) => line.path || 0)), cell = (value, text) => `<span>${value ? text(value) : ""}</span>`;
  const rows = data.sources[file].split("\n").map((text, k) => {
    const place = `${file}:${k + 1}`, line = byLine.get(place);
    const shade = line && line.path ? `background:linear-gradient(90deg, rgba(213,94,0,${(0.08 + 0.5 * line.path / heat).toFixed(3)}) 90px, transparent 90px)` : "";
    return `<div class="row${line ? " used" : ""}" data-line="${escaped(place)}" style="${shade}">${cell(line?.path, number)}${cell(line?.busy, number)}${cell(line?.wait, number)}${cell(line?.bytes, size)}<span>${k + 1}</span><code>${escaped(text) || " "}</code></div>`;
  });
  document.getElementById("source-text").innerHTML = `<div class="row head"><span>critical</span><span>busy</span><span>waits</span><span>bytes</span><span>line</span><code></code></div>${rows.join("")}`;
}

function goToLine(place) {
  const file = place.slice(0, place.lastIndexOf(":"));
  if (!data.sources[file]) return;
  const chooser = document.getElementById("source-file");
  if (chooser.value !== file) { chooser.value = file; fillSource(file); }
  for (const row of document.querySelectorAll("#source-text .selected")) row.classList.remove("selected");
  const row = document.querySelector(`#source-text .row[data-line="${CSS.escape(place)}"]`);
  if (!row) return;
  row.classList.add("selected");
  const box = document.getElementById("source-text");
  box.scrollTop = row.offsetTop - box.offsetTop - box.clientHeight / 3;
  document.getElementById("source-why").innerHTML = why(place);
}

function why(place) {
  const line = byLine.get(place);
  if (!line) return "";
  const sums = new Map();
  for (const row of line.rows) { const key = `${row.pipe}|${joined(row)}`; sums.set(key, (sums.get(key) || 0) + row.cycles); }
  const whole = [...sums.values()].reduce((a, b) => a + b, 0) || 1;
  const spent = [...sums].sort((a, b) => b[1] - a[1]).slice(0, 7).map(([key, cycles]) => { const [pipe, label] = key.split("|"); return [pipe, cause(label), number(cycles), percent(cycles, whole)]; });
  const late = line.rows.filter((row) => row.set_pipe).slice(0, 6).map((row) => [row.pipe, `${row.set_pipe} at ${lineLink(row.set_line)}`, row.late === "handover" ? "flag on its way" : cause(row.late), number(row.cycles)]);
  return `<h3>${escaped(place)}</h3><p class="note">${line.path ? `${number(line.path)} cycles (${percent(line.path, data.cycles)}) of the critical path.` : "Not on the critical path."}</p>${table(["Pipe", "Spent", "#Cycles", "#"], spent)}${late.length ? `<h3 style="margin-top:12px">Waited for</h3>${table(["Pipe", "Set by", "That pipe", "#Cycles"], late)}` : ""}`;
}

// ---- memory map --------------------------------------------------------------------------------

function memoryPane(pane) {
  if (!data.memory.length) { pane.innerHTML = `<p class="note">No core ran.</p>`; return; }
  const options = data.memory.flatMap((one, k) => [...new Set(one.rows.map((row) => row[0]))].map((space) => `<option value="${k} ${space}">${one.core} ${space}</option>`));
  pane.innerHTML = `<p class="note">Which tensor lives where: from its first write to its last use. The map follows the timeline's range.</p><label>Memory <select id="memory-of">${options.join("")}</select></label><div id="memory-map" style="margin-top:6px"></div><div id="memory-tip" class="note"></div>`;
  const fill = () => memoryPlot(pane.querySelector("#memory-map"), ...pane.querySelector("#memory-of").value.split(" "));
  pane.querySelector("#memory-of").addEventListener("change", fill);
  if (options.length) fill(); else pane.querySelector("#memory-map").textContent = "Nothing was written to the memories of this core.";
}

function memoryPlot(box, k, space) {
  const one = data.memory[k], rows = one.rows.filter((row) => row[0] === space);
  const names = [...new Set(rows.map((row) => row[3].replace(/\[\d+\]$/, "")))];
  const shades = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#8d99a6"];
  const column = (pick) => rows.map(pick);
  const source = new Bokeh.ColumnDataSource({ data: {
    left: column((row) => row[4]), right: column((row) => row[5]), bottom: column((row) => row[1]), top: column((row) => row[2]),
    color: column((row) => shades[names.indexOf(row[3].replace(/\[\d+\]$/, "")) % shades.length]), name: column((row) => row[3] || "(no name)"),
    bytes: column((row) => row[2] - row[1]) } });
  const top = Math.max(...rows.map((row) => row[2]), 1);
  // A range belongs to one plot: this one follows the timeline's, and the other way round.
  const x = new Bokeh.Range1d({ start: timeline.x.start, end: timeline.x.end, bounds: timeline.x.bounds });
  const follow = () => { if (x.start !== timeline.x.start || x.end !== timeline.x.end) x.setv({ start: timeline.x.start, end: timeline.x.end }); };
  timeline.follow = follow;
  x.change.connect(() => { if (x.start !== timeline.x.start || x.end !== timeline.x.end) timeline.x.setv({ start: x.start, end: x.end }); });
  const figure = Bokeh.Plotting.figure({ x_range: x, y_range: [0, Math.min(data.memories[space] || top, top * 1.15)], tools: "xpan,xwheel_zoom", toolbar_location: null, height: 320, sizing_mode: "stretch_width", min_border_left: 96 });
  const tips = new Bokeh.HoverTool({ tooltips: [["tensor", "@name"], ["bytes", "@bottom{0,0} to @top{0,0} (@bytes{0,0})"], ["cycles", "@left{0,0} to @right{0,0}"]] });
  figure.add_tools(tips);
  const wheel = figure.toolbar.tools.find((tool) => tool instanceof Bokeh.WheelZoomTool);
  if (wheel) figure.toolbar.active_scroll = wheel;
  figure.left[0].axis_label = `address in ${space} (of ${number(data.memories[space] || top)} bytes)`;
  figure.left[0].formatter = figure.below[0].formatter = new Bokeh.NumeralTickFormatter({ format: "0,0" });
  const field = (name) => ({ field: name });
  figure.quad({ left: field("left"), right: field("right"), top: field("top"), bottom: field("bottom"), fill_color: field("color"), line_color: "#ffffff", line_width: 0.5, source });
  box.replaceChildren();
  Bokeh.Plotting.show(figure, box);
  const shown = names.map((name, at) => [name, at]).filter(([name]) => name && !/^\w+\[\d+:\d+\]$/.test(name)).slice(0, 24);
  const rest = names.length - shown.length;
  document.getElementById("memory-tip").innerHTML = shown.map(([name, at]) => `<span style="margin-right:14px"><i class="swatch" style="background:${shades[at % shades.length]}"></i> ${escaped(name)}</span>`).join("") + (rest ? `${rest} place${rest > 1 ? "s" : ""} known by address${shown.length ? ", too" : ""}: hover for the bytes.` : "") + (one.whole ? "" : "<br>Only the beginning of the run is mapped.");
}

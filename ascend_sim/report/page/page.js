"use strict";
// Puts the page together: head, tabs, details of the chosen slice, keys.

const PANES = [
  ["ledger", "Ledger", ledgerPane], ["path", "Critical path", pathPane], ["bounds", "Bounds", boundsPane], ["whatif", "What if", whatIfPane],
  ["source", "Source", sourcePane], ["memory", "Memory", memoryPane], ["findings", "Findings", findingsPane], ["run", "Run", runPane],
];
const KEYS = [
  ["w", "zoom in"], ["s", "zoom out"], ["a", "move left"], ["d", "move right"], ["0", "whole run"], ["n", "next slice of the lane"], ["p", "previous slice"],
  ["f", "zoom to the chosen slice"], ["Enter", "go to its line"], ["c", "critical path on or off"], ["1 … 8", "panes"], ["Esc", "choose nothing"], ["?", "these keys"],
];
const filled = new Set();

function head() {
  const summary = data.summary;
  document.getElementById("title").innerHTML = `${escaped(summary.op)} <small>on ${escaped(summary.chip)}</small>`;
  const wrong = summary.findings.filter((one) => !["INFO", "PERF"].includes(one.kind)).length;
  const remarks = summary.findings.length - wrong;
  const written = summary.as_written || summary.bound;
  const facts = [["time", micro(data.cycles)], ["cycles", number(data.cycles)], ["blocks", summary.block_dim],
    ["bound", summary.bound.lower_bound_cycles ? `${(data.cycles / summary.bound.lower_bound_cycles).toFixed(2)}× ${written.limit === "dependences" ? `work, ${(data.cycles / written.lower_bound_cycles).toFixed(2)}× as written` : summary.bound.limit}` : "–"],
    ["GM", `${size(summary.bytes.gm_read)} in, ${size(summary.bytes.gm_write)} out`],
    ["findings", (wrong ? `${wrong}!` : "none") + (remarks ? `, ${remarks} remark${remarks > 1 ? "s" : ""}` : "")]];
  document.getElementById("facts").innerHTML = facts.map(([name, value]) => `<div><dt>${name}</dt><dd>${escaped(value)}</dd></div>`).join("");
  const used = [...new Set(Array.from(slices.label, (label) => data.labels[label]))].filter((label) => label !== "idle");
  used.sort((a, b) => Object.keys(COLOURS).indexOf(a) - Object.keys(COLOURS).indexOf(b));
  const names = used.filter((label) => label !== "launch");
  document.getElementById("legend").innerHTML = names.map((label) => `<span>${swatch(label)}${escaped(label === "tail" ? "launch, tail" : meaning(label))}</span>`).join("") +
    `<span><i class="swatch" style="background:#111;height:4px"></i>critical path</span>` + (data.resolution ? `<span>slices below ${number(data.resolution)} cycles are joined</span>` : "");
}

function chooseCores() {
  const chooser = document.getElementById("core-filter"), cores = data.cores.map((core) => core.name);
  const critical = [...new Set(Array.from(path.lane).filter((lane) => lane >= 0).map((lane) => data.lanes[lane][0]))];
  const slowest = cores.length ? data.cores.indexOf(data.cores.reduce((a, b) => (b.end > a.end ? b : a))) : 0;
  if (!critical.includes(slowest)) critical.push(slowest);
  const choices = [["all", `all (${cores.length})`], ["critical", "on the critical path"], ...cores.map((core, k) => [String(k), core])];
  chooser.innerHTML = choices.map(([value, text]) => `<option value="${value}">${escaped(text)}</option>`).join("");
  const apply = () => {
    const value = chooser.value, rank = (lane) => (critical.includes(data.lanes[lane][0]) ? 0 : 1);
    const keep = (core) => value === "all" || (value === "critical" ? critical.includes(core) : core === Number(value));
    timeline.shown = data.lanes.map((_, lane) => lane).filter((lane) => keep(data.lanes[lane][0]));
    if (value === "all") timeline.shown.sort((a, b) => rank(a) - rank(b) || a - b);
    const range = timeline.x ? [timeline.x.start, timeline.x.end] : null;
    return timelinePlot().then(() => { if (range) show(...range); mark(timeline.selected); });
  };
  chooser.addEventListener("change", apply);
  return apply();
}

function select(i, follow = true) {
  mark(i);
  const box = document.getElementById("details");
  if (i < 0) { box.innerHTML = `<h2>Nothing chosen</h2><p class="where">Click a slice of the timeline, or hover it. Wheel: zoom; drag: move; <b>?</b> shows the keys.</p>`; return; }
  const lane = data.lanes[laneOf(i)], label = labelOf(i), place = placeOf(i);
  const name = slices.name[i] >= 0 ? data.names[slices.name[i]] : "";
  const rows = [["cycles", `${number(slices.start[i])} – ${number(slices.end[i])}`], ["takes", `${number(slices.length[i])} cycles, ${micro(slices.length[i])}`], ["spent", cause(label)]];
  if (slices.joined[i] > 1) rows.push(["joined", `${number(slices.joined[i])} slices; the longest is told`]);
  if (place) rows.push(["line", lineLink(place)]);
  if (slices.bytes[i] > 0) rows.push(["moves", `${size(slices.bytes[i])}`]);
  if (slices.set_site[i] >= 0) rows.push(["set by", `${slices.set_lane[i] >= 0 ? data.lanes[slices.set_lane[i]][1] : ""} at ${lineLink(data.sites[slices.set_site[i]])}`]);
  const stack = slices.site[i] >= 0 ? data.stacks[slices.site[i]] : [];
  if (stack && stack.length) rows.push(["called from", stack.map(escaped).join("<br>")]);
  const operands = slices.call[i] >= 0 ? data.texts[slices.call[i]].split(",").map(escaped).join("<br>") : "";
  box.innerHTML = `<h2>${escaped(name || meaning(label))}</h2><div class="where">${escaped(data.cores[lane[0]].name)} ${lane[1]}</div><table>${rows.map(([key, value]) => `<tr><td>${key}</td><td>${value}</td></tr>`).join("")}</table>${operands ? `<p class="operands">${operands}</p>` : ""}`;
  if (follow && place) openLine(place, false);
}

function openTab(key) {
  for (const button of document.querySelectorAll("#tabs button")) button.setAttribute("aria-selected", String(button.dataset.pane === key));
  for (const pane of document.querySelectorAll(".pane")) pane.hidden = pane.id !== `pane-${key}`;
  if (!filled.has(key)) { filled.add(key); PANES.find((one) => one[0] === key)[2](document.getElementById(`pane-${key}`)); }
}

function openLine(place, force = true) {
  const current = document.querySelector('#tabs button[aria-selected="true"]').dataset.pane;
  if (!force && current !== "source") { if (!filled.has("source")) { filled.add("source"); sourcePane(document.getElementById("pane-source")); } }
  else openTab("source");
  goToLine(place);
}

function tabs() {
  document.getElementById("tabs").innerHTML = PANES.map(([key, title], k) => `<button role="tab" data-pane="${key}" aria-selected="false">${title}${key === "findings" && data.summary.findings.length ? ` (${data.summary.findings.length})` : ""}<kbd>${k + 1}</kbd></button>`).join("");
  document.getElementById("panes").innerHTML = PANES.map(([key]) => `<div class="pane" id="pane-${key}" role="tabpanel" hidden></div>`).join("");
  document.getElementById("tabs").addEventListener("click", (event) => { const button = event.target.closest("button"); if (button) openTab(button.dataset.pane); });
  document.addEventListener("click", (event) => { const link = event.target.closest?.("a.line"); if (link) openLine(link.dataset.line); });
  document.addEventListener("click", (event) => { const row = event.target.closest?.(".row.used"); if (row) goToLine(row.dataset.line); });
  openTab("ledger");
}

function step(by) {
  const i = timeline.selected < 0 ? firstAfter(timeline.shown[0], Math.max(timeline.x.start, 0)) : timeline.selected + by;
  const lane = timeline.selected < 0 ? timeline.shown[0] : laneOf(timeline.selected);
  if (i < slices.first[lane] || i >= slices.first[lane + 1]) return;
  if (slices.start[i] < timeline.x.start || slices.end[i] > timeline.x.end) { const span = timeline.x.end - timeline.x.start; show(slices.start[i] - span / 2, slices.start[i] + span / 2); }
  select(i);
}

function focusSlice() {
  const i = timeline.selected;
  if (i >= 0) show(slices.start[i] - 0.5 * slices.length[i] - 8, slices.end[i] + 0.5 * slices.length[i] + 8);
}

const ACTIONS = {
  w: () => zoom(0.6), "+": () => zoom(0.6), s: () => zoom(1 / 0.6), "-": () => zoom(1 / 0.6), a: () => move(-0.25), ArrowLeft: () => move(-0.25),
  d: () => move(0.25), ArrowRight: () => move(0.25), 0: () => show(0, data.cycles), n: () => step(1), p: () => step(-1), f: focusSlice,
  Enter: () => { if (timeline.selected >= 0 && placeOf(timeline.selected)) openLine(placeOf(timeline.selected)); },
  c: () => { const box = document.getElementById("show-path"); box.checked = !box.checked; schedule(); },
  Escape: () => select(-1), "?": () => document.getElementById("help").showModal(),
};

function listen() {
  const box = document.getElementById("timeline");
  let pressed = null;
  box.addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; });
  box.addEventListener("click", (event) => { if (pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) < 5) select(hit(event)); });
  box.addEventListener("dblclick", focusSlice);
  box.addEventListener("mousemove", (event) => { const i = hit(event); box.title = i < 0 ? "" : `${slices.name[i] >= 0 ? data.names[slices.name[i]] : ""} · ${meaning(labelOf(i))}\n${placeOf(i)}\n${number(slices.start[i])} – ${number(slices.end[i])} (${number(slices.length[i])} cycles)`; });
  document.getElementById("show-path").addEventListener("change", schedule);
  document.getElementById("toolbar").addEventListener("click", (event) => { const wanted = event.target.dataset?.do; if (wanted) ACTIONS[{ in: "w", out: "s", all: "0" }[wanted]](); });
  document.getElementById("help-button").addEventListener("click", ACTIONS["?"]);
  document.getElementById("help").innerHTML = `<h3>Keys</h3>${KEYS.map(([key, text]) => `<p><kbd>${key}</kbd> ${text}</p>`).join("")}<form method="dialog"><button>Close</button></form>`;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /SELECT|INPUT|TEXTAREA/.test(event.target.tagName)) return;
    if (document.getElementById("help").open) return;
    if (event.key === "Enter" && event.target.matches?.("a.line, button")) { event.target.click(); return; }
    const pane = PANES[Number(event.key) - 1];
    if (pane) { openTab(pane[0]); return; }
    const action = ACTIONS[event.key];
    if (action) { event.preventDefault(); action(); }
  });
  addEventListener("resize", schedule);
}

(async () => {
  await loadSlices();
  head();
  gatherLines();
  await chooseCores();
  tabs();
  listen();
  select(-1);
  document.body.dataset.ready = "yes";
})();

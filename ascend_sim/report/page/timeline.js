"use strict";
// The data of the page, and the timeline: what is in view is drawn as a few thousand rectangles at most.

const data = JSON.parse(document.getElementById("data").textContent);

// Colours that stay apart for colour-blind eyes (Okabe and Ito), by cause or cause/sub-cause.
const COLOURS = {
  busy: "#0072B2", "memory": "#E69F00", "memory/latency": "#E69F00", "memory/l2_miss": "#D55E00",
  "memory/share": "#F0E442", "memory/same_line": "#A65628", bank_conflict: "#CC79A7", flag: "#8d99a6",
  buffer: "#56B4E9", barrier: "#1b2430", queue_full: "#7b3294", scalar: "#cfd6dd", cross_core: "#009E73",
  tail: "#eceff2", launch: "#eceff2", idle: "#ffffff",
};
const MEANING = {
  busy: "busy", "memory/latency": "GM latency", "memory/l2_miss": "L2 miss (HBM)", "memory/share": "shared bandwidth",
  "memory/same_line": "same GM line", bank_conflict: "bank conflict", flag: "waits for a flag",
  buffer: "waits for a free buffer", barrier: "barrier", queue_full: "queue full", scalar: "nothing issued",
  cross_core: "waits for another core", tail: "tail: other cores run", launch: "launch", idle: "idle",
};
const meaning = (label) => MEANING[label] || label;
const colour = (label) => COLOURS[label] || COLOURS[label.split("/")[0]] || "#999999";

const number = (value) => Math.round(value).toLocaleString("en-US");
const percent = (part, whole) => (whole ? `${(100 * part / whole).toFixed(1)} %` : "");
const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
const micro = (cycles) => `${(cycles / data.clock_mhz).toFixed(3)} µs`;

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Int32Array(await new Response(stream).arrayBuffer());
}

// All slices, lane behind lane: lane k has those from first[k] to first[k + 1].
const slices = { first: [0] };
const path = {};

async function loadSlices() {
  const packed = data.slices;
  for (const name of Object.keys(packed)) if (name !== "counts") slices[name] = await unpack(packed[name]);
  for (const count of packed.counts) slices.first.push(slices.first[slices.first.length - 1] + count);
  slices.end = new Int32Array(slices.start.length);
  for (let lane = 0; lane < data.lanes.length; lane++) {
    let before = 0;
    for (let i = slices.first[lane]; i < slices.first[lane + 1]; i++) {
      slices.start[i] += before;
      before = slices.end[i] = slices.start[i] + slices.length[i];
    }
  }
  for (const name of ["lane", "start", "end"]) path[name] = await unpack(data.path[name]);
}

// The first slice of a lane that ends after a cycle.
function firstAfter(lane, cycle) {
  let low = slices.first[lane], high = slices.first[lane + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (slices.end[middle] > cycle) high = middle; else low = middle + 1;
  }
  return low;
}

function sliceAt(lane, cycle) {
  const i = firstAfter(lane, cycle);
  return i < slices.first[lane + 1] && slices.start[i] <= cycle ? i : -1;
}

const laneOf = (i) => {
  let lane = 0;
  while (slices.first[lane + 1] <= i) lane++;
  return lane;
};
const labelOf = (i) => data.labels[slices.label[i]];
const placeOf = (i) => (slices.site[i] >= 0 ? data.sites[slices.site[i]] : "");

const timeline = { shown: [], selected: -1, busy: false };

function timelinePlot() {
  const shown = timeline.shown;
  const rows = Math.max(shown.length, 1);
  const box = document.getElementById("timeline");
  const inView = Math.min(rows, 24);
  const x = timeline.x = new Bokeh.Range1d({ start: 0, end: data.cycles, bounds: [-data.cycles * 0.02, data.cycles * 1.02], min_interval: 8 });
  const y = new Bokeh.Range1d({ start: inView, end: 0, bounds: [0, rows] });
  const figure = Bokeh.Plotting.figure({
    x_range: x, y_range: y, tools: "pan,xwheel_zoom", toolbar_location: null, sizing_mode: "stretch_width",
    height: inView * 19 + 46, output_backend: "canvas", min_border_left: 96, lod_threshold: null,
  });
  timeline.figure = figure;
  const wheel = figure.toolbar.tools.find((tool) => tool instanceof Bokeh.WheelZoomTool);
  if (wheel) figure.toolbar.active_scroll = wheel;
  const left = figure.left[0], below = figure.below[0];
  left.ticker = new Bokeh.FixedTicker({ ticks: shown.map((_, k) => k + 0.5) });
  left.major_label_overrides = new Map(shown.map((lane, k) => [k + 0.5, `${data.cores[data.lanes[lane][0]].name} ${data.lanes[lane][1]}`]));
  left.major_label_text_font_size = "11px";
  left.major_tick_line_color = left.minor_tick_line_color = null;
  below.axis_label = "cycles";
  below.axis_label_standoff = 0;
  below.formatter = new Bokeh.NumeralTickFormatter({ format: "0,0" });
  for (const grid of figure.center) if (grid.ticker === left.ticker || grid.dimension === 1) grid.visible = false;
  const source = (names) => new Bokeh.ColumnDataSource({ data: Object.fromEntries(names.map((name) => [name, []])) });
  timeline.source = source(["left", "right", "top", "bottom", "color"]);
  timeline.text = source(["x", "y", "text", "color"]);
  timeline.onPath = source(["left", "right", "top", "bottom"]);
  timeline.marks = source(["left", "right", "top", "bottom"]);
  timeline.arrows = source(["x0", "y0", "x1", "y1"]);
  const field = (name) => ({ field: name });
  const sides = { left: field("left"), right: field("right"), top: field("top"), bottom: field("bottom") };
  figure.quad({ ...sides, fill_color: field("color"), line_color: null, source: timeline.source });
  figure.quad({ ...sides, fill_color: "#111111", line_color: null, source: timeline.onPath });
  figure.quad({ ...sides, fill_color: null, line_color: "#000000", line_width: 2, source: timeline.marks });
  figure.segment({ x0: field("x0"), y0: field("y0"), x1: field("x1"), y1: field("y1"), line_color: "#000000", line_width: 1.5, line_dash: "dashed", source: timeline.arrows });
  figure.text({ x: field("x"), y: field("y"), text: field("text"), text_color: field("color"), text_font_size: "11px", text_baseline: "middle", x_offset: 4, source: timeline.text });
  x.change.connect(() => { schedule(); timeline.follow?.(); });
  y.change.connect(() => schedule());
  box.replaceChildren();
  return Bokeh.Plotting.show(figure, box).then((view) => { timeline.view = view; schedule(); });
}

function schedule() {
  if (timeline.busy) return;
  timeline.busy = true;
  requestAnimationFrame(() => { timeline.busy = false; draw(); });
}

// Neighbours that are narrower than two pixels are drawn as one, in the colour of what they are most.
function draw() {
  const low = timeline.x.start, high = timeline.x.end;
  const width = Math.max(document.getElementById("timeline").clientWidth - 110, 200);
  const least = 2 * (high - low) / width;
  const out = { left: [], right: [], top: [], bottom: [], color: [] };
  const text = { x: [], y: [], text: [], color: [] };
  const totals = new Float64Array(data.labels.length);
  const put = (k, from, to, label) => {
    out.left.push(from); out.right.push(to); out.top.push(k + 0.1); out.bottom.push(k + 0.9);
    out.color.push(colour(data.labels[label]));
  };
  const top = timeline.figure.y_range.end - 1, bottom = timeline.figure.y_range.start;
  timeline.shown.forEach((lane, k) => {
    if (k < top || k >= bottom) return;
    const last = slices.first[lane + 1];
    let from = -1, to = -1, until = -1, touched = [];
    const flush = () => {
      if (from < 0) return;
      let best = touched[0];
      for (const label of touched) if (totals[label] > totals[best]) best = label;
      for (const label of touched) totals[label] = 0;
      put(k, from, to, best);
      from = -1; touched = [];
    };
    for (let i = firstAfter(lane, low); i < last && slices.start[i] < high; i++) {
      const begin = slices.start[i], end = slices.end[i];
      if (end - begin >= least) {
        flush();
        put(k, begin, end, slices.label[i]);
        if (end - begin > 18 * least && slices.name[i] >= 0 && text.x.length < 400) label(text, k, i, Math.max(begin, low), Math.min(end, high), least);
        continue;
      }
      if (from >= 0 && (end > until || begin > to + least)) flush();
      if (from < 0) { from = begin; until = begin + least; }
      to = end;
      if (!totals[slices.label[i]]) touched.push(slices.label[i]);
      totals[slices.label[i]] += end - begin;
    }
    flush();
  });
  timeline.view?.pause?.();
  timeline.source.data = out;
  timeline.text.data = text;
  drawPath(low, high, least);
  timeline.view?.unpause?.();
  timeline.drawn = out.left.length;
  document.getElementById("range").textContent =
    `${number(Math.max(low, 0))} – ${number(Math.min(high, data.cycles))} (${micro(Math.min(high, data.cycles) - Math.max(low, 0))})`;
}

function label(text, k, i, from, to, least) {
  const room = (to - from) / least * 2 - 8;
  const name = labelOf(i) === "busy" || !meaning(labelOf(i)) ? data.names[slices.name[i]] : meaning(labelOf(i));
  const fits = Math.floor(room / 6.4);
  if (fits < 4) return;
  const dark = ["busy", "barrier", "queue_full", "cross_core", "memory/l2_miss"].includes(labelOf(i));
  text.x.push(from); text.y.push(k + 0.5); text.color.push(dark ? "#ffffff" : "#1b2430");
  text.text.push(name.length > fits ? `${name.slice(0, fits - 1)}…` : name);
}

function drawPath(low, high, least) {
  const out = { left: [], right: [], top: [], bottom: [] };
  if (document.getElementById("show-path").checked) {
    const place = new Map(timeline.shown.map((lane, k) => [lane, k]));
    const ends = new Map();
    for (let i = 0; i < path.lane.length; i++) {
      const k = place.get(path.lane[i]);
      if (k === undefined || path.end[i] <= low || path.start[i] >= high) continue;
      const last = ends.get(k);
      if (last !== undefined && path.start[i] - out.right[last] < least) { out.right[last] = path.end[i]; continue; }
      ends.set(k, out.left.length);
      out.left.push(path.start[i]); out.right.push(path.end[i]); out.top.push(k + 0.9); out.bottom.push(k + 1);
    }
  }
  timeline.onPath.data = out;
}

// ---- moving and choosing -----------------------------------------------------------------------

function show(from, to) {
  const least = 16;
  if (to - from < least) { const middle = (from + to) / 2; from = middle - least / 2; to = middle + least / 2; }
  const span = Math.min(to - from, data.cycles * 1.04);
  from = Math.min(Math.max(from, -data.cycles * 0.02), data.cycles * 1.02 - span);
  timeline.x.setv({ start: from, end: from + span });
}

function zoom(factor) {
  const { start, end } = timeline.x;
  const middle = timeline.selected >= 0 && slices.start[timeline.selected] < end && slices.end[timeline.selected] > start
    ? (Math.max(slices.start[timeline.selected], start) + Math.min(slices.end[timeline.selected], end)) / 2 : (start + end) / 2;
  show(middle - (middle - start) * factor, middle + (end - middle) * factor);
}

function move(share) {
  const { start, end } = timeline.x;
  show(start + share * (end - start), end + share * (end - start));
}

function pointed(event) {
  const view = timeline.view;
  if (!view) return null;
  const frame = view.frame ?? view.frame_view;
  const box = (view.canvas_view?.el ?? view.el).getBoundingClientRect();
  const sx = event.clientX - box.left, sy = event.clientY - box.top;
  const inner = frame.bbox;
  if (sx < inner.left || sx > inner.right || sy < inner.top || sy > inner.bottom) return null;
  const k = Math.floor(frame.y_scale.invert(sy));
  if (k < 0 || k >= timeline.shown.length) return null;
  return { lane: timeline.shown[k], cycle: frame.x_scale.invert(sx) };
}

// The slice under the pointer, or the nearest within four pixels: narrow ones want to be hit, too.
function hit(event) {
  const at = pointed(event);
  if (!at) return -1;
  const exact = sliceAt(at.lane, at.cycle);
  if (exact >= 0) return exact;
  const slop = 4 * (timeline.x.end - timeline.x.start) / Math.max(document.getElementById("timeline").clientWidth - 110, 200);
  const next = firstAfter(at.lane, at.cycle);
  if (next < slices.first[at.lane + 1] && slices.start[next] - at.cycle < slop) return next;
  if (next > slices.first[at.lane] && at.cycle - slices.end[next - 1] < slop) return next - 1;
  return -1;
}

function mark(i) {
  timeline.selected = i;
  const marks = { left: [], right: [], top: [], bottom: [] }, arrows = { x0: [], y0: [], x1: [], y1: [] };
  if (i >= 0) {
    const k = timeline.shown.indexOf(laneOf(i));
    if (k >= 0) {
      marks.left.push(slices.start[i]); marks.right.push(slices.end[i]); marks.top.push(k + 0.06); marks.bottom.push(k + 0.94);
      const other = timeline.shown.indexOf(slices.set_lane[i]);
      if (slices.set_site[i] >= 0 && other >= 0) {
        arrows.x0.push(slices.end[i]); arrows.y0.push(other + 0.5); arrows.x1.push(slices.end[i]); arrows.y1.push(k + 0.5);
      }
    }
  }
  timeline.marks.data = marks;
  timeline.arrows.data = arrows;
}

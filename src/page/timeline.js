(function () {
  var text = document.getElementById("data").textContent;
  if (text.indexOf('"trace":') < 0) return;
  var runs = JSON.parse(text).runs.filter(function (r) { return r.trace; });
  if (!runs.length) return;

  var COLORS = { compute: "#3fa35b", wait: "#d9534f", barrier: "#e08a2e", checkpoint: "#9b59b6", step: "#8c96a3",
    batch: "#a9b3bf", item: "#7f8fa6", sample: "#b7a98f", decode: "#c9a227", preprocess: "#2aa198", framework: "#b0568c", transport: "#8d6e63",
    "open, close": "#5bc0de", metadata: "#6c71c4", read: "#3b82d6", write: "#d6569a", other: "#9e9e9e" };
  var LABEL = 132, AXIS = 24, ROW = 13, GAP = 7, LEAST_NS = 100;
  var canvas = byId("tl"), tip = byId("tl-tip"), ctx = canvas.getContext("2d");
  var trace, win, lanes, from, to, hidden = {}, held = {}, wanted = false, current = null;

  function byId(id) { return document.getElementById(id); }
  function count(v) { return v.toLocaleString("en-US"); }
  function time(ns, digits) {
    var a = Math.abs(ns), u = a >= 1e9 ? [1e9, " s"] : a >= 1e6 ? [1e6, " ms"] : a >= 1e3 ? [1e3, " \u00b5s"] : [1, " ns"];
    return String(Number((ns / u[0]).toPrecision(digits || 6))) + u[1];
  }
  function option(select, value, label) {
    var o = document.createElement("option");
    o.value = value; o.textContent = label; select.appendChild(o);
  }
  function stepsOf(w) {
    if (!w.epoch) return "the whole trace";
    var s = "epoch " + w.epoch + ", step" + (w.first === w.last ? " " + w.first : "s " + w.first + " to " + w.last);
    return w.slowest ? s + " (step " + w.slowest.step + " on rank " + w.slowest.rank + " is the slowest: " + time(w.slowest.ns, 3) + ")" : s;
  }

  /* Rows: a span that is nested in another, or overlaps it, is drawn one row below. Spans are sorted by lane and start,
     and of those that start together the longest comes first. */
  function layOut() {
    var s = win.spans, top = AXIS;
    lanes = trace.lanes.map(function (l) {
      return { name: l.name, rank: l.rank, title: "rank " + l.rank, rows: [], ends: [] };
    });
    for (var i = 0; i < s.lane.length; i++) {
      var lane = lanes[s.lane[i]], row = 0;
      if (hidden[trace.kinds[s.kind[i]]]) continue;
      while (row < lane.ends.length && lane.ends[row] > s.begin[i]) row++;
      if (!lane.rows[row]) lane.rows[row] = [];
      lane.rows[row].push(i);
      lane.ends[row] = s.begin[i] + s.dur[i];
    }
    lanes = lanes.filter(function (l) { return l.rows.length; });
    lanes.forEach(function (l) { l.top = top; l.height = l.rows.length * ROW + GAP; top += l.height; });
    canvas.style.height = Math.max(top, AXIS + 40) + "px";
  }

  function width() { return canvas.clientWidth - LABEL; }
  function xOf(t) { return LABEL + (t - from) / (to - from) * width(); }
  function tOf(x) { return from + (x - LABEL) / width() * (to - from); }

  function ask() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(function () { wanted = false; draw(); });
  }

  function axis(style, w, h) {
    var raw = (to - from) / Math.max(2, width() / 110), mag = Math.pow(10, Math.floor(Math.log10(raw)));
    var step = [1, 2, 5, 10].map(function (f) { return f * mag; }).find(function (s) { return s >= raw; });
    ctx.textAlign = "center";
    for (var t = Math.ceil(from / step) * step; t <= to; t += step) {
      var x = xOf(t);
      ctx.fillStyle = style.line; ctx.fillRect(Math.round(x), AXIS - 6, 1, h);
      ctx.fillStyle = style.soft;
      if (x > LABEL + 20 && x < w - 20) ctx.fillText(time(Number(t.toPrecision(12))), x, 12);
    }
  }

  function drawRow(list, y) {
    var s = win.spans, end = -1, last = "", drawn = 0, right = canvas.clientWidth;
    for (var k = 0; k < list.length; k++) {
      var i = list[k], b = s.begin[i], d = s.dur[i];
      if (b > to) break;
      if (b + d < from) continue;
      var x = Math.max(LABEL, xOf(b)), x2 = Math.min(right, xOf(b + d)), color = COLORS[trace.kinds[s.kind[i]]];
      drawn++;
      /* spans that share one pixel are drawn once */
      if (x2 <= end && color === last) continue;
      ctx.fillStyle = color;
      ctx.fillRect(x, y, Math.max(1, x2 - x - (x2 - x > 4 ? 1 : 0)), ROW - 2);
      if (s.failed[i]) { ctx.fillStyle = "#ff0000"; ctx.fillRect(x, y, Math.max(1, x2 - x), 3); }
      if (x2 - x > 46) {
        ctx.save(); ctx.beginPath(); ctx.rect(x, y, x2 - x - 3, ROW); ctx.clip();
        ctx.fillStyle = "#111"; ctx.textAlign = "left"; ctx.fillText(trace.names[s.name[i]], x + 3, y + 5.5); ctx.restore();
      }
      end = Math.max(end, Math.ceil(x + 1)); last = color;
    }
    return drawn;
  }

  function draw() {
    var dpr = window.devicePixelRatio || 1, w = canvas.clientWidth, h = canvas.clientHeight, drawn = 0;
    var css = getComputedStyle(document.documentElement);
    var style = { fg: css.getPropertyValue("--fg"), soft: css.getPropertyValue("--soft"), line: css.getPropertyValue("--line") };
    if (!w) return;
    canvas.width = Math.round(w * dpr); canvas.height = Math.round(h * dpr);
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.font = "10px system-ui, sans-serif"; ctx.textBaseline = "middle";
    axis(style, w, h);
    lanes.forEach(function (l, n) {
      ctx.fillStyle = style.line;
      if (n === 0 || lanes[n - 1].rank !== l.rank) ctx.fillRect(0, l.top - 4, w, 1);
      ctx.fillStyle = style.fg; ctx.textAlign = "left";
      ctx.save(); ctx.beginPath(); ctx.rect(0, l.top, LABEL - 6, l.height); ctx.clip();
      ctx.fillText(l.name === l.title || !l.name ? l.title : l.rank + ": " + l.name, 6, l.top + 6); ctx.restore();
      l.rows.forEach(function (list, r) { drawn += drawRow(list, l.top + r * ROW); });
    });
    byId("tl-range").textContent = time(from, 4) + " to " + time(to, 4) + " of " + time(win.length, 4);
    canvas.setAttribute("data-from", from); canvas.setAttribute("data-to", to); canvas.setAttribute("data-drawn", drawn);
    canvas.setAttribute("aria-label", "Spans of " + lanes.length + " threads over time: " + stepsOf(win));
  }

  function show(a, b) {
    var wide = Math.min(Math.max(b - a, LEAST_NS), win.length || LEAST_NS);
    a = Math.max(0, Math.min(a, (win.length || LEAST_NS) - wide));
    from = a; to = a + wide;
    tip.hidden = true; current = null;
    ask();
  }
  function zoom(factor, at) {
    var t = at === undefined ? (from + to) / 2 : at;
    show(t - (t - from) * factor, t + (to - t) * factor);
  }
  function pan(share) { var d = (to - from) * share; show(from + d, to + d); }
  function whole() { show(0, win.length); }

  /* ---- the tooltip of a span ---- */

  function hit(x, y) {
    var lane = lanes.find(function (l) { return y >= l.top && y < l.top + l.rows.length * ROW; });
    if (!lane || x < LABEL) return null;
    var s = win.spans, list = lane.rows[Math.floor((y - lane.top) / ROW)], best = null, near = 3;
    for (var k = 0; k < list.length; k++) {
      var a = xOf(s.begin[list[k]]), b = xOf(s.begin[list[k]] + s.dur[list[k]]);
      var far = x < a ? a - x : x > b ? x - b : 0;
      if (far < near) { near = far; best = list[k]; if (far === 0) break; }
    }
    return best === null ? null : { i: best, lane: lane };
  }

  function describe(h) {
    var s = win.spans, i = h.i, kind = trace.kinds[s.kind[i]], name = trace.names[s.name[i]], out = [];
    function add(label, v) { if (v >= 0) out.push(label + " " + count(v)); }
    var lines = [(kind === name ? name : name + " (" + kind + ")") + (s.failed[i] ? ", failed" : "") + ": " + time(s.dur[i]),
      "rank " + h.lane.rank + (h.lane.name && h.lane.name !== h.lane.title ? ", " + h.lane.name : "") + "; from " +
        time(s.begin[i]) + " to " + time(s.begin[i] + s.dur[i])];
    add("epoch", s.epoch[i]); add("step", s.step[i]); add("sample", s.sample[i]);
    if (out.length) lines.push(out.join(", "));
    if (s.file[i] >= 0 && trace.files[s.file[i]]) lines.push((trace.folder || "") + trace.files[s.file[i]]);
    out = [];
    add("offset", s.offset[i]); add("bytes requested:", s.asked[i]); add("bytes transferred:", s.moved[i]);
    if (out.length) lines.push(out.join(", "));
    return lines.join("\n");
  }

  function hover(e) {
    var box = canvas.getBoundingClientRect(), x = e.clientX - box.left, y = e.clientY - box.top, h = hit(x, y);
    if (!h) { tip.hidden = true; current = null; return; }
    if (current !== h.i) { tip.textContent = describe(h); current = h.i; }
    tip.hidden = false;
    tip.style.left = Math.max(0, Math.min(x + 14, box.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = (y + 18 + tip.offsetHeight > box.height ? Math.max(0, y - tip.offsetHeight - 8) : y + 18) + "px";
  }

  /* ---- legend, notes, selection ---- */

  function legend() {
    var box = byId("tl-legend");
    box.textContent = "";
    trace.kinds.forEach(function (kind, k) {
      if (!win.count[k]) return;
      var b = document.createElement("button"), i = document.createElement("i");
      b.type = "button"; b.setAttribute("data-kind", kind);
      b.setAttribute("aria-pressed", String(!hidden[kind]));
      if (hidden[kind]) b.className = "off";
      i.style.background = COLORS[kind];
      b.appendChild(i);
      b.appendChild(document.createTextNode(kind + " " + count(win.count[k]) + ": " + time(win.time[k], 3)));
      b.addEventListener("click", function () { hidden[kind] = !hidden[kind]; legend(); layOut(); show(from, to); });
      box.appendChild(b);
    });
  }

  function notes() {
    var out = [], left = win.seen - win.spans.lane.length;
    if (trace.note) out.push(trace.note);
    if (left > 0) out.push(count(win.spans.lane.length) + " of " + count(win.seen) + " spans are shown (the longest ones); " + count(left) +
      " are omitted. Select fewer steps or ranks to see more: stoker report --steps, --ranks.");
    if (trace.ranks_left_out) out.push(count(trace.ranks_left_out) + " of " + count(trace.ranks) +
      " ranks are omitted; select ranks with stoker report --ranks.");
    if (trace.lanes_left_out) out.push(count(trace.lanes_left_out) + " spans of threads beyond the first 4,096 are omitted.");
    if (trace.dropped) out.push(count(trace.dropped) + " later spans were dropped during the run because they exceeded run.trace_events.");
    byId("tl-note").textContent = out.join(" ");
  }

  function pick(n) {
    win = trace.windows[n];
    legend(); layOut(); notes(); whole();
  }

  function open(n) {
    var select = byId("window");
    trace = runs[n].trace;
    select.textContent = "";
    var drawn = trace.windows && trace.windows.length;
    byId("timeline").hidden = !drawn;
    byId("tl-legend").hidden = !drawn;
    byId("tl-note").textContent = trace.note || (drawn ? "" : "The trace contains no spans.");
    if (!drawn) { win = null; return; }
    trace.windows.forEach(function (w, i) { option(select, i, stepsOf(w)); });
    pick(0);
  }

  /* ---- mouse, touch, keys ---- */

  canvas.addEventListener("wheel", function (e) {
    var at = Math.max(from, tOf(e.clientX - canvas.getBoundingClientRect().left));
    var d = e.deltaMode === 1 ? e.deltaY * 16 : e.deltaY;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); pan((e.deltaX || e.deltaY) / 800); return; }
    if (d > 0 && to - from >= win.length) return; /* let the page scroll */
    e.preventDefault();
    zoom(Math.exp(Math.max(-1, Math.min(1, d / 300))), at);
  }, { passive: false });
  canvas.addEventListener("pointerdown", function (e) {
    held[e.pointerId] = { x: e.clientX };
    canvas.setPointerCapture(e.pointerId);
    canvas.style.cursor = "grabbing";
  });
  canvas.addEventListener("pointermove", function (e) {
    var own = held[e.pointerId], ids = Object.keys(held), left = canvas.getBoundingClientRect().left;
    if (!own) { hover(e); return; }
    if (ids.length === 1) {
      var d = (own.x - e.clientX) / width() * (to - from);
      show(from + d, to + d);
    } else if (ids.length === 2) {
      var other = held[ids[0] === String(e.pointerId) ? ids[1] : ids[0]];
      var before = Math.abs(own.x - other.x), now = Math.abs(e.clientX - other.x);
      if (before > 4 && now > 4) zoom(before / now, tOf((e.clientX + other.x) / 2 - left));
    }
    own.x = e.clientX;
  });
  ["pointerup", "pointercancel"].forEach(function (name) {
    canvas.addEventListener(name, function (e) { delete held[e.pointerId]; canvas.style.cursor = ""; });
  });
  canvas.addEventListener("pointerleave", function () { tip.hidden = true; current = null; });
  canvas.addEventListener("dblclick", function (e) { zoom(0.4, tOf(e.clientX - canvas.getBoundingClientRect().left)); });
  canvas.addEventListener("keydown", function (e) {
    var keys = { "+": function () { zoom(0.6); }, "=": function () { zoom(0.6); }, "-": function () { zoom(1 / 0.6); },
      ArrowLeft: function () { pan(-0.2); }, ArrowRight: function () { pan(0.2); }, ArrowUp: function () { zoom(0.6); },
      ArrowDown: function () { zoom(1 / 0.6); }, "0": whole, Home: whole };
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  [["tl-in", function () { zoom(0.6); }], ["tl-out", function () { zoom(1 / 0.6); }], ["tl-left", function () { pan(-0.25); }],
    ["tl-right", function () { pan(0.25); }], ["tl-all", whole]].forEach(function (b) {
    byId(b[0]).addEventListener("click", function () { if (win) b[1](); });
  });

  byId("steps").hidden = false;
  runs.forEach(function (r, i) { option(byId("tracerun"), i, r.name + (r.start ? "  (" + r.start + ")" : "")); });
  byId("traced").hidden = runs.length < 2;
  byId("tracerun").addEventListener("change", function () { open(Number(this.value)); });
  byId("window").addEventListener("change", function () { pick(Number(this.value)); });
  open(0);
  if (window.ResizeObserver) new ResizeObserver(function () { if (win) ask(); }).observe(canvas);
  if (window.matchMedia) window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () { if (win) ask(); });
})();

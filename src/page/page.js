"use strict";
(function () {
  var D = JSON.parse(document.getElementById("data").textContent);
  var NS = "http://www.w3.org/2000/svg";
  var SEVERAL = "several overrides";
  var COLORS = ["var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)", "var(--c6)"];

  function el(tag, attrs, text) {
    var e = document.createElement(tag);
    for (var k in attrs || {}) e.setAttribute(k, attrs[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  }
  function svgEl(parent, tag, attrs, text) {
    var e = document.createElementNS(NS, tag);
    for (var k in attrs || {}) e.setAttribute(k, attrs[k]);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.appendChild(e);
    return e;
  }
  function byId(id) { return document.getElementById(id); }
  function has(v) { return typeof v === "number" && isFinite(v); }
  function num(v, digits) {
    if (!has(v)) return "";
    var a = Math.abs(v);
    var d = digits !== undefined ? digits : a >= 1000 ? 0 : a >= 100 ? 1 : a >= 1 ? 2 : 3;
    return v.toLocaleString("en-US", { minimumFractionDigits: d, maximumFractionDigits: d });
  }
  function tip(e, text) { svgEl(e, "title", {}, text); }
  function seconds(s) { return s >= 120 ? num(s / 60, 1) + " min" : num(s, s < 10 ? 2 : 1) + " s"; }

  /* Round steps for an axis of about n intervals. */
  function ticks(max, n) {
    var raw = max / n, mag = Math.pow(10, Math.floor(Math.log10(raw || 1))), out = [], step;
    step = [1, 2, 2.5, 5, 10].map(function (f) { return f * mag; }).find(function (s) { return s >= raw; }) || mag * 10;
    for (var v = 0; v <= max * 1.0001; v += step) out.push(Number(v.toPrecision(12)));
    return out;
  }

  /* A frame with axes; returns functions from values to places. */
  function frame(title, unit, w, h, maxY, left) {
    var box = el("div", { "class": "chart" }), m = { l: left || 52, r: 12, t: 16, b: 34 };
    box.appendChild(el("h3", {}, title));
    var svg = svgEl(null, "svg", { viewBox: "0 0 " + w + " " + h, role: "img", "aria-label": title });
    box.appendChild(svg);
    var t = ticks(maxY || 1, 5), top = t[t.length - 1] < maxY ? t[t.length - 1] + (t[1] - t[0]) : t[t.length - 1] || 1;
    function y(v) { return m.t + (h - m.t - m.b) * (1 - v / top); }
    if (top > t[t.length - 1]) t.push(top);
    t.forEach(function (v) {
      svgEl(svg, "line", { x1: m.l, x2: w - m.r, y1: y(v), y2: y(v), "class": "grid" });
      svgEl(svg, "text", { x: m.l - 6, y: y(v) + 4, "text-anchor": "end", "class": "soft" }, num(v, v % 1 ? 1 : 0));
    });
    svgEl(svg, "text", { x: m.l, y: m.t - 6, "class": "soft" }, unit);
    return { box: box, svg: svg, y: y, m: m, w: w, h: h, top: top };
  }

  function legend(box, entries) {
    var l = el("div", { "class": "legend" });
    entries.forEach(function (e) {
      var s = el("span"), i = el("i", { style: "background:" + e[1] });
      s.appendChild(i); s.appendChild(document.createTextNode(e[0])); l.appendChild(s);
    });
    box.appendChild(l);
  }

  /* Lines over process counts, with error bars. series: [{name, points: [{x, mean, stdev, hollow}]}] */
  function lines(title, unit, series, target) {
    var xs = [], max = target || 0;
    series.forEach(function (s) {
      s.points.forEach(function (p) {
        if (xs.indexOf(p.x) < 0) xs.push(p.x);
        max = Math.max(max, p.mean + (p.stdev || 0));
      });
    });
    xs.sort(function (a, b) { return a - b; });
    if (unit === "%" && series.every(function (s) { return s.points.every(function (p) { return p.mean <= 100; }); })) max = Math.min(max, 100);
    var f = frame(title, unit, 480, 280, max), inner = f.w - f.m.l - f.m.r;
    function x(v) { return f.m.l + inner * (xs.indexOf(v) + 0.5) / xs.length; }
    xs.forEach(function (v) {
      svgEl(f.svg, "text", { x: x(v), y: f.h - 18, "text-anchor": "middle" }, String(v));
    });
    svgEl(f.svg, "text", { x: f.w - f.m.r, y: f.h - 4, "text-anchor": "end", "class": "soft" }, "processes");
    if (target) targetLine(f, target);
    series.forEach(function (s, i) {
      var c = COLORS[i % COLORS.length];
      s.points.sort(function (a, b) { return a.x - b.x; });
      svgEl(f.svg, "polyline", { fill: "none", stroke: c, "stroke-width": 2, points: s.points.map(function (p) {
        return x(p.x) + "," + f.y(p.mean); }).join(" ") });
      s.points.forEach(function (p) {
        if (p.stdev) svgEl(f.svg, "line", { x1: x(p.x), x2: x(p.x), y1: f.y(Math.max(0, p.mean - p.stdev)),
          y2: f.y(Math.min(f.top, p.mean + p.stdev)), stroke: c, "stroke-width": 1.5 });
        var d = svgEl(f.svg, "circle", { cx: x(p.x), cy: f.y(p.mean), r: 4.5, stroke: c, "stroke-width": 2,
          fill: p.hollow ? "var(--card)" : c });
        tip(d, s.name + ", " + p.x + " processes: " + num(p.mean) + " \u00b1 " + num(p.stdev) + " " + unit +
          (p.hollow ? " (a check failed)" : ""));
      });
    });
    legend(f.box, series.map(function (s, i) { return [s.name, COLORS[i % COLORS.length]]; }));
    return f.box;
  }

  function targetLine(f, target) {
    svgEl(f.svg, "line", { x1: f.m.l, x2: f.w - f.m.r, y1: f.y(target), y2: f.y(target), stroke: "var(--c5)",
      "stroke-dasharray": "6 4", "stroke-width": 1.5 });
    svgEl(f.svg, "text", { x: f.w - f.m.r, y: f.m.t - 6, "text-anchor": "end", "class": "soft" }, "- - target " + num(target, 0) + " %");
  }

  /* Bars, two a label. bars: [{label, a, b, hollow}] */
  function barsChart(title, unit, bars, target, key) {
    var max = Math.max(target || 0, 100), f = frame(title, unit, 480, 280, max), inner = f.w - f.m.l - f.m.r;
    if (target) targetLine(f, target);
    bars.forEach(function (b, i) {
      var step = inner / bars.length, x0 = f.m.l + step * i, bw = Math.min(26, step / 3);
      [["a", 0, "var(--c1)", "AU (DLIO\u2019s definition)"], ["b", 1, "var(--c3)", "whole-run AU"]].forEach(function (k) {
        var s = b[k[0]];
        if (!s || !has(s.mean)) return;
        var v = Math.max(0, s.mean), x = x0 + step / 2 + (k[1] - 1) * bw;
        var r = svgEl(f.svg, "rect", { x: x, width: bw - 2, y: f.y(v), height: Math.max(0, f.y(0) - f.y(v)),
          fill: b.hollow ? "none" : k[2], stroke: k[2], "stroke-width": 1.5 });
        tip(r, b.label + ", " + k[3] + ": " + num(s.mean) + " \u00b1 " + num(s.stdev) + " %" + (b.hollow ? " (a check failed)" : ""));
        if (s.stdev) svgEl(f.svg, "line", { x1: x + bw / 2 - 1, x2: x + bw / 2 - 1, y1: f.y(Math.max(0, s.mean - s.stdev)),
          y2: f.y(Math.min(f.top, s.mean + s.stdev)), stroke: "var(--fg)" });
      });
      var room = Math.max(3, Math.floor(step / 7));
      var t = b.label.length > room ? b.label.slice(0, room - 1) + "\u2026" : b.label;
      tip(svgEl(f.svg, "text", { x: x0 + step / 2, y: f.h - 18, "text-anchor": "middle" }, t), b.name || b.label);
    });
    legend(f.box, [["AU (DLIO\u2019s definition)", "var(--c1)"], ["whole-run AU (compute / wall time)", "var(--c3)"]]);
    if (key) {
      var list = el("ol", { "class": "key" });
      key.forEach(function (text) { list.appendChild(el("li", {}, text)); });
      f.box.appendChild(list);
    }
    return f.box;
  }

  /* ---- sections ---- */

  function about() {
    var n = D.runs.length, g = D.groups.length;
    byId("about").textContent = n + (n === 1 ? " result, " : " results, ") + g +
      (g === 1 ? " configuration" : " configurations") + ". AU: accelerator utilization.";
    byId("footer").textContent = "Generated by Stoker " + D.version + ".";
  }

  function verdicts() {
    var box = byId("verdicts"), counts = {}, order = [];
    D.runs.forEach(function (r) {
      r.findings.forEach(function (f) {
        if (f.level === "note") return;
        var k = f.level + " " + f.check;
        if (!counts[k]) { counts[k] = { level: f.level, check: f.check, runs: [], text: f.text, advice: f.advice }; order.push(k); }
        if (counts[k].runs.indexOf(r.name) < 0) counts[k].runs.push(r.name);
      });
    });
    order.sort(function (a, b) {
      return (counts[a].level === "fail" ? 0 : 1) - (counts[b].level === "fail" ? 0 : 1) || counts[b].runs.length - counts[a].runs.length;
    });
    order.forEach(function (k) {
      var c = counts[k], v = el("div", { "class": "verdict " + c.level }), n = c.runs.length;
      v.appendChild(el("span", { "class": "tag " + c.level }, c.level + ": " + c.check));
      v.appendChild(document.createTextNode(n + " of " + D.runs.length + " result" + (D.runs.length === 1 ? "" : "s") + ". Example: " + c.runs[0] + ": " + c.text));
      if (c.advice) v.appendChild(el("div", { "class": "note" }, c.advice));
      box.appendChild(v);
    });
    if (!order.length) {
      var ok = el("div", { "class": "verdict ok" });
      ok.appendChild(el("span", { "class": "tag ok" }, "ok"));
      ok.appendChild(document.createTextNode("No check found a problem: the numbers can be trusted."));
      box.appendChild(ok);
    }
  }

  function findings() {
    D.findings.forEach(function (f) { byId("findings").appendChild(el("li", { "data-topic": f.topic }, f.text)); });
  }

  function models() {
    var m = [];
    D.groups.forEach(function (g) { if (m.indexOf(g.model) < 0) m.push(g.model); });
    return m;
  }

  function points(model, key) {
    return D.groups.filter(function (g) { return g.model === model && g.factors === "" && has(g[key].mean); })
      .map(function (g) { return { x: g.ranks, mean: g[key].mean, stdev: g[key].stdev, hollow: g.unsound }; });
  }

  function scaling() {
    var box = byId("scaling");
    function all(key) {
      return models().map(function (m) { return { name: m, points: points(m, key) }; })
        .filter(function (s) { return s.points.length; });
    }
    var target = (D.groups.find(function (g) { return has(g.target); }) || {}).target;
    if (!all("au").length && !all("whole_au").length) {
      box.appendChild(el("p", { "class": "note" }, "No chart: every configuration has overrides. The section Factors compares them.")); return;
    }
    box.appendChild(lines("AU (DLIO\u2019s definition, without excluded steps)", "%", all("au"), target));
    box.appendChild(lines("Whole-run AU (compute / wall time)", "%", all("whole_au"), target));
    box.appendChild(lines("Reported I/O throughput", "MiB/s", all("io")));
    box.appendChild(lines("Samples per second of training wall time", "samples/s", all("whole_throughput")));
  }

  function factors() {
    var box = byId("factors"), sets = {};
    D.groups.forEach(function (g) {
      if (!g.factors) return;
      var p = g.factors.indexOf(", ") >= 0 ? SEVERAL : g.factors.split("=")[0];
      var k = g.model + "|" + g.ranks + "|" + p;
      (sets[k] = sets[k] || { model: g.model, ranks: g.ranks, p: p, list: [] }).list.push(g);
    });
    Object.keys(sets).forEach(function (k) {
      var s = sets[k], base = D.groups.find(function (g) { return g.model === s.model && g.ranks === s.ranks && !g.factors; });
      s.list.sort(function (a, b) { return a.factors.localeCompare(b.factors, "en", { numeric: true }); });
      /* Combinations of overrides are numbered under their bars and listed below the chart, without what all have. */
      var shared = s.list.length < 2 ? [] : s.list[0].factors.split(", ").filter(function (part) {
        return s.list.every(function (g) { return g.factors.split(", ").indexOf(part) >= 0; });
      });
      var bars = (base ? [{ g: base, label: "base" }] : []).concat(s.list.map(function (g, i) {
        return { g: g, label: s.p === SEVERAL ? String(i + 1) : g.factors.slice(g.factors.indexOf("=") + 1), name: g.factors };
      }));
      var key = s.p === SEVERAL && s.list.map(function (g) {
        return g.factors.split(", ").filter(function (part) { return shared.indexOf(part) < 0; }).join(", ") || "no further override";
      });
      bars = bars.map(function (b) { return { label: b.label, name: b.name, a: b.g.au, b: b.g.whole_au, hollow: b.g.unsound }; });
      var chart = barsChart(s.p + " (" + s.model + ", " + s.ranks + (s.ranks === 1 ? " process)" : " processes)"), "%", bars,
        s.list[0].target, key);
      if (key && shared.length) chart.appendChild(el("p", { "class": "note" }, "All bars: " + shared.join(", ")));
      box.appendChild(chart);
    });
    if (!box.childNodes.length) box.appendChild(el("p", { "class": "note" }, "Only the number of processes was varied."));
  }

  /* ---- over time ---- */

  function curve(title, unit, values, dt, max, marks, color, begin, end) {
    /* Those of the machine, which have a beginning of their own, are two in a row. */
    var half = begin !== undefined, f = frame(title, unit, half ? 530 : 1080, half ? 190 : 220, max, 60);
    var inner = f.w - f.m.l - f.m.r, total = end || dt * values.length;
    if (!half) f.box.classList.add("wide");
    begin = begin || 0;
    function x(t) { return f.m.l + inner * Math.min(1, t / total); }
    var fills = { epoch: "var(--shade)", evaluation: "var(--c2)", checkpoint: "var(--c4)" };
    marks.forEach(function (k, i) {
      var r = svgEl(f.svg, "rect", { x: x(k.from), width: Math.max(1, x(k.to) - x(k.from)), y: f.m.t, height: f.y(0) - f.m.t,
        fill: k.kind === "epoch" && i % 2 ? "none" : fills[k.kind], opacity: k.kind === "epoch" ? 1 : 0.35 });
      tip(r, k.label + ": " + seconds(k.from) + " to " + seconds(k.to));
      if (k.kind === "epoch") svgEl(f.svg, "line", { x1: x(k.from), x2: x(k.from), y1: f.m.t, y2: f.y(0), "class": "grid" });
    });
    svgEl(f.svg, "polyline", { fill: "none", stroke: color, "stroke-width": 1.5, points: values.map(function (v, i) {
      return x(begin + (i + 0.5) * dt).toFixed(1) + "," + f.y(Math.min(v, f.top)).toFixed(1); }).join(" ") });
    ticks(total, half ? 4 : 8).forEach(function (t) {
      svgEl(f.svg, "text", { x: x(t), y: f.h - 18, "text-anchor": "middle", "class": "soft" }, seconds(t));
    });
    return f.box;
  }

  function overTime(run) {
    var box = byId("time"), t = run && run.timeline;
    box.textContent = "";
    if (!t) { box.appendChild(el("p", { "class": "note" }, "The files of the ranks are missing.")); return; }
    box.appendChild(curve("Accelerator utilization", "%", t.busy.map(function (v) { return 100 * v; }), t.dt, 100, t.marks, "var(--c1)"));
    box.appendChild(curve("Throughput", "samples/s", t.rate, t.dt, Math.max.apply(null, t.rate.concat([1])), t.marks, "var(--c3)"));
    if (t.series && t.series.accelerator_use && t.series.accelerator_use.ranks.length > 1)
      box.appendChild(useOfRanks(t.series.accelerator_use, t.series.begin_s));
    Object.keys(t.series && t.series.curves || {}).forEach(function (name) {
      var c = t.series.curves[name], v = c.values.map(function (x) { return has(x) ? x : 0; });
      box.appendChild(curve(c.title || name, c.unit || "", v, t.series.interval_s, Math.max.apply(null, v.concat([1])), t.marks, "var(--c4)",
        t.series.begin_s, t.dt * t.busy.length));
    });
    (t.series && t.series.gpus || []).forEach(function (g, i) {
      [["busy", 100], ["memory_busy", 100], ["power", 1], ["memory_used", 1]].forEach(function (what) {
        var v = g[what[0]].values.map(function (x) { return has(x) ? x : 0; });
        box.appendChild(curve("GPU " + i + " (" + g.name + "), " + what[0].replace("_", " "), g[what[0]].unit, v,
          t.series.interval_s, Math.max.apply(null, v.concat([what[1]])), t.marks, "var(--c2)", t.series.begin_s, t.dt * t.busy.length));
      });
    });
  }

  /* A row for each rank, a cell for each interval; darker is busier. */
  function useOfRanks(use, begin) {
    var box = el("div", { "class": "chart wide" }), title = "Accelerator utilization of each rank", left = 60, wide = 1080, high = 12;
    var svg = svgEl(null, "svg", { viewBox: "0 0 " + wide + " " + (high * use.ranks.length + 24), role: "img", "aria-label": title });
    var w = (wide - left - 12) / Math.max(1, use.ranks[0].length);
    box.appendChild(el("h3", {}, title));
    box.appendChild(svg);
    use.ranks.forEach(function (row, k) {
      svgEl(svg, "text", { x: left - 6, y: high * (k + 1) - 2, "text-anchor": "end", "class": "soft" }, "rank " + k);
      row.forEach(function (v, i) {
        tip(svgEl(svg, "rect", { x: left + w * i, y: high * k, width: w + 0.3, height: high - 1, fill: "var(--c1)",
          opacity: 0.06 + 0.94 * v / 100 }), "rank " + k + ", " + seconds(begin + i * use.interval_s) + ": " + v + " %");
      });
    });
    ticks(use.interval_s * use.ranks[0].length, 8).forEach(function (t) {
      svgEl(svg, "text", { x: left + w * t / use.interval_s, y: high * use.ranks.length + 16, "text-anchor": "middle", "class": "soft" },
        seconds(begin + t));
    });
    return box;
  }

  function ranks(run) {
    var box = byId("ranks");
    box.textContent = "";
    if (!run || !run.rank_au.some(has)) return;
    var f = frame("Whole-run AU (compute / wall time) of each rank: " + run.name, "%", 1080, 200, 100, 60), n = run.rank_au.length;
    run.rank_au.forEach(function (v, i) {
      var w = (f.w - f.m.l - f.m.r) / n;
      if (!has(v)) return;
      tip(svgEl(f.svg, "rect", { x: f.m.l + w * i + w * 0.1, width: Math.max(0.5, w * 0.8), y: f.y(v), height: f.y(0) - f.y(v),
        fill: "var(--c1)" }), "rank " + i + ": " + num(v, 1) + " %");
      if (n <= 32) svgEl(f.svg, "text", { x: f.m.l + w * (i + 0.5), y: f.h - 18, "text-anchor": "middle" }, String(i));
    });
    box.appendChild(f.box);
  }

  function runSelect() {
    var s = byId("run");
    D.runs.forEach(function (r, i) {
      if (r.trained) s.appendChild(el("option", { value: i }, r.name + (r.start ? "  (" + r.start + ")" : "")));
    });
    function show() { var r = D.runs[Number(s.value)]; overTime(r); ranks(r); }
    s.addEventListener("change", show);
    show();
  }

  /* ---- table ---- */

  var COLUMNS = [
    ["model", "model", function (g) { return g.model; }],
    ["overrides", "factors", function (g) { return g.factors; }],
    ["processes", null, function (g) { return g.ranks; }, 0],
    ["runs", null, function (g) { return g.runs.length; }, 0],
    ["AU %", "shade", function (g) { return g.au.mean; }, 1],
    ["\u00b1 ", null, function (g) { return g.au.stdev; }, 1],
    ["whole-run AU %", "shade", function (g) { return g.whole_au.mean; }, 1],
    ["samples/s", null, function (g) { return g.whole_throughput.mean; }, 1],
    ["reported MiB/s", null, function (g) { return g.io.mean; }, 0],
    ["data wait %", null, function (g) { return g.wait; }, 1],
    ["other %", null, function (g) { return g.other; }, 1],
    ["checks", null, function (g) { return g.unsound ? "failed" : "ok"; }]
  ];
  var sorted = { column: -1, down: false };

  function cellText(c, g) { var v = c[2](g); return typeof v === "number" ? num(v, c[3]) : v === undefined || v === null ? "" : String(v); }

  function table() {
    var t = byId("table"), head = el("thead"), row = el("tr"), body = el("tbody"), rows = D.groups.slice();
    t.textContent = "";
    COLUMNS.forEach(function (c, i) {
      var th = el("th", { "class": i < 2 ? "text" : "", scope: "col" }), b = el("button", { type: "button" }, c[0]);
      if (sorted.column === i) th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      th.appendChild(b);
      th.addEventListener("click", function () {
        sorted = { column: i, down: sorted.column === i ? !sorted.down : i >= 2 };
        table();
      });
      row.appendChild(th);
    });
    if (sorted.column >= 0) {
      var of = COLUMNS[sorted.column][2];
      rows.sort(function (a, b) {
        var x = of(a), y = of(b), none = (x === undefined) - (y === undefined);
        if (none) return none;
        var c = typeof x === "number" ? x - y : String(x).localeCompare(String(y));
        return sorted.down ? -c : c;
      });
    }
    rows.forEach(function (g) {
      var tr = el("tr");
      COLUMNS.forEach(function (c, i) {
        var td = el("td", { "class": i < 2 ? "text" : "" }, cellText(c, g)), v = c[2](g);
        if (c[1] === "shade" && has(v)) {
          var share = Math.max(0, Math.min(1, v / 100));
          td.style.background = "color-mix(in srgb, hsl(" + Math.round(120 * share) + " 60% 50%) 28%, transparent)";
        }
        tr.appendChild(td);
      });
      body.appendChild(tr);
    });
    head.appendChild(row); t.appendChild(head); t.appendChild(body);
  }

  function csv() {
    function quote(s) { return /[",\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s; }
    var text = COLUMNS.map(function (c) { return quote(c[0]); }).join(",") + "\n" + D.groups.map(function (g) {
      return COLUMNS.map(function (c) { var v = c[2](g); return quote(v === undefined || v === null ? "" : String(v)); }).join(",");
    }).join("\n") + "\n";
    var a = el("a", { href: "data:text/csv;charset=utf-8," + encodeURIComponent(text), download: "report.csv" });
    document.body.appendChild(a); a.click(); a.remove();
  }

  function bytes(v) {
    var units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], i = 0;
    for (; v >= 1024 && i < units.length - 1; i++) v /= 1024;
    return num(v, i ? 2 : 0) + " " + units[i];
  }

  /* Where bytes were counted; each place is compared with the one above it. */
  function ledger(lines) {
    var box = el("div", { "class": "scroll ledger" }), t = el("table"), head = el("tr"), n = 0, epochs = [], evaluated;
    lines.forEach(function (l) {
      n = Math.max(n, (l.epoch_bytes || []).length);
      evaluated = evaluated || l.evaluation_bytes;
    });
    for (var i = 0; n > 1 && i < n; i++) if (n <= 6 || i < 3 || i === n - 1) epochs.push(i);
    function sum(list) {
      var s = 0;
      (list || []).forEach(function (v) { s += v || 0; });
      return s;
    }
    function head_of(h, text) { head.appendChild(el("th", text ? { "class": "text" } : {}, h)); }
    head_of("Training bytes", true);
    ["", "ratio"].forEach(function (h) { head_of(h); });
    epochs.forEach(function (e) { head_of((e > 3 && n > 6 ? "\u2026 epoch " : "epoch ") + (e + 1)); });
    if (evaluated) head_of("evaluations");
    head_of("reason", true);
    t.appendChild(head);
    lines.forEach(function (l) {
      var tr = el("tr", { "class": l.state || "agrees" });
      tr.appendChild(el("td", { "class": "text" }, l.title + (l.place ? " (" + l.place + ")" : "")));
      tr.appendChild(el("td", {}, bytes(l.bytes)));
      tr.appendChild(el("td", {}, has(l.percent) ? num(l.percent, 1) + " %" : ""));
      epochs.forEach(function (e) {
        tr.appendChild(el("td", {}, l.epoch_bytes && has(l.epoch_bytes[e]) ? bytes(l.epoch_bytes[e]) : ""));
      });
      if (evaluated) tr.appendChild(el("td", {}, l.evaluation_bytes ? bytes(sum(l.evaluation_bytes)) : ""));
      tr.appendChild(el("td", { "class": "text" }, l.why || ""));
      t.appendChild(tr);
    });
    box.appendChild(t);
    return box;
  }

  function details() {
    var box = byId("details");
    D.runs.forEach(function (r) {
      var d = el("details"), worst = r.findings.some(function (f) { return f.level === "fail"; }) ? "fail" :
        r.findings.some(function (f) { return f.level === "warning"; }) ? "warning" : "ok";
      var s = el("summary");
      s.appendChild(el("span", { "class": "tag " + worst }, worst));
      s.appendChild(document.createTextNode(r.name + ", " + r.ranks + " ranks, " + r.tool));
      d.appendChild(s);
      d.appendChild(el("p", { "class": "note" }, r.folder));
      r.findings.forEach(function (f) {
        var v = el("div", { "class": "verdict " + f.level });
        v.appendChild(el("span", { "class": "tag " + f.level }, f.level + ": " + f.check));
        v.appendChild(document.createTextNode(f.text));
        if (f.advice) v.appendChild(el("div", { "class": "note" }, f.advice));
        d.appendChild(v);
      });
      if (r.ledger && r.ledger.length) d.appendChild(ledger(r.ledger));
      box.appendChild(d);
    });
  }

  function hosts() {
    D.hosts.forEach(function (h) {
      var dl = el("dl");
      byId("hosts").appendChild(el("h3", {}, h.name));
      h.facts.forEach(function (f) { dl.appendChild(el("dt", {}, f[0])); dl.appendChild(el("dd", {}, f[1])); });
      byId("hosts").appendChild(dl);
    });
  }

  about(); verdicts(); findings(); scaling(); factors(); runSelect(); table(); details(); hosts();
  byId("csv").addEventListener("click", csv);
  document.documentElement.setAttribute("data-ready", "yes");
})();

/* Charts: axes with units, points with error bars, stacked bars, curves over time. Each is drawn for the width that it
   has, so that its text keeps its size, and again when the width changes. */
(function () {
  var P = Page, C = P.chart = {}, FALLBACK = 560;

  /* Round steps for an axis of about n intervals. */
  C.ticks = function (max, n) {
    var raw = max / n, mag = Math.pow(10, Math.floor(Math.log10(raw || 1))), out = [], step;
    step = [1, 2, 2.5, 5, 10].map(function (f) { return f * mag; }).find(function (s) { return s >= raw * 0.9999; }) || mag * 10;
    for (var v = 0; v <= max * 1.0001; v += step) out.push(Number(v.toPrecision(12)));
    return out;
  };

  /* A card with a heading; draw(svg, width) is called for each width, and sets the height. `said` describes the chart
     for those who cannot see it. */
  C.card = function (parent, title, said, draw, wide) {
    var box = P.add(parent, "figure", { "class": "chart" + (wide ? " wide" : "") }), drawn = 0;
    if (title) P.add(box, "figcaption", {}, title);
    var svg = P.svg(box, "svg", { role: "img", "aria-label": said || title });
    function again(width) {
      if (width < 120 || Math.abs(width - drawn) < 2) return;
      drawn = width;
      while (svg.firstChild) svg.firstChild.remove();
      var height = draw(svg, width);
      svg.setAttribute("viewBox", "0 0 " + width + " " + height);
    }
    again(FALLBACK);
    if (window.ResizeObserver) new ResizeObserver(function () { again(Math.round(svg.clientWidth)); }).observe(box);
    return box;
  };

  /* Width of a text in the charts' font, roughly. */
  C.textWidth = function (s) { return String(s).length * 6.6; };
  C.cut = function (s, width) {
    var n = Math.floor(width / 6.6);
    return s.length <= n ? s : s.slice(0, Math.max(1, n - 1)) + "\u2026";
  };

  /* Upright axes: y from 0 to at least max, with the unit above it. Returns places. */
  function upright(svg, w, h, unit, max, what) {
    var t = C.ticks(max || 1, h < 180 ? 4 : 5), step = t.length > 1 ? t[1] - t[0] : 1;
    if (t[t.length - 1] < max * 0.9999) t.push(t[t.length - 1] + step);
    var top = t[t.length - 1] || 1;
    var m = { l: 14 + C.textWidth(P.num(top, top % 1 || step % 1 ? 1 : 0)), r: 14, t: 24, b: 38 };
    function y(v) { return m.t + (h - m.t - m.b) * (1 - Math.max(0, Math.min(v, top)) / top); }
    t.forEach(function (v) {
      P.svg(svg, "line", { x1: m.l, x2: w - m.r, y1: y(v), y2: y(v), "class": v ? "grid" : "base" });
      P.svg(svg, "text", { x: m.l - 6, y: y(v) + 4, "text-anchor": "end", "class": "soft" }, P.num(v, step % 1 ? (step < 0.1 ? 2 : 1) : 0));
    });
    P.svg(svg, "text", { x: 2, y: 12, "class": "soft" }, what ? what + " (" + unit + ")" : unit);
    return { y: y, m: m, top: top, inner: w - m.l - m.r, floor: y(0) };
  }
  C.upright = upright;

  var SHAPES = [
    function (x, y, r) { return "M" + (x - r) + "," + y + "a" + r + "," + r + " 0 1,0 " + 2 * r + ",0a" + r + "," + r + " 0 1,0 " + -2 * r + ",0z"; },
    function (x, y, r) { var s = r * 0.9; return "M" + (x - s) + "," + (y - s) + "h" + 2 * s + "v" + 2 * s + "h" + -2 * s + "z"; },
    function (x, y, r) { return "M" + x + "," + (y - r * 1.15) + "L" + (x + r * 1.1) + "," + (y + r * 0.85) + "H" + (x - r * 1.1) + "z"; },
    function (x, y, r) { return "M" + x + "," + (y + r * 1.15) + "L" + (x + r * 1.1) + "," + (y - r * 0.85) + "H" + (x - r * 1.1) + "z"; },
    function (x, y, r) { var s = r * 1.25; return "M" + x + "," + (y - s) + "L" + (x + s) + "," + y + "L" + x + "," + (y + s) + "L" + (x - s) + "," + y + "z"; },
    function (x, y, r) {
      var p = [];
      for (var i = 0; i < 5; i++) p.push((x + 1.1 * r * Math.sin(i * 1.2566)).toFixed(2) + "," + (y - 1.1 * r * Math.cos(i * 1.2566)).toFixed(2));
      return "M" + p.join("L") + "z";
    }
  ];
  /* A mark in the shape of its model; hollow where a check failed. */
  C.mark = function (svg, x, y, color, shape, hollow) {
    return P.svg(svg, "path", { d: SHAPES[shape || 0](x, y, 4.6), "class": "point", stroke: color, "stroke-width": 2,
      fill: hollow ? "var(--card)" : color });
  };
  /* An error bar with caps; `flat`: along the x axis. */
  C.error = function (svg, at, from, to, color, flat) {
    var g = P.svg(svg, "g", { "class": "error", stroke: color, "stroke-width": 1.5 });
    function line(a, b, c, d) {
      P.svg(g, "line", flat ? { x1: b, y1: a, x2: d, y2: c } : { x1: a, y1: b, x2: c, y2: d });
    }
    line(at, from, at, to); line(at - 4, from, at + 4, from); line(at - 4, to, at + 4, to);
  };
  function spreads(s) { return P.has(s.stdev) && s.stdev > 0 && (s.values === undefined || s.values > 1); }

  C.legend = function (box, series) {
    var list = P.add(box, "ul", { "class": "legend" });
    series.forEach(function (s) {
      var item = P.add(list, "li"), svg = P.svg(item, "svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
      if (s.dash) P.svg(svg, "line", { x1: 0, x2: 16, y1: 8, y2: 8, stroke: s.color, "stroke-width": 1.5, "stroke-dasharray": "5 3" });
      else if (s.tick) P.svg(svg, "line", { x1: 8, x2: 8, y1: 1, y2: 15, stroke: s.color, "stroke-width": 2.5 });
      else if (s.bar) P.svg(svg, "rect", { x: 2, y: 2, width: 12, height: 12, rx: 2, fill: s.color });
      else C.mark(svg, 8, 8, s.color, s.shape, s.hollow);
      item.appendChild(document.createTextNode(s.name));
    });
  };

  /* Lines over numbers of accelerators. series: [{name, color, shape, target, points: [{x, mean, stdev, n, hollow}]}] */
  C.lines = function (parent, title, unit, what, series, percent, wide, axis) {
    axis = axis || { name: "accelerators", text: String, tip: P.accelerators };
    var xs = [], max = percent ? 100 : 0, targets = {};
    series.forEach(function (s) {
      if (percent && P.has(s.target)) (targets[s.target] = targets[s.target] || []).push(s);
      s.points.sort(function (a, b) { return a.x - b.x; });
      s.points.forEach(function (p) {
        if (xs.indexOf(p.x) < 0) xs.push(p.x);
        max = Math.max(max, p.mean + (spreads(p) && !percent ? p.stdev : 0));
      });
    });
    xs.sort(function (a, b) { return a - b; });
    var said = title + ". " + series.map(function (s) {
      return s.name + ": " + s.points.map(function (p) { return axis.tip(p.x) + " " + P.num(p.mean, 1) + " " + unit; }).join(", ");
    }).join("; ");
    var one = Object.keys(targets);
    var box = C.card(parent, title, said, function (svg, w) {
      var h = Math.max(240, Math.min(340, w * 0.56)), f = upright(svg, w, h, unit, max, what);
      function x(v) { return f.m.l + f.inner * (xs.indexOf(v) + 0.5) / xs.length; }
      var room = xs.reduce(function (most, v) { return Math.max(most, C.textWidth(axis.text(v)) + 8); }, 34);
      var every = Math.ceil(xs.length / Math.max(1, f.inner / room));
      xs.forEach(function (v, i) {
        if (i % every === 0) P.svg(svg, "text", { x: x(v), y: h - 20, "text-anchor": "middle" }, axis.text(v));
      });
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, axis.name);
      one.forEach(function (t) {
        P.svg(svg, "line", { x1: f.m.l, x2: w - f.m.r, y1: f.y(t), y2: f.y(t), "class": "target",
          stroke: one.length > 1 && targets[t].length === 1 ? targets[t][0].color : "var(--fg)" });
      });
      series.forEach(function (s, k) {
        /* points of models that share a place stand side by side */
        var shift = series.length > 1 ? (k - (series.length - 1) / 2) * Math.min(5, f.inner / xs.length / (series.length + 2)) : 0;
        P.svg(svg, "polyline", { fill: "none", stroke: s.color, "stroke-width": 2, points: s.points.map(function (p) {
          return (x(p.x) + shift).toFixed(1) + "," + f.y(p.mean).toFixed(1); }).join(" ") });
        s.points.forEach(function (p) {
          var at = x(p.x) + shift;
          if (spreads(p)) C.error(svg, at, f.y(Math.max(0, p.mean - p.stdev)), f.y(Math.min(f.top, p.mean + p.stdev)), s.color);
          P.tip(C.mark(svg, at, f.y(p.mean), s.color, s.shape, p.hollow), s.name + ", " + axis.tip(p.x) + ": " +
            P.num(p.mean) + (spreads(p) ? " \u00b1 " + P.num(p.stdev) : "") + " " + unit + (p.hollow ? " (left out)" : ""));
        });
      });
      return h;
    }, wide);
    var keys = series.map(function (s) { return { name: s.name, color: s.color, shape: s.shape }; });
    if (series.some(function (s) { return s.points.some(function (p) { return p.hollow; }); }))
      keys.push({ name: "hollow: left out (not valid)", color: "var(--soft)", hollow: true });
    one.forEach(function (t) {
      keys.push({ name: "target " + P.num(Number(t), Number(t) % 1 ? 1 : 0) + " %" + (one.length > 1 ? " (" + targets[t].map(function (s) {
        return s.name; }).join(", ") + ")" : ""), color: one.length > 1 && targets[t].length === 1 ? targets[t][0].color : "var(--fg)", dash: true });
    });
    C.legend(box, keys);
    return box;
  };

  /* AU over the number of accelerators, with the fit, the target, and the knee with its interval. */
  C.knee = function (parent, title, c, color, shape) {
    var last = c.points[c.points.length - 1].x, most = Math.max(last, P.has(c.high) ? c.high : 0);
    var said = title + ". " + c.text + ". " + c.points.map(function (p) { return p.x + " accelerators " + P.num(p.au, 1) + " %"; }).join(", ");
    return C.card(parent, title, said, function (svg, w) {
      var h = Math.max(240, Math.min(340, w * 0.56)), f = upright(svg, w, h, "%", 100, "AU"), wide = Math.log2(most + 1) || 1;
      function x(v) { return f.m.l + f.inner * Math.log2(v + 1) / wide * 0.96; }
      function line(from, to, kind) { P.svg(svg, "line", { x1: from, x2: to, y1: f.y(c.target), y2: f.y(c.target), "class": kind, stroke: "var(--fg)" }); }
      var right = P.has(c.high) ? x(c.high) : w - f.m.r;
      P.svg(svg, "rect", { x: x(c.low) - 2, y: f.m.t, width: Math.max(4, right - x(c.low) + 4), height: f.floor - f.m.t, fill: color, opacity: 0.16 });
      P.svg(svg, "line", { x1: x(c.knee), x2: x(c.knee), y1: f.m.t, y2: f.floor, stroke: color, "stroke-width": 1.5, "stroke-dasharray": "2 3" });
      line(f.m.l, w - f.m.r, "target");
      var free = -1;
      c.points.forEach(function (p) {
        var at = x(p.x), text = String(p.x), half = C.textWidth(text) / 2;
        if (at - half < free) return;
        free = at + half + 6;
        P.svg(svg, "text", { x: at, y: h - 20, "text-anchor": "middle" }, text);
      });
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, "accelerators");
      P.svg(svg, "polyline", { fill: "none", stroke: color, "stroke-width": 2, points: c.points.map(function (p) {
        return x(p.x).toFixed(1) + "," + f.y(p.fit).toFixed(1); }).join(" ") });
      c.points.forEach(function (p) {
        C.error(svg, x(p.x), f.y(p.low), f.y(p.high), color);
        P.tip(C.mark(svg, x(p.x), f.y(p.au), color, shape), P.accelerators(p.x) + ": " + P.num(p.au, 1) + " % (95 %: " + P.num(p.low, 1) + " to " +
          P.num(p.high, 1) + ", " + P.count(p.runs, "run") + ")");
      });
      return h;
    });
  };

  /* A row for each configuration: whole-run AU with its error bar, and a bar mark for AU by DLIO's definition.
     rows: [{label, whole: stat, au: stat, color, shape, hollow}]; axis to 100 %. `plain`: without a legend. */
  C.dots = function (parent, title, rows, target, plain) {
    var said = title + ". " + rows.map(function (r) { return r.label + ": " + P.num(r.whole.mean, 1) + " %"; }).join("; ");
    var box = C.card(parent, title, said, function (svg, w) {
      var longest = Math.max.apply(null, rows.map(function (r) { return C.textWidth(r.label); }));
      var above = w < 420 || longest > w * 0.42 && w < 700;
      var left = above ? 6 : Math.min(longest + 14, w * 0.45), high = above ? 38 : 26, top = 24, right = 52;
      var h = top + high * rows.length + 40, inner = w - left - right;
      function x(v) { return left + inner * Math.max(0, Math.min(100, v)) / 100; }
      [0, 20, 40, 60, 80, 100].forEach(function (v) {
        P.svg(svg, "line", { x1: x(v), x2: x(v), y1: top, y2: h - 38, "class": v ? "grid" : "base" });
        P.svg(svg, "text", { x: x(v), y: h - 22, "text-anchor": "middle", "class": "soft" }, String(v));
      });
      P.svg(svg, "text", { x: left + inner / 2, y: h - 5, "text-anchor": "middle", "class": "soft" }, "AU (%)");
      if (P.has(target)) {
        P.svg(svg, "line", { x1: x(target), x2: x(target), y1: top - 6, y2: h - 38, "class": "target", stroke: "var(--fg)" });
        P.svg(svg, "text", { x: x(target), y: top - 10, "text-anchor": target > 70 ? "end" : "middle", "class": "soft" },
          "target " + P.num(target, 0) + " %");
      }
      rows.forEach(function (r, i) {
        var y = top + high * (i + 0.5) + (above ? 7 : 0);
        P.tip(P.svg(svg, "text", above ? { x: left, y: y - 12 } : { x: left - 10, y: y + 4, "text-anchor": "end" },
          C.cut(r.label, above ? w - 10 : left - 12)), r.name || r.label);
        P.svg(svg, "line", { x1: left, x2: x(r.whole.mean), y1: y, y2: y, stroke: r.color, "stroke-width": 2, opacity: 0.45 });
        if (r.au && P.has(r.au.mean)) {
          var tick = P.svg(svg, "line", { x1: x(r.au.mean), x2: x(r.au.mean), y1: y - 7, y2: y + 7, stroke: "var(--soft)", "stroke-width": 2.5 });
          P.tip(tick, r.label + ": " + P.spread(r.au, 1) + " % by DLIO\u2019s definition");
        }
        if (spreads(r.whole)) C.error(svg, y, x(r.whole.mean - r.whole.stdev), x(r.whole.mean + r.whole.stdev), r.color, true);
        P.tip(C.mark(svg, x(r.whole.mean), y, r.color, r.shape, r.hollow), r.label + ": whole-run AU " + P.spread(r.whole, 1) + " %" +
          (r.hollow ? " (left out)" : ""));
        P.svg(svg, "text", { x: w - 2, y: y + 4, "text-anchor": "end" }, P.num(r.whole.mean, 1));
      });
      return h;
    });
    var keys = [{ name: "whole-run AU", color: rows.length ? rows[0].color : "var(--fg)", shape: rows.length ? rows[0].shape : 0 }];
    if (rows.some(function (r) { return r.hollow; })) keys.push({ name: "hollow: left out (not valid)", color: "var(--soft)", hollow: true });
    if (rows.some(function (r) { return r.au && P.has(r.au.mean); })) keys.push({ name: "AU by DLIO\u2019s definition", color: "var(--soft)", tick: true });
    if (!plain) C.legend(box, keys);
    return box;
  };

  /* One stacked bar of the wall time of training, with its parts listed below. */
  C.budget = function (parent, title, parts, wall) {
    var said = title + ": " + parts.map(function (p) { return p.title + " " + P.num(p.percent, 1) + " %"; }).join(", ");
    var box = C.card(parent, title, said, function (svg, w) {
      var at = 0, high = 44, sum = 0;
      parts.forEach(function (p) { sum += p.percent; });
      parts.forEach(function (p) {
        var wide = w * p.percent / Math.max(100, sum);
        P.tip(P.svg(svg, "rect", { x: at, y: 2, width: Math.max(0.5, wide - 1), height: high, fill: "var(--t-" + p.key + ")" }),
          p.title + ": " + P.num(p.percent, 1) + " %");
        var label = P.num(p.percent, p.percent < 10 ? 1 : 0) + " %";
        if (wide > C.textWidth(label) + 8)
          P.svg(svg, "text", { x: at + wide / 2, y: 2 + high / 2 + 5, "text-anchor": "middle", "class": "on" }, label);
        at += wide;
      });
      [0, 25, 50, 75, 100].forEach(function (v) {
        var x = w * v / 100;
        P.svg(svg, "line", { x1: Math.min(w - 0.5, x + 0.5), x2: Math.min(w - 0.5, x + 0.5), y1: high + 4, y2: high + 9, "class": "base" });
        P.svg(svg, "text", { x: x, y: high + 22, "text-anchor": v === 0 ? "start" : v === 100 ? "end" : "middle", "class": "soft" },
          v + (v < 100 ? "" : w < 520 ? " %" : " % of wall time"));
      });
      return high + 28;
    });
    C.parts(box, parts, wall);
    return box;
  };
  /* The list of parts, largest first. */
  C.parts = function (box, parts, wall) {
    var t = P.add(box, "table", { "class": "parts" }), body = P.add(t, "tbody");
    P.add(t, "caption", { "class": "unseen" }, "Parts of the wall time of training");
    parts.slice().sort(function (a, b) { return b.percent - a.percent; }).forEach(function (p) {
      var tr = P.add(body, "tr"), name = P.add(tr, "td");
      P.add(name, "i", { style: "background:var(--t-" + p.key + ")", "aria-hidden": "true" });
      name.appendChild(document.createTextNode(p.title));
      P.add(tr, "td", { "class": "number" }, P.num(p.percent, 1) + " %");
      P.add(tr, "td", { "class": "number soft" }, P.has(wall) ? P.seconds(wall * p.percent / 100) : "");
    });
  };
  /* A thin stacked bar for a row of a table. */
  C.strip = function (parent, parts) {
    var box = P.add(parent, "span", { "class": "strip", role: "img", "aria-label": parts.map(function (p) {
      return p.title + " " + P.num(p.percent, 1) + " %"; }).join(", ") });
    parts.forEach(function (p) {
      P.add(box, "i", { style: "width:" + p.percent.toFixed(2) + "%;background:var(--t-" + p.key + ")",
        title: p.title + ": " + P.num(p.percent, 1) + " %" });
    });
  };

  /* Values over time; what is not known is a gap. marks: [{kind, from, to, label}] */
  C.curve = function (parent, title, unit, values, dt, max, marks, color, begin, end) {
    var known = values.filter(P.has), total = end || dt * values.length, first = begin || 0;
    var mean = known.reduce(function (a, b) { return a + b; }, 0) / (known.length || 1);
    var said = title + " over time: mean " + P.num(mean) + ", most " + P.num(Math.max.apply(null, known.concat([0]))) + " " + unit;
    return C.card(parent, title, said, function (svg, w) {
      var h = 200, f = upright(svg, w, h, unit, max);
      function x(t) { return f.m.l + f.inner * Math.min(1, t / total); }
      var fills = { epoch: "var(--shade)", evaluation: "var(--m1)", checkpoint: "var(--m3)" };
      marks.forEach(function (k, i) {
        P.tip(P.svg(svg, "rect", { x: x(k.from), width: Math.max(1, x(k.to) - x(k.from)), y: f.m.t, height: f.floor - f.m.t,
          fill: k.kind === "epoch" && i % 2 ? "none" : fills[k.kind], opacity: k.kind === "epoch" ? 1 : 0.18 }),
          k.label + ": " + P.seconds(k.from) + " to " + P.seconds(k.to));
        if (k.kind === "epoch") P.svg(svg, "line", { x1: x(k.from), x2: x(k.from), y1: f.m.t, y2: f.floor, "class": "grid" });
      });
      var run = [];
      function put() {
        if (run.length) P.svg(svg, "polyline", { fill: "none", stroke: color, "stroke-width": 1.5, points: run.join(" ") });
        run = [];
      }
      values.forEach(function (v, i) {
        if (!P.has(v)) { put(); return; }
        run.push(x(first + (i + 0.5) * dt).toFixed(1) + "," + f.y(v).toFixed(1));
      });
      put();
      var big = total >= 7200 ? [3600, "h"] : total >= 120 ? [60, "min"] : [1, "s"];
      C.ticks(total / big[0], Math.max(2, Math.min(8, w / 90))).forEach(function (t) {
        P.svg(svg, "text", { x: x(t * big[0]), y: h - 20, "text-anchor": "middle", "class": "soft" }, P.num(t, t % 1 ? 1 : 0));
      });
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" },
        "time since the start of the run (" + big[1] + ")");
      return h;
    });
  };
})();

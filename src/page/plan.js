/* The page of a plan: the answer, the curve with its interval, tables. */
(function () {
  var P = Page, C = P.chart, D = P.data, first = D.plans[0];

  function fact(list, name, value) {
    if (!value) return;
    var d = P.add(list, "div");
    P.add(d, "dt", {}, name);
    P.add(d, "dd", {}, value);
  }
  function low(r) { return P.has(r.low) ? r.low : r.at_least; }
  function range(r, bounded, unit, digits) {
    var d = digits === undefined ? 1 : digits;
    if (bounded) return P.num(r.estimate, d) + unit + " (" + P.num(r.low, d) + " to " + P.num(r.high, d) + ")";
    return "at least " + P.num(low(r), d) + unit + "; " + P.num(r.estimate, d) + unit + " (up to " + P.num(r.high, d) + ") if nothing else limits it";
  }
  function hosts(n) { return P.count(n, "host"); }

  P.byId("about").textContent = P.count(first.accelerators, "accelerator") + " on " + hosts(first.hosts);
  P.safely(P.byId("facts"), function () {
    var list = P.byId("facts"), n = first.needs;
    fact(list, "Does it pass?", (first.passes ? first.passes + ": " : "") + "AU as DLIO defines it " + range(first.au_percent, first.bounded, " %") +
      (P.has(D.target_percent) ? "; target " + P.num(D.target_percent, D.target_percent % 1 ? 1 : 0) + " %" : ""));
    fact(list, "Is it enough?", (first.enough ? first.enough + ": " : "") + "by samples/s they compute " + range(first.by_rate_percent, first.bounded, " %"));
    fact(list, "Storage needed", [P.bytes(n.bytes_per_s) + "/s", P.num(n.samples_per_s) + " samples/s",
      P.has(n.requests_per_s) ? P.num(n.requests_per_s) + " requests/s" : "", P.has(n.opens_per_s) ? P.num(n.opens_per_s) + " opens/s" : ""].filter(Boolean).join(", "));
    fact(list, "Limited by", first.limited_by);
    var m = D.most_that_pass;
    if (m) fact(list, "Most that pass", range(m, m.bounded, "", 0) + " on " + hosts(m.hosts));
    fact(list, "Decides most", first.assumption);
    fact(list, "Would settle it", first.next_measurement);
  });

  /* Places of x on a logarithmic axis. */
  function curve(parent, title, unit, key, measured, target) {
    var rows = D.plans.slice().sort(function (a, b) { return a.accelerators - b.accelerators; });
    var points = D.points.filter(function (p) { return P.has(p[measured]); });
    var xs = rows.map(function (r) { return r.accelerators; }).concat(points.map(function (p) { return p.accelerators; }));
    var from = Math.min.apply(null, xs), to = Math.max.apply(null, xs);
    var max = Math.max.apply(null, rows.map(function (r) { return r[key].high; }).concat(points.map(function (p) { return p[measured]; })));
    if (unit === "%") max = 100;
    var said = title + ". " + rows.map(function (r) { return r.accelerators + " accelerators: " + range(r[key], r.bounded, " " + unit); }).join("; ");
    var box = C.card(parent, title, said, function (svg, w) {
      var h = Math.max(240, Math.min(340, w * 0.56)), f = C.upright(svg, w, h, unit, max);
      function x(v) { return from === to ? f.m.l + f.inner / 2 : f.m.l + f.inner * (0.05 + 0.9 * Math.log(v / from) / Math.log(to / from)); }
      var shown = [];
      Array.from(new Set(xs)).sort(function (a, b) { return a - b; }).forEach(function (v) {
        if (shown.length && x(v) - x(shown[shown.length - 1]) < 34) return;
        shown.push(v);
        P.svg(svg, "text", { x: x(v), y: h - 20, "text-anchor": "middle" }, P.num(v, 0));
      });
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, "accelerators");
      if (P.has(target)) P.svg(svg, "line", { x1: f.m.l, x2: w - f.m.r, y1: f.y(target), y2: f.y(target), "class": "target", stroke: "var(--fg)" });
      if (rows.length > 1) {
        P.svg(svg, "polygon", { fill: "var(--m0)", opacity: 0.16, points: rows.map(function (r) { return x(r.accelerators) + "," + f.y(r[key].high); })
          .concat(rows.slice().reverse().map(function (r) { return x(r.accelerators) + "," + f.y(low(r[key])); })).join(" ") });
        P.svg(svg, "polyline", { fill: "none", stroke: "var(--m0)", "stroke-width": 2, points: rows.map(function (r) {
          return x(r.accelerators) + "," + f.y(r[key].estimate); }).join(" ") });
      }
      rows.forEach(function (r) {
        C.error(svg, x(r.accelerators), f.y(low(r[key])), f.y(r[key].high), "var(--m0)");
        P.tip(C.mark(svg, x(r.accelerators), f.y(r[key].estimate), "var(--m0)", 0, !r.bounded), P.count(r.accelerators, "accelerator") + " on " +
          hosts(r.hosts) + ": " + range(r[key], r.bounded, " " + unit));
      });
      points.forEach(function (p) {
        P.tip(C.mark(svg, x(p.accelerators), f.y(p[measured]), "var(--m1)", 1), p.from + ": " + P.num(p[measured]) + " " + unit);
      });
      return h;
    });
    var keys = [{ name: "planned, with its interval", color: "var(--m0)", shape: 0 }, { name: "measured", color: "var(--m1)", shape: 1 }];
    if (rows.some(function (r) { return !r.bounded; })) keys.splice(1, 0, { name: "hollow: if nothing else limits it", color: "var(--m0)", hollow: true });
    if (P.has(target)) keys.push({ name: "target", color: "var(--fg)", dash: true });
    C.legend(box, keys);
  }
  P.safely(P.byId("curves"), function () {
    var box = P.byId("curves");
    curve(box, "AU as DLIO defines it", "%", "au_percent", "au_percent", D.target_percent);
    curve(box, "AU by samples/s", "%", "by_rate_percent", "by_rate_percent", D.target_percent);
    curve(box, "Samples/s", "samples/s", "samples_per_s", "samples_per_s");
  });
  P.byId("curve-note").textContent = "Bars and the shaded band: what agrees with the measurements (90 %). The low end of a hollow mark is what was measured; " +
    "no measurement shows the limit of the storage or of a host.";

  P.safely(P.byId("rows"), function () {
    function cell(key) { return function (r) { return (r.bounded ? "" : "\u2265 " + P.num(low(r[key]), 1) + "; ") + P.num(r[key].estimate, 1) +
      (r.bounded ? " (" + P.num(r[key].low, 1) + " to " + P.num(r[key].high, 1) + ")" : " (up to " + P.num(r[key].high, 1) + ")"); }; }
    P.table(P.byId("rows"), D.plans, [
      { title: "Accelerators", kind: "number", first: true, get: function (r) { return r.accelerators; }, text: function (r) { return P.num(r.accelerators, 0); } },
      { title: "Hosts", kind: "number", get: function (r) { return r.hosts; }, text: function (r) { return P.num(r.hosts, 0); } },
      { title: "AU, DLIO\u2019s (%)", kind: "number", get: function (r) { return r.au_percent.estimate; }, text: cell("au_percent") },
      { title: "AU by rate (%)", kind: "number", get: function (r) { return r.by_rate_percent.estimate; }, text: cell("by_rate_percent") },
      { title: "Needs", kind: "number", get: function (r) { return r.needs.bytes_per_s; }, text: function (r) { return P.bytes(r.needs.bytes_per_s) + "/s"; } },
      { title: "Passes", kind: "text", get: function (r) { return r.passes || ""; } },
      { title: "Limited by", kind: "text", get: function (r) { return r.limited_by; } }
    ], { caption: "All numbers of accelerators" });
  });
  P.safely(P.byId("points"), function () {
    P.table(P.byId("points"), D.points, [
      { title: "From", kind: "text", first: true, get: function (p) { return p.from; } },
      { title: "Workload", kind: "text", get: function (p) { return p.workload; } },
      { title: "Hosts", kind: "number", get: function (p) { return p.hosts; }, text: function (p) { return P.num(p.hosts, 0); } },
      { title: "Accelerators", kind: "number", get: function (p) { return p.accelerators; }, text: function (p) { return P.num(p.accelerators, 0); } },
      { title: "Samples/s", kind: "number", get: function (p) { return p.samples_per_s; }, text: function (p) { return P.num(p.samples_per_s); } },
      { title: "Bytes/s", kind: "number", get: function (p) { return p.bytes_per_s; }, text: function (p) { return P.bytes(p.bytes_per_s) + "/s"; } },
      { title: "AU (%)", kind: "number", get: function (p) { return p.au_percent; }, text: function (p) { return P.num(p.au_percent, 1); } },
      { title: "By rate (%)", kind: "number", get: function (p) { return p.by_rate_percent; }, text: function (p) { return P.num(p.by_rate_percent, 1); } }
    ], { caption: "Measured points" });
    D.notes.forEach(function (n) { P.add(P.byId("notes"), "li", {}, n); });
  });
  var k = D.checkpoints;
  if (k) P.safely(P.byId("goodput"), function () {
    var list = P.byId("goodput");
    P.byId("checkpoints").hidden = false;
    fact(list, "Size", P.bytes(k.bytes));
    fact(list, "A failure every", P.seconds(k.mtbf_s));
    if (k.best) fact(list, "Best", "every " + P.seconds(k.best.interval_s) + ": " + P.num(k.best.goodput_percent, 2) + " % of the time trains");
    if (k.asked) fact(list, "As asked", "every " + P.seconds(k.asked.interval_s) + ": " + P.num(k.asked.goodput_percent, 2) + " % of the time trains");
    if (P.has(k.young_s)) fact(list, "Formulas", "Young " + P.seconds(k.young_s) + ", Daly " + P.seconds(k.daly_s) + ", exact " + P.seconds(k.exact_s));
    if (P.has(k.needed_write_bytes_per_s)) fact(list, "To lose at most " + P.num(k.target_loss_percent, 1) + " %", "write at " +
      P.bytes(k.needed_write_bytes_per_s) + "/s");
    if (P.has(k.two_level_goodput_percent)) fact(list, "Two levels", "local every " + P.seconds(k.local_interval_s) + ", shared every " +
      P.seconds(k.shared_interval_s) + ": " + P.num(k.two_level_goodput_percent, 2) + " %");
  });
})();

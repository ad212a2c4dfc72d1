/* The page of a survey: the answer, a row for each accelerator, a curve for each kind of reading. */
(function () {
  var P = Page, C = P.chart, D = P.data;

  function fact(list, name, value) {
    if (!value) return;
    var d = P.add(list, "div");
    P.add(d, "dt", {}, name);
    P.add(d, "dd", {}, value);
  }
  function number(v) { return v < 0.995 ? String(Number(v.toPrecision(2))) : P.num(v, v < 19.95 ? 1 : 0); }
  function fed(r) {
    if (!P.has(r.accelerators)) return "not measured";
    return r.at_least ? "at least " + number(r.low_95) : number(r.accelerators) + " (" + number(r.low_95) + " to " + number(r.high_95) + ")";
  }
  function named(r) { return r.model + (r.accelerator ? " on " + r.accelerator : ""); }
  function models(i) {
    return Array.from(new Set(D.workloads.filter(function (r) { return r.pattern === i; }).map(function (r) { return r.model; }))).join(", ");
  }

  P.byId("about").textContent = D.answer;
  P.safely(P.byId("facts"), function () {
    var list = P.byId("facts");
    fact(list, "Storage", D.folder + (D.file_system ? ", " + D.file_system : ""));
    fact(list, "Measured", "in " + P.seconds(D.seconds) + " with " + P.bytes(D.written_bytes) + ", at most " + P.bytes(D.most_bytes) + " at a time");
    if (P.has(D.memory_below_percent)) fact(list, "Not the storage", D.below + ": memory below the file system served " +
      P.num(D.memory_below_percent, 0) + " % of the bytes");
    fact(list, "Page cache", D.emulated ? "the storage is a store of the program" : (D.cold ? "cold" : "NOT cold") +
      (P.has(D.page_cache_percent) ? ": " + P.num(D.page_cache_percent, 0) + " % of the bytes came from it" : ""));
  });
  P.safely(P.byId("rows"), function () {
    P.table(P.byId("rows"), D.workloads, [
      { title: "Workload", kind: "text", first: true, get: function (r) { return r.model; } },
      { title: "Accelerator", kind: "text", get: function (r) { return r.accelerator || ""; } },
      { title: "Feeds (95 %)", kind: "number", get: function (r) { return r.accelerators; }, text: fed },
      { title: "One needs at the target", kind: "number", get: function (r) { return r.need_bytes_per_s; }, text: function (r) { return P.bytes(r.need_bytes_per_s) + "/s"; } },
      { title: "The storage gives", kind: "number", get: function (r) { return r.supply_bytes_per_s; }, text: function (r) {
        return P.has(r.supply_bytes_per_s) ? P.bytes(r.supply_bytes_per_s) + "/s to " + P.num(r.readers, 0) + " readers" : ""; } },
      { title: "Target AU (%)", kind: "number", get: function (r) { return r.target_percent; }, text: function (r) { return P.num(r.target_percent, 0); } },
      { title: "What limits it", kind: "text", get: function (r) { return r.limit_text; } }
    ], { caption: "Accelerators that this storage feeds" });
  });

  /* Both axes from 0; the readers of points double. */
  function curve(parent, p, i) {
    var runs = p.runs.map(function (r) { return r.points; }), all = [].concat.apply(p.points.slice(), runs);
    if (!p.points.length) return;
    var size = p.sample_bytes, to = Math.max.apply(null, all.map(function (a) { return a.readers; }));
    var from = Math.min.apply(null, all.map(function (a) { return a.readers; }));
    var unit = size * p.points[p.points.length - 1].samples_per_s >= 1e6 ? 1e6 : 1e3;
    function rate(a) { return a.samples_per_s * size / unit; }
    var title = models(i), said = title + ": " + p.points.map(function (a) {
      return P.num(a.readers, 0) + " readers: " + P.bytes(a.samples_per_s * size) + "/s"; }).join("; ");
    var box = C.card(parent, title, said, function (svg, w) {
      var h = Math.max(220, Math.min(320, w * 0.56)), f = C.upright(svg, w, h, unit === 1e6 ? "MB/s" : "kB/s", Math.max.apply(null, all.map(rate)));
      function x(v) { return from === to ? f.m.l + f.inner / 2 : f.m.l + f.inner * (0.05 + 0.9 * Math.log(v / from) / Math.log(to / from)); }
      for (var v = 1; v <= to; v *= 2) if (v >= from * 0.7) P.svg(svg, "text", { x: x(Math.max(v, from)), y: h - 20, "text-anchor": "middle" }, P.num(v, 0));
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, "readers");
      P.svg(svg, "polyline", { fill: "none", stroke: "var(--m0)", "stroke-width": 2, points: p.points.map(function (a) { return x(a.readers) + "," + f.y(rate(a)); }).join(" ") });
      runs.forEach(function (points, k) {
        points.forEach(function (a) {
          P.tip(C.mark(svg, x(a.readers), f.y(rate(a)), "var(--m0)", k, false), P.num(a.readers, 1) + " readers: " + P.num(a.samples_per_s) + " samples/s, " +
            P.num(a.requests_per_s) + " requests/s, " + P.num(a.opens_per_s) + " opens/s");
        });
      });
      return h;
    });
    C.legend(box, runs.map(function (r, k) { return { name: "run " + (k + 1), color: "var(--m0)", shape: k }; }));
  }
  P.safely(P.byId("curves"), function () { D.patterns.forEach(function (p, i) { curve(P.byId("curves"), p, i); }); });
  P.byId("curve-note").textContent = "What so many readers at once get, in samples of the workload\u2019s own size; the readers of all its accelerators count.";

  P.safely(P.byId("patterns"), function () {
    P.table(P.byId("patterns"), D.patterns, [
      { title: "Measured as", kind: "text", first: true, get: function (p) { return p.workload; } },
      { title: "Files", kind: "number", get: function (p) { return p.files; }, text: function (p) { return P.num(p.files, 0); } },
      { title: "Samples each", kind: "number", get: function (p) { return p.samples_per_file; }, text: function (p) { return P.num(p.samples_per_file, 0); } },
      { title: "Bytes of a sample", kind: "number", get: function (p) { return p.measured_sample_bytes; }, text: function (p) {
        return P.bytes(p.measured_sample_bytes) + (p.measured_sample_bytes < p.sample_bytes ? " for " + P.bytes(p.sample_bytes) : ""); } },
      { title: "Runs", kind: "number", get: function (p) { return p.runs.length; }, text: function (p) { return P.num(p.runs.length, 0); } },
      { title: "Interval (%)", kind: "number", get: function (p) { return p.half_interval_percent; }, text: function (p) {
        return P.has(p.half_interval_percent) ? "\u00b1 " + P.num(p.half_interval_percent, 1) : ""; } },
      { title: "Loader by curve (%)", kind: "number", get: function (p) { return p.run_by_curve; }, text: function (p) {
        return P.has(p.run_by_curve) ? P.num(100 * p.run_by_curve, 0) : ""; } },
      { title: "", kind: "text", get: function (p) { return p.why || ""; } }
    ], { caption: "What was measured" });
  });
  var k = D.checkpoints;
  if (k) P.safely(P.byId("saves"), function () {
    P.byId("checkpoints").hidden = false;
    fact(P.byId("saves"), "Written at", P.bytes(k.write_bytes_per_s) + "/s with " + P.count(k.writers, "writer"));
    k.sizes.forEach(function (s) { fact(P.byId("saves"), s.parameters + " (" + P.bytes(s.bytes) + ")", P.seconds(s.seconds)); });
  });
})();

/* The details below the first screen, folded; each heading says in a few words what is inside. */
(function () {
  var P = Page, C = P.chart, D = P.data, el = P.el, add = P.add, byId = P.byId;
  var SEVERAL = "several overrides", EAGER = 60, CHART_ROWS = 100, LIMIT = 20, SENTENCES = 10;

  function brief(id, text) { byId(id).querySelector(".brief").textContent = text; }
  function show(id, open) { byId(id).hidden = false; if (open) byId(id).open = true; }

  /* ---- checks ---- */

  function finding(box, f, more) {
    var v = add(box, "div", { "class": "verdict " + f.level });
    if (f.level === "note") add(v, "span", { "class": "tag note" }, "note: " + f.check);
    else v.appendChild(P.light(f.level, f.level + ": " + f.check));
    add(v, "p", {}, (more || "") + f.text);
    if (f.advice) add(v, "p", { "class": "note" }, f.advice);
  }

  function verdicts() {
    var box = byId("verdicts"), counts = Object.create(null), order = [], n = D.runs.length, passed = Object.create(null);
    D.runs.forEach(function (r) {
      r.findings.forEach(function (f) {
        if (f.level === "note") return;
        var k = f.level + " " + f.check;
        if (!counts[k]) { counts[k] = { f: f, runs: [], names: new Set() }; order.push(k); }
        if (!counts[k].names.has(r.name)) { counts[k].names.add(r.name); counts[k].runs.push(r.name); }
      });
      (r.passed || []).forEach(function (v) { (passed[v.check] = passed[v.check] || []).push(v.text); });
    });
    order.sort(function (a, b) {
      return (counts[a].f.level === "fail" ? 0 : 1) - (counts[b].f.level === "fail" ? 0 : 1) || counts[b].runs.length - counts[a].runs.length;
    });
    order.forEach(function (k) {
      var c = counts[k];
      finding(box, c.f, n > 1 ? c.runs.length + " of " + n + " results. Example: " + c.runs[0] + ": " : "");
    });
    var names = Object.keys(passed).filter(function (c) { return n > 1 || !counts["fail " + c] && !counts["warning " + c]; });
    if (!order.length) {
      var v = add(box, "div", { "class": "verdict ok" });
      v.appendChild(P.light("ok", "ok"));
      add(v, "p", {}, "No check found a problem: the numbers can be trusted.");
    }
    if (n === 1 && names.length) {
      add(box, "h3", {}, "Passed");
      var list = add(box, "dl", { "class": "wide" });
      names.forEach(function (c) { add(list, "dt", {}, c); add(list, "dd", {}, passed[c][0]); });
    }
    function total(level) { return order.filter(function (k) { return counts[k].f.level === level; }).length; }
    brief("trust", [P.count(total("fail"), "check") + " failed", P.count(total("warning"), "warning")].concat(
      names.length && n === 1 ? [names.length + " ok"] : []).join(", "));
  }

  function findings() {
    var list = byId("findings");
    var rest = D.findings.map(function (f) { return add(list, "li", { "data-topic": f.topic }, f.text); }).slice(SENTENCES);
    if (rest.length > 2) {
      rest.forEach(function (li) { li.hidden = true; });
      var b = add(add(byId("found"), "p", { "class": "more" }), "button", { type: "button" }, "Show all " + D.findings.length);
      b.addEventListener("click", function () { rest.forEach(function (li) { li.hidden = false; }); b.parentNode.remove(); });
    }
    brief("found", P.count(D.findings.length, "finding"));
    if (D.findings.length) show("found", D.runs.length > 1);
  }

  /* ---- each run and what limits it ---- */

  function partsLegend(box, runs) {
    var seen = {};
    runs.forEach(function (r) { (P.budget(r.time) || []).forEach(function (p) { seen[p.key] = true; }); });
    C.legend(box, P.parts.filter(function (p) { return seen[p[0]]; }).map(function (p) {
      return { name: p[1], color: "var(--t-" + p[0] + ")", bar: true };
    }));
  }

  function runs() {
    var box = byId("runs"), list = D.runs.filter(function (r) { return r.trained || r.limit || r.broken; });
    if (D.runs.length < 2 || !list.length) return;
    show("limits");
    brief("limits", P.count(list.length, "run") + ", with the time budget of each");
    add(box, "p", { "class": "note" }, "The bar is the wall time of training. AU: whole run. Click a heading to sort.");
    partsLegend(box, list);
    P.table(box, list, [
      { title: "checks", kind: "text", get: function (r) { return ["fail", "warning", "ok"].indexOf(P.trust(r)); },
        cell: function (td, r) { td.appendChild(P.light(P.trust(r), P.levelWord(P.trust(r)))); } },
      { title: "run", kind: "text", get: function (r) { return r.name; }, cell: function (td, r) {
        if (r.broken) { add(td, "div", {}, r.name); add(td, "div", { "class": "note" }, r.folder); return; }
        add(td, "div", {}, r.model);
        add(td, "div", { "class": "note" }, P.accelerators(r.ranks) + (r.factors.length ? ", " + P.short(r.factors.join(", ")) : "") + (r.start ? ", " + r.start : ""));
      } },
      { title: "AU %", kind: "number", get: function (r) { return r.whole_au; }, text: function (r) { return P.num(r.whole_au, 1); } },
      { title: "samples/s", kind: "number", get: function (r) { return r.whole_throughput; }, text: function (r) { return P.num(r.whole_throughput, 1); } },
      { title: "where the time went, what limits it", kind: "text", get: function (r) { return r.limit ? r.limit.cause : ""; }, cell: function (td, r) {
        var parts = P.budget(r.time);
        if (parts) C.strip(td, parts);
        var sentence = add(td, "div", { "class": "sentence" });
        P.whole(r, function (w) { sentence.textContent = w.limit_text; });
      } }
    ], { limit: LIMIT, name: "limits", words: function (r) { return r.model + " " + r.ranks + " accelerators " + r.factors.join(" ") + " " + r.folder + " "; }, caption: "Each run: checks, AU, rate, time budget, and what limits it" });
  }

  /* ---- scaling, factors ---- */

  function capacity() {
    var box = byId("curves"), list = D.curves || [];
    if (!list.length) return;
    show("capacity", true);
    brief("capacity", list.length === 1 ? list[0].text : P.count(list.length, "curve") + " of AU over the number of accelerators");
    list.slice(0, 24).forEach(function (c) {
      var name = c.model + (c.factors ? ", " + P.short(c.factors) : "");
      var card = C.knee(box, name, c, P.color(c.model), P.shape(c.model));
      add(card, "p", { "class": "note" }, c.text.charAt(0).toUpperCase() + c.text.slice(1) + (c.emulated ? " (an emulated store)." : "."));
    });
    if (list.length > 24) add(box, "p", { "class": "note" }, "The first 24 of " + list.length + " curves are drawn.");
  }

  function scaling() {
    var box = byId("scaling"), au = P.series("whole_au"), rate = P.series("whole_throughput"), io = P.series("payload");
    if (!au.some(function (s) { return s.points.length > 1; })) return;
    show("scale");
    brief("scale", "whole-run AU and rates over the number of accelerators");
    C.lines(box, "Whole-run AU (compute / wall time)", "%", "AU", au, true);
    C.lines(box, "Samples delivered, whole run", "samples/s", "rate", rate);
    if (io.length) C.lines(box, "Sample data delivered (decoded), whole run", "MiB/s", "rate", io);
    C.lines(box, "For comparison: AU by DLIO\u2019s definition, without the first step of each epoch", "%", "AU", P.series("au"), true);
  }

  function factorSets() {
    var sets = Object.create(null), names = [];
    D.groups.forEach(function (g) {
      if (!g.factors) return;
      var p = g.factors.indexOf(", ") >= 0 ? SEVERAL : g.factors.split("=")[0], k = g.model + "|" + g.ranks + "|" + p;
      if (!sets[k]) { sets[k] = { model: g.model, ranks: g.ranks, p: p, list: [] }; names.push(k); }
      sets[k].list.push(g);
    });
    return names.map(function (k) { return sets[k]; });
  }

  /* Values that are numbers, and enough of them: curves. */
  function factorCurves(box, s) {
    var list = s.list.filter(function (g) { return P.has(g.at); }), names = {};
    if (s.p === SEVERAL || list.length < 4 || list.length < s.list.length) return false;
    list.forEach(function (g) { names[g.at] = g.factors.slice(g.factors.indexOf("=") + 1); });
    function series(key) {
      return [{ name: s.model, color: P.color(s.model), shape: P.shape(s.model), target: list[0].target,
        points: list.filter(function (g) { return g[key] && P.has(g[key].mean); }).map(function (g) {
          return { x: g.at, mean: g[key].mean, stdev: g[key].stdev, values: g[key].values, hollow: g.unsound }; }) }];
    }
    var axis = { name: s.p, text: function (v) { return names[v]; }, tip: function (v) { return s.p + "=" + names[v]; } };
    var where = " \u2013 " + s.model + ", " + P.accelerators(s.ranks);
    C.lines(box, "Whole-run AU" + where, "%", "AU", series("whole_au"), true, false, axis);
    C.lines(box, "Sample data delivered (decoded)" + where, "MiB/s", "rate", series("payload"), false, false, axis);
    return true;
  }

  function factorChart(box, s) {
    if (factorCurves(box, s)) return;
    var base = D.groups.find(function (g) { return g.model === s.model && g.ranks === s.ranks && !g.factors; }), note = [];
    s.list.sort(function (a, b) { return P.has(a.at) && P.has(b.at) ? a.at - b.at : a.factors.localeCompare(b.factors, "en", { numeric: true }); });
    /* without what all have */
    var shared = s.list.length < 2 ? [] : s.list[0].factors.split(", ").filter(function (part) {
      return s.list.every(function (g) { return g.factors.split(", ").indexOf(part) >= 0; });
    });
    function short(g) {
      if (s.p !== SEVERAL) return g.factors.slice(g.factors.indexOf("=") + 1);
      var own = g.factors.split(", ").filter(function (part) { return shared.indexOf(part) < 0; });
      return P.short(own.join(", ")) || "no further override";
    }
    var rows = (base ? [base] : []).concat(s.list).map(function (g) {
      var r = P.row(g);
      r.label = g.factors ? short(g) : "baseline";
      return r;
    });
    var left = Math.max(0, rows.length - CHART_ROWS);
    if (left) {
      rows.length = CHART_ROWS;
      note.push("The first " + CHART_ROWS + " of " + P.num(left + CHART_ROWS, 0) + " configurations are drawn; the table has all.");
    }
    var card = C.dots(box, s.p + " \u2013 " + s.model + ", " + P.accelerators(s.ranks), rows, s.list[0].target, true);
    if (shared.length) note.push("All: " + shared.join(", ") + ".");
    if (!base) note.push("No run without overrides to compare with.");
    if (note.length) add(card, "p", { "class": "note" }, note.join(" "));
  }

  function factors() {
    var box = byId("factors"), sets = factorSets(), comparable = D.groups.length > 1;
    if (!sets.length || !comparable) return;
    show("factor");
    brief("factor", P.count(sets.length, "comparison") + " of overrides");
    sets.slice(0, 12).forEach(function (s) { factorChart(box, s); });
    if (sets.length <= 12) return;
    var b = add(add(byId("factor"), "p", { "class": "more" }), "button", { type: "button" }, "Show all " + sets.length);
    b.addEventListener("click", function () {
      sets.slice(12).forEach(function (s) { factorChart(box, s); });
      b.parentNode.remove();
    });
  }

  /* ---- what would change it ---- */

  function whatIf() {
    var list = [], one = D.runs.length === 1;
    D.runs.forEach(function (r) {
      (r.what_if || []).forEach(function (c) { list.push({ run: r, change: c }); });
    });
    if (!list.length) return;
    show("change");
    brief("change", P.count(list.length, "prediction"));
    var box = byId("whatif");
    add(box, "p", { "class": "note" }, "Predictions for a second run of the same length, from a simulation of the loader with the times measured here. " +
      "The interval covers all explanations of the reads that fit; no single value is given where they differ.");
    P.table(box, list, (one ? [] : [
      { title: "run", kind: "text", get: function (x) { return x.run.name; } }
    ]).concat([
      { title: "change", kind: "text", get: function (x) {
        return (x.change.words ? x.change.words + ": " : "") + x.change.change + (x.change.why ? " (no figure: " + x.change.why + ")" : ""); } },
      { title: "AU now %", kind: "number", get: function (x) { return x.run.whole_au; }, text: function (x) { return P.num(x.run.whole_au, 1); } },
      { title: "AU then %", kind: "number", get: function (x) { return x.change.whole_au_percent; }, text: function (x) {
        return P.num(x.change.whole_au_percent, 1); } },
      { title: "interval %", kind: "number", get: function (x) { return x.change.low_percent; }, text: function (x) {
        return P.has(x.change.low_percent) ? P.num(x.change.low_percent, 0) + " to " + P.num(x.change.high_percent, 0) : ""; } },
      { title: "rate it needs", kind: "number", get: function (x) { return x.change.storage_bytes_per_s; }, text: function (x) {
        return P.has(x.change.storage_bytes_per_s) ? P.bytes(x.change.storage_bytes_per_s) + "/s" : ""; } }
    ]), { limit: LIMIT, caption: "Predicted effect of changes" });
  }

  /* ---- over time ---- */

  /* Whether a curve says no more than its mean. */
  function flat(values) {
    var known = values.filter(P.has), most = Math.max.apply(null, known), least = Math.min.apply(null, known);
    return !known.length || most - least <= 0.1 * Math.max(Math.abs(most), Math.abs(least));
  }

  function curvesOf(t) {
    var s = t.series || {}, list = [], end = t.dt * t.busy.length;
    list.push({ title: "Accelerator utilization", unit: "%", values: t.busy.map(function (v) { return 100 * v; }), dt: t.dt, most: 100,
      color: "var(--m0)", kept: true });
    list.push({ title: "Samples delivered", unit: "samples/s", values: t.rate, dt: t.dt, color: "var(--m2)", kept: true });
    Object.keys(s.curves || {}).forEach(function (name) {
      var c = s.curves[name];
      list.push({ title: c.title || name, unit: c.unit || "", values: c.values, dt: s.interval_s, begin: s.begin_s, color: "var(--m3)",
        most: c.unit === "%" ? 100 : 0 });
    });
    (s.gpus || []).forEach(function (g, i) {
      [["busy", 100], ["memory_busy", 100], ["power", 1], ["memory_used", 1]].forEach(function (what) {
        list.push({ title: "GPU " + i + " (" + g.name + "), " + what[0].replace("_", " "), unit: g[what[0]].unit, values: g[what[0]].values,
          dt: s.interval_s, begin: s.begin_s, color: "var(--m1)", most: what[1] });
      });
    });
    list.forEach(function (c) { c.end = end; });
    return list;
  }

  function drawCurve(box, c, marks) {
    var most = Math.max.apply(null, c.values.filter(P.has).concat([c.most || 0]));
    C.curve(box, c.title, c.unit, c.values, c.dt, most || 1, marks, c.color, c.begin, c.end);
  }

  function overTime(run) {
    var box = byId("time"), t = run && run.timeline;
    box.textContent = "";
    if (!t) {
      add(box, "p", { "class": "note" }, P.packed ? "A page of so many results has no curves: report this result alone." :
        "Not known: the files of the ranks are missing.");
      return;
    }
    var curves = curvesOf(t), grid = add(box, "div", { "class": "charts" });
    var still = curves.filter(function (c) { return !c.kept && flat(c.values); });
    curves.filter(function (c) { return still.indexOf(c) < 0; }).forEach(function (c) { drawCurve(grid, c, t.marks); });
    if (t.series && t.series.accelerator_use && t.series.accelerator_use.ranks.length > 1)
      useOfRanks(grid, t.series.accelerator_use, t.series.begin_s);
    if (!still.length) return;
    var fold = add(box, "details", { "class": "inner" });
    add(fold, "summary", {}, P.count(still.length, "curve") + " that hardly change" + (still.length === 1 ? "s" : "") + ": " + still.map(function (c) {
      var known = c.values.filter(P.has);
      return c.title + (known.length ? " " + P.num(known.reduce(function (a, b) { return a + b; }, 0) / known.length) + " " + c.unit : " unknown");
    }).join("; "));
    var rest = add(fold, "div", { "class": "charts" });
    still.forEach(function (c) { if (c.values.some(P.has)) drawCurve(rest, c, t.marks); });
  }

  /* A row for each rank, a cell for each interval; darker is busier. */
  function useOfRanks(parent, use, begin) {
    var title = "Utilization of each accelerator over time", high = use.ranks.length > 16 ? 9 : 13;
    C.card(parent, title, title + ": darker is busier", function (svg, w) {
      var left = 56, top = 4, h = high * use.ranks.length + 42, cell = (w - left - 12) / Math.max(1, use.ranks[0].length);
      use.ranks.forEach(function (row, k) {
        if (use.ranks.length <= 16 || k % 4 === 0)
          P.svg(svg, "text", { x: left - 6, y: top + high * (k + 1) - 2, "text-anchor": "end", "class": "soft" }, "rank " + k);
        row.forEach(function (v, i) {
          P.tip(P.svg(svg, "rect", { x: left + cell * i, y: top + high * k, width: cell + 0.3, height: high - 1, fill: "var(--m0)",
            opacity: 0.06 + 0.94 * v / 100 }), "rank " + k + ", " + P.seconds(begin + i * use.interval_s) + ": " + v + " %");
        });
      });
      C.ticks(use.interval_s * use.ranks[0].length, Math.max(2, Math.min(8, w / 90))).forEach(function (t) {
        P.svg(svg, "text", { x: left + cell * t / use.interval_s, y: h - 20, "text-anchor": "middle", "class": "soft" }, P.num(t, t % 1 ? 1 : 0));
      });
      P.svg(svg, "text", { x: left + (w - left) / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, "time since the start of training (s)");
      return h;
    }, true);
  }

  /* ---- epochs and accelerators of one run ---- */

  function epochs(run) {
    var box = byId("epochs");
    box.textContent = "";
    if (!run.epochs || !run.epochs.length) return;
    P.table(box, run.epochs, [
      ["epoch", "epoch", 0], ["steps", "steps", 0], ["AU, whole %", "whole_au", 1], ["AU, DLIO %", "au", 1], ["samples/s", "rate", 1],
      ["MiB/s decoded", "payload", 1], ["wait s", "wait", 2], ["barrier s", "barrier", 2], ["wall s", "wall", 2]
    ].map(function (c) {
      return { title: c[0], kind: "number", get: function (e) { return e[c[1]]; }, text: function (e) { return P.num(e[c[1]], c[2]); } };
    }), { limit: LIMIT, caption: "Epochs" });
  }

  function ranks(run) {
    var box = byId("ranks"), v = run.rank_au, n = v.length, known = v.filter(P.has);
    box.textContent = "";
    if (n < 2 || !known.length) return;
    var least = Math.min.apply(null, known), most = Math.max.apply(null, known);
    C.card(box, "Whole-run AU of each accelerator", "From " + P.num(least, 1) + " to " + P.num(most, 1) + " %", function (svg, w) {
      var h = 210, f = C.upright(svg, w, h, "%", 100, "AU"), step = f.inner / n;
      v.forEach(function (a, i) {
        if (!P.has(a)) return;
        P.tip(P.svg(svg, "rect", { x: f.m.l + step * i + step * 0.12, width: Math.max(0.5, Math.min(60, step * 0.76)), y: f.y(a), height: f.floor - f.y(a),
          fill: "var(--m0)" }), "rank " + i + ": " + P.num(a, 1) + " %");
        if (i % Math.ceil(n / Math.max(1, f.inner / 30)) === 0)
          P.svg(svg, "text", { x: f.m.l + step * i + Math.min(30 + step * 0.12, step * 0.5), y: h - 20, "text-anchor": "middle", "class": "soft" }, String(i));
      });
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, "rank");
      return h;
    }, true);
  }

  function runSelect() {
    var s = byId("run"), trained = D.runs.filter(function (r) { return r.trained; });
    if (!trained.length) return;
    show("history");
    byId("chosen").hidden = trained.length < 2;
    function text(r) { return r.name + (r.start ? "  (" + r.start + ")" : ""); }
    function options(words) {
      var n = 0;
      s.textContent = "";
      D.runs.some(function (r, i) {
        if (!r.trained || words && text(r).toLowerCase().indexOf(words) < 0) return false;
        add(s, "option", { value: i }, text(r));
        return P.many(trained.length) && ++n === P.step;
      });
    }
    options("");
    if (P.many(trained.length)) {
      var find = el("input", { type: "search", placeholder: "name or date", "aria-label": "Find a run" });
      byId("chosen").insertBefore(find, byId("chosen").firstChild);
      P.later(find, function (words) { options(words); if (s.options.length) draw(); });
    }
    function draw() { P.whole(D.runs[Number(s.value)], drawRun); }
    function drawRun(r) {
      [["time", overTime], ["ranks", ranks], ["epochs", epochs]].forEach(function (p) { P.safely(byId(p[0]), function () { p[1](r); }); });
    }
    s.addEventListener("change", draw);
    brief("history", trained.length > 1 ? "utilization, rates and the machine; choose a run" : "utilization, rates, the machine, epochs, accelerators");
    draw();
  }

  /* ---- all configurations ---- */

  var COLUMNS = [
    { title: "model", kind: "text", get: function (g) { return g.model; } },
    { title: "overrides", kind: "text", get: function (g) { return g.factors; } },
    { title: "accelerators", kind: "number", get: function (g) { return g.ranks; } },
    { title: "runs", kind: "number", get: function (g) { return g.runs.length; } },
    { title: "AU, whole %", kind: "number", get: function (g) { return g.whole_au.mean; }, text: function (g) { return P.spread(g.whole_au, 1); }, shade: true },
    { title: "AU, DLIO %", kind: "number", get: function (g) { return g.au.mean; }, text: function (g) { return P.spread(g.au, 1); }, shade: true },
    { title: "samples/s", kind: "number", get: function (g) { return g.whole_throughput.mean; }, text: function (g) { return P.num(g.whole_throughput.mean, 1); } },
    { title: "MiB/s decoded", kind: "number", get: function (g) { return g.payload.mean; }, text: function (g) { return P.num(g.payload.mean, 1); },
      help: "sample data delivered (decoded), whole run" },
    { title: "data wait %", kind: "number", get: function (g) { return g.wait; }, text: function (g) { return P.num(g.wait, 1); } },
    { title: "other %", kind: "number", get: function (g) { return g.other; }, text: function (g) { return P.num(g.other, 1); } },
    { title: "checks", kind: "text", get: function (g) { return g.unsound ? "failed" : "ok"; }, cell: function (td, g) {
      var level = P.worst(g.runs.map(function (i) { return D.runs[i]; }));
      td.appendChild(P.light(level, P.levelWord(level)));
    } }
  ];

  function table() {
    if (!D.groups.length) return;
    if (D.groups.length > 1) show("configurations");
    brief("configurations", P.count(D.groups.length, "configuration") + ", CSV");
    if (D.groups.some(function (g) { return P.has(g.fed); }))
      COLUMNS.splice(8, 0, { title: "fed", kind: "number", get: function (g) { return g.fed; }, text: function (g) {
        return P.has(g.fed) ? P.fed(g.fed) : ""; }, help: "accelerators that the rate can feed, at 100 % AU" });
    COLUMNS.forEach(function (c) {
      if (c.shade) c.cell = function (td, g) {
        var v = c.get(g);
        td.textContent = c.text(g);
        if (P.has(v)) td.style.setProperty("--share", Math.max(0, Math.min(100, v)) + "%");
        td.classList.add("shade");
      };
    });
    P.table(byId("all"), D.groups, COLUMNS, { limit: LIMIT, id: "table", caption: "All configurations" });
  }

  function csv() {
    function quote(s) { return /[",\r\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s; }
    /* no formula of a spreadsheet */
    function cell(v) { return v === undefined || v === null ? "" : typeof v === "string" && /^[=+\-@]/.test(v) ? "'" + v : String(v); }
    var text = COLUMNS.map(function (c) { return quote(c.title); }).join(",") + "\n" + D.groups.map(function (g) {
      return COLUMNS.map(function (c) { return quote(cell(c.get(g))); }).join(",");
    }).join("\n") + "\n";
    var a = el("a", { href: "data:text/csv;charset=utf-8," + encodeURIComponent(text), download: "report.csv" });
    document.body.appendChild(a); a.click(); a.remove();
  }

  /* ---- each result: checks, and where bytes were counted; each place is compared with the one above it ---- */

  function ledger(box, lines) {
    var t = add(box, "table", { "class": "ledger stack" }), head = add(add(t, "thead"), "tr"), body = add(t, "tbody"), n = 0, shown = [], evaluated;
    add(t, "caption", { "class": "unseen" }, "Bytes of training");
    lines.forEach(function (l) {
      n = Math.max(n, (l.epoch_bytes || []).length);
      evaluated = evaluated || l.evaluation_bytes;
    });
    for (var i = 0; n > 1 && i < n; i++) if (n <= 4 || i < 2 || i === n - 1) shown.push(i);
    function sum(list) {
      var s = 0;
      (list || []).forEach(function (v) { s += v || 0; });
      return s;
    }
    var titles = ["bytes of training", "", "ratio"].concat(shown.map(function (e) {
      return (e > 1 && n > 4 ? "\u2026 epoch " : "epoch ") + (e + 1); }), evaluated ? ["evaluations"] : []);
    titles.forEach(function (h, k) { add(head, "th", { "class": k ? "number" : "text", scope: "col" }, h); });
    lines.forEach(function (l) {
      var tr = add(body, "tr", { "class": l.state || "agrees" }), first = add(tr, "td", { "class": "text" });
      first.textContent = (l.state === "flagged" ? "\u25b2 " : "") + l.title + (l.place ? " (" + l.place + ")" : "");
      function cell(k, text) { add(tr, "td", { "class": "number" + (text ? "" : " none"), "data-label": titles[k] || "all epochs" }, text); }
      cell(1, P.bytes(l.bytes));
      cell(2, P.percent(l.percent));
      shown.forEach(function (e, k) { cell(3 + k, l.epoch_bytes && P.has(l.epoch_bytes[e]) ? P.bytes(l.epoch_bytes[e]) : ""); });
      if (evaluated) cell(3 + shown.length, l.evaluation_bytes ? P.bytes(sum(l.evaluation_bytes)) : "");
      if (l.why) add(add(body, "tr", { "class": "why " + l.state }), "td", { colspan: titles.length }, l.why);
    });
  }

  /* ---- the servers of the store ---- */

  function servers(box, list) {
    var t = add(box, "table", { "class": "stack" }), head = add(add(t, "thead"), "tr"), body = add(t, "tbody");
    var titles = ["server", "requests", "retries", "failed", "opened connections", "received", "sent", "first byte", "last byte"];
    add(t, "caption", { "class": "unseen" }, "Servers of the store");
    titles.forEach(function (h, k) { add(head, "th", { "class": k ? "number" : "text", scope: "col" }, h); });
    list.forEach(function (s) {
      var tr = add(body, "tr");
      function ms(v) { return P.has(v) ? (v * 1000).toPrecision(3) + " ms" : ""; }
      add(tr, "td", { "class": "text" }, s.address + (s.tls ? " (TLS)" : ""));
      [s.requests, s.again, s.failed, s.connections].map(function (v) { return P.has(v) ? String(v) : ""; })
        .concat([P.has(s.received) ? P.bytes(s.received) : "", P.has(s.sent) ? P.bytes(s.sent) : "", ms(s.first), ms(s.last)])
        .forEach(function (text, k) { add(tr, "td", { "class": "number", "data-label": titles[k + 1] }, text); });
    });
  }

  function fillResult(d, r, one) {
    add(d, "p", { "class": "note" }, r.folder);
    if (!one) r.findings.forEach(function (f) { finding(d, f); });
    if (r.limit_text && !one) { add(d, "h3", {}, "What limits it"); add(d, "p", {}, r.limit_text); }
    if (r.ledger && r.ledger.length) { add(d, "h3", {}, "Where the bytes went"); ledger(d, r.ledger); }
    if (r.servers) { add(d, "h3", {}, "What the servers were asked"); servers(d, r.servers); }
  }

  function details() {
    var box = byId("details"), one = D.runs.length === 1, rest = [];
    brief("results", one ? "where the bytes went" : "checks, and where the bytes went");
    if (one) byId("results").querySelector("h2").textContent = "Bytes";
    if (!one || D.runs[0].ledger && D.runs[0].ledger.length || D.runs[0].servers) show("results");
    if (one) { fillResult(box, D.runs[0], true); return; }
    function entry(into, r) {
      var d = add(into, "details"), s = add(d, "summary"), filled = false;
      s.appendChild(P.light(P.trust(r), P.levelWord(P.trust(r))));
      add(s, "span", {}, " " + r.name + ", " + P.accelerators(r.ranks) + ", " + r.tool);
      function fill() {
        if (filled) return;
        filled = true;
        P.whole(r, function (w) { P.safely(d, function () { fillResult(d, w, false); }); });
      }
      if (D.runs.length <= EAGER) fill(); else d.addEventListener("toggle", fill);
      return d;
    }
    if (P.many(D.runs.length)) { byNeed(box, entry); return; }
    D.runs.forEach(function (r, i) {
      var d = entry(box, r);
      if (i >= LIMIT) { d.hidden = true; rest.push(d); }
    });
    if (!rest.length) return;
    var b = add(add(box, "p", { "class": "more" }), "button", { type: "button" }, "Show all " + D.runs.length);
    b.addEventListener("click", function () { rest.forEach(function (d) { d.hidden = false; }); b.parentNode.remove(); });
  }

  /* Those of very many results that are asked for. */
  function byNeed(box, entry) {
    var find = P.filterOf(box, D.runs.length), list = add(box, "div"), more = add(box, "p", { "class": "more" }), room = LIMIT, words = "";
    find.placeholder = "name or folder of any of " + P.num(D.runs.length, 0) + " results";
    function draw() {
      var found = D.runs.filter(function (r) { return !words || (r.name + " " + r.folder).toLowerCase().indexOf(words) >= 0; });
      list.textContent = "";
      found.slice(0, room).forEach(function (r) { entry(list, r); });
      more.hidden = found.length <= room;
      more.lastChild.textContent = " The first " + P.num(Math.min(room, found.length), 0) + " of " + P.num(found.length, 0) + " results are shown.";
    }
    add(more, "button", { type: "button" }, "Show " + P.step + " more").addEventListener("click", function () { room += P.step; draw(); });
    add(more, "span", { "class": "note" });
    P.later(find, function (text) { words = text; room = LIMIT; draw(); });
    draw();
  }

  /* Overrides that all runs of a model have: what they are compared under. */
  function setup() {
    var names = Object.keys(P.common).filter(function (m) { return P.common[m].length; });
    if (!names.length) return;
    show("setup");
    brief("setup", D.runs.length === 1 ? P.count(P.common[names[0]].length, "override") : "overrides of all runs of a model");
    names.forEach(function (m) {
      add(byId("common"), "h3", {}, m);
      var dl = add(byId("common"), "dl", { "class": "keys" });
      P.common[m].forEach(function (f) {
        add(dl, "dt", {}, f.split("=")[0]);
        add(dl, "dd", {}, f.slice(f.indexOf("=") + 1));
      });
    });
  }

  function hosts() {
    D.hosts.forEach(function (h) {
      add(byId("hosts"), "h3", {}, h.name || "unknown host");
      var dl = add(byId("hosts"), "dl");
      h.facts.forEach(function (f) { add(dl, "dt", {}, f[0]); add(dl, "dd", {}, f[1]); });
    });
    brief("machines", D.hosts.map(function (h) { return h.name; }).filter(Boolean).slice(0, 4).join(", "));
  }

  [["trust", verdicts], ["found", findings], ["limits", runs], ["change", whatIf], ["capacity", capacity], ["scale", scaling], ["factor", factors],
    ["history", runSelect], ["configurations", table], ["results", details], ["setup", setup], ["machines", hosts]].forEach(function (p) {
    P.safely(byId(p[0]), p[1]);
  });
  byId("csv").addEventListener("click", csv);
  /* browsers without ::details-content print what is open */
  var trust = byId("trust"), was = false;
  window.addEventListener("beforeprint", function () { was = trust.open; trust.open = true; });
  window.addEventListener("afterprint", function () { trust.open = was; });
  document.documentElement.setAttribute("data-ready", "yes");
})();

/* The first screen: the number, whether to trust it, what limits it, where and when it was measured, one chart. */
(function () {
  var P = Page, C = P.chart, D = P.data, SHOWN = 8;

  function fact(list, name, value) {
    if (value === undefined || value === null || value === "") return;
    var d = P.add(list, "div");
    P.add(d, "dt", {}, name);
    P.add(d, "dd", {}, value);
  }

  /* Several values in one line: the first few, and how many there are. */
  function some(values, noun) {
    var list = Array.from(new Set(values.filter(Boolean)));
    return list.length > 3 ? P.count(list.length, noun) + ": " + list.slice(0, 2).join("; ") + "; \u2026" : list.join(list.join("").indexOf(",") < 0 ? ", " : "; ");
  }
  function all(key) { return D.runs.map(function (r) { return r[key]; }); }

  function facts() {
    var list = P.byId("facts"), starts = all("start").filter(Boolean).sort();
    fact(list, D.runs.length === 1 ? "Workload" : "Workloads", some(all("workload"), "workload"));
    var sizes = Array.from(new Set(all("ranks").filter(Boolean))).sort(function (a, b) { return a - b; });
    fact(list, "Accelerators", (sizes.length > 6 ? sizes[0] + " to " + sizes[sizes.length - 1] : sizes.join(", ")) + " (emulated)");
    fact(list, "Storage", some(all("storage"), "storage"));
    fact(list, "Dataset", some(all("dataset"), "dataset"));
    fact(list, "Host", some(all("host"), "host"));
    if (D.hosts.length === 1) {
      var known = Object.create(null);
      D.hosts[0].facts.forEach(function (f) { known[f[0]] = f[1]; });
      fact(list, "Processors, memory", [known.processors && known.processors + (known.CPU && !/^0x/.test(known.CPU) ? " \u00d7 " + known.CPU : ""), known.memory]
        .filter(Boolean).join(", "));
    }
    fact(list, "Date", starts.length ? starts[0].slice(0, 16) + (starts.length > 1 && starts[starts.length - 1].slice(0, 10) !==
      starts[0].slice(0, 10) ? " to " + starts[starts.length - 1].slice(0, 10) : "") : "");
    fact(list, "Measured with", some(all("version"), "version"));
    fact(list, "Note", some(all("note"), "note"));
  }

  /* "the storage." as a sentence: what the numbers are numbers of */
  function sentence(s) { return /^[a-z]+[ ,:.]/.test(s) && !/^[a-z]+\.[a-z]/.test(s) ? s.charAt(0).toUpperCase() + s.slice(1) : s || ""; }

  function trust() {
    var box = P.byId("trust-light"), runs = D.runs, n = { ok: 0, warning: 0, fail: 0 };
    runs.forEach(function (r) { n[P.trust(r)]++; });
    if (runs.length === 1) {
      var r = runs[0], level = P.trust(r), checks = [];
      r.findings.forEach(function (f) {
        if (f.level === (level === "ok" ? "" : level) && checks.indexOf(f.check) < 0) checks.push(f.check);
      });
      box.appendChild(P.light(level, level === "fail" ? "Not valid: " + checks.join(", ") + " failed" :
        level === "warning" ? "Valid with reservations: " + checks.join(", ") : "Valid: no check found a problem"));
      if (r.measured && r.measured.text) P.add(box, "span", { "class": "measured" }, "Measured: " + r.measured.text);
      if (r.status && r.status !== "complete") P.add(box, "span", { "class": "measured" }, sentence(r.status) + (r.reason ? ": " + r.reason : "") + ".");
      return;
    }
    var untrained = 0, failed = [];
    runs.forEach(function (r) {
      if (!r.trained && !r.broken) { untrained++; n[P.trust(r)]--; return; }
      r.findings.forEach(function (f) { if (f.level === "fail" && failed.indexOf(f.check) < 0) failed.push(f.check); });
    });
    [["fail", "not valid" + (failed.length ? " (" + failed.slice(0, 5).join(", ") + (failed.length > 5 ? ", \u2026" : "") + ")" : "")],
      ["warning", "valid with reservations"], ["ok", "valid"]].forEach(function (k) {
      if (n[k[0]]) box.appendChild(P.light(k[0], P.count(n[k[0]], "result") + " " + k[1]));
    });
    if (untrained) P.add(box, "span", { "class": "measured" }, P.count(untrained, "result") + " without training");
  }

  /* ---- the number ---- */

  function tile(box, title, value, unit, kind) {
    var t = P.add(box, "div", { "class": "tile " + (kind || "") });
    P.add(t, "h2", { "class": "label" }, title);
    var v = P.add(t, "p", { "class": "value" }, value);
    if (unit) P.add(v, "small", {}, " " + unit);
    return t;
  }
  function say(t, text, kind) { if (text) P.add(t, "p", { "class": kind || "" }, text); }

  function target(t, run) {
    if (!P.has(run.target) || !P.has(run.whole_au)) return;
    var met = run.whole_au >= run.target, p = P.add(t, "p");
    p.appendChild(P.light(met ? "ok" : "fail", "target " + P.num(run.target, run.target % 1 ? 1 : 0) + " % " + (met ? "met" : "missed")));
  }

  P.fed = function (v) { return P.num(v, v < 0.095 ? 2 : 1); };

  /* What one accelerator needs, and how many were fed, of how many there were. */
  function need(box, run) {
    var n = run.need, t;
    if (!n) return;
    if (!P.has(n.fed)) {
      t = tile(box, "Need of one accelerator", n.known ? n.text : n.why ? "unknown" : "none", "", "words");
      if (!n.known) say(t, sentence(n.why || n.text) + ".");
      return;
    }
    var least = n.of === "at_least";
    t = tile(box, n.of === "cache" ? "Accelerators fed, with memory or the page cache" : "Accelerators fed", (least ? "at least " : "") + P.fed(n.fed),
      least ? "" : "of " + P.num(run.ranks, 0));
    var g = P.add(t, "div", { "class": "gauge", "aria-hidden": "true" });
    P.add(g, "i", { style: "width:" + Math.min(100, 100 * n.fed / run.ranks).toFixed(1) + "%" });
    say(t, "One " + P.title(run) + " needs " + n.text + ".");
  }

  function trainedTiles(box, run) {
    var t = tile(box, "Accelerator utilization, whole run", P.has(run.whole_au) ? P.num(run.whole_au, 1) : P.has(run.au) ? "unknown" : "none",
      P.has(run.whole_au) ? "%" : "", "lead");
    target(t, run);
    if (P.has(run.au)) say(t, P.num(run.au, 1) + " % by DLIO\u2019s definition", "beside");
    var rate = P.rateText(run);
    if (rate.length) {
      t = tile(box, "Delivered, whole run", rate[0].replace(" samples/s", ""), "samples/s");
      if (rate[1]) say(t, rate[1] + " to " + P.accelerators(run.ranks));
    }
    need(box, run);
  }

  function otherTiles(box, run) {
    var t;
    if (P.has(run.eval_au)) {
      var whole = P.has(run.eval_whole_au);
      t = tile(box, "Accelerator utilization in evaluation" + (whole ? ", whole run" : ""), P.num(whole ? run.eval_whole_au : run.eval_au, 1), "%", "lead");
      if (whole) say(t, P.num(run.eval_au, 1) + " % by DLIO\u2019s definition", "beside");
      if (P.has(run.eval_throughput)) say(t, P.num(run.eval_throughput, 1) + " samples/s");
    }
    (run.checkpoints || []).forEach(function (c) {
      t = tile(box, c.load ? "Checkpoints read back" : "Checkpoints written", P.bytes(c.rate) + "/s", "", "lead");
      say(t, (P.has(c.count) ? P.count(c.count, "checkpoint") + ", " : "") + P.seconds(c.seconds) + " each");
    });
    if (run.generation) {
      t = tile(box, "Dataset generated", P.num(run.generation.files, 0), run.generation.files === 1 ? "file" : "files", "lead");
      say(t, P.bytes(run.generation.bytes) + " in " + P.seconds(run.generation.seconds));
    }
    if (!box.childNodes.length) say(tile(box, "Accelerator utilization", "none", "", "lead"), "This result has no training.");
  }

  /* ---- what limits it ---- */

  function range(v) {
    var least = P.num(Math.min.apply(null, v), 0), most = P.num(Math.max.apply(null, v), 0);
    return least === most ? least : least + " to " + most;
  }

  function limits() {
    var box = P.byId("limit"), runs = D.runs, c = searched();
    if (c && c.limit) {
      P.add(box, "h2", { "class": "label" }, "What limits more of them: " + c.cause.replace(/_/g, " "));
      P.add(box, "p", {}, c.limit);
      return;
    }
    if (runs.length === 1) {
      P.add(box, "h2", { "class": "label" }, "What limits it");
      P.add(box, "p", {}, runs[0].limit_text);
      if (runs[0].remedy) {
        P.add(box, "h2", { "class": "label" }, "What would change it");
        P.add(box, "p", {}, runs[0].remedy);
      }
      if (runs[0].costs) {
        P.add(box, "h2", { "class": "label" }, "The framework\u2019s own costs");
        P.add(box, "p", {}, runs[0].costs);
      }
      return;
    }
    var causes = Object.create(null), names = [];
    runs.forEach(function (r) {
      if (!r.trained || !r.limit) return;
      if (!causes[r.limit.cause]) { causes[r.limit.cause] = []; names.push(r.limit.cause); }
      causes[r.limit.cause].push(r);
    });
    P.add(box, "h2", { "class": "label" }, "What limits the runs");
    if (!names.length) {
      var waits = D.groups.map(function (g) { return g.wait; }).filter(P.has);
      P.add(box, "p", {}, "These results do not say what limited them." + (waits.length ? " Waiting for data took " +
        range(waits) + " % of the training time." : ""));
      return;
    }
    names.sort(function (a, b) { return causes[b].length - causes[a].length; });
    var list = P.add(box, "ul", { "class": "causes" });
    names.slice(0, 5).forEach(function (c) {
      var li = P.add(list, "li"), lost = causes[c].map(function (r) { return r.limit.lost; }).filter(P.has);
      P.add(li, "strong", {}, c.replace(/_/g, " "));
      li.appendChild(document.createTextNode(" in " + causes[c].length + " of " + P.count(runs.length, "run") + (lost.length ?
        ", which lost " + range(lost) + " % of the time" : "")));
    });
    if (names.length > 5) P.add(list, "li", {}, "and " + P.count(names.length - 5, "other cause"));
  }

  /* ---- the chart ---- */

  /* Lines over numbers of accelerators, of configurations without overrides. */
  P.series = function (key) {
    return P.models.map(function (m) {
      var groups = D.groups.filter(function (g) { return g.model === m && g.factors === "" && g[key] && P.has(g[key].mean); });
      return { name: m, color: P.color(m), shape: P.shape(m), target: groups.length ? groups[0].target : undefined,
        points: groups.map(function (g) { return { x: g.ranks, mean: g[key].mean, stdev: g[key].stdev, values: g[key].values, hollow: g.unsound }; }) };
    }).filter(function (s) { return s.points.length; });
  };
  P.label = function (g) {
    var ranks = P.accelerators(g.ranks), parts = [];
    if (P.models.length > 1) parts.push(g.model);
    parts.push(P.short(g.factors));
    if (D.groups.some(function (o) { return o.ranks !== D.groups[0].ranks; })) parts.push(ranks);
    parts = parts.filter(Boolean);
    return parts.length ? parts.join(", ") : "baseline";
  };
  P.row = function (g) {
    return { label: P.label(g), name: g.model + ", " + P.accelerators(g.ranks) + (g.factors ? ", " + g.factors : ""), whole: g.whole_au, au: g.au,
      color: P.color(g.model), shape: P.shape(g.model), hollow: g.unsound };
  };

  function chart() {
    var box = P.byId("chart"), runs = D.runs, series = P.series("whole_au"), parts, c = searched();
    if (c) { C.knee(box, c.model, c, P.color(c.model), P.shape(c.model)); return; }
    if (D.groups.length === 1 && (parts = P.budget(runs[D.groups[0].runs[0]].time))) {
      C.budget(box, "Where the time went", parts, runs[D.groups[0].runs[0]].train_wall);
      return;
    }
    if (series.some(function (s) { return s.points.length > 1; })) {
      C.lines(box, "Whole-run AU over the number of accelerators", "%", "AU", series, true);
      return;
    }
    var rows = D.groups.filter(function (g) { return P.has(g.whole_au.mean); });
    if (!rows.length) { box.hidden = true; P.byId("first").classList.add("alone"); return; }
    rows = rows.slice().sort(function (a, b) { return b.whole_au.mean - a.whole_au.mean; });
    var targets = rows.map(function (g) { return g.target; }), one = targets.every(function (t) { return t === targets[0]; });
    C.dots(box, rows.length > SHOWN ? "Whole-run AU, the " + SHOWN + " highest of " + rows.length + " configurations" :
      "Whole-run AU of each configuration", rows.slice(0, SHOWN).map(P.row), one ? targets[0] : undefined);
  }

  /* ---- several results: the best of each model ---- */

  function fastest(box, unsound) {
    var g = D.groups.filter(function (x) { return P.has(x.whole_throughput.mean) && (unsound || !x.unsound); })
      .sort(function (a, b) { return b.whole_throughput.mean - a.whole_throughput.mean; })[0];
    if (!g) return;
    var t = tile(box, "Highest rate, whole run", P.num(g.whole_throughput.mean, 1), "samples/s");
    say(t, (P.has(g.payload.mean) ? P.bytes(g.payload.mean * 1048576) + "/s of sample data (decoded), " : "") + P.accelerators(g.ranks) +
      (g.factors ? ", " + g.factors : ""));
  }

  function alike(g, of) {
    return D.groups.filter(function (x) { return x.model === g.model && (g.unsound || !x.unsound) && of(x); });
  }
  /* "up to 4 accelerators", where the number of accelerators was varied */
  function reach(g) {
    var line = alike(g, function (x) { return x.factors === "" && P.has(x.whole_au.mean); });
    var met = line.filter(function (x) { return x.whole_au.mean >= g.target; }).map(function (x) { return x.ranks; });
    return line.length > 1 && met.length ? "up to " + P.accelerators(Math.max.apply(null, met)) : "";
  }
  function most(g) {
    var fed = alike(g, function (x) { return P.has(x.fed); }).map(function (x) { return x.fed; });
    return fed.length ? Math.max.apply(null, fed) : undefined;
  }

  function best() {
    var box = P.byId("tiles"), rows = [];
    P.models.forEach(function (m) {
      var g = D.groups.filter(function (x) { return x.model === m && P.has(x.whole_au.mean); });
      var sound = g.filter(function (x) { return !x.unsound; });
      g = (sound.length ? sound : g).sort(function (a, b) { return b.whole_au.mean - a.whole_au.mean; });
      if (g.length) rows.push(g[0]);
    });
    if (!rows.length) { otherTiles(box, { }); return; }
    if (rows.length === 1) {
      var g = rows[0], t = tile(box, "Highest whole-run AU" + (g.unsound ? "" : " of valid results"), P.num(g.whole_au.mean, 1), "%", "lead");
      target(t, { target: g.target, whole_au: g.whole_au.mean });
      if (P.has(g.au.mean)) say(t, P.num(g.au.mean, 1) + " % by DLIO\u2019s definition", "beside");
      say(t, P.accelerators(g.ranks) + (g.factors ? ", " + g.factors : ""));
      if (g.unsound) say(t, "No configuration is valid: none has a run that counts.", "doubt");
      if (reach(g)) say(t, "Target reached with " + reach(g) + " of those tried.");
      fastest(box, g.unsound);
      if (P.has(most(g))) say(tile(box, "Accelerators fed, highest", P.fed(most(g))), "by the whole-run rate, each at 100 % AU");
      return;
    }
    var wrap = P.add(box, "div", { "class": "tile lead" });
    P.add(wrap, "h2", { "class": "label" }, "Highest whole-run AU of each model");
    P.table(wrap, rows, [
      { title: "model", kind: "text", get: function (g) { return g.model; }, cell: function (td, g) {
        P.add(td, "span", {}, g.model);
        P.add(td, "div", { "class": "note" }, P.accelerators(g.ranks) + (g.factors ? ", " + P.short(g.factors) : ""));
      } },
      { title: "AU, whole run", kind: "number", get: function (g) { return g.whole_au.mean; }, cell: function (td, g) {
        P.add(td, "strong", {}, P.num(g.whole_au.mean, 1) + " %");
        if (P.has(g.au.mean)) P.add(td, "div", { "class": "note" }, P.num(g.au.mean, 1) + " % by DLIO\u2019s definition");
      } },
      { title: "target", kind: "text", get: function (g) { return g.target; }, cell: function (td, g) {
        var met = P.has(g.target) && g.whole_au.mean >= g.target, up = met ? reach(g) : "";
        if (P.has(g.target)) td.appendChild(P.light(met ? "ok" : "fail", P.num(g.target, 0) + " % " + (met ? "met" : "missed")));
        if (up) P.add(td, "div", { "class": "note" }, up);
        if (g.unsound) P.add(td, "div", { "class": "note" }, "not valid");
      } }
    ].concat(rows.some(function (g) { return P.has(most(g)); }) ? [
      { title: "fed, most", kind: "number", get: most, text: function (g) { return P.has(most(g)) ? P.fed(most(g)) : ""; },
        help: "accelerators that the highest rate can feed, at 100 % AU" }
    ] : []), { limit: 6, name: "best", caption: "Highest whole-run AU of each model" });
  }

  function head() {
    var runs = D.runs, h = P.byId("title"), about = P.byId("about");
    var models = runs.map(function (r) { return r.model; }).filter(function (m, i, all) { return m && all.indexOf(m) === i; });
    if (D.title) h.textContent = D.title;
    else if (runs.length === 1) h.textContent = P.title(runs[0]) + ", " + P.accelerators(runs[0].ranks);
    else h.textContent = P.count(runs.length, "result") + (models.length === 1 ? " of " + models[0] :
      models.length ? " of " + P.count(models.length, "model") : "");
    document.title = h.textContent + " \u2013 Stoker report";
    if (runs.length === 1) {
      about.textContent = (P.has(runs[0].epochs_done) ? P.num(runs[0].epochs_done, 0) + " of " + P.count(runs[0].epochs_planned, "epoch") + ", " : "") +
        (P.has(runs[0].wall) ? P.seconds(runs[0].wall) : "");
    } else {
      about.textContent = P.count(D.groups.length, "configuration") + " (model, number of accelerators, overrides), " +
        P.count(runs.length, "result") + ".";
    }
    P.byId("footer").textContent = "Generated by Stoker " + D.version + ". AU: accelerator utilization. Whole-run AU: compute time divided by " +
      "the wall time of training, nothing left out.";
  }

  /* A page of one search is its answer: the number, its interval, the curve. */
  function searched() {
    var c = (D.curves || [])[0];
    return D.curves && D.curves.length === 1 && c.answer ? c : null;
  }

  function answerTiles(box, c) {
    var lead = c.answer.replace(/ \(.*$/, "").split(" "), unit = lead.pop(), t;
    t = tile(box, "Accelerators that this storage feeds", lead.join(" "), unit, "lead");
    say(t, c.at_least ? "Every number that was measured meets the target, or this machine was the limit." : "95 %: " + P.num(c.low, 0) + (P.has(c.high) ? " to " + P.num(c.high, 0) : " or more") + ".");
    say(t, "At AU " + P.num(c.target, c.target % 1 ? 1 : 0) + " %" + (c.left_out ? ". Left out: " + c.left_out : "") + ".", "beside");
    fastest(box, true);
  }

  function tiles() {
    if (searched()) { answerTiles(P.byId("tiles"), searched()); return; }
    if (D.runs.length === 1) (P.has(D.runs[0].whole_au) || P.has(D.runs[0].au) ? trainedTiles : otherTiles)(P.byId("tiles"), D.runs[0]);
    else best();
  }

  [head, trust, tiles, chart, limits, facts].forEach(function (part) { P.safely(P.byId("limit"), part); });
})();

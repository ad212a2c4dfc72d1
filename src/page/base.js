"use strict";
/* What all parts of the page share: the data, elements, numbers with units, tables. */
var Page = (function () {
  var NS = "http://www.w3.org/2000/svg", P = {};

  /* of very many runs: unpacked by packed.js */
  P.data = window.stokerData || JSON.parse(document.getElementById("data").textContent);
  P.packed = Boolean(window.stokerData);
  /* Calls `then` with run `r`, and with all that is known of it; later where that must be unpacked. */
  P.whole = function (r, then) {
    if (!P.packed || r.whole) { then(r); return; }
    window.stokerDetails(r.index).then(function (rest) {
      for (var k in rest) r[k] = rest[k];
      r.whole = true;
      then(r);
    });
  };
  if (P.packed) P.data.runs.forEach(function (r, i) { r.index = i; });
  P.byId = function (id) { return document.getElementById(id); };

  P.el = function (tag, attrs, text) {
    var e = document.createElement(tag);
    for (var k in attrs || {}) e.setAttribute(k, attrs[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  };
  P.add = function (parent, tag, attrs, text) { return parent.appendChild(P.el(tag, attrs, text)); };
  P.svg = function (parent, tag, attrs, text) {
    var e = document.createElementNS(NS, tag);
    for (var k in attrs || {}) e.setAttribute(k, attrs[k]);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.appendChild(e);
    return e;
  };
  P.tip = function (e, text) { P.svg(e, "title", {}, text); };

  /* ---- numbers ---- */

  P.has = function (v) { return typeof v === "number" && isFinite(v); };
  P.num = function (v, digits) {
    if (!P.has(v)) return "";
    var a = Math.abs(v);
    var d = digits !== undefined ? digits : a >= 1000 ? 0 : a >= 100 ? 1 : a >= 1 ? 2 : a === 0 ? 0 : 3;
    return v.toLocaleString("en-US", { minimumFractionDigits: d, maximumFractionDigits: d });
  };
  P.percent = function (v) { return P.has(v) ? P.num(v, 1) + " %" : ""; };
  P.count = function (n, one, many) { return P.num(n, 0) + " " + (n === 1 ? one : many || one + "s"); };
  P.seconds = function (s) {
    return s >= 7200 ? P.num(s / 3600, 1) + " h" : s >= 120 ? P.num(s / 60, 1) + " min" : P.num(s, s < 10 ? 2 : 1) + " s";
  };
  P.bytes = function (v) {
    var units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"], i = 0;
    for (; v >= 1024 && i < units.length - 1; i++) v /= 1024;
    return P.num(v, i ? (v >= 100 ? 0 : v >= 10 ? 1 : 2) : 0) + " " + units[i];
  };
  /* "4.56 +- 0.12"; the spread only where there is one */
  P.spread = function (s, digits) {
    if (!s || !P.has(s.mean)) return "";
    return P.num(s.mean, digits) + (s.values > 1 && P.has(s.stdev) && s.stdev > 0 ? " \u00b1 " + P.num(s.stdev, digits) : "");
  };

  /* Results may hold anything: what cannot be drawn of them does not take the rest of the page along. */
  P.safely = function (box, draw) {
    try {
      draw();
    } catch (e) {
      P.add(box, "p", { "class": "note broken" }, "A part of this page cannot be drawn, because a result file is not as expected.");
    }
  };

  /* ---- trust: a mark of its own shape for each level, and a word ---- */

  var LEVELS = {
    ok: ["\u25cf", "Checks passed", "ok"], warning: ["\u25b2", "Warnings", "warn"], fail: ["\u25a0", "Checks failed", "fail"]
  };
  P.trust = function (run) {
    var worst = "ok";
    run.findings.forEach(function (f) {
      if (f.level === "fail") worst = "fail";
      else if (f.level === "warning" && worst === "ok") worst = "warning";
    });
    return worst;
  };
  P.worst = function (runs) {
    var all = runs.map(P.trust);
    return all.indexOf("fail") >= 0 ? "fail" : all.indexOf("warning") >= 0 ? "warning" : "ok";
  };
  /* A small mark with its word; `text` in place of the usual words. */
  P.light = function (level, text) {
    var e = P.el("span", { "class": "light " + level });
    P.add(e, "span", { "aria-hidden": "true", "class": "mark" }, LEVELS[level][0]);
    e.appendChild(document.createTextNode(" " + (text || LEVELS[level][1])));
    return e;
  };
  P.levelWord = function (level) { return LEVELS[level][2]; };

  /* ---- of very many rows, those that are found ---- */

  var MANY = 1000, STEP = 200;
  function filterOf(box, n) {
    var label = P.add(P.add(box, "p", { "class": "controls" }), "label", {}, "Find ");
    return P.add(label, "input", { type: "search", placeholder: "words in any of " + P.num(n, 0) + " rows" });
  }
  /* Calls `then` with the lowered text of an input, when typing pauses. */
  function later(input, then) {
    var timer = 0;
    input.addEventListener("input", function () {
      clearTimeout(timer);
      timer = setTimeout(function () { then(input.value.trim().toLowerCase()); }, 150);
    });
  }
  P.many = function (n) { return n > MANY; };
  P.filterOf = filterOf;
  P.later = later;
  P.step = STEP;

  /* ---- tables: sorted by heading, limited by default, a list of cards where narrow ---- */

  /* columns: [{title, get, text, cell(td, row), kind: "text" or "number", first: true}]; the first rows are shown,
     the others on demand; all are in the document, so that a search of the page finds them once shown. */
  P.table = function (box, rows, columns, options) {
    var o = options || {}, limit = o.limit || 20, all = false, sorted = { column: -1, down: false };
    /* of very many rows only some are in the document: those that are asked for, or that a filter finds */
    var many = rows.length > MANY, room = limit, words = "", texts = null, filter = many ? filterOf(box, rows.length) : null;
    var t = P.add(box, "table", { "class": "stack" + (o.name ? " " + o.name : "") }), more = null;
    if (o.id) t.id = o.id;
    /* short texts are not broken */
    columns.forEach(function (c) {
      if (c.kind === "text" && !c.cell && rows.every(function (r) { return String(c.get(r)).length <= 24; })) c.kind = "text short";
    });
    if (o.caption) P.add(t, "caption", { "class": "unseen" }, o.caption);
    function found() {
      if (!words) return rows.slice();
      texts = texts || new Map(rows.map(function (r) {
        return [r, columns.map(function (c) {
          var v = c.get(r);
          return typeof v === "number" ? v.toFixed(1) : v;
        }).join(" ").toLowerCase() + (o.words ? " " + o.words(r).toLowerCase() : "")];
      }));
      return rows.filter(function (r) { return words.split(/\s+/).every(function (w) { return texts.get(r).indexOf(w) >= 0; }); });
    }
    function order() {
      var list = found();
      if (sorted.column < 0) return list;
      var get = columns[sorted.column].get;
      return list.sort(function (a, b) {
        var x = get(a), y = get(b), none = (x === undefined || x === null) - (y === undefined || y === null);
        if (none) return none;
        var c = typeof x === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
        return sorted.down ? -c : c;
      });
    }
    function heading() {
      var head = P.add(t, "thead"), tr = P.add(head, "tr");
      columns.forEach(function (c, i) {
        var th = P.add(tr, "th", { "class": c.kind || "", scope: "col" }), b = P.add(th, "button", { type: "button" }, c.title);
        if (c.help) th.title = c.help;
        if (sorted.column === i) th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
        th.addEventListener("click", function () {
          sorted = { column: i, down: sorted.column === i ? !sorted.down : c.kind === "number" };
          draw();
          t.querySelectorAll("thead button")[i].focus();
        });
      });
    }
    function draw() {
      Array.prototype.slice.call(t.querySelectorAll("thead, tbody")).forEach(function (e) { e.remove(); });
      heading();
      var body = P.add(t, "tbody"), list = order(), n_all = list.length;
      if (many) list = list.slice(0, room);
      list.forEach(function (row, n) {
        var tr = P.add(body, "tr");
        if (!many && n >= limit && !all) tr.hidden = true;
        columns.forEach(function (c) {
          var td = P.add(tr, "td", { "class": c.kind || "", "data-label": c.title });
          if (c.cell) c.cell(td, row); else td.textContent = c.text ? c.text(row) : String(c.get(row) === undefined ? "" : c.get(row));
          if (!td.textContent && !td.firstChild) td.classList.add("none");
        });
      });
      if (more && many) {
        more.hidden = n_all <= room;
        more.lastChild.textContent = " The first " + P.num(Math.min(room, n_all), 0) + " of " + P.num(n_all, 0) + " rows are shown.";
      } else if (more) more.hidden = all || rows.length <= limit;
    }
    if (many) {
      more = P.add(box, "p", { "class": "more" });
      P.add(more, "button", { type: "button" }, "Show " + STEP + " more").addEventListener("click", function () { room += STEP; draw(); });
      P.add(more, "span", { "class": "note" });
      later(filter, function (text) { words = text; room = limit; draw(); });
    } else if (rows.length > limit) {
      more = P.add(box, "p", { "class": "more" });
      var b = P.add(more, "button", { type: "button" }, "Show all " + P.num(rows.length, 0));
      P.add(more, "span", { "class": "note" }, " The first " + limit + " of " + P.num(rows.length, 0) + " rows are shown.");
      b.addEventListener("click", function () { all = true; draw(); });
    }
    draw();
    return t;
  };

  /* ---- where the time went: parts of the wall time of training, some taken together ---- */

  P.parts = [
    ["compute", "accelerators computing", ["compute"]],
    ["data", "waiting: reading sample data", ["data"]],
    ["open", "waiting: opening files, reading headers", ["open_metadata"]],
    ["queue", "waiting: all workers busy", ["queueing", "starved"]],
    ["start", "waiting: first batch of an epoch", ["start_up"]],
    ["decode", "waiting: decoding", ["decode"]],
    ["prepare", "waiting: preprocessing, handing over", ["preprocess", "transport"]],
    ["framework", "the framework's own code", ["framework"]],
    ["wait", "waiting for data", ["wait", "unknown_wait"]],
    ["cpu", "no processor", ["no_processor"]],
    ["barrier", "waiting for other accelerators", ["barrier_wait"]],
    ["meet", "the barrier itself", ["collective"]],
    ["checkpoint", "checkpoints", ["checkpoint"]],
    ["other", "everything else", ["other"]]
  ];
  /* [{key, title, percent}] in the order above, without those below 0.05 %; null: not known */
  P.budget = function (time) {
    if (!time) return null;
    var out = P.parts.map(function (p) {
      var sum = 0;
      p[2].forEach(function (k) { sum += time[k] || 0; });
      return { key: p[0], title: p[1], percent: sum };
    }).filter(function (p) { return p.percent >= 0.05; });
    return out.length ? out : null;
  };

  /* ---- names ---- */

  /* Overrides without the sections of their keys: "read_threads=4, bandwidth=180e6". */
  P.short = function (factors) { return (factors || "").replace(/(^|, )(?:[a-z0-9_]+\.)+(?=[a-z0-9_]+=)/gi, "$1"); };

  P.accelerators = function (n) { return P.count(n, "accelerator"); };
  P.title = function (run) { return run.model || run.name; };
  P.rateText = function (run) {
    var out = [];
    if (P.has(run.whole_throughput)) out.push(P.num(run.whole_throughput, run.whole_throughput >= 100 ? 0 : 1) + " samples/s");
    if (P.has(run.files_rate)) out.push(P.bytes(run.files_rate) + "/s of bytes in files");
    else if (P.has(run.payload_rate)) out.push(P.bytes(run.payload_rate) + "/s of sample data (decoded)");
    return out;
  };
  /* What all runs of a model have in common tells none of them apart. */
  P.models = [];
  P.common = Object.create(null);
  function parts(text) { return text ? text.split(", ") : []; }
  P.data.runs.forEach(function (r) {
    var all = P.common[r.model];
    P.common[r.model] = all ? all.filter(function (f) { return r.factors.indexOf(f) >= 0; }) : r.factors;
  });
  function rare(model) { return function (f) { return (P.common[model] || []).indexOf(f) < 0; }; }
  P.data.groups.forEach(function (g) { g.factors = parts(g.factors).filter(rare(g.model)).join(", "); });
  P.data.runs.forEach(function (r) { r.factors = r.factors.filter(rare(r.model)); });
  var places = Object.create(null);
  P.data.groups.forEach(function (g) { if (!(g.model in places)) { places[g.model] = P.models.length; P.models.push(g.model); } });
  P.color = function (model) { return "var(--m" + (places[model] || 0) % 8 + ")"; };
  P.shape = function (model) {
    var place = places[model] || 0;
    return (place + Math.floor(place / 8)) % 6;
  };
  return P;
})();

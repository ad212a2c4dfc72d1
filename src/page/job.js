/* The page of a real job: the answer, what is known and how, its processes over time, bytes, sizes. */
(function () {
  var P = Page, C = P.chart, D = P.data, HOW = { seen: "seen", inferred: "inferred", assumed: "assumed", unknown: "not identifiable" };
  var byKey = Object.create(null);
  D.values.forEach(function (v) { byKey[v.key] = v; });

  function fact(list, name, value) {
    if (!value) return;
    var d = P.add(list, "div");
    P.add(d, "dt", {}, name);
    P.add(d, "dd", {}, value);
  }
  function brief(id, text) { P.byId(id).querySelector(".brief").textContent = text; }
  function known(key) {
    var v = byKey[key];
    return v && v.how !== "unknown" ? v.value + (v.how === "assumed" ? " (assumed)" : "") : "";
  }


  P.byId("about").textContent = [D.source, P.has(D.wall) ? P.seconds(D.wall) : "", P.count(D.processes.length + (D.processes_left_out || 0), "process", "processes"),
    P.count(D.threads, "thread"), P.has(D.start) ? new Date(D.start * 1000).toISOString().slice(0, 16).replace("T", " ") + " UTC" : ""].filter(Boolean).join(" \u00b7 ");
  P.byId("answer").textContent = D.answer || "";
  P.byId("limit").hidden = !D.answer;
  P.safely(P.byId("facts"), function () {
    var list = P.byId("facts");
    fact(list, "Dataset", [known("files") && known("files") + " files", known("dataset_bytes"), known("format")].filter(Boolean).join(", "));
    [["samples", "Samples"], ["epochs", "Epochs"], ["workers", "Workers"], ["batch", "Batch size"], ["step_s", "Time of a step"],
      ["compute_s", "Computation in a step"], ["limit", "Limited by"]].forEach(function (k) { fact(list, k[1], known(k[0])); });
  });

  P.safely(P.byId("values"), function () {
    var n = {};
    D.values.forEach(function (v) { n[v.how] = (n[v.how] || 0) + 1; });
    brief("known", Object.keys(HOW).filter(function (h) { return n[h]; }).map(function (h) { return n[h] + " " + HOW[h]; }).join(", "));
    P.table(P.byId("values"), D.values, [
      { title: "Value", kind: "text", first: true, get: function (v) { return v.name; }, cell: function (td, v) { td.textContent = v.name; } },
      { title: "", kind: "text", get: function (v) { return v.how === "unknown" ? "" : v.value; },
        cell: function (td, v) { td.textContent = v.how === "unknown" ? "\u2013" : v.value; } },
      { title: "Known by", kind: "text", get: function (v) { return HOW[v.how]; }, cell: function (td, v) {
        P.add(td, "span", { "class": "how " + v.how }, HOW[v.how]);
        if (v.of) td.appendChild(document.createTextNode(" (" + P.num(v.agree, 0) + " of " + P.num(v.of, 0) + ")"));
      } },
      { title: "Rule or reason", kind: "text", get: function (v) { return v.rule || ""; }, cell: function (td, v) { td.textContent = v.rule || ""; } }
    ], { caption: "Values, with how each is known", limit: 60 });
  });

  P.byId("object-servers").hidden = !D.servers;
  P.safely(P.byId("servers"), function () {
    if (!D.servers) return;
    brief("object-servers", P.count(D.servers.length, "server"));
    function column(title, key, text) {
      return { title: title, kind: "number", get: function (s) { return s[key]; }, text: function (s) { return P.has(s[key]) ? text(s[key]) : ""; } };
    }
    function whole(v) { return P.num(v, 0); }
    function ms(v) { return P.num(v * 1e3, 2); }
    P.table(P.byId("servers"), D.servers, [
      { title: "Server", kind: "text", first: true, get: function (s) { return s.server; }, cell: function (td, s) { td.textContent = s.server; } },
      { title: "Protocol", kind: "text", get: function (s) { return s.protocol; } },
      { title: "Bucket", kind: "text", get: function (s) { return s.bucket || ""; }, cell: function (td, s) { td.textContent = s.bucket || ""; } },
      { title: "Client", kind: "text", get: function (s) { return s.client || ""; }, cell: function (td, s) { td.textContent = s.client || ""; } },
      column("Objects", "objects", whole), column("GETs", "gets", whole), column("of ranges", "gets_ranged", whole), column("at once", "gets_at_once", whole),
      column("Bytes of a GET", "get_bytes_median", P.bytes), column("GETs/s", "gets_per_s", function (v) { return P.num(v, 1); }),
      column("First byte (ms)", "first_byte_s", ms), column("99 %", "first_byte_99_s", ms), column("429, 5xx", "answers_later", whole),
      column("Connections", "connections", whole), column("used more than once", "connections_reused", whole), column("Received", "received_bytes", P.bytes),
      column("Sent", "sent_bytes", P.bytes)
    ], { caption: "Servers", limit: 12 });
  });

  P.safely(P.byId("files"), function () {
    var all = D.files.reduce(function (n, f) { return n + f.files; }, 0), data = D.files.filter(function (f) { return f.role === "dataset"; });
    brief("data-files", P.count(all, "file") + (data.length ? "; dataset: " + P.count(data.reduce(function (n, f) { return n + f.files; }, 0), "file") : "") +
      (D.files_left_out ? "; " + P.count(D.files_left_out, "group") + " left out" : ""));
    function column(title, key, text) {
      return { title: title, kind: "number", get: function (f) { return f[key]; }, text: function (f) { return P.has(f[key]) ? text(f[key]) : ""; } };
    }
    function whole(v) { return P.num(v, 0); }
    P.table(P.byId("files"), D.files, [
      { title: "Role", kind: "text", first: true, get: function (f) { return f.role; } },
      { title: "Folder", kind: "text", get: function (f) { return f.folder; }, cell: function (td, f) { td.textContent = f.folder; } },
      { title: "Kind", kind: "text", get: function (f) { return f.extension ? "." + f.extension : ""; } },
      column("Files", "files", whole), column("Size", "bytes", P.bytes), column("Opens", "opens", whole), column("Reads", "reads", whole),
      column("Read", "bytes_read", P.bytes), column("Writes", "writes", whole), column("Written", "bytes_written", P.bytes)
    ], { caption: "Files by role", limit: 12 });
  });
  P.safely(P.byId("processes"), function () {
    brief("crew", P.count(D.processes.length + (D.processes_left_out || 0), "process", "processes") + (D.processes_left_out ? ", " +
      P.num(D.processes_left_out, 0) + " left out" : ""));
    P.table(P.byId("processes"), D.processes, [
      { title: "Process", kind: "number", first: true, get: function (p) { return p.pid; }, text: function (p) { return String(p.pid); } },
      { title: "Parent", kind: "number", get: function (p) { return p.parent; }, text: function (p) { return P.has(p.parent) ? String(p.parent) : ""; } },
      { title: "Rank", kind: "number", get: function (p) { return p.rank; }, text: function (p) { return P.has(p.rank) ? String(p.rank) : ""; } },
      { title: "Begin (s)", kind: "number", get: function (p) { return p.begin_s; }, text: function (p) { return P.num(p.begin_s, 3); } },
      { title: "End (s)", kind: "number", get: function (p) { return p.end_s; }, text: function (p) { return P.num(p.end_s, 3); } },
      { title: "Command", kind: "text", get: function (p) { return p.command || ""; }, cell: function (td, p) { td.textContent = p.command || ""; } }
    ], { caption: "Processes" });
  });
  D.notes.forEach(function (n) { P.add(P.byId("notes"), "li", {}, n); });
  P.byId("missing").hidden = !D.notes.length;
  brief("missing", P.count(D.notes.length, "note"));

  /* ---- bytes over time, sizes ---- */

  var SERIES = ["var(--s0)", "var(--m2)", "var(--s3)", "var(--s1)"];
  P.safely(P.byId("bytes"), function () {
    var B = D.bytes;
    if (!B || !B.series.length) return;
    P.byId("flow").hidden = false;
    brief("flow", B.series.map(function (s) { return s.name + " " + P.bytes(s.bytes); }).join(", "));
    var total = B.dt * B.series[0].rate.length, max = 0;
    for (var i = 0; i < B.series[0].rate.length; i++) max = Math.max(max, B.series.reduce(function (n, s) { return n + s.rate[i]; }, 0));
    var units = ["B/s", "KiB/s", "MiB/s", "GiB/s", "TiB/s"], u = 0, scale = 1;
    while (max / scale >= 1024 && u < 4) { scale *= 1024; u++; }
    var box = C.card(P.byId("bytes"), "", "Bytes over time: " + B.series.map(function (s) { return s.name + " " + P.bytes(s.bytes); }).join(", "), function (svg, w) {
      var h = 240, f = C.upright(svg, w, h, units[u], max / scale), n = B.series[0].rate.length;
      function x(t) { return f.m.l + f.inner * Math.max(0, Math.min(1, (t - B.from) / total)); }
      B.marks.forEach(function (k, i) {
        var fill = k.kind === "epoch" ? (i % 2 ? "none" : "var(--shade)") : k.kind === "evaluation" ? "var(--m1)" : "var(--m3)";
        P.tip(P.svg(svg, "rect", { x: x(k.from), width: Math.max(1, x(k.to) - x(k.from)), y: f.m.t, height: f.floor - f.m.t, fill: fill,
          opacity: k.kind === "epoch" ? 1 : 0.18 }), k.label + ": " + P.seconds(k.from) + " to " + P.seconds(k.to));
        if (k.kind === "epoch") P.svg(svg, "line", { x1: x(k.from), x2: x(k.from), y1: f.m.t, y2: f.floor, "class": "grid" });
      });
      var below = B.series[0].rate.map(function () { return 0; });
      B.series.forEach(function (s) {
        var top = below.map(function (v, i) { return v + s.rate[i] / scale; });
        var points = [];
        function edge(values, i) {
          points.push(x(B.from + i * B.dt).toFixed(1) + "," + f.y(values[i]).toFixed(1), x(B.from + (i + 1) * B.dt).toFixed(1) + "," + f.y(values[i]).toFixed(1));
        }
        for (var i = 0; i < n; i++) edge(top, i);
        var back = points; points = [];
        for (i = 0; i < n; i++) edge(below, i);
        P.tip(P.svg(svg, "polygon", { points: back.concat(points.reverse()).join(" "), fill: SERIES[s.kind] }), s.name + ": " + P.bytes(s.bytes));
        below = top;
      });
      var end = B.from + total, big = end >= 7200 ? [3600, "h"] : end >= 120 ? [60, "min"] : [1, "s"];
      C.ticks(end / big[0], Math.max(2, Math.min(8, w / 90))).forEach(function (t) {
        if (t * big[0] < B.from) return;
        P.svg(svg, "text", { x: x(t * big[0]), y: h - 20, "text-anchor": "middle", "class": "soft" }, P.num(t, t % 1 ? 1 : 0));
      });
      P.svg(svg, "text", { x: f.m.l + f.inner / 2, y: h - 4, "text-anchor": "middle", "class": "soft" }, "time since the start of the job (" + big[1] + ")");
      return h;
    }, true);
    C.legend(box, B.series.map(function (s) { return { name: s.name, color: SERIES[s.kind] }; }));
  });

  function histogram(parent, H) {
    var n = H.labels.length, sums = H.labels.map(function (_, i) { return H.series.reduce(function (a, s) { return a + s.counts[i]; }, 0); });
    var box = C.card(parent, H.title, H.title + ": " + H.labels.map(function (l, i) { return sums[i] ? l + " " + sums[i] : ""; }).filter(Boolean).join(", "), function (svg, w) {
      var h = 230, f = C.upright(svg, w, h, H.unit, Math.max.apply(null, sums)), wide = f.inner / n, free = -1;
      H.labels.forEach(function (l, i) {
        var below = 0, at = f.m.l + wide * (i + 0.5), half = C.textWidth(l) / 2;
        H.series.forEach(function (s) {
          if (!s.counts[i]) return;
          var y0 = f.y(below), y1 = f.y(below + s.counts[i]);
          P.tip(P.svg(svg, "rect", { x: f.m.l + wide * i + 0.5, width: Math.max(1, Math.min(wide - 1, 60)), y: Math.min(y1, y0 - 1), height: Math.max(1, y0 - y1), fill: SERIES[s.kind] }),
            s.name + ", up to " + l + ": " + P.num(s.counts[i], 0));
          below += s.counts[i];
        });
        if (at - half < free || at + half > w) return;
        free = at + half + 8;
        P.svg(svg, "text", { x: at, y: h - 20, "text-anchor": "middle", "class": "soft" }, l);
      });
      return h - 8;
    });
    if (H.series.length > 1 || H.series[0].name !== "samples") C.legend(box, H.series.map(function (s) { return { name: s.name, color: SERIES[s.kind] }; }));
  }
  P.safely(P.byId("sizes"), function () {
    P.byId("spread").hidden = !D.sizes.length;
    D.sizes.forEach(function (s) { histogram(P.byId("sizes"), s); });
  });

  /* ---- the timeline ---- */

  var L = D.lanes;
  if (!L) return;
  var DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_", AXIS = 24, ROW = 20, GAP = 4, LEAST = 0.4;
  var canvas = P.byId("tl"), tip = P.byId("tl-tip"), ctx = canvas.getContext("2d"), win, from, to, label, held = {}, wanted = false, hidden = {};

  function unpack(text) {
    var out = new Uint8Array(L.columns), at = 0, m, part = /(.)(?:\{(\d+)\})?/g;
    while ((m = part.exec(text)) && at < out.length) {
      var v = DIGITS.indexOf(m[1]), n = m[2] ? Number(m[2]) : 1;
      while (n-- && at < out.length) out[at++] = v;
    }
    return text ? out : null;
  }
  function time(s) {
    var a = Math.abs(s), u = a >= 1 || a === 0 ? [1, " s"] : a >= 1e-3 ? [1e-3, " ms"] : [1e-6, " \u00b5s"];
    return String(Number((s / u[0]).toPrecision(5))) + u[1];
  }
  function width() { return canvas.clientWidth - label; }
  function xOf(t) { return label + (t - from) / (to - from) * width(); }
  function tOf(x) { return from + (x - label) / width() * (to - from); }

  function layOut() {
    label = Math.min(150, Math.max(84, canvas.clientWidth * 0.22));
    var top = AXIS;
    L.lanes.forEach(function (l, i) {
      if (i && L.lanes[i - 1].process !== l.process) top += GAP;
      l.top = top;
      top += ROW;
    });
    canvas.style.height = top + 6 + "px";
  }
  function ask() {
    if (wanted) return;
    wanted = true;
    requestAnimationFrame(function () { wanted = false; draw(); });
  }
  function draw() {
    var dpr = window.devicePixelRatio || 1, css = getComputedStyle(document.documentElement), w = canvas.clientWidth;
    if (!w) return;
    layOut();
    var h = canvas.clientHeight, dt = (win.end - win.begin) / L.columns;
    var colors = L.states.map(function (_, s) {
      var v = css.getPropertyValue("--s" + s).trim();
      for (var m; (m = /^var\((--[\w-]+)\)$/.exec(v)); ) v = css.getPropertyValue(m[1]).trim();
      return v;
    });
    var fg = css.getPropertyValue("--fg"), soft = css.getPropertyValue("--soft"), line = css.getPropertyValue("--line");
    canvas.width = Math.round(w * dpr); canvas.height = Math.round(h * dpr);
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.font = "11px system-ui, sans-serif"; ctx.textBaseline = "middle";
    var raw = (to - from) / Math.max(2, width() / 110), mag = Math.pow(10, Math.floor(Math.log10(raw)));
    var step = [1, 2, 5, 10].map(function (f) { return f * mag; }).find(function (s) { return s >= raw * 0.9999; });
    ctx.textAlign = "center";
    for (var t = Math.ceil(from / step) * step; t <= to; t += step) {
      ctx.fillStyle = line; ctx.fillRect(Math.round(xOf(t)), AXIS - 6, 1, h);
      ctx.fillStyle = soft;
      if (xOf(t) > label + 16 && xOf(t) < w - 18) ctx.fillText(time(Number(t.toPrecision(9))), xOf(t), 11);
    }
    L.lanes.forEach(function (l, i) {
      var y = l.top, first = Math.max(0, Math.floor((from - win.begin) / dt)), last = Math.min(L.columns - 1, Math.ceil((to - win.begin) / dt));
      var further = i > 0 && l.process !== undefined && L.lanes[i - 1].process === l.process;
      ctx.fillStyle = further ? soft : fg; ctx.textAlign = "left";
      ctx.save(); ctx.beginPath(); ctx.rect(0, y, label - 6, ROW); ctx.clip();
      ctx.fillText(l.name, further ? 14 : 6, y + ROW / 2); ctx.restore();
      var room = ROW - 3;
      for (var c = first; c <= last; c++) {
        var a = Math.max(label, xOf(win.begin + c * dt)), b = Math.min(w, xOf(win.begin + (c + 1) * dt)), below = y + ROW - 1, sum = 0, s, v;
        if (b <= a) continue;
        for (s = 0; s < L.states.length; s++) { v = win.unpacked[i][s]; if (v && !hidden[s]) sum += v[c]; }
        if (!sum) continue;
        /* one short request would not be seen at all by its share */
        var high = room * (LEAST + (1 - LEAST) * Math.min(1, sum / 63));
        for (s = 0; s < L.states.length; s++) {
          v = win.unpacked[i][s];
          if (!v || hidden[s] || !v[c]) continue;
          ctx.fillStyle = colors[s];
          ctx.fillRect(a, below - high * v[c] / sum, Math.max(b - a, 0.7), high * v[c] / sum);
          below -= high * v[c] / sum;
        }
      }
      ctx.fillStyle = line; ctx.fillRect(label, y + ROW - 1, w - label, 1);
    });
    P.byId("tl-range").textContent = time(from) + " to " + time(to);
    canvas.setAttribute("data-from", from); canvas.setAttribute("data-to", to);
    canvas.setAttribute("aria-label", "What " + L.lanes.length + " threads did over time: " + win.title);
  }
  function show(a, b) {
    var all = win.end - win.begin, wide = Math.min(Math.max(b - a, all / L.columns * 4), all);
    a = Math.max(win.begin, Math.min(a, win.end - wide));
    from = a; to = a + wide;
    tip.hidden = true;
    ask();
  }
  function zoom(factor, at) { var t = at === undefined ? (from + to) / 2 : at; show(t - (t - from) * factor, t + (to - t) * factor); }
  function pan(share) { var d = (to - from) * share; show(from + d, to + d); }
  function whole() { show(win.begin, win.end); }
  function pick(n) {
    win = L.windows[n];
    win.unpacked = win.unpacked || win.rows.map(function (row) { return row.map(unpack); });
    legend();
    whole();
  }
  function legend() {
    var box = P.byId("tl-legend");
    box.textContent = "";
    L.states.forEach(function (name, s) {
      var sum = L.lanes.reduce(function (n, l) { return n + (l.seconds[s] || 0); }, 0);
      if (!sum) return;
      var b = P.add(box, "button", { type: "button", "aria-pressed": String(!hidden[s]), "class": hidden[s] ? "off" : "" });
      P.add(b, "i", { "class": "swatch", style: "background:var(--s" + s + ")" });
      b.appendChild(document.createTextNode(name + ": " + time(sum)));
      b.addEventListener("click", function () { hidden[s] = !hidden[s]; legend(); ask(); });
    });
    P.add(box, "span", { "class": "soft" }, L.pipes ? "empty: computing, or waiting for a lock" : "empty: computing or waiting, which this log does not tell apart");
  }
  function hover(e) {
    var r = canvas.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
    var i = L.lanes.findIndex(function (l) { return y >= l.top && y < l.top + ROW; });
    if (i < 0 || x < label) {
      if (i >= 0 && L.lanes[i].pid !== undefined) {
        tip.textContent = L.lanes[i].name + ": process " + L.lanes[i].pid + ", thread " + L.lanes[i].tid + (L.lanes[i].host ? " on " + L.lanes[i].host : "") +
          (L.lanes[i].command ? "\n" + L.lanes[i].command : "");
      } else { tip.hidden = true; return; }
    } else {
      var dt = (win.end - win.begin) / L.columns, c = Math.max(0, Math.min(L.columns - 1, Math.floor((tOf(x) - win.begin) / dt))), parts = [];
      L.states.forEach(function (name, s) {
        var v = win.unpacked[i][s];
        if (v && v[c]) parts.push(name + " " + P.num(v[c] / 0.63, 0) + " %");
      });
      tip.textContent = L.lanes[i].name + ", " + time(win.begin + c * dt) + " to " + time(win.begin + (c + 1) * dt) + "\n" + (parts.join(", ") || "no request");
    }
    tip.hidden = false;
    tip.style.left = Math.max(0, Math.min(x + 14, r.width - tip.offsetWidth - 4)) + "px";
    tip.style.top = (y + 18 + tip.offsetHeight > r.height ? Math.max(0, y - tip.offsetHeight - 8) : y + 18) + "px";
  }

  canvas.addEventListener("wheel", function (e) {
    var at = Math.max(from, tOf(e.clientX - canvas.getBoundingClientRect().left)), d = e.deltaMode === 1 ? e.deltaY * 16 : e.deltaY;
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) { e.preventDefault(); pan((e.deltaX || e.deltaY) / 800); return; }
    if (d > 0 && to - from >= win.end - win.begin) return; /* let the page scroll */
    e.preventDefault();
    zoom(Math.exp(Math.max(-1, Math.min(1, d / 300))), at);
  }, { passive: false });
  canvas.addEventListener("pointerdown", function (e) { held[e.pointerId] = e.clientX; canvas.setPointerCapture(e.pointerId); canvas.style.cursor = "grabbing"; });
  canvas.addEventListener("pointermove", function (e) {
    var ids = Object.keys(held), left = canvas.getBoundingClientRect().left;
    if (!(e.pointerId in held)) { hover(e); return; }
    if (ids.length === 1) {
      var d = (held[e.pointerId] - e.clientX) / width() * (to - from);
      show(from + d, to + d);
    } else if (ids.length === 2) {
      var other = held[ids[0] === String(e.pointerId) ? ids[1] : ids[0]];
      var before = Math.abs(held[e.pointerId] - other), now = Math.abs(e.clientX - other);
      if (before > 4 && now > 4) zoom(before / now, tOf((e.clientX + other) / 2 - left));
    }
    held[e.pointerId] = e.clientX;
  });
  ["pointerup", "pointercancel"].forEach(function (name) {
    canvas.addEventListener(name, function (e) { delete held[e.pointerId]; canvas.style.cursor = ""; });
  });
  canvas.addEventListener("pointerleave", function () { tip.hidden = true; });
  canvas.addEventListener("dblclick", function (e) { zoom(0.4, tOf(e.clientX - canvas.getBoundingClientRect().left)); });
  canvas.addEventListener("keydown", function (e) {
    var keys = { "+": function () { zoom(0.6); }, "=": function () { zoom(0.6); }, "-": function () { zoom(1 / 0.6); }, ArrowLeft: function () { pan(-0.2); },
      ArrowRight: function () { pan(0.2); }, ArrowUp: function () { zoom(0.6); }, ArrowDown: function () { zoom(1 / 0.6); }, "0": whole, Home: whole };
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  [["tl-in", function () { zoom(0.6); }], ["tl-out", function () { zoom(1 / 0.6); }], ["tl-left", function () { pan(-0.25); }],
    ["tl-right", function () { pan(0.25); }], ["tl-all", whole]].forEach(function (b) { P.byId(b[0]).addEventListener("click", b[1]); });

  P.byId("time").hidden = false;
  brief("time", P.count(L.lanes.length, "thread"));
  L.windows.forEach(function (w, i) {
    P.add(P.byId("window"), "option", { value: i }, w.title + " (" + time(w.end - w.begin) + ")");
  });
  P.byId("windows").hidden = L.windows.length < 2;
  P.byId("window").addEventListener("change", function () { pick(Number(this.value)); });
  pick(0);
  if (window.ResizeObserver) new ResizeObserver(ask).observe(canvas);
  if (window.matchMedia) window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", ask);
})();

/* A page of very many runs: what all of it shows is unpacked once, the details of a run when they are asked for. */
(function () {
  function byId(id) { return document.getElementById(id); }
  var data = JSON.parse(byId("data").textContent), blocks = data.blocks, opened = [];
  byId("about").textContent = "Reading " + data.runs.toLocaleString("en-US") + " results \u2026";

  function unpack(text) {
    var raw = atob(text), bytes = new Uint8Array(raw.length);
    for (var i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  window.stokerDetails = function (i) {
    var b = Math.floor(i / data.size);
    if (!opened[b]) opened[b] = unpack(blocks[b]);
    return opened[b].then(function (list) { return list[i % data.size]; });
  };

  if (!window.DecompressionStream) {
    byId("about").textContent = "This browser is too old for a page of so many results. Use one of 2023 or later, or report fewer results together.";
    return;
  }
  /* the first words are painted before the work begins */
  requestAnimationFrame(function () {
    setTimeout(function () {
      unpack(data.packed).then(function (all) {
        data.packed = "";
        window.stokerData = all;
        stokerPage();
      }).catch(function () { byId("about").textContent = "The data of this page cannot be read: the file is damaged."; });
    }, 0);
  });
})();

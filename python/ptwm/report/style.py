"""The page's style sheet and script. Both stand in the page as they are here: its security policy has their hashes."""

STYLE = """
:root {
  color-scheme: light dark;
  --page: #fff; --ink: #1b2430; --soft: #5b6776; --line: #dfe4ea; --track: #edf0f3; --tint: #f6f8fa; --warn: #fff4e0;
  --link: #1f5fc4;
  --symbols: #2f6fde; --rest: #8fa6bb; --low: #c2cdd8; --other: #dd8a1d; --tails: #8259c9; --index: #2f9a75;
  --unknown: #c93a3a;
  --c0: #2f6fde; --c1: #dd8a1d; --c2: #2f9a75; --c3: #8259c9; --c4: #c9437f; --c5: #6f7d1e; --c6: #7b8794;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #12171d; --ink: #e3e8ee; --soft: #98a4b3; --line: #2b343f; --track: #222a33; --tint: #1a2129; --warn: #3a2f17;
    --link: #7fb0ff;
    --symbols: #5c97ff; --rest: #6c8197; --low: #475463; --other: #e5a04a; --tails: #a483e6; --index: #4cbb93;
    --unknown: #ef6a6a;
    --c0: #5c97ff; --c1: #e5a04a; --c2: #4cbb93; --c3: #a483e6; --c4: #ee79ab; --c5: #b6c24e; --c6: #8592a1;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 70rem; padding: 2rem 1.5rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; font-variant-numeric: tabular-nums;
}
h1 { margin: 0; font-size: 1.9rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 3rem 0 .3rem; font-size: 1.25rem; }
h3 { margin: 1.5rem 0 .3rem; font-size: 1rem; }
p { margin: .3rem 0 1rem; max-width: 46rem; }
p.soft, .soft { color: var(--soft); }
a { color: var(--link); }
code { font: .92em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, monospace; unicode-bidi: isolate; overflow-wrap: anywhere; }
nav { margin: 1.2rem 0 0; display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; font-size: .92rem; }
nav a { text-decoration: none; }
.kicker { margin: 0; color: var(--soft); font-size: .85rem; }
.tiles { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.2rem 0 .8rem; padding: 0; }
.tiles div { display: flex; flex-direction: column-reverse; }
.tiles dt { color: var(--soft); font-size: .85rem; }
.tiles dd { margin: 0; font-size: 1.5rem; font-weight: 600; line-height: 1.25; }
.notice { margin: 1.5rem 0; padding: .7rem 1rem; background: var(--warn); border-left: 4px solid var(--other); }
.notice p, .notice ul { margin: .2rem 0; }
.notice li { overflow-wrap: anywhere; }
svg { display: block; }
svg.bar { width: 100%; height: 14px; }
svg.bar.tall, .whole svg.bar { height: 30px; }
.track { fill: var(--track); }
.symbols, .fused { fill: var(--symbols); }
.rest, .copied { fill: var(--rest); }
.low { fill: var(--low); }
.other, .label { fill: var(--other); }
.tails, .huffman { fill: var(--tails); }
.unknown { fill: var(--unknown); }
.index, .zstd { fill: var(--index); }
.rans { fill: var(--c5); }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.c4 { fill: var(--c4); } .c5 { fill: var(--c5); } .c6 { fill: var(--c6); }
.key { display: inline-block; width: .8em; height: .8em; margin-right: .45em; border-radius: 2px; vertical-align: -.05em; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; margin: .5rem 0; padding: 0; list-style: none; }
.plot { margin: 1rem 0 .5rem 3.2rem; width: calc(100% - 4.4rem); overflow: visible; }
.plot circle { fill-opacity: .6; }
.plot circle:hover { fill-opacity: 1; stroke: var(--ink); }
.plot .grid { stroke: var(--line); }
.plot .base { stroke: var(--soft); }
.plot text { fill: var(--soft); font-size: 12px; }
.plot tspan { font-size: 9.5px; }
.plot text.label { fill: var(--ink); paint-order: stroke; stroke: var(--page); stroke-width: 4px; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem 2.5rem; }
.card { min-width: 0; break-inside: avoid; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .28rem .6rem .28rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); font-weight: 500; font-size: .85rem; vertical-align: bottom; }
th.n, td.n { text-align: right; padding-left: .6rem; white-space: nowrap; }
tr > :last-child { padding-right: 0; }
td.n + td:not(.n), th.n + th:not(.n) { padding-left: .9rem; }
.scroll { overflow-x: auto; margin: .5rem 0 1rem; }
.scroll code { overflow-wrap: normal; }
.sortable { font-size: .88rem; }
.sortable td:nth-child(1) { min-width: 12rem; }
.sortable td:last-child:not(.n) { min-width: 17rem; }
.sortable code { font-size: .8rem; overflow-wrap: anywhere; }
th button { all: unset; cursor: pointer; }
th button:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
th[aria-sort] { color: var(--ink); }
th[aria-sort="ascending"] button::after { content: " ▲"; }
th[aria-sort="descending"] button::after { content: " ▼"; }
.filter input { font: inherit; padding: .25rem .5rem; width: min(22rem, 100%); color: inherit; background: var(--tint);
  border: 1px solid var(--line); border-radius: 4px; }
.rows tbody th { font-weight: 400; }
.rows tbody td, .rows tbody th { border-bottom: 0; padding-top: .16rem; padding-bottom: .16rem; }
.rows td.draw { vertical-align: middle; }
@media (min-width: 44.01rem) {
  .rows tbody th { width: 1%; min-width: 18rem; }
  .rows td.draw { min-width: 8rem; padding-right: .6rem; }
  .rows td.n { width: 1%; }
  .rows.bits th { min-width: 10rem; white-space: nowrap; }
}
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 44rem) {
  body { padding: 1.2rem 1rem 3rem; }
  .minor, .plot text.label { display: none; }
  .rows, .rows tbody, .legendary, .legendary tbody { display: block; }
  .rows thead, .legendary thead { display: none; }
  .rows tr, .legendary tr { display: flex; flex-wrap: wrap; justify-content: flex-end; gap: 0 .7rem; padding: .3rem 0; }
  .rows tr > *, .rows tbody tr > *, .legendary tr > *, .legendary td.n + td:not(.n) { padding: 0; border: 0; }
  .rows th, .legendary td:first-child { flex: 1 1 7rem; }
  .rows td.n { font-size: .88rem; }
  .rows td.draw, .legendary td:last-child { flex: 1 0 100%; order: 1; }
  .shares td.n:nth-of-type(3)::before { content: "→ "; }
  .shares td.n:nth-of-type(5) { display: none; }
  .legendary tr { border-bottom: 1px solid var(--line); }
  .tiles { gap: .8rem 1.6rem; }
  .tiles dd { font-size: 1.25rem; }
}
@media print {
  :root { color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav, .filter { display: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3 { break-after: avoid; }
  tr, svg { break-inside: avoid; }
  thead { display: table-header-group; }
  .scroll { overflow: visible; }
}
"""

# Without it everything is readable; with it tables sort by their headings and the list of tensors can be filtered.
SCRIPT = """
(function () {
  "use strict";
  function key(row, column) {
    var cell = row.cells[column], value = cell.getAttribute("data-v");
    return value === null ? cell.textContent : Number(value);
  }
  function sort(table, column) {
    var heads = table.tHead.rows[0].cells, body = table.tBodies[0], head = heads[column];
    var numbers = head.className === "n";
    var first = numbers ? "descending" : "ascending", second = numbers ? "ascending" : "descending";
    var order = head.getAttribute("aria-sort") === first ? second : first;
    var pairs = Array.prototype.map.call(body.rows, function (row) { return [key(row, column), row]; });
    var sign = order === "ascending" ? 1 : -1;
    var collator = new Intl.Collator("en", { numeric: true });
    pairs.sort(function (a, b) {
      return sign * (typeof a[0] === "number" && typeof b[0] === "number" ? a[0] - b[0]
        : collator.compare(String(a[0]), String(b[0])));
    });
    pairs.forEach(function (pair) { body.appendChild(pair[1]); });
    Array.prototype.forEach.call(heads, function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", order);
  }
  document.querySelectorAll("table.sortable").forEach(function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(table, column); });
    });
  });
  var field = document.getElementById("filter-text"), list = document.getElementById("tensor-list");
  if (!field || !list) return;
  document.getElementById("filter").hidden = false;
  field.addEventListener("input", function () {
    var wanted = field.value.toLowerCase(), shown = 0;
    Array.prototype.forEach.call(list.tBodies[0].rows, function (row) {
      row.hidden = row.textContent.toLowerCase().indexOf(wanted) < 0;
      shown += row.hidden ? 0 : 1;
    });
    document.getElementById("filter-count").textContent = shown + " shown";
  });
})();
"""

"""Style sheet of the report: for screens from 390 pixels on, and for paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #222;
  padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
p.aim { font-size: 1.1rem; margin-top: -.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top; }
th { font-weight: 600; overflow-wrap: normal; }
table.facts th { white-space: nowrap; } tr.chosen { font-weight: 600; }
.missing { border-left: 4px solid #c33; padding-left: 1rem; }
figure { margin: 1rem 0; break-inside: avoid; }
.plot svg { display: block; overflow: visible; height: 20rem; width: calc(100% - 5.5rem);
  margin: .6rem 1rem 0 4.5rem; }
.plot .x { text-align: center; margin-top: 1.8rem; color: #555; }
.plot .y { color: #555; }
svg text { font-size: 13px; fill: #222; }
.mark { text-anchor: middle; fill: #555; } .mark.left { text-anchor: end; }
.grid { stroke: #e4e4e4; } .front { stroke: #0072b2; stroke-width: 1.5; }
.ideal { stroke: #888; stroke-dasharray: 3 3; }
.bound { stroke: #c33; stroke-dasharray: 6 4; } text.label { fill: #a22; }
.interval { stroke: #9ec5dd; stroke-width: 3; }
.point circle { fill: #0072b2; stroke: #fff; } .point.special circle { fill: #d55e00; }
.point { cursor: pointer; outline: none; } .point:focus circle { stroke: #222; stroke-width: 2; }
.number { text-anchor: middle; font-weight: 600; paint-order: stroke; stroke: #fff;
  stroke-width: 3px; }
.name { visibility: hidden; pointer-events: none; paint-order: stroke; stroke: #fff;
  stroke-width: 5px; stroke-linejoin: round; }
.point:hover .name, .point:focus .name { visibility: visible; }
.bar { display: grid; grid-template-columns: 1fr auto; margin-bottom: .7rem; }
.bar b { font-weight: 600; } .track { grid-column: 1 / 3; display: flex; position: relative;
  height: 1.6rem; background: #f1f1f1; }
.track span { border-right: 1px solid #fff; }
.limit { position: absolute; top: -.25rem; bottom: -.25rem; border-left: 2px dashed #c33; }
.bars ul { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; }
.bars li i { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; }
.c0 { background: #0072b2; } .c1 { background: #e69f00; } .c2 { background: #009e73; }
.c3 { background: #cc79a7; } .c4 { background: #56b4e9; } .c5 { background: #d55e00; }
.c6 { background: #f0e442; } .c7 { background: #555; } .c8 { background: #aaa; }
@media (max-width: 44rem) {
  .wide tr:first-child { display: none; }
  .wide tr { display: block; border-bottom: 2px solid #ddd; padding: .4rem 0; }
  .wide td { display: grid; grid-template-columns: 6.5rem 1fr; border: 0; padding: .1rem 0; }
  .wide td::before { content: attr(data-name); color: #555; font-weight: 400; }
}
@media print {
  body { margin: 0; max-width: none; font-size: 10pt; padding: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2 { break-after: avoid; } tr { break-inside: avoid; }
}
"""

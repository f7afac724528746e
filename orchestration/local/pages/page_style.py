"""Style sheet of a run's page: for screens from 390 pixels on, and for paper."""

from __future__ import annotations

from typing import Final

STYLE: Final = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; color: #1c2330;
  padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin-bottom: 0; }
h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.quiet { color: #5b6472; }
.failure { border-left: .4rem solid #b3261e; padding: .6rem 1rem; background: #fbe9e7; }
pre { font-size: 12px; line-height: 1.4; overflow-x: auto; white-space: pre-wrap; margin: .4rem 0; }
.graph, .wide { overflow-x: auto; } .graph svg { max-width: 100%; height: auto; display: block; }
.graph svg text { font-family: system-ui, sans-serif; } .graph #metric text { font-size: 12px; }
.row { display: grid; grid-template-columns: minmax(5rem, 9rem) 1fr 4.5rem; gap: .6rem;
  margin-bottom: .35rem; align-items: center; }
.row b { font-weight: 400; text-align: right; font-variant-numeric: tabular-nums; }
.track { background: #f1f2f4; height: 1rem; }
.track i { display: block; height: 100%; background: #8a929e; }
.track i.succeeded { background: #1b7f4b; } .track i.failed { background: #b3261e; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr));
  gap: 1.2rem; }
.curve { margin: 0; border: 1px solid #e2e5ea; border-radius: 6px; padding: .6rem; }
.curve svg { width: 100%; height: auto; display: block; }
.curve polyline { fill: none; stroke: #2b6cb0; stroke-width: 2; } .curve circle { fill: #d55e00; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #e2e5ea;
  vertical-align: top; }
details { border-bottom: 1px solid #e2e5ea; padding: .3rem 0; } summary { cursor: pointer; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } h2 { break-after: avoid; } }
"""

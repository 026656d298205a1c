#include "train/report/page_parts.h"

namespace ricci::report {

std::string_view style() {
  return R"(
:root { color-scheme: light dark; --paper: #ffffff; --panel: #f8fafc; --ink: #111827; --soft: #6b7280;
  --rule: #e2e8f0; --mark: #fef3c7; --c0: #2563eb; --c1: #d97706; --c2: #059669; --c3: #dc2626;
  --c4: #7c3aed; --c5: #0891b2; --c6: #be185d; --c7: #4d7c0f; }
@media (prefers-color-scheme: dark) { :root { --paper: #0b1120; --panel: #131c31; --ink: #e5e7eb;
  --soft: #94a3b8; --rule: #263248; --mark: #3f3413; --c0: #60a5fa; --c1: #fbbf24; --c2: #34d399;
  --c3: #f87171; --c4: #a78bfa; --c5: #22d3ee; --c6: #f472b6; --c7: #a3e635; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 36px 0 10px; border-bottom: 1px solid var(--rule); padding-bottom: 4px; }
h3 { font-size: 15px; margin: 16px 0 6px; overflow-wrap: anywhere; }
p.lead, .none, .note { color: var(--soft); margin: 0 0 10px; }
nav { display: flex; flex-wrap: wrap; gap: 4px 14px; margin: 10px 0 0; font-size: 14px; }
a { color: var(--c0); text-decoration: none; } a:hover { text-decoration: underline; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px;
  margin: 18px 0 6px; }
.card { background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 14px; }
.card b { display: block; font-size: 21px; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.card span { color: var(--soft); font-size: 13px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: 4px 12px 4px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
td { overflow-wrap: break-word; max-width: 40em; } td:first-child { min-width: 9em; } .n { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; } td.mark { background: var(--mark); }
.swatch { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 7px;
  vertical-align: -1px; } .swatch.dot { border-radius: 50%; width: 9px; height: 9px; vertical-align: 1px; }
.c0 { background: var(--c0); } .c1 { background: var(--c1); } .c2 { background: var(--c2); }
.c3 { background: var(--c3); } .c4 { background: var(--c4); } .c5 { background: var(--c5); }
.c6 { background: var(--c6); } .c7 { background: var(--c7); }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 16px; }
figure { margin: 0; position: relative; background: var(--panel); border: 1px solid var(--rule);
  border-radius: 8px; padding: 10px 12px; min-width: 0; }
figcaption { font-weight: 600; } .legend { font-size: 13px; color: var(--soft); }
.key { margin-right: 16px; display: inline-block; overflow-wrap: anywhere; }
.chart svg, .plan svg { display: block; background: none; width: 100%; height: auto; touch-action: pan-y; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; } text.y { text-anchor: end; }
text.x { text-anchor: middle; } .grid { stroke: var(--rule); } .axis { stroke: var(--soft); }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; } .faint { stroke-width: 1; opacity: 0.3; }
.s0 { stroke: var(--c0); } .s1 { stroke: var(--c1); } .s2 { stroke: var(--c2); } .s3 { stroke: var(--c3); }
.s4 { stroke: var(--c4); } .s5 { stroke: var(--c5); } .s6 { stroke: var(--c6); } .s7 { stroke: var(--c7); }
circle { fill: var(--paper); stroke-width: 2; } .cursor { stroke: var(--soft); stroke-dasharray: 3 3; display: none; }
.tip { position: absolute; pointer-events: none; background: var(--paper); color: var(--ink);
  border: 1px solid var(--soft); border-radius: 6px; padding: 4px 8px; font-size: 13px; display: none;
  font-variant-numeric: tabular-nums; z-index: 2; max-width: 70%; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--rule); border-radius: 8px; padding: 10px 14px;
  white-space: pre-wrap; overflow-wrap: anywhere; margin: 6px 0 12px; font: 13px/1.45 ui-monospace, monospace; }
details { margin: 6px 0; } summary { cursor: pointer; color: var(--c0); }
.side { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 0 24px; }
.side > div { min-width: 0; }
.flame { margin: 8px 0 14px; } .flame div.row { display: flex; height: 26px; margin-bottom: 2px; }
.flame .cell { overflow: hidden; white-space: nowrap; text-overflow: ellipsis; font-size: 12px;
  padding: 4px 6px; border-radius: 3px; margin-right: 1px; color: #fff; min-width: 0; flex: none; }
.flame .cell.thin { padding: 0; }
@media (prefers-color-scheme: dark) { .flame .cell { color: #0b1120; } }
.flame .whole { background: var(--soft); } .flame .gap { flex: none; }
.bar { background: var(--rule); border-radius: 3px; height: 9px; min-width: 90px; margin-top: 7px; }
.bar > div { height: 9px; border-radius: 3px; }
.plan rect { stroke: var(--paper); stroke-width: 0.5; opacity: 0.85; }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); } .f3 { fill: var(--c3); }
.f4 { fill: var(--c4); } .f5 { fill: var(--c5); } .f6 { fill: var(--c6); } .f7 { fill: var(--c7); }
.picture { max-height: 70vh; overflow: auto; border: 1px solid var(--rule); border-radius: 8px; }
footer { margin-top: 40px; color: var(--soft); font-size: 13px; }
@media (max-width: 640px) { main { padding: 16px 12px 40px; } .chart svg text, .plan svg text { font-size: 19px; }
  h1 { font-size: 22px; } }
@media print { .picture { max-height: none; } }
)";
}

// Shows the values under the pointer; everything else is there without it.
std::string_view script() {
  return R"(
for (const figure of document.querySelectorAll("figure.chart")) {
  const svg = figure.querySelector("svg"), source = figure.querySelector("script");
  if (!svg || !source) continue;
  const data = JSON.parse(source.textContent), cursor = svg.querySelector(".cursor");
  const left = +svg.dataset.left, right = +svg.dataset.right;
  const tip = document.createElement("div");
  tip.className = "tip";
  figure.append(tip);
  const nearest = (points, x) => {
    let low = 0, high = points.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < x) low = middle + 1; else high = middle;
    }
    return low > 0 && x - points[low - 1][0] < points[low][0] - x ? points[low - 1] : points[low];
  };
  const hide = () => { tip.style.display = cursor.style.display = "none"; };
  const show = event => {
    const box = svg.getBoundingClientRect(), wide = svg.viewBox.baseVal.width;
    const at = (event.clientX - box.left) / box.width * wide;
    if (at < left - 6 || at > right + 6) return hide();
    const wanted = data.x[0] + (at - left) / (right - left) * (data.x[1] - data.x[0]);
    tip.replaceChildren();
    let x = null;
    for (const curve of data.curves) {
      if (!curve.points.length) continue;
      const point = nearest(curve.points, wanted);
      if (x === null) x = point[0];
      const line = document.createElement("div"), mark = document.createElement("span");
      mark.className = "swatch c" + curve.colour;
      line.append(mark, curve.name + ": " + point[1]);
      tip.append(line);
    }
    if (x === null) return hide();
    const head = document.createElement("div");
    head.textContent = data.label + " " + Math.round(x);
    tip.prepend(head);
    const place = left + (x - data.x[0]) / (data.x[1] - data.x[0]) * (right - left);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    tip.style.display = cursor.style.display = "block";
    const outer = figure.getBoundingClientRect(), px = event.clientX - outer.left;
    tip.style.top = (event.clientY - outer.top + 14) + "px";
    tip.style.left = Math.max(0, px > outer.width / 2 ? px - tip.offsetWidth - 14 : px + 14) + "px";
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", hide);
}
)";
}

}  // namespace ricci::report

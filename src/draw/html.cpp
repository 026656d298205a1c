#include <fmt/format.h>

#include "draw/draw.h"
#include "draw/svg.h"
#include "support/float_environment.h"

namespace ricci::draw {
namespace {

constexpr std::string_view PageStyle = R"(
:root { color-scheme: light dark; }
body { margin: 0; display: flex; height: 100vh; font: 14px system-ui, sans-serif; }
aside { width: 320px; display: flex; flex-direction: column; border-right: 1px solid #9ca3af; }
aside h1 { font-size: 15px; margin: 10px 12px 4px; }
#search { margin: 6px 12px; padding: 5px 8px; font: inherit; }
#list { flex: 1; overflow: auto; margin: 0; padding: 0 12px; list-style: none; }
#list li { font: 12px ui-monospace, monospace; padding: 2px 4px; cursor: pointer; white-space: nowrap;
  overflow: hidden; text-overflow: ellipsis; border-radius: 3px; }
#list li:hover, #list li.on { background: #3b82f633; }
#details { margin: 0; padding: 10px 12px; min-height: 120px; max-height: 40vh; overflow: auto;
  border-top: 1px solid #9ca3af; font: 12px ui-monospace, monospace; white-space: pre-wrap; }
#view { flex: 1; height: 100%; cursor: grab; touch-action: none; }
#view.held { cursor: grabbing; }
.box.on > rect { stroke-width: 3; }
.line.on { stroke: #2563eb; stroke-width: 2.4; }
)";

// Pan by dragging, zoom with the wheel, details on hover, search by name.
constexpr std::string_view Script = R"(
const view = document.getElementById("view"), scene = document.getElementById("scene");
const details = document.getElementById("details"), list = document.getElementById("list");
const boxes = [...document.querySelectorAll(".box")], lines = [...document.querySelectorAll(".line")];
const width = +view.dataset.width, height = +view.dataset.height;
let x = 0, y = 0, scale = 1, held = null, pinned = null;
const apply = () => scene.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
function fit() {
  scale = Math.min(1, view.clientWidth / width, view.clientHeight / height);
  x = (view.clientWidth - width * scale) / 2; y = Math.max(0, (view.clientHeight - height * scale) / 2);
  apply();
}
function light(box) {
  for (const b of boxes) b.classList.toggle("on", b === box);
  for (const l of lines)
    l.classList.toggle("on", box && (l.dataset.from === box.id || l.dataset.to === box.id));
  for (const item of list.children) item.classList.toggle("on", box && item.dataset.id === box.id);
  details.textContent = box ? box.dataset.details : "";
}
function centre(box) {
  const r = box.querySelector("rect");
  scale = Math.max(scale, 0.8);
  x = view.clientWidth / 2 - scale * (+r.getAttribute("x") + r.getAttribute("width") / 2);
  y = view.clientHeight / 2 - scale * (+r.getAttribute("y") + r.getAttribute("height") / 2);
  apply();
}
for (const box of boxes) {
  box.querySelector("title").remove();
  if (box.classList.contains("frame")) continue;
  box.addEventListener("mouseenter", () => { if (!pinned) light(box); });
  box.addEventListener("click", () => { pinned = pinned === box ? null : box; light(box); });
  const item = document.createElement("li");
  item.textContent = [...box.querySelectorAll("text")].slice(0, 2).map(t => t.textContent).join("  ");
  item.dataset.id = box.id;
  item.addEventListener("click", () => { pinned = box; light(box); centre(box); });
  list.append(item);
}
document.getElementById("search").addEventListener("input", e => {
  const wanted = e.target.value.toLowerCase();
  for (const item of list.children)
    item.hidden = !document.getElementById(item.dataset.id).dataset.details.toLowerCase().includes(wanted);
});
view.addEventListener("wheel", e => {
  e.preventDefault();
  const area = view.getBoundingClientRect(), px = e.clientX - area.left, py = e.clientY - area.top;
  const next = Math.min(8, Math.max(0.02, scale * Math.exp(-e.deltaY * 0.0015)));
  x = px - (px - x) * next / scale; y = py - (py - y) * next / scale; scale = next;
  apply();
}, { passive: false });
view.addEventListener("pointerdown", e => { held = [e.clientX - x, e.clientY - y]; view.classList.add("held"); });
window.addEventListener("pointermove", e => { if (held) { x = e.clientX - held[0]; y = e.clientY - held[1]; apply(); } });
window.addEventListener("pointerup", () => { held = null; view.classList.remove("held"); });
view.addEventListener("dblclick", fit);
window.addEventListener("resize", fit);
fit();
)";

}  // namespace

std::string to_html(const Graph& graph) {
  const DefaultFloatEnvironment floats;
  const Scene scene = make_scene(graph);
  const std::string title = escaped(graph.name());
  std::string out = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                    "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n";
  out += fmt::format("<title>{}</title>\n<style>{}{}</style></head>\n<body>\n", title,
                     style_sheet(), PageStyle);
  out += fmt::format(
      "<aside><h1>@{}</h1><input id=\"search\" type=\"search\" placeholder=\"search nodes\" "
      "aria-label=\"search nodes\"><ul id=\"list\"></ul><pre id=\"details\"></pre></aside>\n",
      title);
  out += fmt::format("<svg id=\"view\" data-width=\"{:.0f}\" data-height=\"{:.0f}\"><g "
                     "id=\"scene\">\n{}</g></svg>\n",
                     scene.width, scene.height, svg_elements(scene));
  out += fmt::format("<script>{}</script>\n</body></html>\n", Script);
  return out;
}

}  // namespace ricci::draw

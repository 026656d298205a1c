// The picture as SVG elements, for a file of its own or inside a page.
#pragma once

#include <string>
#include <string_view>

#include "draw/scene.h"

namespace ricci::draw {

/// Text as XML and HTML take it, in elements and in attributes.
[[nodiscard]] std::string escaped(std::string_view text);
/// The colours of boxes and lines, light and dark.
[[nodiscard]] std::string_view style_sheet();
/// Lines and boxes. Each box is a group with its id and details as data. `prefix` stands before ids
/// where one page has several pictures.
[[nodiscard]] std::string svg_elements(const Scene& scene, std::string_view prefix = {});

}  // namespace ricci::draw

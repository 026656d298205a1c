// Source text that is written line by line, indented by the braces that are open.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace ricci::cuda {

class Text {
 public:
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... arguments) {
    add(fmt::format(format, std::forward<A>(arguments)...));
  }
  void add(std::string_view words) {
    text_.append(depth_ * 2, ' ');
    text_ += words;
    text_ += '\n';
  }
  /// A line that ends with `{`, and what follows until `close`.
  template <class... A>
  void open(fmt::format_string<A...> format, A&&... arguments) {
    line("{} {{", fmt::format(format, std::forward<A>(arguments)...));
    ++depth_;
  }
  void open() {
    add("{");
    ++depth_;
  }
  void close(std::string_view words = "}") {
    --depth_;
    add(words);
  }
  [[nodiscard]] const std::string& str() const { return text_; }

 private:
  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace ricci::cuda

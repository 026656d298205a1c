// ricci show: draws a graph.
#include <memory>

#include "commands/commands.h"
#include "draw/draw.h"
#include "source.h"

namespace ricci::tool {

void add_show(CLI::App& app, Action& action) {
  struct Options {
    Source source;
    std::string dot;
    std::string svg;
    std::string html;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("show", "draws a graph");
  options->source.declare_one(*command);
  auto* formats = command->add_option_group("formats", "at least one; - is standard output");
  formats->add_option("--svg", options->svg, "a picture")->type_name("OUT");
  formats->add_option("--html", options->html, "a page to explore it in")->type_name("OUT");
  formats->add_option("--dot", options->dot, "text for Graphviz")->type_name("OUT");
  formats->require_option(1, 3);
  command->callback([options, &action] {
    action = [options] {
      const Graph graph = options->source.load();
      std::vector<TextFile> files;
      if (!options->dot.empty()) files.push_back({options->dot, draw::to_dot(graph)});
      if (!options->svg.empty()) files.push_back({options->svg, draw::to_svg(graph)});
      if (!options->html.empty()) files.push_back({options->html, draw::to_html(graph)});
      write_texts(files);
    };
  });
}

}  // namespace ricci::tool

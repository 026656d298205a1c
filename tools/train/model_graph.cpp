#include "train/model_graph.h"

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "nn/with_params.h"
#include "train/tasks.h"

namespace ricci::tool {
namespace {

Graph read_graph(const std::string& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return parse_graph({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, {.file = path});
}

[[noreturn]] void no_images(const std::string& path) {
  throw UserError(ErrorCode::File,
                  fmt::format("'{}' does not say what images the run has learned from", path),
                  "`ricci train` has written it: take it from where the run was made");
}

// The batch that the model was trained with, in the graph that the run keeps of it.
nn::ImageOptions images_of(const Graph& graph, const std::string& path) {
  const std::optional<NodeId> x = graph.find("x");
  const std::optional<NodeId> bias = graph.find("out.b");
  if (!x || !bias) no_images(path);
  const Dims& d = graph.type({*x, 0}).dims;
  const Dims& classes = graph.type({*bias, 0}).dims;
  for (const Dims* dims : {&d, &classes}) {
    for (const Dim& one : *dims) {
      if (!one.is_static() || one.value() < 1) no_images(path);
    }
  }
  if ((d.size() != 2 && d.size() != 4) || classes.size() != 1) no_images(path);
  const bool flat = d.size() == 2;
  return {.channels = flat ? 1 : d[1].value(),
          .height = flat ? 1 : d[2].value(),
          .width = flat ? d[1].value() : d[3].value(),
          .classes = classes[0].value()};
}

}  // namespace

ImageProgram image_program(const RunSettings& s, const RunFolder& folder,
                           const std::string& checkpoint) {
  const std::string path = folder.file("model.ric");
  const Graph loss = read_graph(path);
  const nn::ImageOptions image = images_of(loss, path);
  Type x = loss.type({*loss.find("x"), 0});
  x.dims[0] = Dim::symbol("n");
  ImageProgram out;
  with_image_kind(s, image, [&](const auto& like) {
    using Model = std::decay_t<decltype(like)>;
    const Model model = folder.load_model(checkpoint, like).first;
    const auto says = [](const Model& m, const Array& images) {
      const Array logits = m(images);
      return std::pair{logits, argmax(logits)};
    };
    const std::vector<Array> weights = leaves(model);
    out.graph = detail::with_params(trace(says, model, x), weights.size(), {"x"});
    out.graph.set_name(s.kind);
    out.graph.set_output_name(0, "logits");
    out.graph.set_output_name(1, "class");
    const std::vector<NodeId> params = out.graph.params();
    for (std::size_t i = 0; i < weights.size(); ++i) {
      out.params.emplace_back(*out.graph.node(params[i]).leaf_name(), weights[i].tensor());
    }
  });
  return out;
}

}  // namespace ricci::tool

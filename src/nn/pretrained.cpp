#include "ricci/nn/pretrained.h"

#include <filesystem>

#include <fmt/format.h>

#include "ricci/io/mapped_file.h"
#include "ricci/io/weights.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "nn/public_layout.h"

namespace ricci::nn {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t MaxConfigBytes = std::int64_t{1} << 26;

io::JsonValue read_json(const fs::path& path) {
  const io::MappedFile file(path.string(), MaxConfigBytes);
  try {
    return io::parse_json(io::as_text(file.bytes()));
  } catch (const UserError& e) {
    throw io::in_file(e, path.string());
  }
}

// One file, or those of an index, each of which says where its tensors are.
std::vector<fs::path> weight_files(const fs::path& folder) {
  if (const fs::path one = folder / "model.safetensors"; is_there(one.string())) return {one};
  const fs::path index = folder / "model.safetensors.index.json";
  if (!is_there(index.string())) {
    layout_fault(fmt::format("{} has no model.safetensors", quote(shortened(folder.string()))),
                 "save the model with save_pretrained(folder)");
  }
  std::set<fs::path> files;
  const io::JsonValue json = read_json(index);
  for (const auto& [tensor, file] : json.at("weight_map").object()) {
    const fs::path name = file.string();
    if (name.filename() != name) file.fault("this is no file of the folder");
    files.insert(folder / name);
  }
  return {files.begin(), files.end()};
}

std::map<std::string, Tensor> read_tensors(const std::vector<fs::path>& files, io::FileBytes how) {
  std::map<std::string, Tensor> out;
  for (const fs::path& file : files) {
    for (auto& [name, tensor] : io::read_weights(file.string(), how)) {
      if (!out.emplace(name, std::move(tensor)).second) {
        layout_fault(fmt::format("{} is in two files", quote(shortened(name))));
      }
    }
  }
  return out;
}

}  // namespace

Pretrained load_pretrained(const std::string& path, const PretrainedOptions& options) {
  const bool whole = is_folder(path);
  const fs::path folder = whole ? fs::path(path) : fs::path(path).parent_path();
  const fs::path configuration = folder / "config.json";
  const io::JsonValue json = read_json(configuration);
  const LayoutConfig config(json);
  try {
    const std::string kind = config.text("model_type", "");
    LayoutTensors tensors(
        read_tensors(whole ? weight_files(folder) : std::vector<fs::path>{fs::path(path)},
                     options.files),
        options.dtype);
    const auto model = [&]() -> LanguageModel {
      if (kind == "gpt2") return gpt2_from(config, tensors);
      if (kind == "llama") return llama_from(config, tensors);
      if (kind == "mamba") return mamba_from(config, tensors);
      layout_fault(fmt::format("models of the kind {} are not known", quote(shortened(kind))),
                   "known are gpt2, llama and mamba");
    };
    Pretrained out{.model = model(), .kind = kind, .end_tokens = config.end_tokens()};
    tensors.finish();
    return out;
  } catch (const UserError& e) {
    throw io::in_file(e, path);
  }
}

}  // namespace ricci::nn

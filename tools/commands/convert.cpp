// ricci convert: a file of weights in another format, and in other elements.
#include <cstdio>
#include <deque>
#include <memory>

#include <fmt/format.h>

#include "ricci/io/gguf.h"
#include "ricci/io/weight_file.h"
#include "ricci/quant/format.h"
#include "ricci/support/stop.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "source.h"

namespace ricci::tool {
namespace {

struct Options {
  std::string from;
  std::string to;
  std::string elements;
};

[[noreturn]] void no_such_elements(const std::string& name) {
  std::vector<std::string> known = {"f64", "f32", "f16", "bf16"};
  for (const quant::FormatInfo& f : quant::all_formats()) known.emplace_back(f.name);
  throw UserError(ErrorCode::Name, fmt::format("there are no elements {}", quote(shortened(name))),
                  "one of " + join(known, ", "));
}

// What is real and of a floating dtype changes; indices, counters and codes stay.
bool changes(const Tensor& t) { return is_float(t.dtype()); }

Tensor as_dtype(const Tensor& t, DType dtype) {
  throw_if_stopped();
  if (!changes(t)) return t;
  return Tensor::from_numbers<double>({dtype, t.type().dims}, t.numbers<double>());
}

// Matrices become blocks; the rest, and rows that are no whole number of blocks, f32.
void write_blocks(const std::string& path, const io::WeightFile& weights, quant::Format format) {
  if (io::weight_format(path) != io::WeightFormat::Gguf) {
    throw UserError(ErrorCode::Refused,
                    fmt::format("only GGUF files have elements of {}", quant::name(format)),
                    "end the name of the result with .gguf");
  }
  std::deque<std::vector<std::byte>> blocks;
  std::deque<Tensor> plain;
  io::Gguf out;
  if (const auto* had = std::get_if<io::WeightMetadata::Values>(&weights.metadata.content)) {
    out.metadata = had->keys;
    out.alignment = had->alignment;
  }
  for (const auto& [name, value] : weights.tensors) {
    const Tensor& t = plain.emplace_back(as_dtype(value, DType::F32).contiguous());
    const StaticDims dims = t.type().static_dims();
    const bool packs = changes(t) && dims.size() >= 2 && t.numel() > 0 &&
                       dims.back() % quant::info(format).block_length == 0;
    if (!packs) {
      out.tensors.push_back({name, io::StoredType::of(t.dtype()), dims, t.bytes()});
      continue;
    }
    auto& bytes =
        blocks.emplace_back(static_cast<std::size_t>(quant::packed_bytes(format, t.numel())));
    quant::encode(format, t.elements<float>(), bytes);
    out.tensors.push_back({name, io::StoredType::of(format), dims, bytes});
  }
  io::write_gguf(path, out);
}

// What is no longer true of the result: sums and places of a checkpoint, and which block format a
// file is in.
void drop_what_changes(io::WeightFile& weights, bool other_elements) {
  if (auto* texts = std::get_if<io::WeightMetadata::Texts>(&weights.metadata.content)) {
    std::erase_if(*texts, [](const auto& t) { return t.first.starts_with("ricci."); });
  }
  auto* values = std::get_if<io::WeightMetadata::Values>(&weights.metadata.content);
  if (values == nullptr || !(other_elements || weights.has_blocks)) return;
  std::erase_if(values->keys, [](const auto& k) {
    return k.first == "general.file_type" || k.first == "general.quantization_version";
  });
}

void convert(const Options& options) {
  io::WeightFile weights = io::read_weight_file(options.from);
  throw_if_stopped();
  drop_what_changes(weights, !options.elements.empty());
  const auto format = quant::format_from_name(options.elements);
  if (!options.elements.empty() && !format) {
    const auto dtype = dtype_from_name(options.elements);
    if (!dtype || !is_float(*dtype)) no_such_elements(options.elements);
    for (auto& [name, value] : weights.tensors) value = as_dtype(value, *dtype);
  }
  const std::vector<std::string> losses = io::losses_of(weights, io::weight_format(options.to));
  if (format) {
    write_blocks(options.to, weights, *format);
  } else {
    io::write_weight_file(options.to, weights);
  }
  for (const std::string& loss : losses) fmt::print(stderr, "note: {}\n", loss);
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "convert", "writes a file of weights in another format: NPZ, safetensors or GGUF");
  command->add_option("FROM", options->from, "an NPZ, safetensors or GGUF file")->required();
  command->add_option("TO", options->to, "the result; its ending says which format")->required();
  command->add_option("--elements", options->elements,
                      "what floats become: f32, f16, bf16, or, in GGUF, blocks: q8_0, q4_k, …");
  command->callback([options, &action] { action = [options] { convert(*options); }; });
}

}  // namespace ricci::tool

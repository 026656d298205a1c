// What readers of public layouts share: a configuration, and tensors that are taken by name until
// none is left.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/nn/layers.h"
#include "ricci/nn/pretrained.h"

#include "io/json_value.h"

namespace ricci::nn {

/// UserError(file.layout).
[[noreturn]] void layout_fault(const std::string& message, const std::string& help = {});

/// A `config.json`, with the defaults the library has for what is not there.
class LayoutConfig {
 public:
  explicit LayoutConfig(const io::JsonValue& json) : json_(json) {}
  /// From 1 to 2^31 - 1.
  [[nodiscard]] std::int64_t size(std::string_view key,
                                  std::optional<std::int64_t> otherwise = {}) const;
  [[nodiscard]] double number(std::string_view key, double otherwise) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise) const;
  [[nodiscard]] const io::JsonValue* find(std::string_view key) const { return json_.find(key); }
  /// A setting that has one value here.
  void require(std::string_view key, bool value) const;
  [[nodiscard]] std::vector<std::int32_t> end_tokens() const;

 private:
  const io::JsonValue& json_;
};

/// The tensors of a file. What is wrong is collected, and said in one error at the end.
class LayoutTensors {
 public:
  LayoutTensors(std::map<std::string, Tensor> tensors, std::optional<DType> dtype)
      : tensors_(std::move(tensors)), dtype_(dtype) {}

  /// Names begin with this where the file has any that do.
  void use_prefix(std::string_view prefix);
  /// As many layers as there could be tensors for.
  void require_layers(std::int64_t layers) const;
  /// Without one, all floats become what this tensor is.
  void decide_dtype(const std::string& name);
  [[nodiscard]] Array take(const std::string& name, const StaticDims& dims);
  /// [out, in] in the file, [in, out] here.
  [[nodiscard]] Array take_transposed(const std::string& name, std::int64_t in, std::int64_t out);
  /// What may be there and is not read: names that end so.
  void leave(std::string_view ending);
  /// UserError(file.layout) with all that was missing, misshapen or left over.
  void finish() const;

 private:
  [[nodiscard]] std::string full(const std::string& name) const { return prefix_ + name; }

  std::map<std::string, Tensor> tensors_;
  std::optional<DType> dtype_;
  std::string prefix_;
  std::set<std::string> taken_;
  std::vector<std::string> faults_;
};

[[nodiscard]] Gpt gpt2_from(const LayoutConfig& config, LayoutTensors& tensors);
[[nodiscard]] Llama llama_from(const LayoutConfig& config, LayoutTensors& tensors);
[[nodiscard]] MambaModel mamba_from(const LayoutConfig& config, LayoutTensors& tensors);

}  // namespace ricci::nn

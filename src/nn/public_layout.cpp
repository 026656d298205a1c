#include "nn/public_layout.h"

#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/array/ops.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

namespace ricci::nn {

void layout_fault(const std::string& message, const std::string& help) {
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "layout",
                             .message = message,
                             .where = {},
                             .notes = {},
                             .help = help});
}

std::int64_t LayoutConfig::size(std::string_view key, std::optional<std::int64_t> otherwise) const {
  const io::JsonValue* value = otherwise ? json_.find(key) : &json_.at(key);
  if (value == nullptr) return *otherwise;
  const std::int64_t n = value->integer();
  if (n < 1 || n > std::numeric_limits<std::int32_t>::max()) {
    value->fault(fmt::format("{} is {}, and sizes are positive numbers", quote(key), n));
  }
  return n;
}

double LayoutConfig::number(std::string_view key, double otherwise) const {
  const io::JsonValue* value = json_.find(key);
  return value == nullptr ? otherwise : value->number();
}

bool LayoutConfig::flag(std::string_view key, bool otherwise) const {
  const io::JsonValue* value = json_.find(key);
  return value == nullptr ? otherwise : value->boolean();
}

std::string LayoutConfig::text(std::string_view key, std::string_view otherwise) const {
  const io::JsonValue* value = json_.find(key);
  return value == nullptr ? std::string(otherwise) : value->string();
}

void LayoutConfig::require(std::string_view key, bool value) const {
  if (flag(key, value) == value) return;
  layout_fault(fmt::format("the configuration says {} is {}, and only {} is known", quote(key),
                           !value, value));
}

std::vector<std::int32_t> LayoutConfig::end_tokens() const {
  const io::JsonValue* value = json_.find("eos_token_id");
  if (value == nullptr) return {};
  std::vector<std::int32_t> out;
  const auto add = [&](const io::JsonValue& token) {
    const std::int64_t id = token.integer();
    if (id < 0 || id > std::numeric_limits<std::int32_t>::max()) token.fault("this is no token");
    out.push_back(static_cast<std::int32_t>(id));
  };
  if (value->kind() != io::JsonValue::Kind::Array) {
    add(*value);
  } else {
    for (const io::JsonValue& token : value->array()) add(token);
  }
  return out;
}

void LayoutTensors::use_prefix(std::string_view prefix) {
  for (const auto& [name, tensor] : tensors_) {
    if (name.starts_with(prefix)) prefix_ = prefix;
  }
}

void LayoutTensors::require_layers(std::int64_t layers) const {
  if (layers <= static_cast<std::int64_t>(tensors_.size())) return;
  layout_fault(fmt::format("the configuration has {} layers, and the weights are {} tensors",
                           layers, tensors_.size()));
}

void LayoutTensors::decide_dtype(const std::string& name) {
  const auto it = tensors_.find(full(name));
  if (!dtype_ && it != tensors_.end()) dtype_ = it->second.dtype();
}

Array LayoutTensors::take(const std::string& name, const StaticDims& dims) {
  const DType dtype = dtype_.value_or(DType::F32);
  const Type wanted{dtype, Dims(dims.begin(), dims.end())};
  // A head that is the table is stored under its own name alone.
  const std::string stored = tensors_.contains(full(name)) ? full(name) : name;
  const auto it = tensors_.find(stored);
  if (it == tensors_.end()) {
    faults_.push_back(fmt::format("{} is missing: {}", full(name), wanted.to_string()));
    return Tensor::zeros(wanted);
  }
  taken_.insert(stored);
  const Tensor& found = it->second;
  if (found.dims() != dims || !is_float(found.dtype())) {
    faults_.push_back(fmt::format("{} is {}, and {} is expected", stored, found.type().to_string(),
                                  wanted.to_string()));
    return Tensor::zeros(wanted);
  }
  if (found.dtype() == dtype) return found;
  return cast(Array(found), dtype).eval();
}

Array LayoutTensors::take_transposed(const std::string& name, std::int64_t in, std::int64_t out) {
  return transpose(take(name, {out, in})).eval();
}

void LayoutTensors::leave(std::string_view ending) {
  for (const auto& [name, tensor] : tensors_) {
    if (name.ends_with(ending)) taken_.insert(name);
  }
}

void LayoutTensors::finish() const {
  constexpr std::size_t Most = 8;
  std::vector<std::string> faults = faults_;
  for (const auto& [name, tensor] : tensors_) {
    if (taken_.contains(name)) continue;
    faults.push_back(fmt::format("{} is {}, and the model has no place for it",
                                 quote(shortened(name)), tensor.type().to_string()));
  }
  if (faults.empty()) return;
  const std::size_t rest = faults.size() > Most ? faults.size() - Most : 0;
  faults.resize(faults.size() - rest);
  if (rest > 0) faults.push_back(fmt::format("and {} more", rest));
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "layout",
                             .message = "tensors do not fit the model of the configuration",
                             .where = {},
                             .notes = std::move(faults),
                             .help = "config.json and the weights must be of one model"});
}

}  // namespace ricci::nn

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "ricci/io/safetensors.h"
#include "ricci/support/file.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

#include "io/fault.h"
#include "io/safetensors_layout.h"
#include "support/json.h"

namespace ricci::io {
namespace {

void check_name(const std::string& name, std::set<std::string_view>& names) {
  if (valid_utf8_prefix(name) != name.size()) {
    unwritable("safetensors_utf8", fmt::format("the name {} is not UTF-8", quote(shortened(name))));
  }
  if (!names.insert(name).second) {
    unwritable("safetensors_name", fmt::format("{} is there twice", quote(shortened(name))),
               "names in a safetensors file are unique");
  }
}

struct Written {
  const StoredTensor* tensor;
  const SafetensorsType* type;
};

Written checked(const StoredTensor& t, std::set<std::string_view>& names) {
  check_name(t.name, names);
  if (t.name == SafetensorsMetadata) {
    unwritable("safetensors_name", "no tensor can be called __metadata__");
  }
  const SafetensorsType* type = find_safetensors_type(t.type);
  if (type == nullptr) {
    unwritable("safetensors_type",
               fmt::format("tensor {} has elements of type {}, which safetensors lacks",
                           quote(shortened(t.name)), t.type.name),
               "convert it to a dtype that safetensors has");
  }
  if (t.dims.size() > MostRank) {
    unwritable("safetensors_rank", fmt::format("tensor {} has {} axes, more than {}",
                                               quote(shortened(t.name)), t.dims.size(), MostRank));
  }
  const auto size = safetensors_size(t.type, t.dims);
  if (!size || !std::cmp_equal(*size, t.bytes.size())) {
    unwritable("safetensors_size",
               fmt::format("tensor {} has {} bytes, which do not match its sizes",
                           quote(shortened(t.name)), t.bytes.size()));
  }
  return {&t, type};
}

// Wide elements first, so that all are aligned; then by name.
std::vector<Written> in_order(const Safetensors& file) {
  std::vector<Written> out;
  std::set<std::string_view> names;
  for (const StoredTensor& t : file.tensors) out.push_back(checked(t, names));
  std::ranges::sort(out, [](const Written& a, const Written& b) {
    return a.type != b.type ? std::less<>()(b.type, a.type) : a.tensor->name < b.tensor->name;
  });
  return out;
}

std::string metadata_text(const Safetensors& file) {
  std::string out;
  std::set<std::string_view> keys;
  for (const auto& [key, value] : file.metadata) {
    check_name(key, keys);
    if (valid_utf8_prefix(value) != value.size()) {
      unwritable("safetensors_utf8",
                 fmt::format("the value of {} is not UTF-8", quote(shortened(key))));
    }
    out += fmt::format("{}{}:{}", out.empty() ? "" : ",", quote_json(key), quote_json(value));
  }
  return out.empty() ? out : fmt::format("{}:{{{}}}", quote_json(SafetensorsMetadata), out);
}

std::string directory(const Safetensors& file, const std::vector<Written>& tensors) {
  std::string out = "{" + metadata_text(file);
  std::size_t offset = 0;
  for (const auto& [t, type] : tensors) {
    if (out.size() > 1) out += ',';
    out += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                       quote_json(t->name), type->name, fmt::join(t->dims, ","), offset,
                       offset + t->bytes.size());
    offset += t->bytes.size();
  }
  out += '}';
  out.resize((out.size() + SafetensorsFront - 1) / SafetensorsFront * SafetensorsFront, ' ');
  return out;
}

void write_all(const Safetensors& file, const std::function<void(ByteSpan)>& sink) {
  const std::vector<Written> tensors = in_order(file);
  const std::string header = directory(file, tensors);
  if (std::cmp_greater(header.size(), SafetensorsOptions{}.max_header_bytes)) {
    unwritable("safetensors_header",
               fmt::format("the directory has {} bytes, more than readers take", header.size()));
  }
  const std::uint64_t length = header.size();
  sink(std::as_bytes(std::span(&length, 1)));
  sink(std::as_bytes(std::span(header)));
  for (const Written& w : tensors) sink(w.tensor->bytes);
}

}  // namespace

std::vector<std::byte> safetensors_bytes(const Safetensors& file) {
  std::vector<std::byte> out;
  write_all(file, [&](ByteSpan piece) { out.insert(out.end(), piece.begin(), piece.end()); });
  return out;
}

void write_safetensors(const std::string& path, const Safetensors& file) {
  AtomicFile to(path);
  write_all(file, [&](ByteSpan piece) { to.write(piece); });
  to.commit();
}

}  // namespace ricci::io

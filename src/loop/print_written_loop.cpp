// The text form of written-out loops, for dumps and golden tests.
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/compiler/loop/written_loop.h"
#include "ricci/support/text.h"

namespace ricci::loop {
namespace {

std::string places(const Layout& layout) {
  return fmt::format("{{{}; {}}}", layout.offset, fmt::join(layout.strides, ", "));
}

std::string splat_text(const Number& number) {
  if (const auto* d = std::get_if<double>(&number)) return fmt::format("{}", *d);
  const auto* i = std::get_if<std::int64_t>(&number);
  return i != nullptr ? fmt::format("{}", *i) : "?";
}

std::string storages(const std::vector<StorageId>& all) {
  std::vector<std::string> names;
  for (const StorageId s : all) names.push_back(fmt::format("s{}", s));
  return join(names, ", ");
}

// Arrays that are walked from the first element to the last are named, others with their layout.
std::string read_text(const WrittenBody& body, const Read& read,
                      std::span<const std::int64_t> dims) {
  if (const auto* splat = std::get_if<SplatRead>(&read)) return splat_text(splat->number);
  if (const auto* sequence = std::get_if<SequenceRead>(&read)) {
    return "place" + places(sequence->layout);
  }
  const auto& stored = std::get<StoredRead>(read);
  const std::string name = fmt::format("s{}", stored.storage);
  const bool whole =
      is_contiguous(stored.layout, dims) &&
      element_count(dims) == body.storages[static_cast<std::size_t>(stored.storage)].elements;
  return whole ? name : name + places(stored.layout);
}

std::string function_name(const Instr& i) {
  switch (i.code) {
    case Code::Unary:
      return fmt::format("{}{}", row(i.unary()).name, i.not_positive ? " not_positive" : "");
    case Code::Binary: return std::string(row(i.binary()).name);
    case Code::Compare: return std::string(row(i.compare()).name);
    case Code::Select: return "select";
    case Code::Cast: return "cast";
    default: return "copy";
  }
}

// What an item computes, without what it reads.
std::string item_function(const WrittenItem& item) {
  switch (item.kind) {
    case WrittenItem::Kind::Pointwise: return function_name(item.instr);
    case WrittenItem::Kind::Reduction:
      return std::string(enumerator_names(item.reduce)[static_cast<std::size_t>(item.reduce)]);
    case WrittenItem::Kind::Product: break;
  }
  return "product";
}

std::string item_text(const WrittenBody& body, const WrittenItem& item) {
  const std::span<const std::int64_t> dims(item.dims);
  std::string target = fmt::format("s{}", item.storage);
  std::string function = item_function(item);
  if (item.kind == WrittenItem::Kind::Pointwise && !is_contiguous(item.to, dims)) {
    target += places(item.to);
  }
  if (item.kind == WrittenItem::Kind::Reduction) {
    std::vector<std::size_t> axes;
    for (std::size_t a = 0; a < item.reduced.size(); ++a) {
      if (item.reduced[a]) axes.push_back(a);
    }
    function += fmt::format(" over [{}]", fmt::join(axes, ", "));
  }
  std::vector<std::string> reads;
  for (std::size_t k = 0; k < item.reads.size(); ++k) {
    const bool product = item.kind == WrittenItem::Kind::Product;
    reads.push_back(read_text(body, item.reads[k],
                              !product ? dims
                              : k == 0 ? dims.first(2)
                                       : dims.last(2)));
  }
  return fmt::format("{}[{}] : {} = {} {}\n", target, fmt::join(item.dims, ", "),
                     name(item.instr.dtype), function, join(reads, ", "));
}

std::string body_text(const char* what, const WrittenBody& body) {
  std::string text =
      fmt::format("{}({}) -> ({}) {{\n", what, storages(body.inputs), storages(body.outputs));
  for (std::size_t s = 0; s < body.storages.size(); ++s) {
    const Storage& storage = body.storages[s];
    if (!storage.constant) continue;
    text += fmt::format("  s{} : constant {}[{}]\n", s, name(storage.dtype), storage.elements);
  }
  for (const WrittenItem& item : body.items) text += "  " + item_text(body, item);
  return text + "}\n";
}

}  // namespace

std::string functions_of(const WrittenBody& body) {
  std::vector<std::string> names;
  for (const WrittenItem& item : body.items) names.push_back(item_function(item));
  return join(names, "+");
}

std::string to_string(const WrittenLoop& loop) {
  std::string text = to_string(loop.plan);
  if (loop.condition) text += body_text("cond", *loop.condition);
  return text + body_text("body", loop.body);
}

}  // namespace ricci::loop

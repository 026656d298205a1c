// Text with arrays in it, printed now or when they are computed.
#include <cstdio>
#include <mutex>
#include <ostream>

#include <fmt/args.h>
#include <fmt/format.h>

#include "ricci/array/print.h"
#include "ricci/compiler/rule/batch.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/custom.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "array/print.h"
#include "support/fork.h"

namespace ricci::detail {
namespace {

struct Shown {
  const Tensor* value;
};

}  // namespace
}  // namespace ricci::detail

template <>
struct fmt::formatter<ricci::detail::Shown> {
  std::string text;
  constexpr auto parse(fmt::format_parse_context& context) {
    const auto* it = context.begin();
    while (it != context.end() && *it != '}') text += *it++;
    return it;
  }
  auto format(const ricci::detail::Shown& x, fmt::format_context& context) const {
    return fmt::format_to(context.out(), "{}", ricci::detail::printed(*x.value, text));
  }
};

namespace ricci {
namespace detail {
namespace {

struct Options {
  ForkMutex mutex;
  ArrayPrintOptions options;
};
Options& kept_options() {
  static Options& o = *new Options;
  return o;
}

using Store = fmt::dynamic_format_arg_store<fmt::format_context>;

std::string filled_in(std::string_view format, const Store& store, std::source_location where) {
  try {
    return fmt::vformat(format, store);
  } catch (const fmt::format_error& e) {
    refuse(ErrorCode::Attr, "format",
           fmt::format("the format '{}' does not fit its arguments: {}", format, e.what()),
           "one {} an argument; behind a colon what each number looks like: {:.3f}", where);
  }
}

// The identity, which says what passes.
class DebugPrint final : public CustomOp {
 public:
  static constexpr const char* Name = "ricci.debug_print";

  [[nodiscard]] std::string name() const override { return Name; }
  [[nodiscard]] std::optional<std::size_t> num_inputs() const override { return 1; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes&) const override {
    return {operands[0]};
  }
  void eval(const Bytes& attrs, EvalContext& c) const override {
    Store store;
    store.push_back(Shown{&c.tensor(0)});
    const std::string format(
        reinterpret_cast<const char*>(attrs.data.data()),  // NOLINT: text is bytes
        attrs.data.size());
    print_line(filled_in(format, store, std::source_location()));
    c.give(0, c.tensor(0));
  }
  [[nodiscard]] std::vector<Value> vjp(const Bytes&, const VjpContext& c) const override {
    return {c.cotangent(0)};
  }
  [[nodiscard]] std::vector<Value> jvp(const Bytes&, JvpContext& c) const override {
    return {c.tangent(0)};
  }
  [[nodiscard]] std::vector<BatchedValue> vmap(const Bytes&, const VmapContext& c) const override {
    return c.emit(c.node().op, std::array{c.lifted(0)});
  }
};

}  // namespace

std::string format_array(const Array& x, std::string_view format) {
  if (format.empty() || !x.valid() || x.node()->trace) return x.str();
  Store store;
  store.push_back(Shown{&x.tensor()});
  return filled_in(fmt::format("{{:{}}}", format), store, std::source_location());
}

std::string format_text(std::string_view format, const std::vector<PrintArgument>& arguments,
                        std::source_location where) {
  Store store;
  for (const PrintArgument& a : arguments) {
    if (const auto* x = std::get_if<Array>(&a)) {
      if (!x->valid() || x->node()->trace) {
        store.push_back(x->str());
      } else {
        store.push_back(Shown{&x->tensor(where)});
      }
      continue;
    }
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (!std::same_as<T, Array>) store.push_back(value);
        },
        a);
  }
  return filled_in(format, store, where);
}

void print_line(const std::string& text) {
  std::fprintf(stdout, "%s\n", text.c_str());
  std::fflush(stdout);
}

}  // namespace detail

std::ostream& operator<<(std::ostream& out, const Type& type) { return out << type.to_string(); }
std::ostream& operator<<(std::ostream& out, const Dims& shape) { return out << to_string(shape); }
std::ostream& operator<<(std::ostream& out, const Tensor& values) { return out << Array(values); }
std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

void set_print_options(const ArrayPrintOptions& options) {
  detail::Options& o = detail::kept_options();
  const std::lock_guard lock(o.mutex);
  o.options = options;
}
ArrayPrintOptions print_options() {
  detail::Options& o = detail::kept_options();
  const std::lock_guard lock(o.mutex);
  return o.options;
}

Array debug_print(std::string_view format, const Array& x, Here where) {
  static const bool added = [] {
    global_registry().add(std::make_shared<detail::DebugPrint>());
    return true;
  }();
  (void)added;
  detail::require_valid(x, "debug_print", where);
  const auto* first = reinterpret_cast<const std::byte*>(format.data());  // NOLINT: text is bytes
  Bytes bytes{.data = {first, first + format.size()}};
  return detail::apply(
      Op(op::Custom{.name = detail::DebugPrint::Name, .version = 1, .attrs = std::move(bytes)}),
      {detail::strengthened(x, where)}, where);
}

}  // namespace ricci

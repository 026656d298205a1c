// Ops registered at run time. A `CustomOp` says what the op takes, gives and does; a `Registry`
// holds them by name and version and is handed to graphs, parser and compiler. There is one default
// registry for the process; a graph made with another uses that one.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ricci/op/fields.h"
#include "ricci/op/infer.h"

namespace ricci {

class EvalContext;
class Value;
class VjpContext;
class JvpContext;
class VmapContext;
struct BatchedValue;

/// One registered op. Implementations are immutable and may be called from several threads.
class CustomOp {
 public:
  virtual ~CustomOp() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::int64_t version() const { return 1; }
  /// How many operands it takes; nothing when infer decides.
  [[nodiscard]] virtual std::optional<std::size_t> num_inputs() const { return std::nullopt; }
  /// Result types; throw UserError when the operands or attributes do not fit.
  [[nodiscard]] virtual std::vector<Type> infer(std::span<const Type> operands,
                                                const Bytes& attrs) const = 0;
  /// The reference kernel.
  virtual void eval(const Bytes& attrs, EvalContext& context) const = 0;

  /// Whether an operand may carry a derivative; say no for what has none by definition, so that
  /// nobody asks the rules below for it.
  [[nodiscard]] virtual bool differentiable(std::size_t /*operand*/) const { return true; }
  /// The reverse rule: one cotangent per operand, invalid where an operand gets none. Without it a
  /// gradient that reaches the op is UserError(refused), never a silent zero.
  [[nodiscard]] virtual std::vector<Value> vjp(const Bytes& attrs, const VjpContext& context) const;
  /// The forward rule: one tangent per result, invalid where it is zero.
  [[nodiscard]] virtual std::vector<Value> jvp(const Bytes& attrs, JvpContext& context) const;
  /// The batching rule: one batched value per result.
  [[nodiscard]] virtual std::vector<BatchedValue> vmap(const Bytes& attrs,
                                                       const VmapContext& context) const;
};

/// Custom ops by (name, version). Registration and look-up may run concurrently.
class Registry {
 public:
  /// UserError(name) when the name and version are taken, unless `replace`.
  void add(std::shared_ptr<const CustomOp> op, bool replace = false);
  /// Nothing when it is not registered.
  [[nodiscard]] std::shared_ptr<const CustomOp> find(std::string_view name,
                                                     std::int64_t version) const;
  /// UserError(name) that lists the versions there are.
  [[nodiscard]] std::shared_ptr<const CustomOp> find_or_throw(std::string_view name,
                                                              std::int64_t version) const;
  [[nodiscard]] std::vector<std::pair<std::string, std::int64_t>> list() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::int64_t>, std::shared_ptr<const CustomOp>> ops_;
};

/// The process-wide registry.
[[nodiscard]] Registry& global_registry();

}  // namespace ricci

namespace ricci::op {

/// An op registered at run time under a name and a version.
struct Custom {
  std::string name = {};
  std::int64_t version = 1;
  Bytes attrs = {};

  static constexpr OpInfo info{.name = "custom",
                               .operands = "operands...",
                               .results = "results...",
                               .traits = Trait::Faults | Trait::Conjugates,
                               .help = "an op registered at run time",
                               .formula = "as its registry entry says",
                               .constraints = "c1 name: the name and version are registered\n"
                                              "c2 attr: there are as many operands as it takes\n"
                                              "c3 shape: its shape rule gives a result"};
  static void fields(auto& self, auto&& f) {
    f("name", self.name, "name in the registry", Presence::Positional);
    f("version", self.version, "version in the registry");
    f("attrs", self.attrs, "opaque attributes of the op itself");
  }
  bool operator==(const Custom&) const = default;
};

}  // namespace ricci::op

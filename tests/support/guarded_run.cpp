#include "support/guarded_run.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "backend/cpu/codegen/code_cache.h"
#include "backend/cpu/run/executable.h"
#include "support/compare.h"
#include "support/guarded_buffer.h"
#include "support/guarded_frame.h"
#include "support/test_pool.h"

namespace ricci::testing {
namespace {

using Edge = GuardedBuffer::Edge;

std::size_t& run_count() {
  static std::size_t count = 0;
  return count;
}

std::size_t byte_size(const Type& type) {
  return static_cast<std::size_t>(type.numel().value() * size_of(type.dtype));
}

// The inputs and outputs of one run.
class Ports {
 public:
  Ports(const CompiledGraph& f, std::span<const Tensor> values, const CompileOptions& options,
        Edge edge)
      : f_(f), values_(values), donated_(values.size(), false) {
    for (const Tensor& value : values) inputs_.push_back(guarded_copy(value.bytes(), edge));
    for (std::size_t o = 0; o < f.outputs().size(); ++o) add_output(o, options, edge);
    for (const GuardedBuffer& input : inputs_) in_.push_back(input.data());
  }

  [[nodiscard]] std::span<std::byte* const> in() const { return in_; }
  [[nodiscard]] std::span<std::byte* const> out() const { return out_; }

  void make_inputs_read_only() {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!donated_[i]) inputs_[i].make_read_only();
    }
  }

  void expect_inputs_unchanged() const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (donated_[i] || std::ranges::equal(inputs_[i].bytes(), values_[i].bytes())) continue;
      throw std::runtime_error(fmt::format("the run wrote to input '{}'", f_.inputs()[i].name));
    }
  }

  [[nodiscard]] std::vector<Tensor> results() const {
    std::vector<Tensor> out;
    for (std::size_t o = 0; o < out_.size(); ++o) {
      const Type& type = f_.outputs()[o];
      out.push_back(Tensor::from_bytes(type, {out_[o], byte_size(type)}));
    }
    return out;
  }

 private:
  void add_output(std::size_t o, const CompileOptions& options, Edge edge) {
    const auto donation = std::ranges::find(options.donations, o, &Donation::output);
    if (donation == options.donations.end()) {
      out_.push_back(outputs_.emplace_back(byte_size(f_.outputs()[o]), edge).data());
      return;
    }
    const auto input = std::ranges::find(f_.inputs(), donation->input, &Port::name);
    const auto i = static_cast<std::size_t>(input - f_.inputs().begin());
    donated_[i] = true;
    out_.push_back(inputs_[i].data());
  }

  const CompiledGraph& f_;
  std::span<const Tensor> values_;
  std::vector<bool> donated_;
  std::vector<GuardedBuffer> inputs_;
  std::vector<GuardedBuffer> outputs_;
  std::vector<std::byte*> in_;
  std::vector<std::byte*> out_;
};

std::vector<Tensor> run_as_planned(const CompiledGraph& f, const Ports& ports) {
  ExecutionContext context = f.make_context();
  const std::vector<const void*> in(ports.in().begin(), ports.in().end());
  const std::vector<void*> out(ports.out().begin(), ports.out().end());
  f.run(context, in, out);
  ++run_count();
  ports.expect_inputs_unchanged();
  return ports.results();
}

std::vector<Tensor> run_at_the_edge(const cpu::Executable& executable, Ports ports, Edge edge) {
  cpu::Context context(executable);
  const GuardedFrame frame(executable, context.frame(), edge);
  ports.make_inputs_read_only();
  const std::vector<const std::byte*> in(ports.in().begin(), ports.in().end());
  device::run(executable, context, {in, ports.out(), 0, nullptr});
  ++run_count();
  return ports.results();
}

void expect_same_bits(const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                      Edge edge) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (actual[i].identical(expected[i])) continue;
    if (const auto r = same(actual[i], expected[i]); !r) {  // NaNs may differ in their bits
      throw std::runtime_error(fmt::format(
          "output {} depends on where buffers are: {} when they {} at the edge of their pages", i,
          r.message(), edge == Edge::End ? "end" : "begin"));
    }
  }
}

}  // namespace

std::vector<Tensor> run_between_guards(const Graph& graph, const Feeds& feeds,
                                       const CompileOptions& options) {
  std::vector<Tensor> values = check_feeds(graph, feeds).values;
  for (Tensor& value : values) value = value.contiguous();
  const CompiledGraph f = compile(graph, Device::default_cpu(), options);
  const std::vector<Tensor> results = run_as_planned(f, Ports(f, values, options, Edge::End));
  const cpu::Executable executable(std::make_shared<ricci::Program>(f.program()),
                                   cpu::JitSource(pool_of()), pool_of());
  for (const Edge edge : {Edge::End, Edge::Start}) {
    expect_same_bits(run_at_the_edge(executable, Ports(f, values, options, edge), edge), results,
                     edge);
  }
  return results;
}

std::size_t runs_between_guards() { return run_count(); }

}  // namespace ricci::testing

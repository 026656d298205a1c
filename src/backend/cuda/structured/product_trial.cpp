#include "backend/cuda/structured/product_trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <vector>

#include "ricci/support/error.h"
#include "ricci/type/tensor.h"

namespace ricci::cuda {
namespace {

// Of a matrix [rows, columns] and those behind it.
std::int64_t matrix_bytes(const LibraryMatrix& m, std::int64_t rows, std::int64_t columns,
                          std::int64_t batch, DType dtype) {
  const std::int64_t lines = m.transposed ? columns : rows;
  return ((batch - 1) * m.batch + lines * m.leading) * size_of(dtype);
}

double function_of(Epilogue::Function function, double x) {
  if (function == Epilogue::Function::Relu) return std::max(x, 0.0);
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// What a result may differ by: what it is rounded to, and for f32 what our own kernels may.
double allowed(DType dtype, double y) {
  if (dtype == DType::F16) return 1e-3 * std::abs(y) + 1e-3;
  if (dtype == DType::BF16) return 8e-3 * std::abs(y) + 1e-3;
  return 2e-6 * std::abs(y) + 1e-6;
}

}  // namespace

ProductTrial::ProductTrial(Multiplication& product, Memory& memory,
                           std::span<const MatmulChoice> choices)
    : product_(product), memory_(memory), choices_(choices) {
  const LibraryShape& s = product.shape_;
  const std::int64_t result_bytes = matrix_bytes(s.c, s.rows, s.columns, s.batch, s.result);
  std::size_t workspace = 0;
  for (const MatmulChoice& c : choices) workspace = std::max(workspace, c.workspace);
  try {
    a_ = device::Array(memory, matrix_bytes(s.a, s.rows, s.depth, s.batch, s.dtype));
    b_ = device::Array(memory, matrix_bytes(s.b, s.depth, s.columns, s.batch, s.dtype));
    c_ = device::Array(memory, result_bytes);
    bias_ = device::Array(memory, s.columns * size_of(s.result));
    if (s.epilogue.added) added_ = device::Array(memory, result_bytes);
    if (s.epilogue.inner) inner_ = device::Array(memory, result_bytes);
    workspace_ = device::Array(memory, static_cast<std::int64_t>(workspace));
  } catch (const UserError& error) {
    if (error.code() != ErrorCode::OutOfMemory) throw;
    return;
  }
  const Driver& driver = product.gpu_.driver();
  if (product.gpu_.with_room([&] { return driver.stream_create(&stream_, StreamNonBlocking); }) !=
      0) {
    stream_ = nullptr;
  }
}

ProductTrial::~ProductTrial() {
  if (stream_ == nullptr) return;
  product_.gpu_.driver().stream_wait(stream_);
  product_.gpu_.driver().stream_destroy(stream_);
}

void ProductTrial::fill(const device::Array& array, unsigned char value) const {
  if (array.data() == nullptr) return;
  product_.gpu_.driver().check(
      product_.gpu_.driver().fill8(address(array.data()), value,
                                   static_cast<std::size_t>(array.bytes()), stream_),
      "fill an array");
}

// False when the library refuses.
bool ProductTrial::run(const MatmulChoice& choice) {
  const MatmulChoice before = product_.choice_;
  product_.choice_ = choice;
  bool done = true;
  try {
    product_.enqueue({address(a_.data()), address(b_.data()), address(c_.data()),
                      address(workspace_.data()), stream_, address(bias_.data()),
                      address(added_.data()), address(inner_.data())});
  } catch (const DeviceError&) {
    done = false;
  }
  product_.choice_ = before;
  return done;
}

// Several runs as one graph: asking for a small product takes the host longer than the GPU takes to
// compute it. Null where the driver cannot.
GraphExec ProductTrial::replayed(const MatmulChoice& choice, int runs) {
  const Driver& driver = product_.gpu_.driver();
  if (driver.capture_begin(stream_, CaptureRelaxed) != 0) return nullptr;
  bool done = true;
  for (int i = 0; i < runs && done; ++i) done = run(choice);
  Graph_ graph = nullptr;
  GraphExec made = nullptr;
  if (driver.capture_end(stream_, &graph) != 0) return nullptr;
  if (!done || driver.graph_instantiate(&made, graph, 0) != 0) made = nullptr;
  driver.graph_destroy(graph);
  return made;
}

// How long one run takes; nothing when the library refuses.
std::optional<ProductTrial::Seconds> ProductTrial::time(const MatmulChoice& choice) {
  using Clock = std::chrono::steady_clock;
  constexpr int Rounds = 4;
  constexpr int Together = 16;
  constexpr Seconds Long(1e-3);
  const Driver& driver = product_.gpu_.driver();
  const auto timed = [&](const auto& ask) {
    const auto from = Clock::now();
    ask();
    driver.check(driver.stream_wait(stream_), "try a product");
    return Seconds(Clock::now() - from);
  };
  // The first time its code is loaded.
  if (!run(choice) || driver.stream_wait(stream_) != 0) return std::nullopt;
  Seconds shortest = timed([&] { (void)run(choice); });
  if (shortest >= Long) return shortest;
  GraphExec graph = replayed(choice, Together);
  for (int round = 0; round < Rounds; ++round) {
    const Seconds took = timed([&] {
      if (graph != nullptr) {
        driver.check(driver.graph_launch(graph, stream_), "try a product");
        return;
      }
      for (int i = 0; i < Together; ++i) (void)run(choice);
    });
    shortest = std::min(shortest, took / Together);
  }
  if (graph != nullptr) driver.graph_exec_destroy(graph);
  return shortest;
}

// Of those that are as fast the one that is proposed first, so that chance decides less often.
MatmulChoice ProductTrial::fastest() {
  constexpr double AsFast = 1.03;
  constexpr unsigned char Somewhat = 0x3c;  // 0.01, 0.012 or 1.06 in all elements
  for (const device::Array* array : {&a_, &b_, &c_, &bias_, &added_}) fill(*array, Somewhat);
  std::vector<std::pair<Seconds, const MatmulChoice*>> times;
  for (const MatmulChoice& choice : choices_) {
    if (const auto took = time(choice)) times.emplace_back(*took, &choice);
  }
  if (times.empty()) return choices_.front();
  const Seconds shortest = std::ranges::min(times, {}, [](const auto& t) { return t.first; }).first;
  return *std::ranges::find_if(times, [&](const auto& t) {
            return t.first <= shortest * AsFast;
          })->second;
}

bool ProductTrial::keeps_nan(const MatmulChoice& choice) {
  constexpr unsigned char Nan = 0xff;
  for (const device::Array* array : {&a_, &b_}) fill(*array, Nan);
  for (const device::Array* array : {&c_, &bias_, &added_}) fill(*array, 0);
  if (!run(choice)) return false;
  const DType dtype = product_.shape_.result;
  Tensor got = Tensor::zeros(Type(dtype, {std::min<std::int64_t>(product_.shape_.columns, 4096)}));
  product_.gpu_.driver().check(product_.gpu_.driver().stream_wait(stream_), "try a product");
  memory_.copy_out(got.mutable_data(), c_.data(), static_cast<std::int64_t>(got.bytes().size()));
  return std::ranges::all_of(got.numbers<double>(), [](double x) { return std::isnan(x); });
}

// Products are zero, and what is added to them in the first row goes from -8 to 8.
bool ProductTrial::gives_its_function(const MatmulChoice& choice) {
  const LibraryShape& s = product_.shape_;
  for (const device::Array* array : {&a_, &b_, &c_, &bias_, &added_}) fill(*array, 0);
  std::vector<double> values;
  for (std::int64_t n = 0; n < s.columns; ++n) {
    values.push_back(s.columns == 1
                         ? 1
                         : -8 + 16.0 * static_cast<double>(n) / static_cast<double>(s.columns - 1));
  }
  const Tensor given = Tensor::from_numbers<double>(Type(s.result, {s.columns}), values);
  const Driver& driver = product_.gpu_.driver();
  driver.check(driver.stream_wait(stream_), "try a product");
  const device::Array& to = s.epilogue.bias ? bias_ : added_;
  const auto bytes = static_cast<std::int64_t>(given.bytes().size());
  memory_.copy_in(to.data(), given.data(), bytes);
  if (!run(choice)) return false;
  driver.check(driver.stream_wait(stream_), "try a product");
  Tensor got = Tensor::zeros(given.type());
  memory_.copy_out(got.mutable_data(), c_.data(), bytes);
  const std::vector<double> x = given.numbers<double>();
  const std::vector<double> y = got.numbers<double>();
  for (std::size_t n = 0; n < x.size(); ++n) {
    const double wanted = function_of(s.epilogue.function, x[n]);
    if (!(std::abs(y[n] - wanted) <= allowed(s.result, wanted))) return false;
  }
  return true;
}

bool ProductTrial::is_right(const MatmulChoice& choice) {
  return keeps_nan(choice) && gives_its_function(choice);
}

}  // namespace ricci::cuda

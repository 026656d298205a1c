#include "backend/cuda/structured/cublas_product.h"

#include <complex>
#include <mutex>
#include <string>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/structured/product_choice.h"
#include "backend/cuda/structured/product_trial.h"
#include "support/phases.h"

namespace ricci::cuda {
namespace {

constexpr std::uint64_t MostWorkspace = 32 << 20;  // what its documentation wants for Hopper
constexpr int MostProposals = 8;

struct LibraryTypes {
  int stored = cublas::Real32;
  int scale = cublas::Real32;
  int compute = cublas::Compute32;
};

LibraryTypes types_of(DType dtype, bool tf32) {
  switch (dtype) {
    case DType::F64: return {cublas::Real64, cublas::Real64, cublas::Compute64};
    case DType::F16: return {cublas::Half, cublas::Real32, cublas::Compute32};
    case DType::BF16: return {cublas::BHalf, cublas::Real32, cublas::Compute32};
    case DType::C64: return {cublas::Complex32, cublas::Complex32, cublas::Compute32};
    case DType::C128: return {cublas::Complex64, cublas::Complex64, cublas::Compute64};
    default: return {.compute = tf32 ? cublas::ComputeTf32 : cublas::Compute32};
  }
}

void require_library(int status, const char* doing) {
  if (status != 0) {
    throw DeviceError("cuBLASLt could not " + std::string(doing),
                      "status " + std::to_string(status));
  }
}

OwnedLayout layout_of(DType dtype, std::int64_t rows, std::int64_t columns, const LibraryMatrix& m,
                      std::int64_t batch) {
  const Cublas& library = cublas_library();
  MatrixLayout made = nullptr;
  require_library(
      library.layout_create(&made, types_of(dtype, false).stored, static_cast<std::uint64_t>(rows),
                            static_cast<std::uint64_t>(columns), m.leading),
      "describe a matrix");
  OwnedLayout layout(made);
  const auto count = static_cast<std::int32_t>(batch);
  require_library(library.layout_set(layout.get(), cublas::BatchCount, &count, sizeof count),
                  "describe a batch");
  require_library(library.layout_set(layout.get(), cublas::BatchStride, &m.batch, sizeof m.batch),
                  "describe a batch");
  return layout;
}

// Numbers the library multiplies with, in its scale type.
const void* scale_number(DType dtype, bool one) {
  static constexpr float F32[] = {0, 1};
  static constexpr double F64[] = {0, 1};
  static constexpr std::complex<float> C64[] = {0, 1};
  static constexpr std::complex<double> C128[] = {0, 1};
  const std::size_t i = one ? 1 : 0;
  switch (dtype) {
    case DType::F64: return &F64[i];
    case DType::C64: return &C64[i];
    case DType::C128: return &C128[i];
    default: return &F32[i];
  }
}

std::uint32_t epilogue_number(const LibraryEpilogue& e) {
  std::uint32_t number = 0;
  if (e.bias) number |= cublas::EpilogueBias;
  if (e.function == Epilogue::Function::Relu) number |= cublas::EpilogueRelu;
  if (e.function == Epilogue::Function::Gelu) number |= cublas::EpilogueGelu;
  if (e.inner) number |= cublas::EpilogueAux;
  return number == 0 ? cublas::EpilogueNone : number;
}

template <class T>
void set(MatmulDesc desc, int attribute, const T& value) {
  require_library(cublas_library().desc_set(desc, attribute, &value, sizeof value),
                  "describe a product");
}

std::string text_of(const LibraryMatrix& m) {
  return fmt::format("{}{} {} {}", m.transposed ? "t" : "", m.leading, m.batch, m.alignment);
}

}  // namespace

bool has_library_product(DType dtype) { return is_float(dtype) || is_complex(dtype); }

std::string LibraryShape::text() const {
  return fmt::format("{} {}x{}x{} of {} -> {}{}: {}, {}, {}; {}{}", batch, rows, depth, columns,
                     name(dtype), name(result), tf32 ? " tf32" : "", text_of(a), text_of(b),
                     text_of(c), epilogue_number(epilogue), epilogue.added ? " added" : "");
}

Multiplication::Multiplication(const Gpu& gpu, const LibraryShape& s)
    : gpu_(gpu), handle_(gpu.cublas()), shape_(s), desc_(describe()) {
  const auto shaped = [&](DType dtype, std::int64_t rows, std::int64_t columns,
                          const LibraryMatrix& m) {
    return m.transposed ? layout_of(dtype, columns, rows, m, s.batch)
                        : layout_of(dtype, rows, columns, m, s.batch);
  };
  first_ = shaped(s.dtype, s.columns, s.depth, s.b);
  second_ = shaped(s.dtype, s.depth, s.rows, s.a);
  result_ = shaped(s.result, s.columns, s.rows, s.c);
}

OwnedDesc Multiplication::describe() const {
  const LibraryTypes types = types_of(shape_.dtype, shape_.tf32);
  MatmulDesc made = nullptr;
  require_library(cublas_library().desc_create(&made, types.compute, types.scale),
                  "describe a product");
  OwnedDesc desc(made);
  set(made, cublas::TransposeA, std::int32_t{shape_.b.transposed});
  set(made, cublas::TransposeB, std::int32_t{shape_.a.transposed});
  const LibraryEpilogue& e = shape_.epilogue;
  if (e == LibraryEpilogue{}) return desc;
  set(made, cublas::EpilogueKind, epilogue_number(e));
  // Proposals are made for addresses that are somewhere; each run says where.
  constexpr Address Somewhere = 1 << 12;
  if (e.bias) set(made, cublas::BiasPointer, Somewhere);
  if (e.inner) {
    set(made, cublas::AuxPointer, Somewhere);
    set(made, cublas::AuxLeading, shape_.columns);
  }
  return desc;
}

std::vector<MatmulChoice> Multiplication::proposals() const {
  const Cublas& library = cublas_library();
  Preference made = nullptr;
  require_library(library.preference_create(&made), "say what it prefers");
  const OwnedPreference preference(made);
  const auto prefer = [&](int attribute, auto value) {
    require_library(library.preference_set(made, attribute, &value, sizeof value),
                    "say what it prefers");
  };
  prefer(cublas::MaxWorkspace, MostWorkspace);
  prefer(cublas::AlignmentA, static_cast<std::uint32_t>(shape_.b.alignment));
  prefer(cublas::AlignmentB, static_cast<std::uint32_t>(shape_.a.alignment));
  prefer(cublas::AlignmentC, static_cast<std::uint32_t>(shape_.c.alignment));
  prefer(cublas::AlignmentD, static_cast<std::uint32_t>(shape_.c.alignment));
  std::vector<MatmulChoice> choices(MostProposals);
  int count = 0;
  if (library.choose(handle_, desc_.get(), first_.get(), second_.get(), result_.get(),
                     result_.get(), made, MostProposals, choices.data(), &count) != 0) {
    return {};
  }
  choices.resize(static_cast<std::size_t>(count));
  std::erase_if(choices, [](const MatmulChoice& c) { return c.state != 0; });
  return choices;
}

bool Multiplication::accepts(const MatmulChoice& choice) const {
  MatmulChoice checked{};
  return choice.workspace <= MostWorkspace &&
         cublas_library().check(handle_, desc_.get(), first_.get(), second_.get(), result_.get(),
                                result_.get(), &choice.algorithm, &checked) == 0 &&
         checked.state == 0 && checked.workspace <= choice.workspace;
}

// What is known of a shape holds for all of the process: the same program has the same bits.
bool Multiplication::choose(const Means& means) {
  const Phase phase("algorithms of products");
  const std::string key = choice_key(gpu_, shape_.text());
  const bool can_try = means.memory != nullptr;
  if (const auto known = known_choice(key, means.folder)) {
    choice_ = known->choice;
    if (!known->is_right) return false;
    if (known->of_this_process || accepts(choice_)) return true;
  }
  std::vector<MatmulChoice> all = proposals();
  if (all.empty()) return false;
  choice_ = all.front();
  const bool keeps = means.folder != nullptr && !means.folder->path.empty();
  const bool measures = can_try && keeps && all.size() > 1;
  bool is_right = true;
  if (measures || shape_.epilogue.applies()) {
    if (!can_try) return false;
    ProductTrial trial(*this, *means.memory, all);
    if (!trial.has_room()) return !shape_.epilogue.applies();
    if (measures) choice_ = trial.fastest();
    is_right = !shape_.epilogue.applies() || trial.is_right(choice_);
  }
  keep_choice(key, {choice_, is_right, true}, measures ? means.folder : nullptr);
  return is_right;
}

std::shared_ptr<const Multiplication> Multiplication::make(const Means& means,
                                                           const LibraryShape& shape) {
  if (!has_library_product(shape.dtype) || means.gpu->cublas() == nullptr) return nullptr;
  std::shared_ptr<Multiplication> made(new Multiplication(*means.gpu, shape));
  return made->choose(means) ? made : nullptr;
}

void Multiplication::enqueue(const Arrays& at) const {
  const LibraryEpilogue& e = shape_.epilogue;
  std::unique_lock<ForkMutex> held(addresses_, std::defer_lock);
  if (e.bias || e.inner) held.lock();
  if (e.bias) set(desc_.get(), cublas::BiasPointer, at.bias);
  if (e.inner) set(desc_.get(), cublas::AuxPointer, at.inner);
  const Address added = e.added ? at.added : at.c;
  require_library(cublas_library().multiply(handle_, desc_.get(), scale_number(shape_.dtype, true),
                                            at.b, first_.get(), at.a, second_.get(),
                                            scale_number(shape_.dtype, e.added), added,
                                            result_.get(), at.c, result_.get(), &choice_.algorithm,
                                            at.workspace, choice_.workspace, at.stream),
                  "multiply");
}

}  // namespace ricci::cuda

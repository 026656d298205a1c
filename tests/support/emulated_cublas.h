// A cuBLASLt of our own for tests without a GPU: it computes what the library's documentation says,
// column-major, in f64 with one rounding, on the streams of emulated_driver.h. It refuses what the
// library refuses: descriptions that do not fit each other, addresses less aligned than was said,
// an algorithm that it did not propose, too little workspace. It proposes three algorithms: the
// first is slow, the second is not, the third says that it does not work.
//
// This file is not compiled with the tests: a test makes a library of it.
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <dlfcn.h>

namespace {

constexpr int InvalidValue = 7, NotSupported = 15;
constexpr std::uint64_t Mark = 0x52696363;  // of algorithms that were proposed here

enum Type { Real32 = 0, Real64 = 1, Half = 2, Complex32 = 4, Complex64 = 5, BHalf = 14 };
constexpr int ComputeTf32 = 77;
enum Epilogue : std::uint32_t { Default = 1, Relu = 2, Bias = 4, Gelu = 32, Aux = 128 };

using Number = std::complex<double>;

struct Desc {
  int compute = 0, scale = 0;
  std::int32_t transposed[2] = {0, 0};
  std::uint32_t epilogue = Default;
  char* bias = nullptr;
  char* aux = nullptr;
  std::int64_t aux_leading = 0, aux_batch = 0;
};
struct Layout {
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::int32_t batch = 1;
  std::int64_t stride = 0;
};
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t alignment[4] = {256, 256, 256, 256};
};
struct Algorithm {
  std::uint64_t data[8];  // the mark, its number, its workspace, what is aligned how
};
struct Choice {
  Algorithm algorithm;
  std::size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

std::mutex& global = *new std::mutex;
long multiplied[3] = {};  // by algorithm
long asked = 0;           // for proposals
bool relu_drops_nan = false, gelu_is_coarse = false;

std::size_t size_of(int type) {
  switch (type) {
    case Half:
    case BHalf: return 2;
    case Real64:
    case Complex32: return 8;
    case Complex64: return 16;
    default: return 4;
  }
}
template <class T>
T read(const char* at) {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}
template <class T>
void write(char* at, T x) {
  std::memcpy(at, &x, sizeof x);
}
float from_bits(std::uint32_t bits) { return read<float>(reinterpret_cast<const char*>(&bits)); }
std::uint32_t bits_of(float x) { return read<std::uint32_t>(reinterpret_cast<const char*>(&x)); }
// The nearest with so many bits fewer, ties to even.
float shorter(float x, int bits) {
  if (x != x) return x;
  const std::uint32_t all = bits_of(x), half = (1u << (bits - 1)) - 1 + (all >> bits & 1);
  return from_bits((all + half) >> bits << bits);
}

Number load(int type, const char* base, std::int64_t n) {
  const char* at = base + std::int64_t(size_of(type)) * n;
  switch (type) {
    case Real64: return read<double>(at);
    case Half: return double(read<_Float16>(at));
    case BHalf: return from_bits(std::uint32_t(read<std::uint16_t>(at)) << 16);
    case Complex32: return Number(read<float>(at), read<float>(at + 4));
    case Complex64: return Number(read<double>(at), read<double>(at + 8));
    default: return read<float>(at);
  }
}
void store(int type, char* base, std::int64_t n, Number x) {
  char* at = base + std::int64_t(size_of(type)) * n;
  switch (type) {
    case Real64: return write(at, x.real());
    case Half: return write(at, _Float16(float(x.real())));
    case BHalf: {
      const float y = float(x.real());
      return write(at, std::uint16_t(y != y ? 0x7fff : bits_of(shorter(y, 16)) >> 16));
    }
    case Complex32: write(at, float(x.real())); return write(at + 4, float(x.imag()));
    case Complex64: write(at, x.real()); return write(at + 8, x.imag());
    default: return write(at, float(x.real()));
  }
}

double applied(std::uint32_t epilogue, double x) {
  if ((epilogue & Relu) != 0) {
    return relu_drops_nan ? std::fmax(x, 0.0) : (x < 0 ? 0.0 : x);
  }
  if ((epilogue & Gelu) != 0) {
    const double t = std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x));
    return x / 2 * (1 + (gelu_is_coarse ? std::round(t * 1024) / 1024 : t));
  }
  return x;
}

struct Work {
  Desc desc;
  Layout a, b, c, d;
  Number alpha, beta;
  const char *a_at, *b_at, *c_at;
  char* d_at;
  std::uint64_t number;

  Number factor(const Layout& l, const char* at, bool transposed, std::int64_t row,
                std::int64_t column, std::int64_t matrix) const {
    if (transposed) std::swap(row, column);
    const Number x = load(l.type, at, matrix * l.stride + row + column * l.leading);
    if (desc.compute != ComputeTf32) return x;
    return shorter(float(x.real()), 13);
  }
  void run() const {
    if (number == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const std::int64_t depth = desc.transposed[0] != 0 ? a.rows : a.columns;
    for (std::int64_t z = 0; z < d.batch; ++z)
      for (std::int64_t j = 0; j < d.columns; ++j)
        for (std::int64_t i = 0; i < d.rows; ++i) {
          Number sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) {
            sum += factor(a, a_at, desc.transposed[0] != 0, i, k, z) *
                   factor(b, b_at, desc.transposed[1] != 0, k, j, z);
          }
          Number x = alpha * sum;
          if (beta != 0.0) x += beta * load(c.type, c_at, z * c.stride + i + j * c.leading);
          if ((desc.epilogue & Bias) != 0) x += load(d.type, desc.bias, i);
          if ((desc.epilogue & Aux) != 0) {
            store(d.type, desc.aux, z * desc.aux_batch + i + j * desc.aux_leading, x);
          }
          const bool is_complex = d.type == Complex32 || d.type == Complex64;
          store(d.type, d_at, z * d.stride + i + j * d.leading,
                is_complex ? x : Number(applied(desc.epilogue, x.real())));
        }
  }
};

bool fit(const Desc& desc, const Layout& a, const Layout& b, const Layout& c, const Layout& d) {
  const bool ta = desc.transposed[0] != 0, tb = desc.transposed[1] != 0;
  const std::int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns;
  const std::int64_t n = tb ? b.rows : b.columns, other = tb ? b.columns : b.rows;
  for (const Layout* l : {&a, &b, &c, &d}) {
    if (l->leading < l->rows || l->rows <= 0 || l->columns <= 0 || l->batch != a.batch)
      return false;
  }
  const bool small = d.type == Real32 || d.type == Half || d.type == BHalf;
  if ((desc.epilogue & ~std::uint32_t(Default)) != 0 && !small) return false;
  const bool wider = (a.type == Half || a.type == BHalf) && d.type == Real32;
  return k == other && a.type == b.type && c.type == d.type && (a.type == d.type || wider) &&
         d.rows == m && d.columns == n && c.rows == m && c.columns == n;
}

bool has_addresses(const Desc& desc, const Layout& d) {
  if ((desc.epilogue & Bias) != 0 && desc.bias == nullptr) return false;
  if ((desc.epilogue & Aux) != 0 && desc.aux == nullptr) return false;
  if ((desc.epilogue & Aux) == 0) return true;
  return (desc.epilogue & Gelu) != 0 && desc.aux_leading % 8 == 0 && desc.aux_leading >= d.rows;
}

Number scale(int type, const void* at) { return load(type, static_cast<const char*>(at), 0); }

bool is_aligned(const void* at, std::uint64_t bytes) {
  return bytes == 0 || reinterpret_cast<std::uintptr_t>(at) % bytes == 0;
}

}  // namespace

extern "C" {

long emulated_multiplied(int number) {
  const std::lock_guard<std::mutex> lock(global);
  return multiplied[number];
}
long emulated_proposals() {
  const std::lock_guard<std::mutex> lock(global);
  return asked;
}
// What is not written anywhere: what relu makes of NaN, and how exact gelu is.
void emulated_functions(int drops_nan, int is_coarse) {
  relu_drops_nan = drops_nan != 0;
  gelu_is_coarse = is_coarse != 0;
}

std::size_t cublasLtGetVersion() { return 120400; }
// Where no products are wanted it does not start, and a real one is not looked for.
int cublasLtCreate(void** handle) {
  if (getenv("RICCI_EMULATED_PRODUCTS") == nullptr) return NotSupported;
  *handle = &global;
  return 0;
}
int cublasLtMatmulDescCreate(Desc** desc, int compute, int scale) {
  *desc = new Desc;
  (*desc)->compute = compute;
  (*desc)->scale = scale;
  return 0;
}
int cublasLtMatmulDescDestroy(Desc* desc) {
  delete desc;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Desc* d, int attribute, const void* value, std::size_t bytes) {
  const auto take = [&](auto& to) {
    if (bytes != sizeof to) return InvalidValue;
    std::memcpy(&to, value, bytes);
    return 0;
  };
  switch (attribute) {
    case 3: return take(d->transposed[0]);
    case 4: return take(d->transposed[1]);
    case 7: return take(d->epilogue);
    case 8: return take(d->bias);
    case 11: return take(d->aux);
    case 12: return take(d->aux_leading);
    case 13: return take(d->aux_batch);
    default: return InvalidValue;
  }
}
int cublasLtMatrixLayoutCreate(Layout** layout, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading) {
  *layout = new Layout{type, std::int64_t(rows), std::int64_t(columns), leading};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
  delete layout;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* l, int attribute, const void* value,
                                     std::size_t bytes) {
  if (attribute == 5 && bytes == sizeof l->batch)
    std::memcpy(&l->batch, value, bytes);
  else if (attribute == 6 && bytes == sizeof l->stride)
    std::memcpy(&l->stride, value, bytes);
  else
    return InvalidValue;
  return 0;
}
int cublasLtMatmulPreferenceCreate(Preference** preference) {
  *preference = new Preference;
  return 0;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
  delete preference;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* p, int attribute, const void* value,
                                         std::size_t bytes) {
  if (attribute == 1 && bytes == sizeof p->workspace)
    std::memcpy(&p->workspace, value, bytes);
  else if (attribute >= 5 && attribute <= 8 && bytes == sizeof p->alignment[0])
    std::memcpy(&p->alignment[attribute - 5], value, bytes);
  else
    return InvalidValue;
  return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void*, const Desc* desc, const Layout* a, const Layout* b,
                                   const Layout* c, const Layout* d, const Preference* preference,
                                   int wanted, Choice* choices, int* found) {
  const std::lock_guard<std::mutex> lock(global);
  ++asked;
  *found = 0;
  if (!fit(*desc, *a, *b, *c, *d) || !has_addresses(*desc, *d)) return NotSupported;
  for (int n = 0; n < wanted && n < 3; ++n) {
    Choice& choice = choices[n];
    choice = Choice{};
    const auto* p = preference->alignment;
    choice.algorithm = {{Mark, std::uint64_t(n), std::uint64_t(n) * 1024, p[0], p[1], p[2], p[3]}};
    choice.workspace = std::size_t(n) * 1024;
    choice.state = n == 2 ? NotSupported : 0;
    ++*found;
  }
  return 0;
}
int cublasLtMatmulAlgoCheck(void*, const Desc* desc, const Layout* a, const Layout* b,
                            const Layout* c, const Layout* d, const Algorithm* algorithm,
                            Choice* choice) {
  const bool known = algorithm->data[0] == Mark && algorithm->data[1] < 2;
  if (!known || !fit(*desc, *a, *b, *c, *d) || !has_addresses(*desc, *d)) return NotSupported;
  *choice = Choice{};
  choice->workspace = algorithm->data[2];
  return 0;
}
int cublasLtMatmul(void*, const Desc* desc, const void* alpha, const char* a_at, const Layout* a,
                   const char* b_at, const Layout* b, const void* beta, const char* c_at,
                   const Layout* c, char* d_at, const Layout* d, const Algorithm* algorithm,
                   void* workspace, std::size_t workspace_bytes, void* stream) {
  const std::uint64_t* data = algorithm->data;
  if (!fit(*desc, *a, *b, *c, *d) || !has_addresses(*desc, *d)) return InvalidValue;
  if (data[0] != Mark || data[1] > 1 || workspace_bytes < data[2] ||
      (data[2] != 0 && workspace == nullptr)) {
    return InvalidValue;
  }
  const bool wants_bias = (desc->epilogue & Bias) != 0, wants_aux = (desc->epilogue & Aux) != 0;
  if (!is_aligned(a_at, data[3]) || !is_aligned(b_at, data[4]) || !is_aligned(c_at, data[5]) ||
      !is_aligned(d_at, data[6]) ||
      (wants_bias && (desc->bias == nullptr || !is_aligned(desc->bias, 16))) ||
      (wants_aux && (desc->aux == nullptr || !is_aligned(desc->aux, 16)))) {
    return InvalidValue;
  }
  {
    const std::lock_guard<std::mutex> lock(global);
    ++multiplied[data[1]];
  }
  static const auto add = [] {
    const std::string driver = std::string(getenv("RICCI_EMULATED_FOLDER")) + "/libcuda.so.1";
    void* library = dlopen(driver.c_str(), RTLD_NOW | RTLD_NOLOAD);
    return (void (*)(void*, const std::function<void()>*))dlsym(library, "emulated_add");
  }();
  const Work work = {
      *desc, *a,   *b,   *c,   *d,     scale(desc->scale, alpha), scale(desc->scale, beta),
      a_at,  b_at, c_at, d_at, data[1]};
  const std::function<void()> does = [work] { work.run(); };
  add(stream, &does);
  return 0;
}

}  // extern "C"

// CUDA C++ as C++ of the host: what printed kernels use of CUDA, made of fibers. The threads of a
// block run one after another, each until it waits for others; blocks run one after another. Slow,
// and right: a kernel that is wrong on a GPU because of what it computes is wrong here too.
//
// This file is not compiled with the tests: it is put in front of printed kernels.
#include <deque>
#include <utility>
#include <vector>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
// All that blocks share lies in one section, so that it can be measured.
#define __shared__ static __attribute__((section("ricci_shared")))
extern "C" char __start_ricci_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_ricci_shared[] __attribute__((weak, visibility("hidden")));

struct Dim {
  unsigned x;
};
static Dim threadIdx, blockIdx, gridDim, blockDim;
alignas(1024) static unsigned char shared_memory_room[256 * 1024];
#define shared_memory shared_memory_room

namespace fibers {

constexpr int Most = 1024;
constexpr int StackBytes = 64 * 1024;

struct Barrier {
  int arrived = 0;
  unsigned generation = 0;
};
struct Fiber {
  ucontext_t context;
  bool done = true;
};

static Fiber all[Most];
static char* stacks = nullptr;
static ucontext_t scheduler;
static int alive = 0;
static bool moved = false;
static Barrier block_barrier;
static Barrier team_barriers[Most];  // by the first thread of a team
static unsigned char values[Most][16];
static void (*function)(void**) = nullptr;
static void** arguments = nullptr;

static void body() {
  function(arguments);
  all[threadIdx.x].done = true;
  moved = true;
  --alive;
}

static void wait_at(Barrier& barrier, int expected, bool whole_block) {
  const unsigned me = threadIdx.x;
  const unsigned generation = barrier.generation;
  ++barrier.arrived;
  moved = true;
  for (;;) {
    if (barrier.generation != generation) return;
    if (barrier.arrived == (whole_block ? alive : expected)) {
      barrier.arrived = 0;
      ++barrier.generation;
      return;
    }
    swapcontext(&all[me].context, &scheduler);
  }
}

static void wait_for_team(unsigned team) {
  const int first = int(threadIdx.x / 32 * 32) + __builtin_ctz(team);
  wait_at(team_barriers[first], __builtin_popcount(team), false);
}

static bool run_block(int threads) {
  if (stacks == nullptr) stacks = (char*)malloc((size_t)Most * StackBytes);
  alive = threads;
  block_barrier = Barrier();
  for (int t = 0; t < threads; ++t) {
    team_barriers[t] = Barrier();
    all[t].done = false;
    getcontext(&all[t].context);
    all[t].context.uc_stack.ss_sp = stacks + (size_t)t * StackBytes;
    all[t].context.uc_stack.ss_size = StackBytes;
    all[t].context.uc_link = &scheduler;
    makecontext(&all[t].context, body, 0);
  }
  while (alive > 0) {
    moved = false;
    for (int t = 0; t < threads; ++t) {
      if (all[t].done) continue;
      threadIdx.x = unsigned(t);
      swapcontext(&scheduler, &all[t].context);
    }
    if (!moved) return false;  // all wait for what will not come
  }
  return true;
}

template <class... P, size_t... I>
static void call_with(void (*f)(P...), void** a, std::index_sequence<I...>) {
  f(((P)(size_t)a[I])...);
}
template <class... P>
static void call(void (*f)(P...), void** a) {
  call_with(f, a, std::index_sequence_for<P...>());
}

// The same with the addresses of the arguments, and how large each is.
template <class... P, size_t... I>
static void call_at(void (*f)(P...), void** a, std::index_sequence<I...>) {
  f((*(P*)a[I])...);
}
template <class... P>
static void call_addresses(void (*f)(P...), void** a) {
  call_at(f, a, std::index_sequence_for<P...>());
}
template <class... P>
static const size_t* argument_sizes(void (*)(P...)) {
  static const size_t sizes[] = {sizeof(P)..., 0};
  return sizes;
}

// 0 when all blocks have ended.
static int launch(void (*f)(void**), void** a, long blocks, int threads) {
  function = f;
  arguments = a;
  gridDim.x = unsigned(blocks);
  blockDim.x = unsigned(threads);
  for (long b = 0; b < blocks; ++b) {
    blockIdx.x = unsigned(b);
    memset(shared_memory_room, 0xA5, sizeof shared_memory_room);
    if (!run_block(threads)) return 1;
  }
  return 0;
}

}  // namespace fibers

static inline void __syncthreads() { fibers::wait_at(fibers::block_barrier, 0, true); }
static inline void __syncwarp(unsigned team = 0xffffffffu) { fibers::wait_for_team(team); }
template <class T>
static inline T __shfl_sync(unsigned team, T x, int lane) {
  memcpy(fibers::values[threadIdx.x], &x, sizeof x);
  const unsigned me = threadIdx.x;
  fibers::wait_for_team(team);
  T other;
  memcpy(&other, fibers::values[me / 32 * 32 + unsigned(lane)], sizeof other);
  fibers::wait_for_team(team);
  return other;
}
template <class T>
static inline T __shfl_xor_sync(unsigned team, T x, int other) {
  return __shfl_sync(team, x, int(threadIdx.x % 32) ^ other);
}
// Whether it holds for one of a warp, or of a block.
static inline int __any_sync(unsigned team, int holds) {
  int any = 0;
  for (int lane = 0; lane < 32; ++lane) any |= __shfl_sync(team, holds, lane);
  return any;
}
static inline int __syncthreads_or(int holds) {
  static int any = 0;
  __syncthreads();
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  any |= holds != 0;
  __syncthreads();
  return any;
}
static inline unsigned long long atomicAdd(unsigned long long* at, unsigned long long x) {
  const unsigned long long old = *at;
  *at += x;
  return old;
}
static inline unsigned atomicCAS(unsigned* at, unsigned expected, unsigned value) {
  const unsigned old = *at;
  if (old == expected) *at = value;
  return old;
}

// Tensor cores, as the PTX manual lays out the fragments of a warp's lanes: mma.m16n8k16 of small
// floats and mma.m16n8k8 of tf32 with sums in f32, and ldmatrix.x4, whose rows of 16 bytes have to
// be aligned.
namespace fragments {
static unsigned factors[fibers::Most][6];
static const void* rows[fibers::Most];

static inline unsigned short half_of(unsigned pair, int which) {
  return (unsigned short)(pair >> (16 * which));
}
}  // namespace fragments

template <class Small>
static inline void host_multiply_add(float* c, const unsigned* a, unsigned b0, unsigned b1,
                                     Small (*as_small)(unsigned short)) {
  const unsigned me = threadIdx.x, warp = me / 32 * 32, lane = me % 32;
  unsigned* own = fragments::factors[me];
  for (int r = 0; r < 4; ++r) own[r] = a[r];
  own[4] = b0;
  own[5] = b1;
  fibers::wait_for_team(0xffffffffu);
  for (int e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + unsigned(e) / 2 * 8, column = lane % 4 * 2 + unsigned(e) % 2;
    double sum = c[e];
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned a_lane = row % 8 * 4 + k % 8 / 2, b_lane = column * 4 + k % 8 / 2;
      const unsigned pair = fragments::factors[warp + a_lane][row / 8 + k / 8 * 2];
      const unsigned other = fragments::factors[warp + b_lane][4 + k / 8];
      sum += (double)as_small(fragments::half_of(pair, int(k % 2))) *
             (double)as_small(fragments::half_of(other, int(k % 2)));
    }
    c[e] = (float)sum;
  }
  fibers::wait_for_team(0xffffffffu);
}
// mma.m16n8k8 of tf32: of numbers of 32 bits the lowest 13 do not count.
static inline void host_multiply_add_tf32(float* c, const unsigned* a, unsigned b0, unsigned b1) {
  const unsigned me = threadIdx.x, warp = me / 32 * 32, lane = me % 32;
  unsigned* own = fragments::factors[me];
  for (int r = 0; r < 4; ++r) own[r] = a[r];
  own[4] = b0;
  own[5] = b1;
  fibers::wait_for_team(0xffffffffu);
  const auto number = [](unsigned bits) {
    bits &= ~0x1fffu;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
  };
  for (int e = 0; e < 4; ++e) {
    const unsigned row = lane / 4 + unsigned(e) / 2 * 8, column = lane % 4 * 2 + unsigned(e) % 2;
    double sum = c[e];
    for (unsigned k = 0; k < 8; ++k) {
      sum += number(fragments::factors[warp + row % 8 * 4 + k % 4][row / 8 + k / 4 * 2]) *
             number(fragments::factors[warp + column * 4 + k % 4][4 + k / 4]);
    }
    c[e] = (float)sum;
  }
  fibers::wait_for_team(0xffffffffu);
}
// wgmma: 64 rows of results, 16 of each warp; of 16 numbers for each either factors as above or
// rows of shared memory. There the 16 bytes of a row of 128 bytes change places by three bits of
// where it lies. `b` has a row for each column, or, with factors, one for each of the 16.
template <class Small>
static inline void host_warpgroup_product(float* d, int columns, const void* a, const unsigned* f,
                                          const void* b, bool adds,
                                          Small (*as_small)(unsigned short)) {
  const unsigned me = threadIdx.x, warp = me / 32, lane = me % 32;
  for (int r = 0; f != nullptr && r < 4; ++r) fragments::factors[me][r] = f[r];
  __syncthreads();
  const auto shared = [&](const void* from, unsigned row, unsigned column) {
    size_t at = size_t((const unsigned char*)from - shared_memory_room);
    at += row / 8 * 1024 + row % 8 * 128 + column * 2;
    at ^= (at >> 7 & 7) << 4;
    unsigned short x;
    memcpy(&x, shared_memory_room + at, 2);
    return (double)as_small(x);
  };
  for (int e = 0; e < columns / 2; ++e) {
    const unsigned row = lane / 4 + unsigned(e) / 2 % 2 * 8;
    const unsigned column = unsigned(e) / 4 * 8 + lane % 4 * 2 + unsigned(e) % 2;
    double sum = adds ? d[e] : 0;
    for (unsigned k = 0; k < 16; ++k) {
      const unsigned a_lane = warp * 32 + row % 8 * 4 + k % 8 / 2;
      const double x = f == nullptr
                           ? shared(a, warp % 4 * 16 + row, k)
                           : (double)as_small(fragments::half_of(
                                 fragments::factors[a_lane][row / 8 + k / 8 * 2], int(k % 2)));
      sum += x * (f == nullptr ? shared(b, column, k) : shared(b, k, column));
    }
    d[e] = (float)sum;
  }
  __syncthreads();
}
static inline void host_load_matrices(unsigned* to, const void* row, bool transposed) {
  const unsigned me = threadIdx.x, warp = me / 32 * 32, lane = me % 32;
  if ((size_t)row % 16 != 0) abort();
  fragments::rows[me] = row;
  fibers::wait_for_team(0xffffffffu);
  for (unsigned m = 0; m < 4; ++m) {
    unsigned pair = 0;
    for (unsigned which = 0; which < 2; ++which) {
      const unsigned line = transposed ? lane % 4 * 2 + which : lane / 4;
      const unsigned place = transposed ? lane / 4 : lane % 4 * 2 + which;
      const void* from = fragments::rows[warp + 8 * m + line];
      pair |= unsigned(((const unsigned short*)from)[place]) << (16 * which);
    }
    to[m] = pair;
  }
  fibers::wait_for_team(0xffffffffu);
}

// Copies behind a thread's back: nothing is there before the thread has waited for its group, and
// what was there may still be read until then.
namespace copies {
struct Copy {
  void* to;
  const void* from;
  size_t bytes;
  bool real;
};
struct Queue {
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open;
};
static Queue queues[fibers::Most];
}  // namespace copies

static inline void host_copy_async(void* to, const void* from, size_t bytes, bool real) {
  if ((size_t)to % bytes != 0 || (real && (size_t)from % bytes != 0)) abort();
  copies::queues[threadIdx.x].open.push_back({to, from, bytes, real});
}
static inline void host_end_copies() {
  copies::Queue& own = copies::queues[threadIdx.x];
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}
static inline void host_await_copies(int pending) {
  copies::Queue& own = copies::queues[threadIdx.x];
  for (; own.groups.size() > (size_t)pending; own.groups.pop_front()) {
    for (const copies::Copy& c : own.groups.front()) {
      if (c.real) memcpy(c.to, c.from, c.bytes);
      if (!c.real) memset(c.to, 0, c.bytes);
    }
  }
}

template <class To, class From>
static inline To same_bits(From from) {
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}
static inline float __uint_as_float(unsigned x) { return same_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return same_bits<unsigned>(x); }
static inline long long __double_as_longlong(double x) { return same_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return same_bits<double>(x); }
// To the nearest, ties away from zero.
static inline unsigned host_to_tf32(float x) {
  const unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return bits;
  return (bits + 0x1000u) & ~0x1fffu;
}
static inline float host_f16(unsigned short x) { return float(same_bits<_Float16>(x)); }
static inline unsigned short host_to_f16(float x) { return same_bits<unsigned short>(_Float16(x)); }
static inline unsigned short host_to_bf16(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return 0x7fff;
  return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Functions of floats are rounded once.
#define RICCI_HOST_FUNCTION(name)                                                            \
  static inline float host_##name##f(float x) { return (float)__builtin_##name((double)x); } \
  static inline double host_##name(double x) { return __builtin_##name(x); }
#define RICCI_HOST_FUNCTION2(name)                        \
  static inline float host_##name##f(float x, float y) {  \
    return (float)__builtin_##name((double)x, (double)y); \
  }                                                       \
  static inline double host_##name(double x, double y) { return __builtin_##name(x, y); }
RICCI_HOST_FUNCTION(tanh);
RICCI_HOST_FUNCTION(exp);
RICCI_HOST_FUNCTION(log);
RICCI_HOST_FUNCTION(sqrt);
RICCI_HOST_FUNCTION(fabs);
RICCI_HOST_FUNCTION(sin);
RICCI_HOST_FUNCTION(cos);
RICCI_HOST_FUNCTION(tan);
RICCI_HOST_FUNCTION(atan);
RICCI_HOST_FUNCTION(rint);
RICCI_HOST_FUNCTION(erf);
RICCI_HOST_FUNCTION(erfc);
RICCI_HOST_FUNCTION(expm1);
RICCI_HOST_FUNCTION(log1p);
RICCI_HOST_FUNCTION(exp2);
RICCI_HOST_FUNCTION(log2);
RICCI_HOST_FUNCTION(sinh);
RICCI_HOST_FUNCTION(cosh);
RICCI_HOST_FUNCTION(asin);
RICCI_HOST_FUNCTION(acos);
RICCI_HOST_FUNCTION(asinh);
RICCI_HOST_FUNCTION(acosh);
RICCI_HOST_FUNCTION(atanh);
RICCI_HOST_FUNCTION(floor);
RICCI_HOST_FUNCTION(ceil);
RICCI_HOST_FUNCTION(trunc);
RICCI_HOST_FUNCTION2(pow);
RICCI_HOST_FUNCTION2(fmod);
RICCI_HOST_FUNCTION2(atan2);
RICCI_HOST_FUNCTION2(hypot);
RICCI_HOST_FUNCTION2(fmax);
RICCI_HOST_FUNCTION2(fmin);
RICCI_HOST_FUNCTION2(copysign);
static inline float host_rsqrtf(float x) { return (float)(1 / __builtin_sqrt((double)x)); }
static inline double host_rsqrt(double x) { return 1 / __builtin_sqrt(x); }
#define tanh host_tanh
#define tanhf host_tanhf
#define exp host_exp
#define expf host_expf
#define log host_log
#define logf host_logf
#define sqrt host_sqrt
#define sqrtf host_sqrtf
#define rsqrt host_rsqrt
#define rsqrtf host_rsqrtf
#define fabs host_fabs
#define fabsf host_fabsf
#define sin host_sin
#define sinf host_sinf
#define cos host_cos
#define cosf host_cosf
#define tan host_tan
#define tanf host_tanf
#define atan host_atan
#define atanf host_atanf
#define rint host_rint
#define rintf host_rintf
#define erf host_erf
#define erff host_erff
#define erfc host_erfc
#define erfcf host_erfcf
#define expm1 host_expm1
#define expm1f host_expm1f
#define log1p host_log1p
#define log1pf host_log1pf
#define exp2 host_exp2
#define exp2f host_exp2f
#define log2 host_log2
#define log2f host_log2f
#define sinh host_sinh
#define sinhf host_sinhf
#define cosh host_cosh
#define coshf host_coshf
#define asin host_asin
#define asinf host_asinf
#define acos host_acos
#define acosf host_acosf
#define asinh host_asinh
#define asinhf host_asinhf
#define acosh host_acosh
#define acoshf host_acoshf
#define atanh host_atanh
#define atanhf host_atanhf
#define floor host_floor
#define floorf host_floorf
#define ceil host_ceil
#define ceilf host_ceilf
#define trunc host_trunc
#define truncf host_truncf
#define pow host_pow
#define powf host_powf
#define fmod host_fmod
#define fmodf host_fmodf
#define atan2 host_atan2
#define atan2f host_atan2f
#define hypot host_hypot
#define hypotf host_hypotf
#define fmax host_fmax
#define fmaxf host_fmaxf
#define fmin host_fmin
#define fminf host_fminf
#define copysign host_copysign
#define copysignf host_copysignf
#define fma __builtin_fma
#define fmaf __builtin_fmaf
#define ilogb __builtin_ilogb
#define scalbn __builtin_scalbn

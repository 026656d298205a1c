// reduce (<text>:3:3)
// 4 blocks of 512 threads
typedef signed char i8;
typedef unsigned char u8;
typedef long long i64;
typedef unsigned long long u64;

struct ricci_fault {
  unsigned kind;
  i64 value;
  i64 limit;
  unsigned origin;
  const volatile unsigned* stop;
};

// k0
extern "C" __global__ void __launch_bounds__(512)
kernel0(const float* a0, float* a2, void* scratch, ricci_fault* fault, unsigned origin) {
  const int strip = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool inside = int(blockIdx.x) * 32 + lane < 120;
  const int column = inside ? int(blockIdx.x) * 32 + lane : 0;
  const int part = column % 120;
  const int slot = column / 120;
  const int i1 = part;
  const int first = 0, last = 100;
  float n0;
  n0 = 0.0f;
  #pragma unroll 4
  for (int row = inside ? first + strip : last; row < last; row += 16) {
    const int i0 = row;
    const float r0 = a0[120 * i0 + i1];
    n0 = (n0 + r0);
  }
  __shared__ float n0_strips[16][32];
  n0_strips[strip][lane] = n0;
  __syncthreads();
  if (strip != 0 || !inside) return;
  #pragma unroll
  for (int s = 1; s < 16; ++s) {
    n0 = (n0 + n0_strips[s][lane]);
  }
  a2[slot * 120 + part] = n0;
}


// reduce (<text>:3:3)
// 1 blocks of 64 threads
typedef signed char i8;
typedef unsigned char u8;
typedef long long i64;
typedef unsigned long long u64;

struct ricci_fault {
  unsigned kind;
  i64 value;
  i64 limit;
  unsigned origin;
  const volatile unsigned* stop;
};

// k1
extern "C" __global__ void __launch_bounds__(64)
kernel1(const float* a0, float* a2, void* scratch, ricci_fault* fault, unsigned origin) {
  const int strip = threadIdx.x / 32, lane = threadIdx.x % 32;
  const bool inside = int(blockIdx.x) * 32 + lane < 12;
  const int column = inside ? int(blockIdx.x) * 32 + lane : 0;
  const int part = column % 12;
  const int slot = column / 12;
  const int i1 = part;
  const int first = 0, last = 10;
  float n0;
  n0 = 0.0f;
  #pragma unroll 4
  for (int row = inside ? first + strip : last; row < last; row += 2) {
    const int i0 = row;
    const float r0 = a0[12 * i0 + i1];
    n0 = (n0 + r0);
  }
  __shared__ float n0_strips[2][32];
  n0_strips[strip][lane] = n0;
  __syncthreads();
  if (strip != 0 || !inside) return;
  #pragma unroll
  for (int s = 1; s < 2; ++s) {
    n0 = (n0 + n0_strips[s][lane]);
  }
  a2[slot * 12 + part] = n0;
}

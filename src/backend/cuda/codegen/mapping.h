// How a kernel's work is laid out over the threads of a GPU. No bit depends on anything but the
// kernel: the same kernel is always laid out alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ricci/compiler/loop/kernel.h"

namespace ricci::cuda {

/// A place of a row that waits in registers: stored in one stage and read in later ones, or read in
/// several.
struct Held {
  DType dtype = DType::F32;
  loop::Access place;
  bool stored = false;         ///< else only read
  std::size_t first_read = 0;  ///< only read: the stage that fills it
};

struct Mapping {
  enum class Kind : std::uint8_t {
    Points,   ///< a thread has some neighbours of a row, nothing more
    Tiles,    ///< the same, one point each: a block has a square of the last axis and another one,
              ///< along which some arrays lie as others do along the last
    Columns,  ///< a thread walks down the accumulated rows with some neighbours
    Rows,     ///< a team of threads has a row, or one after another those of a chunk
  };
  Kind kind = Kind::Points;
  int threads = 256;        ///< of a block
  int team = 1;             ///< Rows: threads that share a row: a power of two, up to a block
  int lanes = 1;            ///< neighbours along the last axis that a thread handles together
  int strips = 1;           ///< Columns: threads of a block that share the rows of a column; Rows:
                            ///< teams of a block that share those of a chunk
  int packs = 0;            ///< Rows: how many times; 0: in a loop, and rows wait in memory
  bool in_shared = false;   ///< Rows in a loop: what is held waits in memory that threads share
  bool wide = false;        ///< places need 64 bits
  std::size_t across = 0;   ///< Tiles: the other axis
  std::int64_t units = 1;   ///< points, columns, rows or chunks there are
  std::int64_t blocks = 1;  ///< they are shared out to
  std::vector<Held> held;   ///< Rows in a loop hold nothing, unless in shared memory

  [[nodiscard]] int teams() const { return threads / team; }
};

[[nodiscard]] Mapping map_kernel(const loop::Kernel& kernel);
/// For threads that are given the points of a kernel by others, `most_lanes` neighbours at once or
/// fewer. Nothing where elements have to do with each other.
[[nodiscard]] std::optional<Mapping> map_given_points(const loop::Kernel& kernel, int most_lanes);

/// Can `lanes` neighbours from a place that is a multiple of it be read or written at once?
[[nodiscard]] bool is_packed(const loop::Kernel& kernel, const loop::Access& access, int lanes);
[[nodiscard]] bool same_place(const loop::Access& a, const loop::Access& b);
/// Has it room to be added up in blocks of rows?
[[nodiscard]] bool in_blocks(const loop::Kernel& kernel, const loop::Accumulator& acc);
inline constexpr std::int64_t BlockRows = 128;
inline constexpr int TileSide = 16;
/// What a block may use of the memory that its threads share: two blocks find room on one
/// multiprocessor, and all GPUs since the first with small floats have it. What kernels declare
/// comes on top.
inline constexpr std::int64_t MostSharedBytes = 99 * 1024 - 768;

}  // namespace ricci::cuda

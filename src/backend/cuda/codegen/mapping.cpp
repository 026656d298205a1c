#include "backend/cuda/codegen/mapping.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>

#include "ricci/support/checked.h"
#include "ricci/support/error.h"

#include "loop/reach.h"
#include "type/small_dtype.h"

namespace ricci::cuda {
namespace {

using loop::Access;
using loop::Code;
using loop::Instr;
using loop::Kernel;
using loop::Reg;

constexpr std::int64_t EnoughThreads = 132 * 512;  // keep a large GPU busy
constexpr int LongestTeam = 1024;
constexpr std::int64_t MostStaticBytes = 32 * 1024;  // of shared memory

const Instr& instr(const Kernel& k, Reg r) { return k.code[static_cast<std::size_t>(r)]; }
bool has_row_axes(const Kernel& k) { return k.outer < k.extents.size(); }

template <class F>
void for_element_accesses(const Kernel& k, F&& f) {
  for (const loop::Stage& stage : k.stages) {
    if (!stage.per_element) continue;
    for (const Reg r : stage.code) {
      const Instr& i = instr(k, r);
      if (i.code == Code::Load && i.per_element) f(i.access);
    }
    for (const loop::Store& s : stage.stores) f(s.access);
  }
}

// As many as 16 bytes have of the widest element that lies in packs; none where nothing does.
int lanes_for(const Kernel& k) {
  if (!has_row_axes(k)) return 1;
  std::int64_t widest = 0;
  for_element_accesses(k, [&](const Access& a) {
    if (a.strides.back() != 1) return;
    widest = std::max(widest, size_of(k.arguments[static_cast<std::size_t>(a.argument)].dtype));
  });
  if (widest == 0) return 1;
  int lanes = static_cast<int>(std::max<std::int64_t>(16 / widest, 1));
  while (lanes > 1 && k.extents.back() % lanes != 0) lanes /= 2;
  const auto any_packed = [&](int n) {
    bool any = false;
    for_element_accesses(k, [&](const Access& a) { any = any || is_packed(k, a, n); });
    return any;
  };
  while (lanes > 1 && !any_packed(lanes)) lanes /= 2;
  return lanes;
}

bool needs_wide_places(const Kernel& k) {
  constexpr std::int64_t Most = std::numeric_limits<std::int32_t>::max() / 2;
  bool wide = k.rows() * std::max<std::int64_t>(k.row_elements(), 1) > Most;
  const auto look = [&](const loop::Layout& at, const std::vector<loop::Term>& terms) {
    loop::Reach reach(at.offset);
    for (std::size_t a = 0; a < at.strides.size(); ++a) {
      if (k.extents[a] > 0) reach.add(at.strides[a], k.extents[a]);
    }
    for (const loop::Term& t : terms) {
      if (t.limit > 0) reach.add(t.stride, t.limit);
    }
    wide = wide || !reach.is_known() || reach.low() < -Most || reach.high() > Most;
  };
  loop::for_each_access(k, [&](const Access& a) {
    look({a.offset, a.strides}, a.terms);
    for (const loop::Guard& g : a.guards) {
      look({g.offset, g.strides}, {});
      wide = wide || g.limit > Most;
    }
  });
  for (const loop::Accumulator& acc : k.accumulators) {
    const std::int64_t length = acc.per_element ? k.row_elements() : 1;
    wide = wide || k.kept_rows() * k.chunks * length > Most;
  }
  return wide;
}

// Values that wait for later stages, and what several stages read.
std::vector<Held> find_held(const Kernel& k, bool reads_too) {
  std::vector<Held> out;
  const auto known = [&](const Access& place) {
    return std::ranges::any_of(out, [&](const Held& h) { return same_place(h.place, place); });
  };
  const auto argument = [&](const Access& a) -> const loop::Argument& {
    return k.arguments[static_cast<std::size_t>(a.argument)];
  };
  std::vector<std::pair<std::size_t, const Instr*>> loads;
  for (std::size_t s = 0; s < k.stages.size(); ++s) {
    for (const Reg r : k.stages[s].code) {
      const Instr& i = instr(k, r);
      if (i.code == Code::Load && i.per_element) loads.emplace_back(s, &i);
    }
  }
  for (std::size_t s = 0; s < k.stages.size(); ++s) {
    for (const loop::Store& store : k.stages[s].stores) {
      if (!k.stages[s].per_element || known(store.access)) continue;
      const bool wanted = std::ranges::any_of(loads, [&](const auto& load) {
        return load.first > s && same_place(load.second->access, store.access);
      });
      if (wanted) out.push_back({argument(store.access).dtype, store.access, true, 0});
    }
  }
  if (!reads_too) return out;
  for (auto a = loads.begin(); a != loads.end(); ++a) {
    const Access& place = a->second->access;
    if (!place.terms.empty() || !place.guards.empty() || known(place)) continue;
    if (argument(place).role != loop::ArgumentRole::In) continue;
    if (!has_row_axes(k) || place.strides.back() == 0) continue;  // neighbours share it
    const bool again = std::ranges::any_of(std::next(a), loads.end(), [&](const auto& b) {
      return b.first > a->first && same_place(b.second->access, place);
    });
    if (again) out.push_back({argument(place).dtype, place, false, a->first});
  }
  return out;
}

// Do all rows read the same elements?
bool is_of_all_rows(const Kernel& k, const Access& place) {
  for (std::size_t a = 0; a < k.outer; ++a) {
    if (k.extents[a] > 1 && place.strides[a] != 0) return false;
  }
  return k.rows() > 1;
}

// What one element of a row takes of a thread's registers, in bytes.
std::int64_t held_bytes(const Kernel& k, const std::vector<Held>& held) {
  std::int64_t bytes = 0;
  for (const Held& h : held) bytes += size_of(h.dtype);
  for (const loop::Accumulator& acc : k.accumulators) {
    if (acc.per_element) bytes += size_of(widened(acc.dtype)) * (in_blocks(k, acc) ? 2 : 1);
  }
  return bytes;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void share_out(Mapping& m) {
  m.blocks = std::max<std::int64_t>(ceil_div(m.units * m.strips, m.teams()), 1);
}

constexpr std::int64_t FewRows = 4;  // fewer are not worth a team of their own

// How many teams of a block share the rows of a chunk: two blocks then find room on one
// multiprocessor, as far as can be told from what a thread holds.
int strips_of_rows(const Kernel& k, const Mapping& m) {
  constexpr std::int64_t Registers = 64 * 1024;
  constexpr std::int64_t OtherRegisters = 48;
  constexpr std::int64_t MostThreads = 512;
  const std::int64_t held = std::int64_t{m.packs} * m.lanes * held_bytes(k, m.held) / 4;
  const std::int64_t threads = std::min(Registers / (2 * (held + OtherRegisters)), MostThreads);
  const std::int64_t rows = k.accumulated_rows() / k.chunks;
  const std::int64_t wanted = ceil_div(EnoughThreads, m.units * m.team);
  std::int64_t total = 1;  // bytes of the longest, which all but one leave in shared memory
  for (const loop::Accumulator& acc : k.accumulators) {
    const std::int64_t length = acc.per_element ? k.row_elements() : 1;
    total = std::max(total, length * size_of(widened(acc.dtype)));
  }
  const std::int64_t most = std::min(threads / m.team, 1 + MostStaticBytes / total);
  const std::int64_t strips =
      std::clamp<std::int64_t>(std::min({most, rows / FewRows, wanted}), 1, most);
  // Whole warps, where that takes no more than there is room for.
  const std::int64_t whole = strips > 1 ? std::max<std::int64_t>(32 / m.team, 1) : 1;
  return static_cast<int>(std::min(ceil_div(strips, whole) * whole, most));
}

// A block that needs all registers of a multiprocessor waits for memory alone. Where its rows fit
// in shared memory, two blocks find room, and one works while the other waits.
bool waits_in_shared(const Kernel& k, const Mapping& m) {
  constexpr std::int64_t ManyBytes = 48;  // of a thread
  if (m.held.empty() || !k.accumulators.empty()) return false;
  const std::int64_t each = held_bytes(k, m.held);
  return (m.packs == 0 || std::int64_t{m.packs} * m.lanes * each > ManyBytes) &&
         k.row_elements() * each <= MostSharedBytes;
}

// Longer teams where there are few rows, and where a row would take too many registers. A chunk of
// rows is shared out to several teams instead where each fits in a warp: then none waits for
// others.
void map_rows(const Kernel& k, Mapping& m) {
  constexpr std::int64_t MostBytes = 256;  // 64 registers
  constexpr std::int64_t FewBytes = 160;
  constexpr std::int64_t MostBytesOfWarps = 640;
  constexpr std::int64_t MostPacks = 16;
  constexpr int Warp = 32;
  m.kind = Mapping::Kind::Rows;
  m.units = k.accumulators.empty() ? k.rows() : k.kept_rows() * k.chunks;
  const std::int64_t row = std::max<std::int64_t>(k.row_elements(), 1);
  while (m.lanes > 1 && row / m.lanes < 8 && row > 4) m.lanes /= 2;
  const std::int64_t vectors = std::max<std::int64_t>(row / m.lanes, 1);
  const auto power = [](std::int64_t n) {
    return static_cast<int>(
        std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
  };
  m.held = find_held(k, true);
  // What threads do together costs each the same, whatever it has of the row.
  const std::int64_t elements = 32 * held_bytes(k, m.held) <= FewBytes ? 32 : 16;
  const std::int64_t each = std::clamp<std::int64_t>(elements / m.lanes, 1, 8);  // packs a thread
  const auto fits = [&](int team, std::int64_t most) {
    const std::int64_t packs = ceil_div(vectors, team);
    return packs <= MostPacks && packs * m.lanes * held_bytes(k, m.held) <= most;
  };
  const auto fits_team = [&](int team) {
    return fits(team, team > 512 ? MostBytes / 2 : MostBytes);
  };
  // What all rows read alike is near when a row takes all the room there is.
  const auto hold_own = [&] {
    std::erase_if(m.held, [&](const Held& h) { return !h.stored && is_of_all_rows(k, h.place); });
  };
  if (!fits_team(LongestTeam)) hold_own();
  const std::int64_t wanted = row <= 4 ? 1 : ceil_div(vectors, each);
  m.team = std::min(power(wanted), LongestTeam);
  const bool chunked = !k.accumulators.empty() && m.units * m.team < EnoughThreads &&
                       std::ranges::none_of(k.accumulators, &loop::Accumulator::running);
  if (chunked && (m.team <= Warp || fits(Warp, MostBytesOfWarps))) {
    m.team = std::min(m.team, Warp);
    // Small rows of few chunks leave threads without work: then each has less of a row.
    const std::int64_t strips =
        std::max<std::int64_t>(k.accumulated_rows() / k.chunks / FewRows, 1);
    while (m.team < Warp && m.team < vectors && m.units * m.team * strips < EnoughThreads)
      m.team *= 2;
    m.packs = static_cast<int>(ceil_div(vectors, m.team));
    if (fits(m.team, MostBytesOfWarps)) m.strips = strips_of_rows(k, m);
  }
  if (m.strips > 1) {
    m.threads = m.team * m.strips;
    share_out(m);
    return;
  }
  while (m.team < LongestTeam && m.team < vectors && m.units * m.team < EnoughThreads) m.team *= 2;
  if (m.team > 32 && m.team < 64) m.team = 64;
  while (m.team < LongestTeam && !fits_team(m.team)) m.team *= 2;
  if (m.team == LongestTeam) hold_own();
  m.packs = fits_team(m.team) ? static_cast<int>(ceil_div(vectors, m.team)) : 0;
  if (m.team == LongestTeam && waits_in_shared(k, m)) {
    m.in_shared = true;
    m.team /= 2;
    m.packs = 0;
  } else if (m.packs == 0) {
    m.held.clear();
  }
  m.threads = m.team > 32 ? m.team : 128;
  share_out(m);
}

// The axis along which an array lies that is read or written across its rows.
std::optional<std::size_t> axis_across(const Kernel& k) {
  constexpr std::int64_t FewPoints = 4096;
  const std::size_t last = k.extents.size() - 1;
  if (!has_row_axes(k) || last == 0 || k.extents[last] < TileSide) return std::nullopt;
  if (k.rows() * k.row_elements() < FewPoints) return std::nullopt;
  std::optional<std::size_t> across;
  for_element_accesses(k, [&](const Access& a) {
    if (a.strides[last] == 0 || a.strides[last] == 1) return;
    for (std::size_t axis = 0; axis < last; ++axis) {
      if (a.strides[axis] == 1 && k.extents[axis] >= TileSide) across = axis;
    }
  });
  return across;
}

void map_tiles(const Kernel& k, Mapping& m) {
  m.kind = Mapping::Kind::Tiles;
  m.lanes = 1;
  m.threads = TileSide * TileSide;
  m.blocks = 1;
  for (std::size_t a = 0; a < k.extents.size(); ++a) {
    const bool side = a == m.across || a + 1 == k.extents.size();
    m.blocks *= side ? ceil_div(k.extents[a], TileSide) : k.extents[a];
  }
  m.units = m.blocks;
}

// A few columns of many rows are walked down by several threads each, one every so many rows.
void map_columns(const Kernel& k, Mapping& m) {
  constexpr int Wide = 32;        // columns of a block
  constexpr int MostStrips = 16;  // of a column
  m.kind = Mapping::Kind::Columns;
  m.threads = 128;
  const std::int64_t rows = k.accumulated_rows() / k.chunks;
  std::int64_t bytes = 0;
  bool running = false;
  for (const loop::Accumulator& acc : k.accumulators) {
    bytes += size_of(widened(acc.dtype)) * m.lanes * Wide;
    running = running || acc.running;
  }
  while (!running && m.strips < MostStrips && m.units * m.strips < EnoughThreads &&
         rows / m.strips >= 8 && 2 * m.strips * bytes <= MostStaticBytes) {
    m.strips *= 2;
  }
  if (m.strips > 1) m.threads = Wide * m.strips;
}

}  // namespace

bool same_place(const Access& a, const Access& b) {
  return a.argument == b.argument && a.offset == b.offset && a.strides == b.strides &&
         a.terms.empty() && b.terms.empty() && a.guards == b.guards;
}

bool in_blocks(const Kernel& k, const loop::Accumulator& acc) {
  const std::int64_t length = acc.per_element ? k.row_elements() : 1;
  return !acc.running && k.arguments[static_cast<std::size_t>(acc.local)].elements >=
                             2 * std::max<std::int64_t>(length, 1);
}

bool is_packed(const Kernel& k, const Access& access, int lanes) {
  if (!has_row_axes(k) || !access.guards.empty() || access.strides.back() != 1) return false;
  if (access.offset % lanes != 0) return false;
  for (std::size_t a = 0; a + 1 < access.strides.size(); ++a) {
    if (k.extents[a] > 1 && access.strides[a] % lanes != 0) return false;
  }
  return std::ranges::all_of(access.terms,
                             [&](const loop::Term& t) { return t.stride % lanes == 0; });
}

Mapping map_kernel(const Kernel& k) {
  Mapping m;
  m.lanes = lanes_for(k);
  m.wide = needs_wide_places(k);
  const std::int64_t row = k.row_elements();
  // What is done once a row is done for rows without elements too.
  if (!k.reductions.empty() || row == 0) {
    map_rows(k, m);
    return m;
  }
  const std::int64_t rows = k.accumulators.empty() ? k.rows() : k.kept_rows() * k.chunks;
  while (m.lanes > 1 && rows * row / m.lanes < EnoughThreads) m.lanes /= 2;
  m.units = rows * row / m.lanes;
  m.held = find_held(k, false);
  if (!k.accumulators.empty()) {
    map_columns(k, m);
  } else if (const auto across = axis_across(k)) {
    m.across = *across;
    map_tiles(k, m);
    return m;
  }
  share_out(m);
  return m;
}

std::optional<Mapping> map_given_points(const Kernel& k, int most_lanes) {
  if (!k.reductions.empty() || !k.accumulators.empty() || k.rows() * k.row_elements() == 0) {
    return std::nullopt;
  }
  Mapping m;
  m.lanes = std::min(lanes_for(k), most_lanes);
  m.wide = needs_wide_places(k);
  m.units = k.rows() * k.row_elements() / m.lanes;
  m.held = find_held(k, false);
  return m;
}

}  // namespace ricci::cuda

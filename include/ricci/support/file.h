// Whole files: reading them within a limit, and writing them so that readers see the old file or
// the new one, whatever happens in between.
//
//   std::vector<std::byte> bytes = read_file("net.ric");
//   write_file("report.txt", text);
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci {

/// The largest file that is read unless a reader says otherwise: 64 GiB.
inline constexpr std::int64_t MaxFileBytes = std::int64_t{1} << 36;

/// All bytes of a file (or pipe). UserError(file) when it cannot be read or has more than
/// `max_bytes`, UserError(out_of_memory) when the machine has no room for it.
[[nodiscard]] std::vector<std::byte> read_file(const std::string& path,
                                               std::int64_t max_bytes = MaxFileBytes);

/// Is there something of this name, or a folder? A link is what it leads to. UserError(file) where
/// the system cannot say: the name is too long, links lead in a circle, a folder may not be
/// searched.
[[nodiscard]] bool is_there(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);
/// A plain file, or a link to one; pipes and devices are none, nor is what cannot be looked at.
[[nodiscard]] bool is_plain_file(const std::string& path) noexcept;

/// A file that appears under its name only when it is complete: bytes go to a new file in the same
/// folder, whose name nobody can guess, and which `commit` syncs and renames. Without `commit`
/// nothing is left behind; a process that is killed leaves a file `.ricci-….tmp`, which is in
/// nobody's way. Devices and pipes are written directly. UserError(file) when something fails.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  struct Target;
  std::unique_ptr<Target> target_;
};

/// Writes a file in one go, atomically.
void write_file(const std::string& path, std::span<const std::byte> bytes);
void write_file(const std::string& path, std::string_view text);

}  // namespace ricci

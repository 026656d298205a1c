// A folder of compiled kernels under attack: files are changed as a script of bytes says, then
// every kernel is looked up. What is found must be what was stored under that key, and what is
// stored again must be found.
//
// So that there are thousands of folders a second: of an object that was loaded before, byte for
// byte, the code is kept, only files a script touched are put back behind it, and one script in 16
// stores again, which takes longer than all else.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ricci/support/hash.h"

#include "backend/cpu/codegen/object_cache.h"

namespace ricci::testing {

class CacheFolderAttack {
 public:
  CacheFolderAttack() {
    std::string name = (std::filesystem::temp_directory_path() / "ricci_cache_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the attack");
    folder_ = name;
    for (std::size_t o = 0; o < objects_.size(); ++o) objects_[o] = object_of(o);
    store();
    for (const auto& e : std::filesystem::directory_iterator(folder_)) {
      whole_[e.path().filename().string()] = contents(e.path());
    }
  }
  ~CacheFolderAttack() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  CacheFolderAttack(const CacheFolderAttack&) = delete;
  CacheFolderAttack& operator=(const CacheFolderAttack&) = delete;

  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// The files as they were stored, by name.
  [[nodiscard]] const std::map<std::string, std::string>& whole() const { return whole_; }

  /// Runs a script on the whole folder.
  void run(std::span<const std::uint8_t> script) {
    for (const std::string& name : std::exchange(touched_, {})) put_back(name);
    Script in{script};
    while (!in.script.empty()) change(in);
    (void)look_up();
    if (Hasher().add(std::as_bytes(script)).value() % 16 != 0) return;
    remove_folders();
    store();
    if (look_up() != Objects * KernelsEach)
      throw std::runtime_error("what was stored is not found");
    restore();  // of files left behind there must be none
  }

  /// How many kernels are found; std::runtime_error when one of them is another's.
  std::size_t look_up() {
    const ObjectCache cache(folder_, MaxBytes,
                            [this](std::span<const char> object) { return loaded(object); });
    std::vector<std::string> keys;
    for (std::size_t k = 0; k < Objects * KernelsEach; ++k) keys.push_back(key_of(k));
    const std::vector<ObjectCache::Hit> hits = cache.load(keys);
    std::size_t found = 0;
    for (std::size_t k = 0; k < hits.size(); ++k) {
      if (hits[k].code == nullptr) continue;
      ++found;
      auto* f = hits[k].code->function<std::int64_t()>(hits[k].symbol);
      if (f() != answer_of(k)) throw std::runtime_error("a kernel is another's");
    }
    return found;
  }

  /// Puts back all files that were stored, and nothing else.
  void restore() const {
    for (const auto& e : std::filesystem::directory_iterator(folder_)) {
      const auto file = whole_.find(e.path().filename().string());
      const std::filesystem::file_status status = e.symlink_status();
      const bool good = file != whole_.end() &&
                        status.type() == std::filesystem::file_type::regular &&
                        status.permissions() == static_cast<std::filesystem::perms>(0600) &&
                        contents(e.path()) == file->second;
      if (!good) std::filesystem::remove_all(e.path());
    }
    for (const auto& [name, text] : whole_) {
      if (::access((folder_ + "/" + name).c_str(), F_OK) != 0) write(name, text);
    }
  }

 private:
  using ObjectCache = cpu::ObjectCache;
  static constexpr std::size_t Objects = 2;
  static constexpr std::size_t KernelsEach = 2;
  static constexpr std::int64_t MaxBytes = 1 << 20;

  // A script is read byte by byte; at its end there are zeros.
  struct Script {
    std::span<const std::uint8_t> script;
    std::size_t next() {
      if (script.empty()) return 0;
      const std::uint8_t byte = script.front();
      script = script.subspan(1);
      return byte;
    }
    std::size_t below(std::size_t n) {
      const std::size_t high = next();
      return n == 0 ? 0 : (high * 256 + next()) % n;
    }
  };

  std::shared_ptr<const cpu::JitCode> loaded(std::span<const char> object) {
    std::shared_ptr<const cpu::JitCode>& code = loaded_[{object.begin(), object.end()}];
    if (code == nullptr) code = cpu::jit_load(object);
    return code;
  }

  static std::string key_of(std::size_t kernel) {
    return fmt::format("kernel {}\nof text", kernel);
  }
  static std::int64_t answer_of(std::size_t kernel) {
    return 1000 + static_cast<std::int64_t>(kernel);
  }

  // Both objects have the same names in them, as objects of kernels do.
  static std::vector<char> object_of(std::size_t object) {
    std::string text;
    for (std::size_t k = 0; k < KernelsEach; ++k) {
      text += fmt::format("define i64 @k{}() {{ ret i64 {} }}\n", k,
                          answer_of(object * KernelsEach + k));
    }
    cpu::JitOptions options;
    options.keep_object = true;
    return cpu::jit_compile_text(text, options)->kept().object;
  }

  void store() const {
    const ObjectCache cache(folder_, MaxBytes);
    for (std::size_t o = 0; o < Objects; ++o) {
      std::vector<ObjectCache::Entry> entries;
      for (std::size_t k = 0; k < KernelsEach; ++k) {
        entries.push_back({key_of(o * KernelsEach + k), fmt::format("k{}", k)});
      }
      cache.store(entries, objects_[o]);
    }
  }

  void change(Script& in) {
    const auto file = [&] {
      return std::next(whole_.begin(), static_cast<std::ptrdiff_t>(in.below(whole_.size())));
    };
    const auto chosen = file();
    const std::string path = folder_ + "/" + chosen->first;
    touched_.insert(chosen->first);
    std::string text = chosen->second;
    switch (in.next() % 12) {
      case 0: text.resize(in.below(text.size() + 1)); break;
      case 1: {
        const std::size_t more = in.below(300);  // the length's bytes come before the letter's
        text.append(more, static_cast<char>(in.next()));
        break;
      }
      case 2: text = std::string(in.script.begin(), in.script.end()); break;
      case 3: text = file()->second; break;
      case 4: return plant(path, [&] { return ::mkfifo(path.c_str(), 0600); });
      case 5: return plant(path, [&] { return ::mkdir(path.c_str(), 0700); });
      case 6: {
        const std::string& name = file()->first;
        touched_.insert(name);  // by who changes the link's rights
        const std::string target = folder_ + "/" + name;
        return plant(path, [&] { return ::symlink(target.c_str(), path.c_str()); });
      }
      case 7: (void)::chmod(path.c_str(), static_cast<mode_t>(in.below(01000))); return;
      case 8: std::filesystem::remove_all(path); return;
      case 9: return exchange(text, file()->second, in, path);
      default:
        for (std::size_t n = in.next() % 8 + 1; n > 0 && !text.empty(); --n) {
          char& at = text[in.below(text.size())];
          at = static_cast<char>(at ^ static_cast<char>(1U << (in.next() % 8)));
        }
    }
    std::filesystem::remove_all(path);
    write(chosen->first, text);
  }

  // A part of one file in another.
  void exchange(std::string text, const std::string& other, Script& in,
                const std::string& path) const {
    const std::size_t at = in.below(other.size() + 1);
    const std::size_t size = in.below(other.size() - at + 1);
    text.replace(std::min(at, text.size()), size, other.substr(at, size));
    std::filesystem::remove_all(path);
    write_at(path, text);
  }

  template <class Make>
  static void plant(const std::string& path, Make&& make) {
    std::filesystem::remove_all(path);
    if (make() != 0) throw std::runtime_error("cannot plant " + path);
  }

  // A folder under a file's name stays in its way.
  void remove_folders() const {
    for (const auto& e : std::filesystem::directory_iterator(folder_)) {
      const bool is_folder = e.symlink_status().type() == std::filesystem::file_type::directory;
      if (is_folder) std::filesystem::remove_all(e.path());
    }
  }

  void put_back(const std::string& name) const {
    std::filesystem::remove_all(folder_ + "/" + name);
    write(name, whole_.at(name));
  }

  static std::string contents(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  void write(const std::string& name, const std::string& text) const {
    write_at(folder_ + "/" + name, text);
  }

  // A stream takes as long to make as all the rest.
  static void write_at(const std::string& path, const std::string& text) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    const auto size = static_cast<ssize_t>(text.size());
    const bool good =
        file >= 0 && ::write(file, text.data(), text.size()) == size && ::fchmod(file, 0600) == 0;
    if (file >= 0) ::close(file);
    if (!good) throw std::runtime_error("cannot write " + path);
  }

  std::string folder_;
  std::set<std::string> touched_;  // since files were put back
  std::map<std::vector<char>, std::shared_ptr<const cpu::JitCode>> loaded_;
  std::array<std::vector<char>, Objects> objects_;
  std::map<std::string, std::string> whole_;
};

}  // namespace ricci::testing

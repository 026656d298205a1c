#include "support/elf.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <elf.h>
#include <gtest/gtest.h>

#include "ricci/io/file.h"

#include "test_paths.h"

namespace ricci::testing {
namespace {

class ElfReader {
 public:
  explicit ElfReader(const std::string& path) : path_(path), bytes_(io::read_file(path)) {
    header_ = at<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64) {
      throw std::runtime_error("'" + path + "' is not a 64-bit ELF file");
    }
  }

  [[nodiscard]] ElfFacts facts() const {
    ElfFacts facts;
    facts.independent = header_.e_type == ET_DYN;
    for (const Elf64_Phdr& part : parts()) {
      if (part.p_type == PT_GNU_RELRO) facts.relro = true;
      if (part.p_type == PT_GNU_STACK) facts.executable_stack = (part.p_flags & PF_X) != 0;
      if (part.p_type == PT_DYNAMIC) read_dynamic(part, facts);
    }
    read_imports(facts);
    return facts;
  }

 private:
  template <class T>
  [[nodiscard]] T at(std::size_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) {
      throw std::runtime_error("'" + path_ + "' ends early");
    }
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  [[nodiscard]] std::vector<Elf64_Phdr> parts() const {
    std::vector<Elf64_Phdr> parts;
    for (std::size_t i = 0; i < header_.e_phnum; ++i) {
      parts.push_back(at<Elf64_Phdr>(header_.e_phoff + i * header_.e_phentsize));
    }
    return parts;
  }

  // Where in the file an address lies.
  [[nodiscard]] std::size_t offset_of(std::uint64_t address) const {
    for (const Elf64_Phdr& part : parts()) {
      if (part.p_type == PT_LOAD && address >= part.p_vaddr &&
          address - part.p_vaddr < part.p_filesz) {
        return part.p_offset + (address - part.p_vaddr);
      }
    }
    throw std::runtime_error("'" + path_ + "' names an address it does not have");
  }

  [[nodiscard]] std::string text_at(std::size_t offset) const {
    std::string text;
    while (const char c = at<char>(offset + text.size())) text.push_back(c);
    return text;
  }

  // Sections are there for others than the loader, and stay when symbols are stripped.
  void read_imports(ElfFacts& facts) const {
    for (std::size_t i = 0; i < header_.e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(header_.e_shoff + i * header_.e_shentsize);
      if (section.sh_type != SHT_DYNSYM) continue;
      const auto texts =
          at<Elf64_Shdr>(header_.e_shoff + std::size_t{section.sh_link} * header_.e_shentsize);
      for (std::size_t s = 0; s + sizeof(Elf64_Sym) <= section.sh_size; s += sizeof(Elf64_Sym)) {
        const auto symbol = at<Elf64_Sym>(section.sh_offset + s);
        if (symbol.st_shndx == SHN_UNDEF) {
          facts.imports.insert(text_at(texts.sh_offset + symbol.st_name));
        }
      }
    }
  }

  void read_dynamic(const Elf64_Phdr& part, ElfFacts& facts) const {
    std::vector<Elf64_Dyn> entries;
    for (std::size_t i = 0; i * sizeof(Elf64_Dyn) < part.p_filesz; ++i) {
      entries.push_back(at<Elf64_Dyn>(part.p_offset + i * sizeof(Elf64_Dyn)));
    }
    std::size_t texts = 0;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_STRTAB) texts = offset_of(entry.d_un.d_ptr);
    }
    for (const Elf64_Dyn& entry : entries) {
      const std::uint64_t value = entry.d_un.d_val;
      switch (entry.d_tag) {
        case DT_NEEDED: facts.needed.push_back(text_at(texts + value)); break;
        case DT_RPATH:
        case DT_RUNPATH: add_paths(text_at(texts + value), facts.run_paths); break;
        case DT_BIND_NOW: facts.bind_now = true; break;
        case DT_FLAGS: facts.bind_now |= (value & DF_BIND_NOW) != 0; break;
        case DT_FLAGS_1: facts.bind_now |= (value & DF_1_NOW) != 0; break;
        default: break;
      }
    }
  }

  // Empty entries, also at the end, are entries: the loader reads them as the current directory.
  static void add_paths(const std::string& list, std::vector<std::string>& paths) {
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = list.find(':', begin);
      paths.push_back(list.substr(begin, end == std::string::npos ? end : end - begin));
    }
  }

  std::string path_;
  std::vector<std::byte> bytes_;
  Elf64_Ehdr header_{};
};

}  // namespace

ElfFacts read_elf(const std::string& path) { return ElfReader(path).facts(); }

void expect_hardened(const std::string& path) {
  const ElfFacts facts = read_elf(path);
  for (const std::string& folder : facts.run_paths) {
    const bool beside_it = folder.starts_with("$ORIGIN/");  // wherever it is started
    EXPECT_TRUE(folder.starts_with('/') || beside_it)
        << path << " looks for libraries in '" << folder << "'";
  }
  EXPECT_TRUE(facts.independent) << path;
  EXPECT_TRUE(facts.bind_now) << path;
  EXPECT_TRUE(facts.relro) << path;
  EXPECT_FALSE(facts.executable_stack) << path;
  if (facts.needed.empty()) return;  // what it has of the C library is in it, guarded or not
  if (RICCI_GUARDS_STACKS) {
    EXPECT_TRUE(facts.imports.contains("__stack_chk_fail"))
        << path << " is compiled without guards of the stack";
  }
  if (RICCI_GUARDS_COPIES) {
    const auto checks = [](const std::string& symbol) {
      return symbol.starts_with("__") && symbol.ends_with("_chk");
    };
    EXPECT_TRUE(std::ranges::any_of(facts.imports, checks))
        << path << " is compiled without guards of copies (FORTIFY_SOURCE)";
  }
}

}  // namespace ricci::testing

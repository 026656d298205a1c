// Numbers in texts and files do not depend on the locale that the host program has set for its
// users: one whose numbers have a comma where ours have a point, and points between thousands.
#include <clocale>
#include <cstdlib>
#include <functional>
#include <locale>
#include <string>

#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/io/csv.h"
#include "ricci/ir/text.h"
#include "ricci/nn.h"
#include "ricci/nn/summary.h"

#include "io/json_value.h"
#include "support/machine_memory.h"
#include "support/scratch_folder.h"
#include "support/tool.h"

namespace ricci::locale_test {
namespace {

class Commas : public std::numpunct<char> {
 protected:
  [[nodiscard]] char do_decimal_point() const override { return ','; }
  [[nodiscard]] char do_thousands_sep() const override { return '.'; }
  [[nodiscard]] std::string do_grouping() const override { return "\3"; }
};

// Of the streams of C++, which any program can have.
class CommasInStreams {
 public:
  CommasInStreams() : before_(std::locale::global(std::locale(std::locale(), new Commas))) {}
  CommasInStreams(const CommasInStreams&) = delete;
  CommasInStreams& operator=(const CommasInStreams&) = delete;
  ~CommasInStreams() { std::locale::global(before_); }

 private:
  std::locale before_;
};

// Of C, where the system has such a locale or can make one.
class CommasInC {
 public:
  CommasInC() {
    for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8"}) {
      if (std::setlocale(LC_ALL, name) != nullptr) return;
    }
    const std::string made = folder_.file("de_DE.UTF-8");
    (void)testing::run_shell("localedef -i de_DE -f UTF-8 '" + made + "'");
    ::setenv("LOCPATH", folder_.path().c_str(), 1);
    (void)std::setlocale(LC_ALL, "de_DE.UTF-8");
    ::unsetenv("LOCPATH");
  }
  CommasInC(const CommasInC&) = delete;
  CommasInC& operator=(const CommasInC&) = delete;
  ~CommasInC() { std::setlocale(LC_ALL, "C"); }
  [[nodiscard]] static bool are_set() {
    return std::localeconv()->decimal_point == std::string(",");
  }

 private:
  testing::ScratchFolder folder_;
};

std::string all_texts() {
  std::string out;
  const Graph g = parse_graph(R"(
graph @numbers {
  %x = input "x" : f32[12345]
  %a = constant 1234567.125 : f64[]
  %b = constant [0.5, 1e-310] : f64[2]
  %g = param "g" : f32[12345]
  %y = rms_norm %x, %g, %g {eps = 0.015625}
  return %y, %a, %b
}
)");
  out += print(g);
  const io::Csv table = io::parse_csv(
      "a,b,c\n0.5,1e-400,1.5e-310\n1.25,-1.5e400,123456.5\n",
      {.types = {{"a", io::CsvType::F64}, {"b", io::CsvType::F64}, {"c", io::CsvType::F64}}});
  for (const char* column : {"a", "b", "c"}) out += Array(table.column(column)).str() + "\n";
  out += array({1234567.5, 0.001}).str() + "\n" + formatted("{:.3f}", array({1234567.5})) + "\n";
  out += std::to_string(io::parse_json("1234.5e-2").number() == 12.345) + "\n";
  out += nn::summary(nn::Linear(1000, 2000)) + "\n";
  try {
    (void)arange(0.5, 1e30, 0.25);
  } catch (const UserError& e) {
    out += e.what();
  }
  const testing::ScratchFolder scratch;
  save_npy(scratch.file("x.npy"), ones({1234, 2}));
  out += load_npy(scratch.file("x.npy")).type().to_string();
  out += std::to_string(container_memory(""));
  return out;
}

TEST(Locale, ChangesNoNumberInStreams) {
  const std::string expected = all_texts();
  const CommasInStreams commas;
  EXPECT_EQ(all_texts(), expected);
}

TEST(Locale, ChangesNoNumberInC) {
  const std::string expected = all_texts();
  const CommasInC commas;
  if (!CommasInC::are_set()) GTEST_SKIP() << "the system has no locale with commas";
  EXPECT_EQ(all_texts(), expected);
}

}  // namespace
}  // namespace ricci::locale_test

// Arrays as text. Expected texts are what NumPy 2 prints.
#include <cmath>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/array.h"
#include "ricci/array/format.h"

namespace ricci::print_test {
namespace {

TEST(ArrayPrinting, DigitsAndExponents) {
  EXPECT_EQ(array({1.0, 1e10}).str(), "[1.e+00 1.e+10]");
  EXPECT_EQ(array({0.1, 1000.5}).str(), "[1.0000e-01 1.0005e+03]");
  EXPECT_EQ(array({1e-5, 1.0}).str(), "[1.e-05 1.e+00]");
  EXPECT_EQ(array({1.0 / 3, 2.0 / 3}).str(), "[0.33333334 0.6666667 ]");
  EXPECT_EQ(array({123456.789, 0.5}).str(), "[1.2345679e+05 5.0000000e-01]");
  EXPECT_EQ(array({-0.0, 0.0}).str(), "[-0.  0.]");
  EXPECT_EQ(array({100000000.0}).str(), "[1.e+08]");
  EXPECT_EQ(array({1.5, std::nan("")}).str(), "[1.5 nan]");
  EXPECT_EQ(array({1.0 / 3, -2.0 / 3}, {.dtype = float64}).str(), "[ 0.33333333 -0.66666667]");
  EXPECT_EQ(array({1e-20, 1e-30}).str(), "[1.e-20 1.e-30]");
  EXPECT_EQ(array({16777216.0, 1.0}).str(), "[1.6777216e+07 1.0000000e+00]");
  EXPECT_EQ(array(3.14159).str(), "3.14159");
}

TEST(ArrayPrinting, LongOnesAreElidedAndWrapped) {  // [FE-6b]
  EXPECT_EQ(arange(2000).str(), "[   0    1    2 ... 1997 1998 1999]");
  EXPECT_EQ(reshape(arange(2000), {40, 50}).str(), "[[   0    1    2 ...   47   48   49]\n"
                                                   " [  50   51   52 ...   97   98   99]\n"
                                                   " [ 100  101  102 ...  147  148  149]\n"
                                                   " ...\n"
                                                   " [1850 1851 1852 ... 1897 1898 1899]\n"
                                                   " [1900 1901 1902 ... 1947 1948 1949]\n"
                                                   " [1950 1951 1952 ... 1997 1998 1999]]");
  EXPECT_EQ(linspace(0, 1, 25).str().substr(0, 73),
            "[0.         0.04166667 0.08333334 0.125      0.16666667 0.20833333\n 0.25 ");
}

TEST(ArrayPrinting, OptionsAndFormats) {
  const Array x = array({{1.23456, 2.0}, {3.0, 4.0}});
  EXPECT_EQ(fmt::format("{}", x), x.str());
  EXPECT_EQ(fmt::format("loss {:.2f}", array(0.125)), "loss 0.12");
  EXPECT_EQ(fmt::format("{:.1f}", x), "[[1.2 2.0]\n [3.0 4.0]]");
  EXPECT_EQ(fmt::format("{:03}", array({1, 20})), "[001 020]");
  set_print_options({.precision = 2, .threshold = 5, .edge_items = 1});
  EXPECT_EQ(array({1.23456, 2.0}).str(), "[1.23 2.  ]");
  EXPECT_EQ(arange(9).str(), "[0 ... 8]");
  set_print_options({});
  std::ostringstream out;
  out << array({1, 2});
  EXPECT_EQ(out.str(), "[1 2]");
  EXPECT_NE(jit([&](const Array& v) {
              out << v;  // at trace time there is no value
              return v;
            })(array({1.0}))
                .str(),
            "");
  EXPECT_NE(out.str().find("traced f32[1] of 'jit'"), std::string::npos);
}

}  // namespace
}  // namespace ricci::print_test

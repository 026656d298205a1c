// Pictures: those of the two formats, what is damaged, and folders of them.
#include <ctime>
#include <filesystem>

#include <gtest/gtest.h>

#include "ricci/data/files.h"
#include "ricci/io/file.h"

#include "dataset/refusal.h"
#include "support/scratch_folder.h"
#include "test_paths.h"

namespace ricci::images_test {
namespace {

namespace fs = std::filesystem;
using testing::refusal;
using testing::says;
using Numbers = std::vector<double>;

std::string value_file(const std::string& name) {
  return std::string(RICCI_SOURCE_DIR "/tests/dataset/values/") + name;
}

class DataImages : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!io::reads_images()) GTEST_SKIP() << "this build reads no pictures";
  }
};

// 3 × 2 pixels: a[y][x] = (40x, 60y, 200), as make_images.py writes them in all kinds of PNG.
TEST_F(DataImages, PngOfEveryKind) {
  const Numbers colours = {0, 0, 200, 40, 0, 200, 80, 0, 200, 0, 60, 200, 40, 60, 200, 80, 60, 200};
  for (const char* name : {"rgb.png", "palette.png", "interlaced.png", "rgb16.png"}) {
    const Tensor t = io::read_image(value_file(name), {.channels = 3});
    EXPECT_EQ(t.dims(), (StaticDims{2, 3, 3})) << name;
    EXPECT_EQ(t.numbers<double>(), colours) << name;
  }
  const Tensor grey = io::read_image(value_file("grey.png"));
  EXPECT_EQ(grey.dims(), (StaticDims{2, 3, 1}));
  EXPECT_EQ(grey.numbers<double>(), (Numbers{0, 50, 100, 150, 200, 250}));
  EXPECT_EQ(io::read_image(value_file("grey.png"), {.channels = 3}).numbers<double>()[4], 50);
  const Tensor bits = io::read_image(value_file("bits.png"));
  EXPECT_EQ(bits.numbers<double>(), (Numbers{0, 255, 0, 255, 0, 255}));
  const Tensor opaque = io::read_image(value_file("rgba.png"));
  EXPECT_EQ(opaque.dims(), (StaticDims{2, 3, 4}));
  EXPECT_EQ(opaque.numbers<double>()[3], 7);
  EXPECT_EQ(io::read_image(value_file("rgb.png"), {.channels = 4}).numbers<double>()[3], 255);
  // 0.299 · 40 + 0.114 · 200, rounded.
  EXPECT_EQ(io::read_image(value_file("rgb.png"), {.channels = 1}).numbers<double>()[1], 35);
}

// Flat pictures survive JPEG almost as they are.
TEST_F(DataImages, JpegOfEveryKind) {
  for (const char* name : {"flat.jpg", "progressive.jpg", "cmyk.jpg"}) {
    const Tensor t = io::read_image(value_file(name), {.channels = 3});
    ASSERT_EQ(t.dims(), (StaticDims{9, 17, 3})) << name;
    const Numbers v = t.numbers<double>();
    for (std::size_t i = 0; i < v.size(); i += 3) {
      EXPECT_NEAR(v[i], 200, 4) << name;
      EXPECT_NEAR(v[i + 1], 100, 4) << name;
      EXPECT_NEAR(v[i + 2], 50, 4) << name;
    }
  }
  EXPECT_EQ(io::read_image(value_file("grey.jpg")).dims(), (StaticDims{9, 17, 1}));
}

TEST_F(DataImages, DamageIsRefused) {
  for (const char* name : {"rgb.png", "interlaced.png", "flat.jpg", "progressive.jpg"}) {
    const std::vector<std::byte> good = io::read_file(value_file(name));
    const std::string_view text = name;
    const std::size_t end = text.ends_with(".jpg") ? good.size() - 2 : good.size() - 12;
    for (std::size_t n = 0; n < end; ++n) {
      EXPECT_NE(refusal([&] { (void)io::parse_image(std::span(good).first(n)); }), "no error")
          << name << " " << n;
    }
  }
  std::vector<std::byte> png = io::read_file(value_file("rgb.png"));
  png[45] ^= std::byte{1};
  EXPECT_TRUE(says(refusal([&] { (void)io::parse_image(png); }), {"file.image", "PNG"}));
  EXPECT_TRUE(says(refusal([&] { (void)io::read_image(value_file("tokenizer_plain.json")); }),
                   {"neither", "tokenizer_plain.json"}));
  EXPECT_TRUE(says(refusal([&] { (void)io::read_image(value_file("rgb.png"), {.channels = 2}); }),
                   {"2 channels"}));
}

TEST_F(DataImages, SizesAreBoundedFirst) {
  EXPECT_TRUE(says(refusal([&] {
                     (void)io::read_image(value_file("flat.jpg"), {.limits = {.max_pixels = 100}});
                   }),
                   {"17 × 9"}));
  EXPECT_TRUE(says(
      refusal([&] { (void)io::read_image(value_file("rgb.png"), {.limits = {.max_side = 2}}); }),
      {"file.image"}));
  // Said to have 60,000 × 1,000 pixels, in some hundred bytes.
  EXPECT_TRUE(
      says(refusal([&] { (void)io::read_image(value_file("huge.png")); }), {"cannot lie in"}));
}

// A text of 8 MB takes 8 KB in a file, and nobody wants it.
TEST_F(DataImages, TextsBesidePixelsTakeNoTime) {
  constexpr std::ptrdiff_t Texts = 33;  // behind the signature and the sizes
  const std::vector<std::byte> one = io::read_file(value_file("text.png"));
  const std::string_view chars(reinterpret_cast<const char*>(one.data()), one.size());
  const auto pixels = static_cast<std::ptrdiff_t>(chars.find("IDAT")) - 4;
  std::vector<std::byte> many(one.begin(), one.begin() + Texts);
  for (int i = 0; i < 120; ++i) many.insert(many.end(), one.begin() + Texts, one.begin() + pixels);
  many.insert(many.end(), one.begin() + pixels, one.end());
  const std::clock_t begun = std::clock();
  EXPECT_EQ(io::parse_image(many).numbers<double>(), (Numbers{1, 2, 3}));
  EXPECT_LT(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, 0.3);
}

TEST_F(DataImages, FoldersAreClasses) {
  const testing::ScratchFolder folder;
  for (const char* kind : {"b", "a"}) fs::create_directory(folder.file(kind));
  fs::copy(value_file("rgb.png"), folder.file("b/1.PNG"));
  fs::copy(value_file("flat.jpg"), folder.file("a/1.jpeg"));
  fs::copy(value_file("grey.png"), folder.file("a/2.png"));
  io::write_file(folder.file("a/notes.txt"), std::string_view("x"));
  const ImageFolder all = image_folder(folder.path(), {.height = 4, .width = 5});
  EXPECT_EQ(all.classes, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(all.data.size(), 3);
  const ImageBatch b = all.data.batch({2, 0});
  EXPECT_EQ(b.x.type(), f32({2, 3, 4, 5}));
  EXPECT_EQ(b.y.to_vector(), (Numbers{1, 0}));
  EXPECT_NEAR(b.x(0, 2, 1, 1).item(), 200.0 / 255, 1e-6);
  EXPECT_NEAR(b.x(1, 0, 3, 2).item(), 200.0 / 255, 0.02);
  EXPECT_TRUE(says(refusal([&] { (void)image_folder(folder.path()).data.all(); }),
                   {"3 × 2", "17 × 9", "height"}));
  const ImageFolder flat = image_folder(folder.file("b"));
  EXPECT_EQ(flat.data.all().x.type(), f32({1, 3, 2, 3}));
  fs::create_directory(folder.file("none"));
  EXPECT_TRUE(says(refusal([&] { (void)image_folder(folder.file("none")); }), {"no picture"}));
  EXPECT_TRUE(says(refusal([&] { (void)image_folder(folder.file("absent")); }),
                   {"cannot read the folder"}));
  EXPECT_TRUE(says(refusal([&] { (void)image_folder(folder.path(), {.height = 4}); }),
                   {"both height and width"}));
}

TEST_F(DataImages, ResizingKeepsMeans) {
  const Tensor t = Tensor::of<std::uint8_t>({2, 2, 1}, {0, 100, 200, 100});
  EXPECT_EQ(resized(t, 1, 1).item(), 100);
  EXPECT_EQ(resized(t, 2, 2).numbers<double>(), (Numbers{0, 100, 200, 100}));
  EXPECT_EQ(resized(t, 2, 4).numbers<double>(), (Numbers{0, 25, 75, 100, 200, 175, 125, 100}));
  EXPECT_TRUE(says(refusal([&] { (void)resized(t, 0, 1); }), {"u8[2, 2, 1]"}));
}

}  // namespace
}  // namespace ricci::images_test

#include "ricci/train/progress.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

namespace ricci::progress_test {
namespace {

std::size_t columns(const std::string& text) {  // of UTF-8
  std::size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return n;
}

RunProgressState state() {
  return {.step = 431,
          .steps = 1000,
          .done = 0.431,
          .rate = 15.2,
          .left = 37.4,
          .loss = 1.873,
          .losses = {4, 3, 2.5, 2, 1.9}};
}

TEST(TrainProgress, SparklinesScaleBetweenExtremes) {
  EXPECT_EQ(sparkline(std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(std::vector<double>{7, 0}, 8), "█▁");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3, 3}, 8), "▁▁▁");
  EXPECT_EQ(sparkline(std::vector<double>{}, 8), "");
  EXPECT_EQ(sparkline(std::vector<double>{1, std::nan(""), 2, INFINITY}, 8), "▁ █ ");
  EXPECT_EQ(sparkline(std::vector<double>{0, 0, 7, 7}, 2), "▁█");
}

TEST(TrainProgress, Clocks) {
  EXPECT_EQ(clock_text(0), "0:00");
  EXPECT_EQ(clock_text(31.2), "0:32");
  EXPECT_EQ(clock_text(3600 * 3 + 7 * 60 + 9), "3:07:09");
  EXPECT_EQ(clock_text(-1), "0:00");
  EXPECT_FALSE(clock_text(INFINITY).empty());
}

TEST(TrainProgress, WordsSayWhatIsLeft) {
  EXPECT_EQ(progress_words(state()), " 43 %  step 431/1000  loss 1.8730  15.2 steps/s  0:38 left");
  RunProgressState first = state();  // of which no rate is known
  first.rate = 0;
  EXPECT_EQ(progress_words(first), " 43 %  step 431/1000  loss 1.8730");
}

TEST(TrainProgress, LinesFitAnyWidth) {  // [FE-4d]
  for (std::size_t width = 1; width < 160; ++width) {
    EXPECT_LE(columns(progress_line(state(), width, false)), width) << width;
  }
  EXPECT_NE(progress_line(state(), 140, false).find('['), std::string::npos);
  EXPECT_EQ(progress_line(state(), 66, false).find('['), std::string::npos);
  EXPECT_EQ(progress_line(state(), 140, false).find('\033'), std::string::npos);
  EXPECT_NE(progress_line(state(), 140, true).find('\033'), std::string::npos);
  // On most terminals there are 80 columns: both are there, the sparkline as small as it takes.
  EXPECT_NE(progress_line(state(), 79, false).find('['), std::string::npos);
  EXPECT_NE(progress_line(state(), 79, false).find("█"), std::string::npos);
  for (std::size_t width = 1; width < 160; ++width) {
    EXPECT_EQ(progress_line(state(), width, true).find("m\033[0m"), std::string::npos) << width;
  }
}

std::string plain_lines(const std::function<void(RunProgress&)>& run) {
  std::FILE* file = std::tmpfile();
  EXPECT_NE(file, nullptr);
  if (file == nullptr) return {};
  {
    RunProgress progress(file, 0);
    run(progress);
  }
  std::rewind(file);
  std::string text(2000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

// A run that ends by the clock has as long left as the clock says, whatever steps there could be.
TEST(TrainProgress, TimeMayBeWhatIsLeft) {
  const std::string text = plain_lines([](RunProgress& progress) {
    progress.update(1, 1'000'000, 0.1, 2.5);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    progress.update(2, 1'000'000, 0.9, 1.5);
  });
  EXPECT_NE(text.find("step 2/1000000"), std::string::npos) << text;
  EXPECT_NE(text.find("0:01 left"), std::string::npos) << text;
}

TEST(TrainProgress, ElsewhereThanOnATerminalThereArePlainLines) {
  const std::string text = plain_lines([](RunProgress& progress) {
    progress.update(1, 3, 1.0 / 3, 2.5);
    progress.say("hello");
    progress.update(3, 3, 1, 1.5);
  });
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("step 1/3"), std::string::npos) << text;
  EXPECT_NE(text.find("hello\n"), std::string::npos) << text;
  EXPECT_NE(text.find("100 %  step 3/3"), std::string::npos) << text;
}

}  // namespace
}  // namespace ricci::progress_test

// The page of a run: all there is of it, and nothing of what users wrote as anything but text.
#include "ricci/train/report.h"

#include <cmath>
#include <fstream>

#include <gtest/gtest.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"

#include "support/scratch_folder.h"
#include "train/report/chart.h"
#include "train/report/html.h"

namespace ricci::report_test {
namespace {

using testing::ScratchFolder;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

ReportRun some_run(const std::string& name) {
  ReportRun run;
  run.name = name;
  run.log.start = {.name = name,
                   .kind = "gpt",
                   .device = "cpu",
                   .steps = 100,
                   .params = 1234,
                   .model = "name    type    arrays     params\n"
                            "out     Linear  w [4, 2]        8\n"
                            "Net: 8 params, 32 bytes\n",
                   .settings = {{"batch", "16"}, {"data", "notes.txt"}}};
  for (int i = 1; i <= 100; ++i) {
    run.log.steps.push_back({i, 4.0 / i, 1e-3, 1.0, i * 0.1, 64});
  }
  run.log.evaluations = {{50, 1.5, {{"accuracy", 0.5}}}, {100, 1.25, {{"accuracy", 0.75}}}};
  run.log.samples = {{50, "abc"}, {100, "def"}};
  run.log.end = RunEnd{100, "done", 10};
  run.program = ProgramRecord{
      .program = "step",
      .seconds = 0.01,
      .rows = {{"matmul", "matmul", 0.006, 100, 1000}, {"add, tanh", "kernel", 0.004, 100, 10}},
      .places = {{0, 64, 0, 1}, {64, 128, 1, 1}},
      .steps = 2,
      .arena_bytes = 192,
      .live_bytes = 192,
      .kept_bytes = 1000};
  run.graph = "graph @loss { %x = input \"x\" : f32[2] %y = tanh %x return %y }";
  return run;
}

TEST(TrainReport, HasAllItsSections) {
  const ReportRun run = some_run("first");
  const std::string page = run_report(std::span(&run, 1));
  for (const char* part :
       {"id=\"curves\"", "id=\"samples\"", "id=\"settings\"", "id=\"model\"", "id=\"time\"",
        "id=\"memory\"", "id=\"graph\"", "1.25", "0.75", "abc", "def", "notes.txt", "w [4, 2]",
        "add, tanh", "prefers-color-scheme: dark"}) {
    EXPECT_NE(page.find(part), std::string::npos) << part;
  }
}

TEST(TrainReport, AsksForNothingFromOutside) {
  const ReportRun run = some_run("first");
  const std::string page = run_report(std::span(&run, 1));
  EXPECT_EQ(page.find("http:"), std::string::npos);
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find(" src="), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(TrainReport, WhatUsersWriteIsText) {
  const std::string attack = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"";
  ReportRun run = some_run(attack);
  run.log.start.kind = attack;
  run.log.start.device = attack;
  run.log.start.model = attack;
  run.log.start.settings = {{attack, attack}};
  run.log.samples = {{1, attack}, {2, attack}};
  run.log.evaluations[0].metrics = {{attack, 1}};
  run.log.end->why = attack;
  run.program->rows[0].label = attack;
  run.program->rows[0].kind = attack;
  run.graph = attack;
  run.notes = {attack};
  const ReportRun plain = some_run("plain");
  for (const auto& runs : {std::vector{run}, std::vector{run, plain}}) {
    const std::string page = run_report(runs);
    EXPECT_EQ(page.find("<script>alert"), std::string::npos);
    EXPECT_EQ(page.find("<img"), std::string::npos);
    // Elements that are not ours would end ours early.
    const std::size_t figures = count_of(page, "<script type=\"application/json\">");
    EXPECT_EQ(count_of(page, "<script"), figures + 1);
    EXPECT_EQ(count_of(page, "</script>"), figures + 1);
  }
}

TEST(TrainReport, GraphsWithOddNamesAreText) {
  ReportRun run = some_run("first");
  run.graph =
      "graph @g { %x = input \"<script>alert(3)</script>\" : f32[2] %y = tanh %x return %y }";
  const std::string page = run_report(std::span(&run, 1));
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

TEST(TrainReport, RunsAreComparedSideBySide) {
  std::vector<ReportRun> runs = {some_run("first"), some_run("second")};
  runs[1].log.start.settings[0].second = "32";
  const std::string page = run_report(runs);
  EXPECT_NE(page.find("first: training"), std::string::npos);
  EXPECT_NE(page.find("second: training"), std::string::npos);
  EXPECT_EQ(count_of(page, " mark\">"), 2U);  // the one setting that differs, twice
  EXPECT_NE(page.find("the same as that of first"), std::string::npos);
}

TEST(TrainReport, RunsThatHaveNothingYetAreShown) {
  ReportRun run;
  run.name = "empty";
  EXPECT_NE(run_report(std::span(&run, 1)).find("nothing was logged"), std::string::npos);
  run.log.steps = {{1, std::nan(""), 0, {}, 0, 0}};
  EXPECT_NE(run_report(std::span(&run, 1)).find("nan"), std::string::npos);
  EXPECT_THROW((void)run_report({}), UserError);
}

TEST(TrainReport, ReadsAFolder) {
  const ScratchFolder folder;
  const std::string log = folder.file("log.jsonl");
  RunLog(log).start({.name = "here", .kind = "cnn"});
  write_file(folder.file("program.json"), to_json(*some_run("x").program));
  write_file(folder.file("model.ric"),
             std::string_view("graph @g { %x = input \"x\" : f32[] return %x }"));
  const std::string path = log.substr(0, log.size() - std::string("/log.jsonl").size());
  const ReportRun run = read_report_run(path);
  EXPECT_EQ(run.name, "here");
  ASSERT_TRUE(run.program);
  EXPECT_EQ(run.program->rows.at(1).label, "add, tanh");
  EXPECT_EQ(run.program->rows.at(1).seconds, 0.004);
  EXPECT_EQ(run.program->places.at(1).bytes, 128);
  EXPECT_EQ(run.program->kept_bytes, 1000);
  EXPECT_FALSE(run.graph.empty());
  write_file(folder.file("program.json"), std::string_view("{\"program\": "));
  const ReportRun damaged = read_report_run(path);
  EXPECT_FALSE(damaged.program);
  EXPECT_EQ(damaged.notes.size(), 1U);
}

TEST(TrainReport, TicksAreRound) {
  EXPECT_EQ(report::ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(report::ticks(1, 1, 5), (std::vector<double>{1}));
  EXPECT_EQ(report::ticks(-1, 1, 4).size(), 5U);
}

TEST(TrainReport, ThinnedCurvesKeepTheirMeans) {
  std::vector<report::CurvePoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({1.0 * i, 2.0 * i});
  const auto thin = report::thinned(points, 10);
  ASSERT_EQ(thin.size(), 10U);
  EXPECT_EQ(thin[0].y, 99);
  EXPECT_EQ(report::smoothed(points).size(), points.size());
}

TEST(TrainReport, NumbersAreReadable) {
  EXPECT_EQ(report::count_text(1234567), "1,234,567");
  EXPECT_EQ(report::count_text(-1234), "-1,234");
  EXPECT_EQ(report::count_text(999), "999");
  EXPECT_EQ(report::escaped("<&\"'\xff>\x01"), "&lt;&amp;&quot;&#39;\xef\xbf\xbd&gt; ");
  EXPECT_EQ(report::in_script("\"</script>\""), "\"\\u003c/script>\"");
}

}  // namespace
}  // namespace ricci::report_test

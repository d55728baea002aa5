// The report of a run: what its page holds, whatever is in it, and how long runs fit.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lm/base/atomic_file.h"
#include "tests/support/temp_folder.h"
#include "training/report/event_file.h"
#include "training/report/event_log.h"
#include "training/report/read_log.h"
#include "training/report/report_observer.h"
#include "training/report/run_report.h"
#include "training/trainer/json_log.h"

namespace caldera {
namespace {

using testing::TempFolder;

ReportPoint point(std::int64_t step) {
  return {.step = step,
          .loss = static_cast<double>(step),
          .learning_rate = 1e-3,
          .grad_norm = 0.5,
          .tokens_per_second = 100,
          .step_ms = 8,
          .peak_bytes = static_cast<double>(step % 10)};
}

TEST(ReportSeries, KeepsShortRunsAsTheyAre) {
  ReportSeries series;
  for (std::int64_t step = 1; step <= 100; ++step) series.add(point(step));
  const std::vector<ReportPoint> points = series.points();
  ASSERT_EQ(points.size(), 100U);
  EXPECT_EQ(points[41].step, 42);
  EXPECT_EQ(points[41].loss, 42);
}

// Each point of a long run is the mean of 2^k steps in a row, and no step is left out.
TEST(ReportSeries, MeansOfLongRunsLoseNoStep) {
  ReportSeries series;
  constexpr std::int64_t kSteps = 123457;
  for (std::int64_t step = 1; step <= kSteps; ++step) series.add(point(step));
  const std::vector<ReportPoint> points = series.points();
  EXPECT_LT(points.size(), ReportSeries::kMostPoints + 1);
  EXPECT_GE(points.size(), ReportSeries::kMostPoints / 2);
  EXPECT_EQ(points.back().step, kSteps);
  double sum = 0;
  std::int64_t before = 0;
  for (const ReportPoint& p : points) {
    const std::int64_t count = p.step - before;
    EXPECT_DOUBLE_EQ(p.loss, static_cast<double>(before + 1 + p.step) / 2);  // of before + 1 ... step
    sum += p.loss * static_cast<double>(count);
    before = p.step;
  }
  EXPECT_NEAR(sum, 0.5 * kSteps * (kSteps + 1), 1e-3);
  EXPECT_EQ(points.front().peak_bytes, 9);
}

RunReport a_report() {
  RunReport report{.title = "runs/</script><b>&\"", .total_steps = 3, .seconds = 12.5, .tokens = 640};
  report.points = {point(1), point(2), point(3)};
  report.validations = {{0, 2.5}, {3, 1.25}};
  report.samples = {{3, "once </script>\nupon"}};
  report.lengths = {.width = 4, .counts = {1, 0, 7}};
  report.settings = {{"model", "</script><script>alert(1)</script>"}, {"rank", "8"}};
  report.environment = {{"device", "cpu"}};
  return report;
}

TEST(RunReport, ItsPageHoldsItAndNeedsNoNetwork) {
  const std::string page = to_html(a_report());
  EXPECT_EQ(page.find("http-equiv"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find("src="), std::string::npos);
  EXPECT_EQ(page.find("<script>alert"), std::string::npos) << "a setting became a part of the page";
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
  RunReport running = a_report();
  running.running = true;
  EXPECT_NE(to_html(running).find("<meta http-equiv=\"refresh\""), std::string::npos);

  const auto read = report_of_page(page);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->title, a_report().title);
  EXPECT_EQ(read->total_steps, 3);
  EXPECT_EQ(read->seconds, 12.5);
  EXPECT_EQ(read->tokens, 640);
  ASSERT_EQ(read->points.size(), 3U);
  EXPECT_EQ(read->points[1].loss, 2);
  EXPECT_EQ(read->points[1].step_ms, 8);
  ASSERT_EQ(read->validations.size(), 2U);
  EXPECT_EQ(read->validations[1].step, 3);
  EXPECT_EQ(read->validations[1].loss, 1.25);
  EXPECT_EQ(read->samples, a_report().samples);
}

TEST(RunReport, AnotherTextIsNoReport) {
  EXPECT_FALSE(report_of_page("").has_value());
  EXPECT_FALSE(report_of_page("<html><script type=\"application/json\" id=\"run\">{}</script>").has_value());
  EXPECT_FALSE(report_of_page("<script type=\"application/json\" id=\"run\">{\"title\": ").has_value());
}

StepRecord step_of_report(std::int64_t step) {
  return {.step = step,
          .loss = 2.5,
          .learning_rate = 1e-3,
          .grad_norm = 0.75,
          .tokens = 10,
          .tokens_per_second = 99};
}

TEST(ReportObserver, GoesOnWithTheEarlierPage) {
  const TempFolder temp;
  {
    ReportObserver first(temp / "run.html", {.title = "run"});
    first.on_begin(10);
    first.on_validation({0, 3});
    for (std::int64_t step = 1; step <= 6; ++step) first.on_step(step_of_report(step));
    first.on_end();
  }
  ReportObserver second(temp / "run.html", {.title = "run"});
  second.on_resume(4);
  second.on_begin(10);
  for (std::int64_t step = 5; step <= 10; ++step) second.on_step(step_of_report(step));
  second.on_validation({10, 2});
  second.on_end();
  const auto report = report_of_page(read_text_file(temp / "run.html"));
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->points.size(), 10U);
  for (std::int64_t step = 1; step <= 10; ++step)
    EXPECT_EQ(report->points[static_cast<std::size_t>(step - 1)].step, step);
  EXPECT_EQ(report->validations.size(), 2U);
  EXPECT_FALSE(report->running);
}

TEST(ReportObserver, WarnsOnceWhereItCannotWrite) {
  std::vector<std::string> warnings;
  ReportObserver report("/nonexistent/run.html", {},
                        [&](const std::string& line) { warnings.push_back(line); });
  report.on_begin(1);
  report.on_validation({0, 1});
  report.on_end();
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("/nonexistent/run.html"), std::string::npos);
}

// Vectors of RFC 3720, B.4, and the usual one.
TEST(EventFile, HasCrc32c) {
  EXPECT_EQ(detail::crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(detail::crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(detail::crc32c(std::string(32, '\xff')), 0x62a8ab43U);
  EXPECT_EQ(detail::crc32c(""), 0U);
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

// Put together with Python's struct by the formats' descriptions; `protoc --decode_raw` reads the events in
// them.
TEST(EventFile, RecordsAreTensorFlows) {
  constexpr double kTime = 1700000000.25;
  EXPECT_EQ(hexadecimal(detail::first_event(kTime)),
            "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9");
  EXPECT_EQ(
      hexadecimal(detail::scalars_event(kTime, 300, {{"train/loss", 2.5}})),
      "2100000000000000017becf60900001040fc54d94110ac022a130a110a0a747261696e2f6c6f737315000020408dabcc7d");
  EXPECT_EQ(hexadecimal(detail::restart_event(kTime, 40)),
            "0f000000000000006d532b090900001040fc54d94110293a0208013eb6350d");
}

TEST(EventLog, HasARecordAStepAndValidation) {
  const TempFolder temp;
  EventLogObserver log(temp / "events");
  log.on_resume(2);
  log.on_begin(4);
  log.on_step(step_of_report(3));
  log.on_validation({3, 1.5, {{"accuracy", 0.5}}});
  log.on_end();
  const std::filesystem::directory_iterator files(temp / "events");
  ASSERT_NE(files, std::filesystem::directory_iterator());
  EXPECT_TRUE(files->path().filename().string().starts_with("events.out.tfevents."));
  const std::string bytes = read_text_file(files->path());
  std::vector<std::string> events;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(bytes[at])) +
                        256 * static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + 1]));
    events.push_back(bytes.substr(at + 12, length));
    at += 12 + length + 4;
  }
  ASSERT_EQ(events.size(), 4U);  // version, restart, step, validation
  EXPECT_NE(events[2].find("train/grad_norm"), std::string::npos);
  EXPECT_NE(events[3].find("val/loss"), std::string::npos);
  EXPECT_NE(events[3].find("val/accuracy"), std::string::npos);
}

TEST(ReadLog, GivesTheSameCurvesOfEveryForm) {
  const TempFolder temp;
  {
    JsonLogObserver json(temp / "log.jsonl");
    CsvLogObserver csv(temp / "log.csv");
    ReportObserver page(temp / "run.html", {});
    for (TrainObserver* observer : std::initializer_list<TrainObserver*>{&json, &csv, &page}) {
      observer->on_begin(3);
      observer->on_validation({0, 3.5});
      for (std::int64_t step = 1; step <= 3; ++step) observer->on_step(step_of_report(step));
      observer->on_validation({3, 2.25});
      observer->on_end();
    }
  }
  for (const char* name : {"log.jsonl", "log.csv", "run.html"}) {
    const auto report = read_log(temp / name);
    ASSERT_TRUE(report.has_value()) << name;
    ASSERT_EQ(report->points.size(), 3U) << name;
    EXPECT_EQ(report->points[2].step, 3) << name;
    EXPECT_EQ(report->points[2].loss, 2.5) << name;
    EXPECT_EQ(report->points[2].grad_norm, 0.75) << name;
    EXPECT_EQ(report->tokens, 30) << name;
    ASSERT_EQ(report->validations.size(), 2U) << name;
    EXPECT_EQ(report->validations[1].step, 3) << name;
    EXPECT_EQ(report->validations[1].loss, 2.25) << name;
  }
  EXPECT_FALSE(read_log(temp / "absent.jsonl").has_value());
  EXPECT_FALSE(read_log(temp.put("empty.csv", "")).has_value());
  EXPECT_FALSE(read_log(temp.put("other.jsonl", "words\n[1]\n{\"step\": \"x\"}\n")).has_value());
}

TEST(CsvLog, HasARowARecordAndGoesOn) {
  const TempFolder temp;
  const auto lines = [&] {
    std::ifstream file(temp / "log.csv");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string names =
      "step,loss,learning_rate,grad_norm,tokens,tokens_per_second,host_ms,device_ms,peak_bytes,val_loss\n";
  {
    CsvLogObserver log(temp / "log.csv");
    log.on_begin(3);
    log.on_validation({0, 3.5});
    for (std::int64_t step = 1; step <= 3; ++step) log.on_step(step_of_report(step));
    log.on_end();
  }
  EXPECT_EQ(lines(), names +
                         "0,,,,,,,,,3.5\n1,2.5,0.001,0.75,10,99,0,0,0,\n2,2.5,0.001,0.75,10,99,0,0,0,\n"
                         "3,2.5,0.001,0.75,10,99,0,0,0,\n");
  CsvLogObserver log(temp / "log.csv");
  log.on_resume(2);
  log.on_begin(3);
  log.on_validation({3, 3});
  log.on_end();
  EXPECT_EQ(lines(), names +
                         "0,,,,,,,,,3.5\n1,2.5,0.001,0.75,10,99,0,0,0,\n2,2.5,0.001,0.75,10,99,0,0,0,\n"
                         "3,,,,,,,,,3\n");
}

}  // namespace
}  // namespace caldera

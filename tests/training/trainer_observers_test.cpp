#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "tests/support/temp_folder.h"
#include "training/trainer/json_log.h"
#include "training/trainer/progress.h"

namespace caldera {
namespace {

StepRecord step_record(std::int64_t step) {
  return {.step = step,
          .loss = 2.5,
          .learning_rate = 1e-3,
          .grad_norm = 0.75,
          .tokens = 640,
          .tokens_per_second = 1234.5,
          .host_ms = 0.5,
          .device_ms = 7.25,
          .peak_bytes = 1 << 20};
}

// What a run of `steps` steps makes the progress observer write.
std::string progress_output(std::int64_t steps, bool terminal) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  ProgressObserver progress(file.get(), terminal);
  progress.on_begin(steps);
  progress.on_validation({0, 3.0});
  for (std::int64_t i = 1; i <= steps; ++i) progress.on_step(step_record(i));
  progress.on_validation({steps, 2.0});
  progress.on_end();
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file.get()), text.size());
  return text;
}

TEST(Progress, PlainLinesAreFew) {
  const std::string text = progress_output(1000, false);
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 25);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_NE(text.find("step 0/1000  validation loss 3.0000\n"), std::string::npos);
  EXPECT_NE(text.find("step 1/1000  loss 2.5000"), std::string::npos);
  EXPECT_NE(text.find("step 50/1000  loss 2.5000"), std::string::npos);
  EXPECT_NE(text.find("step 1000/1000  loss 2.5000"), std::string::npos);
  EXPECT_NE(text.find("tok/s  "), std::string::npos);
  EXPECT_NE(text.find("s/step  1.00 MiB  ETA "), std::string::npos);
}

TEST(Progress, TheBarStaysOnOneLine) {
  const std::string text = progress_output(40, true);
  EXPECT_NE(text.find("\r[====="), std::string::npos);
  EXPECT_NE(text.find("40/40  loss 2.5000  1234 tok/s"), std::string::npos);
  // The bar itself ends no line; the two validations do.
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST(JsonLog, LinesHaveTheDocumentedFields) {
  const auto step = nlohmann::ordered_json::parse(to_json_line(step_record(3)));
  std::vector<std::string> fields;
  for (const auto& [field, value] : step.items()) fields.push_back(field);
  EXPECT_EQ(fields, (std::vector<std::string>{"step", "loss", "learning_rate", "grad_norm", "tokens",
                                              "tokens_per_second", "host_ms", "device_ms", "peak_bytes"}));
  EXPECT_EQ(step["loss"], 2.5);
  EXPECT_EQ(step["peak_bytes"], 1 << 20);
  EXPECT_EQ(to_json_line(ValidationRecord{4, 1.5}), R"({"step":4,"val_loss":1.5})");
}

TEST(JsonLog, ReplacesTheFileWhenTheRunBegins) {
  const auto path =
      std::filesystem::temp_directory_path() / ("caldera_log_test_" + std::to_string(::getpid()));
  std::ofstream(path) << "earlier\n";
  const auto content = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  JsonLogObserver log(path);
  EXPECT_EQ(content(), "earlier\n");
  log.on_begin(1);
  log.on_validation({0, 1.5});
  EXPECT_EQ(content(), "{\"step\":0,\"val_loss\":1.5}\n") << "a record can be read as soon as it is there";
  log.on_step(step_record(1));
  log.on_end();
  EXPECT_EQ(content(), "{\"step\":0,\"val_loss\":1.5}\n" + to_json_line(step_record(1)) + "\n");
  std::filesystem::remove(path);
}

TEST(JsonLog, WarnsOnceWhereItCannotWrite) {
  for (const char* path : {"/nonexistent/folder/log.jsonl", "/dev/full"}) {
    std::vector<std::string> warnings;
    JsonLogObserver log(path, [&](const std::string& line) { warnings.push_back(line); });
    log.on_begin(2);
    log.on_step(step_record(1));
    log.on_step(step_record(2));
    log.on_end();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find(path), std::string::npos);
  }
}

TEST(JsonLog, OfARunThatGoesOnKeepsTheLinesUpToItsStep) {
  const testing::TempFolder temp;
  const std::string one = to_json_line(step_record(1));
  const std::string validation = to_json_line(ValidationRecord{2, 1.5});
  const std::string two = to_json_line(step_record(2));
  const auto path =
      temp.put("log", one + "\n" + two + "\n" + validation + "\n" + to_json_line(step_record(3)) + "\n" +
                          to_json_line(step_record(4)).substr(0, 20));
  JsonLogObserver log(path);
  log.on_resume(2);
  log.on_begin(4);
  log.on_step(step_record(3));
  log.on_end();
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}),
            one + "\n" + two + "\n" + validation + "\n" + to_json_line(step_record(3)) + "\n");
}

}  // namespace
}  // namespace caldera

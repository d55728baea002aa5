#include "training/report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "training/report/report_page.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;

/// Six digits: more than a screen shows, and a third of the bytes.
double six_digits(double value) { return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr); }

template <typename Get>
Json column(const std::vector<ReportPoint>& points, Get get) {
  Json values = Json::array();
  for (const ReportPoint& point : points) values.push_back(six_digits(get(point)));
  return values;
}

Json table(const ReportTable& rows) {
  Json list = Json::array();
  for (const auto& [name, value] : rows) list.push_back({name, value});
  return list;
}

Json curves_of(const RunReport& report) {
  Json steps = Json::array();
  for (const ReportPoint& point : report.points) steps.push_back(point.step);
  Json validations = Json::array();
  for (const ValidationRecord& record : report.validations)
    validations.push_back({record.step, six_digits(record.loss)});
  return {
      {"step", steps},
      {"loss", column(report.points, [](const ReportPoint& p) { return p.loss; })},
      {"learning_rate", column(report.points, [](const ReportPoint& p) { return p.learning_rate; })},
      {"grad_norm", column(report.points, [](const ReportPoint& p) { return p.grad_norm; })},
      {"tokens_per_second", column(report.points, [](const ReportPoint& p) { return p.tokens_per_second; })},
      {"step_ms", column(report.points, [](const ReportPoint& p) { return p.step_ms; })},
      {"peak_bytes", column(report.points, [](const ReportPoint& p) { return p.peak_bytes; })},
      {"validations", validations}};
}

Json data_of(const RunReport& report) {
  Json data = curves_of(report);
  data["title"] = report.title;
  data["total_steps"] = report.total_steps;
  data["seconds"] = six_digits(report.seconds);
  data["tokens"] = report.tokens;
  data["running"] = report.running;
  data["samples"] = Json::array();
  for (const auto& [step, text] : report.samples) data["samples"].push_back({step, text});
  data["lengths"] = {{"width", report.lengths.width}, {"counts", report.lengths.counts}};
  data["settings"] = table(report.settings);
  data["environment"] = table(report.environment);
  return data;
}

std::string text_of(const Json& data) { return data.dump(-1, ' ', false, Json::error_handler_t::replace); }

ReportPoint mean_of(const ReportPoint& sum, std::int64_t count) {
  const auto n = static_cast<double>(count);
  return {.step = sum.step,
          .loss = sum.loss / n,
          .learning_rate = sum.learning_rate / n,
          .grad_norm = sum.grad_norm / n,
          .tokens_per_second = sum.tokens_per_second / n,
          .step_ms = sum.step_ms / n,
          .peak_bytes = sum.peak_bytes};
}

void add_to(ReportPoint& sum, const ReportPoint& point) {
  sum.step = point.step;
  sum.loss += point.loss;
  sum.learning_rate += point.learning_rate;
  sum.grad_norm += point.grad_norm;
  sum.tokens_per_second += point.tokens_per_second;
  sum.step_ms += point.step_ms;
  sum.peak_bytes = std::max(sum.peak_bytes, point.peak_bytes);
}

}  // namespace

void ReportSeries::add(const ReportPoint& step) {
  add_to(open_, step);
  if (++in_open_ < stride_) return;
  push(mean_of(open_, in_open_));
  open_ = {};
  in_open_ = 0;
}

void ReportSeries::push(const ReportPoint& point) {
  points_.push_back(point);
  if (points_.size() < kMostPoints) return;
  std::vector<ReportPoint> halved;
  for (std::size_t i = 0; i + 1 < points_.size(); i += 2) {
    ReportPoint sum = points_[i];
    add_to(sum, points_[i + 1]);
    halved.push_back(mean_of(sum, 2));
  }
  points_ = std::move(halved);
  stride_ *= 2;
}

std::vector<ReportPoint> ReportSeries::points() const {
  std::vector<ReportPoint> all = points_;
  if (in_open_ > 0) all.push_back(mean_of(open_, in_open_));
  return all;
}

std::string to_html(const RunReport& report) {
  return report_page::make_page(text_of(data_of(report)), report_page::kRunScript,
                                report.running ? "<meta http-equiv=\"refresh\" content=\"10\">" : "");
}

std::string to_html(const RunComparison& comparison) {
  Json runs = Json::array();
  for (const RunReport& run : comparison.runs) {
    Json of_run = curves_of(run);
    of_run["name"] = run.title;
    runs.push_back(std::move(of_run));
  }
  Json rows = Json::array();
  for (const std::vector<std::string>& row : comparison.table) rows.push_back(row);
  return report_page::make_page(text_of({{"runs", runs}, {"table", rows}}), report_page::kCompareScript);
}

std::optional<RunReport> report_of_page(std::string_view html) {
  const std::size_t begin = html.find(report_page::kDataBegin);
  if (begin == std::string_view::npos) return std::nullopt;
  html.remove_prefix(begin + report_page::kDataBegin.size());
  const Json data =
      Json::parse(html.substr(0, html.find(report_page::kDataEnd)), nullptr, /*allow_exceptions=*/false);
  try {
    RunReport report;
    report.title = data.at("title");
    report.total_steps = data.at("total_steps");
    report.seconds = data.at("seconds");
    report.tokens = data.at("tokens");
    for (std::size_t i = 0; i < data.at("step").size(); ++i)
      report.points.push_back({.step = data["step"][i],
                               .loss = data.at("loss").at(i),
                               .learning_rate = data.at("learning_rate").at(i),
                               .grad_norm = data.at("grad_norm").at(i),
                               .tokens_per_second = data.at("tokens_per_second").at(i),
                               .step_ms = data.at("step_ms").at(i),
                               .peak_bytes = data.at("peak_bytes").at(i)});
    for (const Json& sample : data.at("samples"))
      report.samples.emplace_back(sample.at(0).get<std::int64_t>(), sample.at(1).get<std::string>());
    for (const Json& record : data.at("validations"))
      report.validations.push_back({.step = record.at(0), .loss = record.at(1)});
    return report;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace caldera

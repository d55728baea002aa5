// RunReport: the figures of a training run, and the page that shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training/trainer/observer.h"

namespace caldera {

/// The means of some steps in a row.
struct ReportPoint {
  std::int64_t step = 0;  ///< the last of them
  double loss = 0;
  double learning_rate = 0;
  double grad_norm = 0;
  double tokens_per_second = 0;
  double step_ms = 0;
  double peak_bytes = 0;  ///< the most
};

/// Holds the steps of a run, however long, as at most kMostPoints points: where there would be more, two
/// neighbours become one.
class ReportSeries {
 public:
  static constexpr std::size_t kMostPoints = 2000;

  /// Takes in the next step.
  void add(const ReportPoint& step);
  /// The points, ascending by step; the last may be of fewer steps than the others.
  std::vector<ReportPoint> points() const;

 private:
  void push(const ReportPoint& point);

  std::vector<ReportPoint> points_;
  std::int64_t stride_ = 1;  // steps a point
  ReportPoint open_;         // sums of the point that is being filled
  std::int64_t in_open_ = 0;
};

/// Counts the sequences of the data with lengths in [i * width, (i + 1) * width).
struct LengthHistogram {
  std::int64_t width = 1;
  std::vector<std::int64_t> counts;
};

using ReportTable = std::vector<std::pair<std::string, std::string>>;

struct RunReport {
  std::string title;
  std::int64_t total_steps = 0;
  std::vector<ReportPoint> points;
  std::vector<ValidationRecord> validations;
  double seconds = 0;                                           ///< of the run so far
  std::int64_t tokens = 0;                                      ///< trained on so far
  bool running = false;                                         ///< the page loads itself again
  std::vector<std::pair<std::int64_t, std::string>> samples{};  ///< what the model wrote after a step
  LengthHistogram lengths;                                      ///< of the training data
  ReportTable settings;
  ReportTable environment;
};

/// Writes one HTML file, which needs no network: cards, charts (loss with validation, learning rate, gradient
/// norm, tokens a second, time of a step, memory, lengths of the data), settings and environment.
std::string to_html(const RunReport& report);

/// Several runs, side by side.
struct RunComparison {
  std::vector<RunReport> runs;                  ///< their titles and curves
  std::vector<std::vector<std::string>> table;  ///< rows of cells, the first the headings
};

/// Writes one HTML file, which needs no network: the curves of all runs in each chart, and the table.
std::string to_html(const RunComparison& comparison);

/// Reads the report that such a page shows, so that a run that goes on can go on with it; nothing where the
/// text is no such page. Settings and environment are left out.
std::optional<RunReport> report_of_page(std::string_view html);

}  // namespace caldera

#include "training/vision/train/image_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "training/report/report_page.h"
#include "training/trainer/json_log.h"
#include "training/trainer/line_file.h"

namespace caldera::vision {
namespace {

constexpr std::size_t kMostPoints = 2000;

/// Counts on top of the common script: a table of classes by classes, shaded by the share of a row.
constexpr const char* kScript = R"js(
const A = 'var(--a)', B = 'var(--b)', end = D.total_steps, percent = v => v === null ? '\u2013' : `${(100 * v).toFixed(v > .9995 ? 0 : 1)} %`;
$('title').textContent = document.title = D.title;
$('subtitle').textContent = `${D.total_steps} steps, ${D.metrics.images} images to test`;
cards([[percent(D.metrics.accuracy), 'accuracy'], [percent(D.metrics.top5), 'among the best five'], [number(D.metrics.loss), 'loss on the test']]);
if (D.images_per_second) cards([[count(D.images_per_second), 'images a second']]);
if (D.step.length) {
  const line = (values, cls) => ({steps: D.step, values, cls, colour: A, name: cls === 'raw' ? '' : undefined});
  const tests = k => ({steps: D.epochs.map(e => e[0]), values: D.epochs.map(e => e[k]), cls: 'main', colour: B, dots: true, name: 'test'});
  chart('Loss', [line(D.loss, 'raw'), line(smooth(D.loss), 'main'), tests(2)], number, {end, wide: true, robust: true, zero: true, keys: [['training', A], ...(D.epochs.length ? [['test', B]] : [])]});
  if (D.epochs.length) chart('Accuracy on the test', [tests(1)], percent, {end});
  chart('Learning rate', [line(D.learning_rate, 'raw'), line(D.learning_rate, 'main')], v => digits(v, 3), {end, zero: true});
  chart('Images a second', [line(D.rate, 'raw'), line(smooth(D.rate), 'main')], count, {end, zero: true, robust: true});
}
const C = D.metrics.confusion, names = D.metrics.classes.map(c => c.name);
if (C.length <= 40) {
  const box = el('div', 'table'), holder = el('div', 'scroll'), body = el('table', 'confusion'), head = el('tr');
  head.append(el('th', '', 'class'), ...names.map(n => el('th', 'said', n)));
  body.append(head);
  C.forEach((row, i) => {
    const sum = Math.max(row.reduce((s, v) => s + v, 0), 1), tr = el('tr');
    tr.append(el('th', '', names[i]));
    row.forEach((v, j) => {
      const cell = el('td', v ? '' : 'none', `${v}`);
      if (v) cell.style.background = `color-mix(in srgb, ${i === j ? 'var(--c)' : 'var(--b)'} ${Math.round(12 + 68 * v / sum)}%, transparent)`;
      cell.title = `${names[i]} taken for ${names[j]}: ${v} of ${sum}`;
      tr.append(cell);
    });
    body.append(tr);
  });
  holder.append(body);
  box.append(el('h2', '', 'Confusion: a row for each true class, a column for what it was taken for'), holder);
  $('tables').before(box);
}
table('Classes', [['class', 'images', 'precision', 'recall'], ...D.metrics.classes.map(c => [c.name, `${c.images}`, percent(c.precision), percent(c.recall)])]);
)js";

constexpr const char* kHead = R"css(<style>
main>.table{margin-top:14px}.scroll{overflow-x:auto;padding:8px 12px}
.confusion{width:auto;min-width:60%;font-variant-numeric:tabular-nums}
.confusion th{font-weight:500;color:var(--soft);padding:4px 8px;text-align:right}
.confusion th.said{font-size:12px}
.confusion td,.confusion td:first-child{padding:4px 8px;text-align:right;border:1px solid var(--line);color:var(--ink)}
.confusion td.none{color:var(--soft);opacity:.6}
</style>)css";

}  // namespace

std::string to_html(const ImageReport& report) {
  nlohmann::ordered_json data = {{"title", report.title},
                                 {"total_steps", report.steps.empty() ? 0 : report.steps.back().total},
                                 {"images_per_second", report.images_per_second},
                                 {"metrics", to_json(report.metrics)},
                                 {"step", nlohmann::json::array()},
                                 {"loss", nlohmann::json::array()},
                                 {"learning_rate", nlohmann::json::array()},
                                 {"rate", nlohmann::json::array()},
                                 {"epochs", nlohmann::json::array()}};
  // A point is the mean of so many steps.
  const std::size_t stride = std::max<std::size_t>(1, (report.steps.size() + kMostPoints - 1) / kMostPoints);
  for (std::size_t at = 0; at < report.steps.size(); at += stride) {
    const std::size_t last = std::min(at + stride, report.steps.size());
    double loss = 0, rate = 0;
    for (std::size_t i = at; i < last; ++i) {
      loss += report.steps[i].loss;
      rate += report.steps[i].images_per_second;
    }
    const auto count = static_cast<double>(last - at);
    data["step"].push_back(report.steps[last - 1].step);
    data["loss"].push_back(nine_digits(loss / count));
    data["learning_rate"].push_back(nine_digits(report.steps[last - 1].learning_rate));
    data["rate"].push_back(nine_digits(rate / count));
  }
  for (const ImageValidation& epoch : report.epochs)
    data["epochs"].push_back({epoch.step, epoch.accuracy, nine_digits(epoch.loss)});
  return report_page::make_page(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kScript,
                                kHead);
}

ImageLog::ImageLog(const std::filesystem::path& path, std::int64_t first) {
  if (path.empty()) return;
  file_ = std::make_unique<detail::LineFile>(path, "the log", detail::LineFile::Warn{});
  if (first > 0)
    file_->begin([first](const std::string& line) { return caldera::detail::is_json_until(line, first); });
  else
    file_->begin({});
}
ImageLog::~ImageLog() = default;

void ImageLog::add(const ImageStepRecord& record) {
  if (!file_) return;
  const nlohmann::ordered_json line = {{"step", record.step},
                                       {"epoch", record.epoch},
                                       {"loss", nine_digits(record.loss)},
                                       {"learning_rate", nine_digits(record.learning_rate)},
                                       {"images_per_second", nine_digits(record.images_per_second)}};
  file_->write(line.dump());
}

}  // namespace caldera::vision

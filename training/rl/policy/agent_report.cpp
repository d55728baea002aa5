#include "training/rl/policy/agent_report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "training/report/report_page.h"
#include "training/trainer/json_log.h"

namespace caldera::rl {
namespace {

constexpr std::size_t kMostPoints = 2000;

constexpr const char* kScript = R"js(
const A = 'var(--a)', B = 'var(--b)', end = D.steps.length ? last(D.steps) : 0, E = D.evaluation;
const words = name => { const text = name.replaceAll('_', ' '); return (text[0].toUpperCase() + text.slice(1)).replace(/\bkl\b/, 'KL'); };
$('title').textContent = document.title = D.title;
$('subtitle').textContent = D.steps.length ? `${count(end)} steps, ${count(last(D.columns.episodes))} episodes` : 'no episode has ended yet';
if (E) cards([[number(E.mean), `mean return of ${E.returns.length} episodes without exploring`], [number(E.deviation), 'standard deviation']]);
if (D.steps.length) {
  const told = D.columns.mean_return.filter(Number.isFinite);
  if (told.length) cards([[number(last(told)), 'return while learning, last'], [number(Math.max(...told)), 'return while learning, best']]);
  cards([[count(last(D.columns.steps_per_second)), 'steps a second']]);
  const line = values => [{steps: D.steps, values, cls: 'main', colour: A, name: ''}];
  const noisy = values => [{steps: D.steps, values, cls: 'raw', colour: A, name: ''}, {steps: D.steps, values: smooth(values), cls: 'main', colour: A}];
  const varies = values => values.every(Number.isFinite) && values.some(v => v !== values[0]);
  const evaluated = E ? [{steps: [end], values: [E.mean], cls: 'main', colour: B, dots: true, name: 'evaluated'}] : [];
  chart('Return, mean of the last 100 episodes', [...line(D.columns.mean_return), ...evaluated], number, {end, wide: true, keys: [['while learning', A], ...(E ? [['evaluated', B]] : [])]});
  chart('Length of an episode, in steps', line(D.columns.mean_length), count, {end, zero: true});
  for (const name of Object.keys(D.columns)) {
    if (['episodes', 'mean_return', 'mean_length', 'steps_per_second'].includes(name)) continue;
    const values = D.columns[name];
    chart(words(name), varies(values) ? noisy(values) : line(values), number, {end, robust: true, zero: values.every(v => v >= 0)});
  }
  chart('Steps a second', line(D.columns.steps_per_second), count, {end, zero: true});
}
if (E) {
  const low = Math.min(...E.returns), high = Math.max(...E.returns), n = Math.max(1, Math.min(20, new Set(E.returns).size));
  const width = (high - low) / n || 1, bars = Array(n).fill(0);
  for (const v of E.returns) ++bars[Math.min(n - 1, Math.floor((v - low) / width))];
  const f = frame('Returns of the evaluation', []), most = Math.max(...bars);
  const x = i => LEFT + (f.width - LEFT - RIGHT) * i / n, y = v => TOP + (f.height - TOP - BOTTOM) * (1 - v / (most * 1.06));
  axes(f, v => x(high > low ? (v - low) / width : .5), y, high > low ? ticks(low, high, f.width / 100) : [low], ticks(0, most, 4).filter(Number.isInteger), number, count);
  bars.forEach((v, i) => {
    const bar = svg('rect', {class: 'bar', x: x(i) + .5, width: Math.max(x(i + 1) - x(i) - 1, .5), y: y(v), height: y(0) - y(v)});
    bar.addEventListener('pointerenter', () => f.now.textContent = `${number(low + i * width)} to ${number(low + (i + 1) * width)}: ${v} ${v === 1 ? 'episode' : 'episodes'}`);
    f.picture.append(bar);
  });
}
)js";

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = line.find(',');
    cells.push_back(line.substr(0, end));
    if (end != std::string_view::npos) line.remove_prefix(end + 1);
  }
  return cells;
}

/// NaN of an empty cell, nothing of one that is no number.
std::optional<double> number_of(std::string_view cell) {
  if (cell.empty()) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<double>> row_of(std::string_view line, std::size_t columns) {
  std::vector<double> row;
  for (const std::string_view cell : cells_of(line)) {
    const std::optional<double> value = number_of(cell);
    if (!value) return std::nullopt;
    row.push_back(*value);
  }
  if (row.size() != columns) return std::nullopt;
  return row;
}

nlohmann::ordered_json as_json(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(nine_digits(value)) : nlohmann::ordered_json();
}

}  // namespace

AgentReport read_agent_log(const std::filesystem::path& folder) {
  AgentReport report;
  std::ifstream file(folder / "progress.csv");
  std::string line;
  if (!std::getline(file, line)) return report;
  for (const std::string_view name : cells_of(line)) report.names.emplace_back(name);
  while (std::getline(file, line))
    if (auto row = row_of(line, report.names.size())) report.rows.push_back(std::move(*row));
  return report;
}

std::string to_html(const AgentReport& report) {
  nlohmann::ordered_json data = {{"title", report.title},
                                 {"steps", nlohmann::json::array()},
                                 {"columns", nlohmann::ordered_json::object()},
                                 {"evaluation", nullptr}};
  // The last of so many rows stands for them: most columns are means already.
  const std::size_t stride = std::max<std::size_t>(1, (report.rows.size() + kMostPoints - 1) / kMostPoints);
  for (std::size_t column = 0; column < report.names.size(); ++column) {
    nlohmann::ordered_json values = nlohmann::ordered_json::array();
    for (std::size_t at = 0; at < report.rows.size(); at += stride)
      values.push_back(as_json(report.rows[std::min(at + stride, report.rows.size()) - 1][column]));
    if (report.names[column] == "steps")
      data["steps"] = std::move(values);
    else
      data["columns"][report.names[column]] = std::move(values);
  }
  if (report.evaluation) {
    nlohmann::ordered_json returns = nlohmann::ordered_json::array();
    for (const double value : report.evaluation->returns) returns.push_back(as_json(value));
    data["evaluation"] = {{"mean", as_json(report.evaluation->mean_return)},
                          {"deviation", as_json(report.evaluation->std_return)},
                          {"returns", std::move(returns)}};
  }
  return report_page::make_page(data.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), kScript);
}

}  // namespace caldera::rl

// caldera scale: estimates data parallel training on machines that are not here.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments/command.h"
#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "cli/training/scale_picture.h"
#include "engine/base/byte_size.h"
#include "engine/distributed/distributed.h"
#include "engine/runtime/runtime.h"
#include "lm/base/atomic_file.h"
#include "lm/models/registry.h"
#include "ops/linalg/matmul.h"
#include "training/trainer/scaling.h"

namespace caldera::cli {
namespace {

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    parts.push_back(list.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::int64_t nodes_in(const std::string& text) {
  std::int64_t n = 0;
  const char* const end = text.data() + text.size();
  if (const auto [stopped, error] = std::from_chars(text.data(), end, n);
      error != std::errc() || stopped != end || n < 1 || n > 1'000'000)
    throw UsageError(fmt::format("--nodes: '{}' is no number of nodes; use 8, 1,2,4 or 2..1024", text));
  return n;
}

/// "2..1024" is 2, 4, 8 ... 1024.
std::vector<std::int64_t> nodes_of(const std::string& list) {
  std::vector<std::int64_t> all;
  for (const std::string& part : parts_of(list)) {
    const std::size_t dots = part.find("..");
    if (dots == std::string::npos) {
      all.push_back(nodes_in(part));
      continue;
    }
    const std::int64_t first = nodes_in(part.substr(0, dots)), last = nodes_in(part.substr(dots + 2));
    if (last < first)
      throw UsageError(fmt::format("--nodes: {} has no number of nodes; use {}..{}", part, last, first));
    for (std::int64_t n = first; n <= last; n *= 2) all.push_back(n);
  }
  return all;
}

Link link_of(const std::string& name) {
  if (name == "measured") {
    const distributed::Group group = distributed::init();
    if (group.size() == 1)
      throw UsageError("--link measured: measures what joins several processes: start them with mpirun -n 2");
    return measured_link(group.ranks());
  }
  const std::vector<Link>& links = known_links();
  const auto found = std::ranges::find(links, name, &Link::name);
  if (found != links.end()) return *found;
  std::string known;
  for (const Link& link : links) known += fmt::format("{}{}", known.empty() ? "" : ", ", link.name);
  throw UsageError(fmt::format("--link: '{}' is not known; {} and measured are", name, known));
}

/// Operations a second of a product of matrices on the device, the best of a few.
double measured_flops(Device device) {
  constexpr std::int64_t kSize = 1024;
  const LazyTensor a = LazyTensor::ones({kSize, kSize}, DType::f32, device);
  eval(std::vector<LazyTensor>{a});
  double best = 1e-9;
  for (int k = 0; k < 4; ++k) {
    const auto begin = std::chrono::steady_clock::now();
    LazyTensor product = matmul(a, a);
    eval(std::vector<LazyTensor>{product});
    synchronize();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * kSize * kSize * kSize / seconds);
  }
  return best;
}

class ScaleCommand : public Command {
 public:
  ScaleCommand() : Command("scale", "Estimate training that many machines share") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("--config", config_, "The model's config.json").required().type_name("FILE.json");
    args.option("--nodes", nodes_, "Numbers of nodes, a process each: 8, 1,2,4 or 2..1024 (powers of two)")
        .type_name("LIST")
        .show_default();
    args.option("--link", link_,
                "What joins them: 1GbE, 10GbE, 100Gb, NVLink, shared (one machine), or measured, "
                "between the processes that mpirun has started")
        .type_name("LIST")
        .show_default();
    args.option("--rank", rank_, "Rank of LoRA on every matrix of the layers; 0 trains all parameters")
        .type_name("N")
        .check(integer_in(0, 1 << 16))
        .show_default();
    args.option("--tokens", step_.tokens, "Tokens that a node computes in a step")
        .type_name("N")
        .check(integer_in(1, std::int64_t{1} << 40))
        .show_default();
    args.option("--tflops", tflops_,
                "What a node computes, in 10^12 operations a second (default: measured on --device)")
        .type_name("X")
        .check(number_in(1e-6, 1e6));
    args.option("--picture", picture_, "Draw the efficiency of all rows there").type_name("FILE.svg");
    args.option("--reduction", reduction_, "How gradients are summed")
        .one_of({"fixed", "fast"})
        .show_default();
  }

  void run() override {
    step_.fast = reduction_ == "fast";
    const std::vector<std::int64_t> counts = nodes_of(nodes_);
    std::vector<Link> links;
    for (const std::string& name : parts_of(link_)) links.push_back(link_of(name));
    count_parameters();
    step_.flops = tflops_ > 0 ? tflops_ * 1e12 : measured_flops(open_device());
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    for (const Link& link : links)
      for (const std::int64_t nodes : counts) rows.push_back(row_of(link, nodes));
    if (distributed::started_rank() > 0) return;
    if (!picture_.empty()) write_picture(rows);
    if (json())
      return print_json({{"parameters", step_.parameters}, {"trained", step_.trained}, {"rows", rows}});
    print(links, rows);
  }

 private:
  void print(const std::vector<Link>& links, const nlohmann::ordered_json& rows) const {
    fmt::print("{} of {} parameters trained, {} tokens a node and step, {:.3g} TFLOP/s a node\n",
               step_.trained, step_.parameters, step_.tokens, step_.flops / 1e12);
    for (const Link& link : links)
      fmt::print("{}: {:.3g} us a message, {:.3g} GB/s\n", link.name, 1e6 * link.latency,
                 link.bandwidth / 1e9);
    fmt::print("{:>8} {:>7} {:>12} {:>12} {:>12} {:>11}\n", "link", "nodes", "step", "traffic", "memory",
               "efficiency");
    for (const auto& row : rows)
      fmt::print("{:>8} {:>7} {:>9.2f} ms {:>12} {:>12} {:>10.1f}%\n", row["link"].get<std::string>(),
                 row["nodes"].get<std::int64_t>(), row["step_ms"].get<double>(),
                 format_bytes(row["traffic_bytes"].get<std::int64_t>()),
                 format_bytes(row["rank_bytes"].get<std::int64_t>()), 100 * row["efficiency"].get<double>());
  }

  void write_picture(const nlohmann::ordered_json& rows) const {
    std::vector<ScaleLine> lines;
    for (const auto& row : rows) {
      const auto link = row["link"].get<std::string>();
      if (lines.empty() || lines.back().link != link) lines.push_back({.link = link, .points = {}});
      lines.back().points.emplace_back(row["nodes"].get<double>(), row["efficiency"].get<double>());
    }
    write_text_file(picture_, scale_picture(lines));
  }

  void count_parameters() {
    const std::unique_ptr<CausalLM> model = make_causal_lm(config_, Device::cpu(), 0);
    step_.parameters = model->parameter_count();
    step_.trained = rank_ == 0 ? step_.parameters : 0;
    if (rank_ == 0) return;
    for (const Parameter& p : model->parameters()) {
      if (p.tensor->shape().rank() == 2 && p.name.find(".layers.") != std::string::npos)
        step_.trained += rank_ * (p.tensor->shape(0) + p.tensor->shape(1));
    }
  }

  nlohmann::ordered_json row_of(const Link& link, std::int64_t nodes) const {
    const ScaledRow row = scaled_row(step_, link, nodes);
    return {{"link", std::string(link.name)},
            {"nodes", nodes},
            {"step_ms", 1000 * row.step()},
            {"traffic_bytes", std::llround(row.traffic_bytes)},
            {"rank_bytes", std::llround(row.rank_bytes)},
            {"efficiency", row.efficiency()}};
  }

  std::string config_, nodes_ = "2..1024", link_ = "1GbE,10GbE,100Gb,NVLink", reduction_ = "fixed", picture_;
  std::int64_t rank_ = 16;
  double tflops_ = 0;
  ScaledStep step_{.tokens = 4096};
};

}  // namespace

CommandPtr make_scale_command() { return std::make_unique<ScaleCommand>(); }

}  // namespace caldera::cli

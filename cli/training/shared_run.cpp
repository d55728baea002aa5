#include "cli/training/shared_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "cli/training/run_settings.h"
#include "engine/distributed/distributed.h"
#include "lm/models/sharded_base.h"

namespace caldera::cli {

namespace {

/// Throws UsageError, on all ranks the same, for a setting that another rank has otherwise than rank 0.
void require_same_settings(const distributed::Group& group, const std::vector<Setting>& settings) {
  std::string own;
  for (const std::string& line : common_settings(settings)) own += line + '\0';
  std::vector<std::vector<std::string>> all;
  for (const std::vector<std::byte>& given : group.ranks().gather(std::as_bytes(std::span(own)))) {
    std::vector<std::string>& lines = all.emplace_back();
    const std::string_view text(reinterpret_cast<const char*>(given.data()), given.size());
    for (std::size_t at = 0, end = 0; (end = text.find('\0', at)) != std::string_view::npos; at = end + 1)
      lines.emplace_back(text.substr(at, end - at));
  }
  const auto missing = [](const std::vector<std::string>& lines, const std::vector<std::string>& among) {
    for (const std::string& line : lines)
      if (std::ranges::find(among, line) == among.end()) return line;
    return std::string();
  };
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::string its = missing(all[rank], all[0]), first = missing(all[0], all[rank]);
    const auto shown = [](const std::string& line) {
      return line.empty() ? std::string("no such setting") : line;
    };
    throw UsageError(
        fmt::format("rank {} runs with other settings than rank 0 ({}, not {}): start all processes of a run "
                    "with the same "
                    "program and flags",
                    rank, shown(its), shown(first)));
  }
}

}  // namespace

void SharingFlags::declare(Arguments& args) {
  args.option("--reduction", reduction,
              "Of several processes (mpirun): how gradients are summed, in an order that does not depend on "
              "how many they are, or as MPI likes")
      .one_of({"fixed", "fast"})
      .show_default();
  args.option(
          "--timeout", timeout,
          "Of several processes: seconds that they wait for one that does not come before all end; 0 waits "
          "for ever")
      .type_name("SECONDS")
      .check(number_in(0, 1e9))
      .show_default();
  args.flag(
      "--shard-optimizer", shard_optimizer,
      "Of several processes: each keeps the optimiser's state of its share of the parameters alone; the "
      "result is the same");
  args.option("--gradient-type", gradient_type,
              "Of several processes: what gradients are sent in; what bf16 rounds off is added to the next "
              "step's")
      .one_of({"f32", "bf16"})
      .show_default();
  args.option(
          "--top-gradients", top_gradients,
          "Of several processes: the share of a gradient's elements that is sent, the largest; the others "
          "are added to the next step's")
      .type_name("SHARE")
      .check(number_in(0, 1, /*open_low=*/true))
      .show_default();
  args.option(
          "--sync-every", sync_every,
          "Of several processes: each trains by itself for so many steps, then they become their mean, by "
          "a step of an outer optimiser (DiLoCo); 0 sums the gradients of every step")
      .type_name("STEPS")
      .check(integer_in(0, std::int64_t{1} << 40))
      .show_default();
  args.option("--outer-learning-rate", outer_learning_rate, "With --sync-every: of the outer step")
      .type_name("X")
      .check(positive_number())
      .show_default();
  args.option("--outer-momentum", outer_momentum, "With --sync-every: Nesterov's, of the outer step")
      .type_name("X")
      .check(number_in(0, 1, /*open_low=*/false, /*open_high=*/true))
      .show_default();
}

void SharingFlags::declare_shard_base(Arguments& args) {
  args.flag(
      "--shard-base", shard_base,
      "Of several processes: each keeps a part of the frozen weights of the layers; a layer is gathered "
      "while the one before it computes, and the result is the same");
}

std::string SharingFlags::divide(CausalLM& model) {
  const distributed::Group group = distributed::init();
  const ShardedBase divided = caldera::shard_base(model, group);
  return fmt::format(
      "{} parameters of its layers divided among {} ranks: {} bytes on each, and two layers of {} bytes; "
      "embeddings, head and norms of {} bytes are whole on each",
      divided.parameters, group.size(), divided.own_bytes, divided.largest_layer_bytes, divided.whole_bytes);
}

void SharingFlags::apply(TrainOptions& options, std::vector<Setting>& settings) const {
  if (sync_every > 0 && (shard_optimizer || gradient_type != "f32" || top_gradients < 1))
    throw UsageError(
        "--sync-every sends no gradients, and every process has an optimiser of its own: leave out "
        "--shard-optimizer, --gradient-type and --top-gradients");
  options.sharing = {.fast_reduction = reduction == "fast",
                     .shard_optimizer = shard_optimizer,
                     .base_is_sharded = shard_base,
                     .sync_every = sync_every,
                     .outer_learning_rate = outer_learning_rate,
                     .outer_momentum = outer_momentum,
                     .gradient_type = gradient_type == "bf16" ? DType::bf16 : DType::f32,
                     .top_share = top_gradients};
  const distributed::Group group = distributed::init({.timeout = timeout});
  if (group.size() == 1) return;
  require_same_settings(group, settings);
  options.ranks = std::make_shared<distributed::Communicator>(group.ranks());
  if (options.grad_accumulation >= group.size()) return;
  const std::int64_t rows = options.batch_size * options.grad_accumulation;
  if (rows < group.size())
    throw UsageError(
        fmt::format("{} processes share a step of {} rows: give a larger --batch-size or "
                    "--grad-accumulation, or start fewer",
                    group.size(), rows));
  // The step keeps its rows: in as few batches as there are ranks or more.
  options.grad_accumulation = group.size();
  while (rows % options.grad_accumulation != 0) ++options.grad_accumulation;
  options.batch_size = rows / options.grad_accumulation;
  for (Setting& setting : settings) {
    if (setting.name == "batch-size") setting.values = {std::to_string(options.batch_size)};
    if (setting.name == "grad-accumulation") setting.values = {std::to_string(options.grad_accumulation)};
  }
  if (group.rank() > 0) return;
  fmt::print(stderr, "note: {} processes share {} rows a step: --batch-size {} --grad-accumulation {}\n",
             group.size(), rows, options.batch_size, options.grad_accumulation);
}

std::string describe_ranks(Device device) {
  const distributed::Group group = distributed::init();
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string own = fmt::format("{} of {}", device.to_string(), host);
  std::string text = fmt::format("{} ranks of {}:", group.size(), distributed::mpi_name());
  int rank = 0;
  for (const std::vector<std::byte>& place : group.ranks().gather(std::as_bytes(std::span(own)))) {
    text += fmt::format("{} {} on {}", rank > 0 ? "," : "", rank,
                        std::string_view(reinterpret_cast<const char*>(place.data()), place.size()));
    ++rank;
  }
  return text;
}

}  // namespace caldera::cli

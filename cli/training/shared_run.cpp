#include "cli/training/shared_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string_view>

#include "cli/arguments/usage_error.h"
#include "engine/distributed/distributed.h"

namespace caldera::cli {

void share_among_ranks(TrainOptions& options, std::vector<Setting>& settings, const std::string& reduction,
                       double timeout) {
  const distributed::Group group = distributed::init({.timeout = timeout});
  options.fast_reduction = reduction == "fast";
  if (group.size() == 1) return;
  options.ranks = std::make_shared<distributed::Communicator>(group.ranks());
  if (options.grad_accumulation >= group.size()) return;
  const std::int64_t rows = options.batch_size * options.grad_accumulation;
  if (rows < group.size())
    throw UsageError(
        fmt::format("{} processes share a step of {} rows: give a larger --batch-size or "
                    "--grad-accumulation, or start fewer",
                    group.size(), rows));
  options.grad_accumulation = group.size();
  options.batch_size = (rows + group.size() - 1) / group.size();
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

#include "cli/arguments/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments/choose_device.h"
#include "cli/arguments/domains.h"
#include "engine/base/byte_size.h"
#include "engine/device/cpu_threads.h"
#include "engine/distributed/distributed.h"
#include "engine/graph/lazy_tensor.h"
#include "engine/runtime/runtime.h"
#include "engine/runtime/survey.h"

namespace caldera::cli {

void Command::declare(Arguments& args) {
  add_options(args);
  args.option("--device", device_,
              "cpu, vulkan, vulkan:N or auto: the best hardware Vulkan GPU, else the CPU (default: "
              "$CALDERA_DEVICE, else auto)")
      .type_name("DEVICE");
  args.flag("--json", json_, "Print one JSON document on standard output, and nothing else there");
  args.option("--threads", threads_, "CPU threads (default: all cores this process may use)")
      .type_name("N")
      .check(integer_in(1, 4096));
}

void Command::execute() {
  for (const auto& [flag, option] : refused_)
    if (option.given()) throw UsageError(flag + " is not available in this version");
  if (threads_) set_cpu_threads(static_cast<int>(*threads_));
  run();
}

void Command::add_refused(Arguments& args, const std::string& flag) {
  refused_.emplace_back(flag, args.hidden(flag, "Not available in this version"));
}

void Command::add_memory_limit(Arguments& args) {
  memory_limit_option_ = args.option("--memory-limit", memory_limit_,
                                     "Most memory to take on the device at a time, for example 512MiB "
                                     "(default: $CALDERA_MEMORY_LIMIT, else what the device has)")
                             .type_name("SIZE");
}

namespace {

/// Of several processes on a machine each takes a device: of a list (vulkan:0,vulkan:1), which has as many,
/// that of its number there, or Vulkan's of that number where no number is given and there are as many.
std::string device_of_rank(const std::string& flag) {
  const int rank = distributed::is_started() ? distributed::local_rank() : 0;
  if (flag.find(',') != std::string::npos) {
    std::vector<std::string> listed;
    for (std::size_t at = 0; at <= flag.size();) {
      const std::size_t end = std::min(flag.find(',', at), flag.size());
      listed.push_back(flag.substr(at, end - at));
      at = end + 1;
    }
    const int processes = distributed::is_started() ? distributed::local_size() : 1;
    if (std::ssize(listed) != processes)
      throw UsageError(fmt::format(
          "--device {}: lists {} devices, and {} of the run are on this machine: list as many (one may stand "
          "there "
          "several times)",
          flag, listed.size(), processes == 1 ? "1 process" : fmt::format("{} processes", processes)));
    const std::string& own = listed[static_cast<std::size_t>(rank)];
    if (own.empty())
      throw UsageError(fmt::format("--device {}: device {} of the list has no name", flag, rank + 1));
    return own;
  }
  if (!distributed::is_started() || (flag != "vulkan" && flag != "auto" && !flag.empty())) return flag;
  std::vector<std::string> cards;
  for (const DeviceInfo& info : list_devices())
    if (info.device.kind == DeviceKind::vulkan && info.type != "software")
      cards.push_back(info.device.to_string());
  return cards.size() < 2 ? flag : cards[static_cast<std::size_t>(rank) % cards.size()];
}

}  // namespace

Device Command::open_device() const {
  std::uint64_t limit = 0;
  try {
    if (memory_limit_option_.given()) limit = parse_bytes(memory_limit_, "--memory-limit");
  } catch (const ValueError& error) {
    throw UsageError(error.what());
  }
  if (!threads_ && distributed::is_started())
    set_cpu_threads(std::max(1, cpu_threads() / distributed::local_size()));
  const Device device = choose_device(device_of_rank(device_));
  backend(device);
  if (limit > 0) set_memory_limit(device, limit);
  set_default_device(device);
  return device;
}

Device Command::open_survey() const {
  const Device device = choose_device(device_);
  open_for_survey(device);
  set_default_device(device);
  return device;
}

void Command::print_json(const nlohmann::ordered_json& document) {
  if (distributed::started_rank() > 0) return;
  // Generated text may end inside a character; JSON may not.
  fmt::print("{}\n", document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Command::note(const std::string& line) const {
  if (distributed::started_rank() > 0) return;
  fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
}

}  // namespace caldera::cli

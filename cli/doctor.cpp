// caldera doctor: what is right, wrong and missing on this machine's device.
#include "engine/runtime/inspect/doctor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/arguments/command.h"
#include "engine/runtime/runtime.h"

namespace caldera::cli {
namespace {

using doctor::Check;
using doctor::Report;

constexpr std::size_t kWorst = 10;
/// Lines a failed check in the report for people.
constexpr std::size_t kMostComplaints = 4;

nlohmann::ordered_json to_json(const Check& check) {
  return {{"name", check.name}, {"error", check.error}, {"tolerance", check.tolerance}};
}

class DoctorCommand : public Command {
 public:
  DoctorCommand() : Command("doctor", "Check every kernel of a device against the f64 reference") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("--filter", filter_, "Only the families of checks whose name contains TEXT")
        .type_name("TEXT");
  }

  void run() override {
    const Device device = open_device();
    const auto start = std::chrono::steady_clock::now();
    const DeviceInfo& info = device_info(device);
    note(fmt::format("doctor: {} ({}, {})", info.name, info.type, info.driver));
    if (settings().memory_limit > 0) {
      // The checks have a size; too little room for them says nothing about the device.
      set_memory_limit(device, 0);
      note(fmt::format("doctor: the memory limit of {} bytes is lifted for the examination",
                       settings().memory_limit));
    }
    bool ran = false;  // one family or more
    std::size_t checks = 0;
    std::int64_t failed = 0;
    const Report report =
        doctor::examine(device, filter_, [&](const std::string& family, const Report& so_far) {
          ran = true;
          note(fmt::format("doctor: {}: {} checks, {} failed", family, so_far.checks.size() - checks,
                           so_far.failed() - failed));
          checks = so_far.checks.size();
          failed = so_far.failed();
        });
    if (!ran)
      throw UsageError(fmt::format("--filter: no family of checks is called '{}'; there are {}", filter_,
                                   fmt::join(doctor::family_names(device), ", ")));
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (json())
      print_document(device, report);
    else
      print_report(info, report);
    if (report.failed() > 0)
      throw Error(
          fmt::format("{} of {} checks failed on {}; what it computes is not to be trusted, run with "
                      "--device cpu and report this output",
                      report.failed(), report.checks.size(), info.name));
  }

 private:
  void print_document(Device device, const Report& report) const {
    nlohmann::ordered_json document{
        {"device", device.to_string()}, {"checks", report.checks.size()}, {"failed", report.failed()}};
    document["skipped"] = nlohmann::ordered_json::array();
    for (const doctor::Skip& skip : report.skipped)
      document["skipped"].push_back({{"name", skip.name}, {"reason", skip.reason}});
    document["worst"] = nlohmann::ordered_json::array();
    for (const Check* check : report.worst(kWorst)) document["worst"].push_back(to_json(*check));
    document["failures"] = nlohmann::ordered_json::array();
    for (const Check& check : report.checks) {
      if (check.good()) continue;
      nlohmann::ordered_json entry = to_json(check);
      entry["source"] = check.source;
      entry["details"] = check.complaints;
      document["failures"].push_back(std::move(entry));
    }
    document["seconds"] = seconds_;
    print_json(document);
  }

  void print_report(const DeviceInfo& info, const Report& report) const {
    fmt::print("{} ({}{}{})\n", info.name, info.type, info.driver.empty() ? "" : ", ", info.driver);
    fmt::print("right:   {} of {} checks, {:.0f} s\n",
               static_cast<std::int64_t>(report.checks.size()) - report.failed(), report.checks.size(),
               seconds_);
    fmt::print("wrong:   {}\n", report.failed());
    for (const Check& check : report.checks) {
      if (check.good()) continue;
      fmt::print("  {}: error {:.3g}, allowed {:.3g} ({})\n", check.name, check.error, check.tolerance,
                 check.source);
      for (std::size_t i = 0; i < std::min(kMostComplaints, check.complaints.size()); ++i)
        fmt::print("    {}\n", check.complaints[i]);
    }
    fmt::print("missing: {}\n", report.skipped.size());
    for (const doctor::Skip& skip : report.skipped) fmt::print("  {}: {}\n", skip.name, skip.reason);
    fmt::print("nearest to what is allowed:\n");
    for (const Check* check : report.worst(kWorst))
      if (check->good() && check->tolerance > 0)
        fmt::print("  {}: {:.2g} of {:.2g} ({})\n", check->name, check->error, check->tolerance,
                   check->source);
  }

  std::string filter_;
  double seconds_ = 0;
};

}  // namespace

CommandPtr make_doctor_command() { return std::make_unique<DoctorCommand>(); }

}  // namespace caldera::cli

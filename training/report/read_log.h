// read_log: the curves of a run from what it wrote.
#pragma once

#include <filesystem>
#include <optional>

#include "training/report/run_report.h"

namespace caldera {

/// Reads the steps and validations of a log (JSON Lines, or CSV where its name ends in .csv) or of a report
/// (.html). Lines that are none of a log are passed over. Nothing where the file cannot be read or has no
/// step.
std::optional<RunReport> read_log(const std::filesystem::path& path);

}  // namespace caldera

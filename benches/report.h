// Shows results: JSON, a table for the terminal, tables for docs/records/performance.md.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "benches/runner.h"

namespace caldera::bench {

/// {"name","shape","dtype","device","submit_us","device_us","total_us","spread","limit_us","bound_by",
/// "gb_per_s","gflop_per_s","peers","ratio", ...}; ratio is this engine's time over the peer's. What does not
/// apply is null.
nlohmann::ordered_json to_json(const Result& result);

/// An aligned table, one line a result.
std::string to_table(std::span<const Result> results);

/// Replaces what stands between the lines "<!-- bench:begin -->" and "<!-- bench:end -->" of a Markdown file
/// by a description of the environment and a table a suite. Throws FileError as check_markdown does, and when
/// the file cannot be written.
void write_markdown(const std::filesystem::path& file, std::span<const Result> results,
                    const nlohmann::ordered_json& environment);

/// Throws FileError when the file cannot be read or has no such lines.
void check_markdown(const std::filesystem::path& file);

}  // namespace caldera::bench

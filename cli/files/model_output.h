// Declares what commands that write models ask for: a format, a type of weights, a place.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lm/formats/convert/convert.h"

namespace caldera::cli {

/// The names of all formats of models, as --to takes them.
std::vector<std::string> model_format_names();
/// The format with one of these names.
ModelFormat model_format(const std::string& name);

/// Throws UsageError where --type names a type that the format does not have; nothing for an empty one.
void check_weight_type(ModelFormat format, const std::string& type);
/// Throws UsageError where --out is `from`, whose files are read while the new ones are written.
void check_other_place(const std::filesystem::path& from, const std::filesystem::path& out);
/// Throws FileError unless a model of the format can be written at --out.
void check_model_output(ModelFormat format, const std::filesystem::path& out);

}  // namespace caldera::cli

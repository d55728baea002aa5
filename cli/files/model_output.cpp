#include "cli/files/model_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "cli/arguments/usage_error.h"
#include "cli/files/outputs.h"

namespace caldera::cli {
namespace {

using NamedFormat = std::pair<std::string_view, ModelFormat>;
constexpr std::array kFormats{NamedFormat{"safetensors", ModelFormat::safetensors},
                              NamedFormat{"gguf", ModelFormat::gguf}, NamedFormat{"mlx", ModelFormat::mlx}};

}  // namespace

std::vector<std::string> model_format_names() {
  std::vector<std::string> names;
  names.reserve(kFormats.size());
  for (const auto& [name, format] : kFormats) names.emplace_back(name);
  return names;
}

ModelFormat model_format(const std::string& name) {
  return std::ranges::find(kFormats, name, &NamedFormat::first)->second;
}

void check_weight_type(ModelFormat format, const std::string& type) {
  const std::vector<std::string> types = weight_types(format);
  if (type.empty() || std::ranges::find(types, type) != types.end()) return;
  const auto* const named = std::ranges::find(kFormats, format, &NamedFormat::second);
  throw UsageError(fmt::format("--type {} does not go with --to {}, which has {}", type, named->first,
                               fmt::join(types, ", ")));
}

void check_other_place(const std::filesystem::path& from, const std::filesystem::path& out) {
  std::error_code ignored;
  if (std::filesystem::equivalent(from, out, ignored))
    throw UsageError(fmt::format("--out {} is {} itself; name another place", out.string(), from.string()));
}

void check_model_output(ModelFormat format, const std::filesystem::path& out) {
  if (format == ModelFormat::gguf)
    check_output_file(out, "--out");
  else
    check_output_folder(out, {"config.json", "model.safetensors"}, "--out");
}

}  // namespace caldera::cli

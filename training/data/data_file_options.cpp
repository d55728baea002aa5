#include "training/data/data_file_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/base/error.h"
#include "training/data/forms/forms.h"

namespace caldera {

std::map<std::string, std::string> parse_columns(std::string_view text) {
  std::map<std::string, std::string> columns;
  const auto known = detail::data_fields();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == part.npos || equals == 0 || equals + 1 == part.size())
      throw ValueError(fmt::format("'{}': give FIELD=COLUMN, as in prompt=question,completion=answer", part));
    const std::string field(part.substr(0, equals));
    if (std::ranges::find(known, field) == known.end())
      throw ValueError(
          fmt::format("'{}' is no field of the data: those are {}", field, fmt::join(known, ", ")));
    if (!columns.emplace(field, part.substr(equals + 1)).second)
      throw ValueError(fmt::format("'{}' is given two columns", field));
  }
  return columns;
}

}  // namespace caldera

#include "training/data/files/data_file.h"

#include <fmt/format.h>

#include <array>

namespace caldera::detail {
namespace {

struct RefusedKind {
  std::string_view extension;
  std::string_view magic;  // what such a file begins with
  std::string_view what;
  std::string_view advice;  // {}: the file without its extension
};

constexpr std::array kRefused{
    RefusedKind{".parquet", "PAR1", "Parquet",
                "python3 -c \"import pandas; pandas.read_parquet('{0}.parquet').to_json('{0}.jsonl', "
                "orient='records', "
                "lines=True)\""},
    RefusedKind{
        ".arrow", "ARROW1", "Arrow",
        "python3 -c \"import datasets; datasets.Dataset.from_file('{0}.arrow').to_json('{0}.jsonl')\""},
    RefusedKind{".gz", "\x1F\x8B", "compressed", "gunzip -k {0}.gz"},
    RefusedKind{".zst", "\x28\xB5\x2F\xFD", "compressed", "unzstd {0}.zst"},
    RefusedKind{".xz",
                "\xFD"
                "7zXZ",
                "compressed", "unxz -k {0}.xz"},
    RefusedKind{".zip", "PK\x03\x04", "compressed", "unzip {0}.zip"},
    RefusedKind{".xlsx", "", "a spreadsheet", "export it as CSV"},
};

}  // namespace

std::span<const RowReaderKind> row_reader_kinds() {
  static const std::array kKinds{jsonl_rows(), json_rows(), csv_rows(), tsv_rows()};
  return kKinds;
}

std::vector<std::string_view> data_extensions() {
  std::vector<std::string_view> extensions;
  for (const RowReaderKind& kind : row_reader_kinds()) extensions.push_back(kind.extension);
  extensions.push_back(".txt");
  return extensions;
}

std::string advice_for(const std::filesystem::path& path, std::string_view head) {
  for (const RefusedKind& kind : kRefused) {
    if (path.extension() != kind.extension && (kind.magic.empty() || !head.starts_with(kind.magic))) continue;
    std::filesystem::path stem = path;
    stem.replace_extension();
    return fmt::format("the file is {}; convert it: {}", kind.what,
                       fmt::format(fmt::runtime(kind.advice), stem.string()));
  }
  return {};
}

}  // namespace caldera::detail

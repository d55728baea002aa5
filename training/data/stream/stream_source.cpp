#include "training/data/stream/stream_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/splitmix64.h"
#include "training/data/example_rows.h"
#include "training/data/files/data_file.h"

namespace caldera::detail {
namespace {

/// Rows that a file's weight lets pass in an epoch.
std::int64_t passing(const StreamSource::File& file) {
  return std::llround(file.data.weight * static_cast<double>(file.rows));
}

const RowReaderKind* reader_of(const std::filesystem::path& path) {
  const auto kinds = row_reader_kinds();
  const auto kind = std::ranges::find(kinds, path.extension().string(), &RowReaderKind::extension);
  return kind == kinds.end() ? nullptr : &*kind;
}

StreamSource::File open_file(const DataPath& data, std::int64_t held_out) {
  const std::filesystem::path path = train_file(data.path);
  const RowReaderKind* reader = reader_of(path);
  const bool is_text = path.extension() == ".txt";
  if (!is_text && (reader == nullptr || reader->split == nullptr)) {
    const std::string advice = advice_for(path, {});
    throw FileError(fmt::format("{}: a stream reads .jsonl, .csv, .tsv and .txt{}", path.string(),
                                !advice.empty() ? "; " + advice
                                : path == "-"   ? "; standard input can be read once alone"
                                : path.extension() == ".json"
                                    ? "; convert the file: jq -c '.[]' FILE.json > FILE.jsonl"
                                    : ""));
  }
  StreamSource::File file{
      .data = {.path = path, .weight = data.weight},
      .index = RowIndex(path, is_text ? split_blocks : reader->split, !is_text && reader->has_header),
      .reader = is_text ? nullptr : reader,
      .rows = 0};
  file.rows = file.index.size() - std::min(held_out, file.index.size() / 20);
  return file;
}

}  // namespace

StreamSource::StreamSource(std::span<const DataPath> files, DataFileOptions options, std::int64_t held_out)
    : options_(std::move(options)) {
  for (const DataPath& data : files) files_.push_back(open_file(data, held_out));
}

std::int64_t StreamSource::epoch_size() const {
  std::int64_t size = 0;
  for (const File& file : files_) size += passing(file);
  return std::max<std::int64_t>(size, 1);
}

StreamSource::Order::Order(const StreamSource& source, std::uint64_t seed, std::uint64_t epoch)
    : source_(&source), all_(source.epoch_size(), seed, epoch) {
  for (std::size_t i = 0; i < source.files_.size(); ++i)
    parts_.emplace_back(std::max<std::int64_t>(source.files_[i].rows, 1), splitmix64(seed + i + 1), epoch);
}

StreamSource::Place StreamSource::Order::operator[](std::int64_t position) const {
  std::int64_t at = all_[position];
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const File& file = source_->files_[i];
    const std::int64_t passes = passing(file);
    if (at >= passes) {
      at -= passes;
      continue;
    }
    // Whole passes, and of the last one rows that no other epoch is likely to draw alike.
    const std::int64_t row = at % file.rows;
    return {i, at < passes / file.rows * file.rows ? row : parts_[i][row]};
  }
  return {0, 0};  // weights so small that nothing passes
}

ExampleSet StreamSource::set_for(std::size_t file) const {
  return {.plain_text = files_[file].reader == nullptr, .examples = {}};
}

std::size_t StreamSource::read(Place place, ExampleSet& to, RowLosses& losses, const RowKind* kind) const {
  const File& file = files_[place.file];
  const std::string path = file.data.path.string();
  if (place.row >= file.index.size()) return 0;  // a file with no row
  IndexedRow found = file.index.read(place.row);
  const std::size_t bytes = found.text.size();
  try {
    if (file.reader == nullptr) {
      require_utf8(found.text, path, found.offset);
      to.examples.push_back({"", std::move(found.text)});
      return bytes;
    }
    const std::string& header = file.index.header();
    const std::string text = header + found.text;
    const auto reader =
        file.reader->make(text, {.path = path, .line = found.line - std::ranges::count(header, '\n')});
    DataRow row;
    if (!reader->next(row)) return bytes;  // a blank line
    Example example = read_example(row, options_);
    if (kind != nullptr && example.kind != kind->kind)
      throw FileError(fmt::format("{}: the row is of another kind than the first ones: {}, not {}", row.where,
                                  description_of(example.kind), description_of(kind->kind)));
    if (kind != nullptr && kind->labelled && !example.label)
      throw FileError(fmt::format("{}: the row has no \"label\", and the first ones have", row.where));
    if (example.text.empty())
      ++losses.empty;
    else
      to.examples.push_back(std::move(example));
  } catch (const FileError& error) {
    if (!options_.skip_bad_rows) throw;
    if (losses.bad++ == 0) losses.first_bad = error.what();
  }
  return bytes;
}

}  // namespace caldera::detail

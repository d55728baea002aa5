// StreamSource: the rows of several files as examples, by their places in the order of an epoch. Private to
// training/data/stream/.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "training/data/example_files.h"
#include "training/data/files/row_reader.h"
#include "training/data/stream/permutation.h"
#include "training/data/stream/row_index.h"

namespace caldera::detail {

/// Rows that could not be used, and why.
struct RowLosses {
  std::int64_t empty = 0;
  std::int64_t bad = 0;
  std::string first_bad = {};
};

/// Says what all rows must be alike in.
struct RowKind {
  ExampleKind kind = ExampleKind::text;
  bool labelled = false;
};

class StreamSource {
 public:
  /// See StreamedDataset's constructor.
  StreamSource(std::span<const DataPath> files, DataFileOptions options, std::int64_t held_out);

  struct File {
    DataPath data;
    RowIndex index;
    const RowReaderKind* reader;  ///< null for a .txt
    std::int64_t rows;            ///< that are trained on, from the first
  };
  const std::vector<File>& files() const { return files_; }
  /// Rows of an epoch, with the files' weights.
  std::int64_t epoch_size() const;

  /// Names a row of a file.
  struct Place {
    std::size_t file;
    std::int64_t row;
  };
  /// The rows of an epoch by their positions in its order, 0 to epoch_size() - 1.
  class Order {
   public:
    Order(const StreamSource& source, std::uint64_t seed, std::uint64_t epoch);
    Place operator[](std::int64_t position) const;

   private:
    const StreamSource* source_;
    Permutation all_;
    std::vector<Permutation> parts_;  ///< of each file: what a pass draws that is not whole
  };

  /// Reads a row into `to`, unless there is nothing in it or it is bad and such rows are skipped. Returns the
  /// bytes read. `kind`, where it is not null, says what it must be. Throws FileError.
  std::size_t read(Place place, ExampleSet& to, RowLosses& losses, const RowKind* kind) const;
  /// Makes an empty set for the examples of a file.
  ExampleSet set_for(std::size_t file) const;

 private:
  DataFileOptions options_;
  std::vector<File> files_;
};

}  // namespace caldera::detail
